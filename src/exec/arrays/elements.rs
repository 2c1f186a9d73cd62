//! Elements as files store them: dense, in one of two byte orders.

use std::io::{self, Read, Write};

use super::{ArrayErrorCause, Tensor};
use crate::ir::{DType, Shape};

/// In which order the bytes of an element stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// That of this machine.
    pub const NATIVE: Order = if cfg!(target_endian = "big") { Order::Big } else { Order::Little };
}

/// Reads as many elements as the shape has. Memory is asked for at once, but committed only as elements arrive: see
/// [`Tensor::zeros`].
pub(super) fn read(
    reader: &mut impl Read,
    dtype: DType,
    shape: Shape,
    order: Order,
) -> Result<Tensor, ArrayErrorCause> {
    let mut tensor = Tensor::zeros(dtype, shape)?;
    let bytes = tensor.as_bytes_mut();
    let announced = bytes.len() as u64;
    let found = read_until_full(reader, bytes).map_err(ArrayErrorCause::Read)?;
    if found < announced {
        return Err(ArrayErrorCause::Truncated { announced, found });
    }
    if order != Order::NATIVE {
        bytes.chunks_exact_mut(dtype.size() as usize).for_each(<[u8]>::reverse);
    }
    if dtype == DType::Bool {
        // NumPy reads any byte but zero as true; compiled code wants 1.
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Ok(tensor)
}

/// Fills `buffer` as far as the reader goes; returns how far that is.
pub(super) fn read_until_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<u64> {
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

/// Writes the elements in a byte order.
pub(super) fn write(writer: &mut impl Write, tensor: &Tensor, order: Order) -> io::Result<()> {
    let bytes = tensor.as_bytes();
    if order == Order::NATIVE {
        return writer.write_all(bytes);
    }
    let mut swapped = [0; 8];
    for element in bytes.chunks_exact(tensor.dtype().size() as usize) {
        let swapped = &mut swapped[..element.len()];
        swapped.copy_from_slice(element);
        swapped.reverse();
        writer.write_all(swapped)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Data;

    #[test]
    fn both_byte_orders_are_written_and_read() {
        let tensor = Tensor::new(Shape::new(vec![2]).unwrap(), Data::I32(vec![1, -2])).unwrap();
        for (order, first) in [(Order::Little, [1, 0, 0, 0]), (Order::Big, [0, 0, 0, 1])] {
            let mut bytes = Vec::new();
            write(&mut bytes, &tensor, order).unwrap();
            assert_eq!(bytes[..4], first);
            let back = read(&mut &bytes[..], DType::I32, tensor.shape().clone(), order).unwrap();
            assert_eq!(back, tensor);
        }
    }
}
