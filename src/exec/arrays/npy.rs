//! One array without a name: header and elements.

use std::io::{self, Read};

use super::elements::{self, read_until_full};
use super::header::{self, Header};
use super::{ArrayErrorCause, Tensor, Wanted};
use crate::ir::Shape;

/// What every `.npy` file starts with.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is read. NumPy writes less than 10,000 bytes, and refuses more by default.
const MAX_HEADER: u32 = 1 << 16;

/// Reads an array of which `length` bytes are there, if that is known beforehand. Its elements are read only if it is
/// what is wanted.
pub(super) fn read(
    reader: &mut impl Read,
    length: Option<u64>,
    wanted: Option<Wanted<'_>>,
) -> Result<Tensor, ArrayErrorCause> {
    let (header, taken) = read_header(reader)?;
    if let Some(wanted) = wanted {
        wanted.check(header.dtype, &header.shape)?;
    }
    let announced = header.shape.elements() * header.dtype.size();
    if let Some(found) = length.map(|l| l.saturating_sub(taken)) {
        if found < announced {
            return Err(ArrayErrorCause::Truncated { announced, found });
        }
        if found > announced {
            return Err(ArrayErrorCause::TooLong { announced });
        }
    }
    let tensor = elements::read(reader, header.dtype, header.shape.clone(), header.order)?;
    // Reading to the end is also what makes an archive compare its checksum.
    if read_until_full(reader, &mut [0]).map_err(ArrayErrorCause::Read)? != 0 {
        return Err(ArrayErrorCause::TooLong { announced });
    }
    if header.fortran_order && header.shape.rank() > 1 { to_row_major(&tensor, &header.shape) } else { Ok(tensor) }
}

/// The header, and how many bytes it took.
fn read_header(reader: &mut impl Read) -> Result<(Header, u64), ArrayErrorCause> {
    let mut start = [0; 8];
    let found = read_until_full(reader, &mut start).map_err(ArrayErrorCause::Read)?;
    if found < 8 || !start.starts_with(MAGIC) {
        return Err(ArrayErrorCause::NotNpy);
    }
    let short = |_: io::Error| header::malformed("the file ends within it");
    let (length, preamble) = match (start[6], start[7]) {
        (1, 0) => {
            let mut bytes = [0; 2];
            reader.read_exact(&mut bytes).map_err(short)?;
            (u32::from(u16::from_le_bytes(bytes)), 10)
        }
        (2 | 3, 0) => {
            let mut bytes = [0; 4];
            reader.read_exact(&mut bytes).map_err(short)?;
            (u32::from_le_bytes(bytes), 12)
        }
        (major, minor) => return Err(ArrayErrorCause::Version { major, minor }),
    };
    if length > MAX_HEADER {
        return Err(header::malformed(format!("{length} bytes long, more than {MAX_HEADER}")));
    }
    let mut text = vec![0; length as usize];
    reader.read_exact(&mut text).map_err(short)?;
    Ok((header::parse(&text)?, preamble + u64::from(length)))
}

/// Elements stored first axis fastest, put into row-major order.
fn to_row_major(stored: &Tensor, shape: &Shape) -> Result<Tensor, ArrayErrorCause> {
    let mut tensor = Tensor::zeros(stored.dtype(), shape.clone())?;
    let size = stored.dtype().size() as usize;
    let from = stored.as_bytes();
    // Strides in bytes of the stored elements. They exist in memory, so nothing overflows.
    let mut strides = Vec::with_capacity(shape.rank());
    let mut stride = size;
    for d in shape.iter() {
        strides.push(stride);
        stride *= *d as usize;
    }
    // An odometer over the destination; `at` is the place of its point in `from`.
    let mut point = vec![0_u64; shape.rank()];
    let mut at = 0;
    for element in tensor.as_bytes_mut().chunks_exact_mut(size) {
        element.copy_from_slice(&from[at..at + size]);
        for axis in (0..shape.rank()).rev() {
            point[axis] += 1;
            at += strides[axis];
            if point[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * point[axis] as usize;
            point[axis] = 0;
        }
    }
    Ok(tensor)
}
