//! One array: header and elements.

use std::io::{self, Read, Write};

use super::header::{self, Header};
use super::{ArrayErrorCause, Tensor};
use crate::ir::Shape;

/// Longest header that is read. NumPy writes less than 10,000 bytes, and refuses more by default.
const MAX_HEADER: u32 = 1 << 16;

/// Reads an array of which `length` bytes are there, if that is known beforehand.
pub(super) fn read(reader: &mut impl Read, length: Option<u64>) -> Result<Tensor, ArrayErrorCause> {
    let (header, taken) = read_header(reader)?;
    let announced = header.shape.elements() * header.dtype.size();
    if let Some(found) = length.map(|l| l.saturating_sub(taken)) {
        if found < announced {
            return Err(ArrayErrorCause::Truncated { announced, found });
        }
        if found > announced {
            return Err(ArrayErrorCause::TooLong { announced });
        }
    }
    // Where the length is not known (a pipe) or not to be believed (an archive), memory is still committed only as
    // the elements arrive: see `Tensor::zeros`.
    let mut tensor = Tensor::zeros(header.dtype, header.shape.clone())?;
    let found = read_until_full(reader, tensor.as_bytes_mut()).map_err(ArrayErrorCause::Read)?;
    if found < announced {
        return Err(ArrayErrorCause::Truncated { announced, found });
    }
    // Reading to the end is also what makes an archive compare its checksum.
    if read_until_full(reader, &mut [0]).map_err(ArrayErrorCause::Read)? != 0 {
        return Err(ArrayErrorCause::TooLong { announced });
    }
    if header.big_endian != cfg!(target_endian = "big") {
        let size = header.dtype.size() as usize;
        tensor.as_bytes_mut().chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    if header.fortran_order && header.shape.rank() > 1 {
        tensor = to_row_major(&tensor, &header.shape)?;
    }
    if header.dtype == crate::ir::DType::Bool {
        // NumPy reads any byte but zero as true; compiled code wants 1.
        tensor.as_bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Ok(tensor)
}

/// The header, and how many bytes it took.
fn read_header(reader: &mut impl Read) -> Result<(Header, u64), ArrayErrorCause> {
    let mut start = [0; 8];
    let found = read_until_full(reader, &mut start).map_err(ArrayErrorCause::Read)?;
    if found < 8 || !start.starts_with(b"\x93NUMPY") {
        return Err(ArrayErrorCause::NotNpy { archive: start.starts_with(b"PK\x03\x04") });
    }
    let short = |_: io::Error| ArrayErrorCause::Header("the file ends within it".into());
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
        return Err(ArrayErrorCause::Header(format!("{length} bytes long, more than {MAX_HEADER}")));
    }
    let mut text = vec![0; length as usize];
    reader.read_exact(&mut text).map_err(short)?;
    Ok((header::parse(&text)?, preamble + u64::from(length)))
}

/// Fills `buffer` as far as the reader goes; returns how far that is.
fn read_until_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<u64> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled as u64)
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

/// Writes the elements in the byte order that `header::encode` announces.
pub(super) fn write_elements(writer: &mut impl Write, tensor: &Tensor) -> io::Result<()> {
    writer.write_all(tensor.as_bytes())
}
