//! The header of an `.npy` file: a Python dictionary with the keys `descr`, `fortran_order` and `shape`.
//!
//! Only that dictionary is read, not Python: there is no nesting, so no recursion, and every number is bounded. (General
//! literal parsers take exponential time or overflow on headers made for it.)

use super::ArrayErrorCause;
use super::elements::Order;
use crate::ir::types::MAX_RANK;
use crate::ir::{DType, Shape};

/// How the elements after the header are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub dtype: DType,
    pub order: Order,
    /// First axis fastest.
    pub fortran_order: bool,
    pub shape: Shape,
}

pub(super) fn malformed(what: impl Into<String>) -> ArrayErrorCause {
    ArrayErrorCause::Header { format: "npy", what: what.into() }
}

/// The dictionary of the text after the magic, version and length.
pub(super) fn parse(text: &[u8]) -> Result<Header, ArrayErrorCause> {
    let mut at = Cursor { rest: text };
    let (mut descr, mut fortran_order, mut dims) = (None, None, None);
    at.token(b"{")?;
    while !at.take(b"}") {
        let key = at.string()?;
        at.token(b":")?;
        let first = match key {
            b"descr" => descr.replace(at.descr()?).is_none(),
            b"fortran_order" => fortran_order.replace(at.boolean()?).is_none(),
            b"shape" => dims.replace(at.shape()?).is_none(),
            other => return Err(malformed(format!("unknown key {}", quoted(other)))),
        };
        if !first {
            return Err(malformed(format!("the key {} is there twice", quoted(key))));
        }
        if !at.take(b",") {
            at.token(b"}")?;
            break;
        }
    }
    at.skip_space();
    if !at.rest.is_empty() {
        return Err(malformed("something follows the dictionary"));
    }
    let missing = |key: &str| malformed(format!("the key '{key}' is missing"));
    let (dtype, order) = descr.ok_or_else(|| missing("descr"))?;
    let fortran_order = fortran_order.ok_or_else(|| missing("fortran_order"))?;
    let shape = Shape::new(dims.ok_or_else(|| missing("shape"))?)?;
    Ok(Header { dtype, order, fortran_order, shape })
}

/// Bytes of the text, made printable.
fn quoted(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(40)];
    format!("'{}'", shown.escape_ascii())
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        while let [b' ' | b'\t' | b'\r' | b'\n' | b'\x0c', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn take(&mut self, token: &[u8]) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn token(&mut self, token: &[u8]) -> Result<(), ArrayErrorCause> {
        if self.take(token) {
            return Ok(());
        }
        let wanted = String::from_utf8_lossy(token);
        let found = if self.rest.is_empty() { "the end".into() } else { quoted(&self.rest[..self.rest.len().min(12)]) };
        Err(malformed(format!("expected '{wanted}', found {found}")))
    }

    /// A string without escapes; the strings that matter have none.
    fn string(&mut self) -> Result<&'a [u8], ArrayErrorCause> {
        self.skip_space();
        let quote = match self.rest {
            [q @ (b'\'' | b'"'), ..] => *q,
            _ => return Err(malformed("expected a string")),
        };
        let body = &self.rest[1..];
        let end = body.iter().position(|b| *b == quote).ok_or_else(|| malformed("a string does not end"))?;
        self.rest = &body[end + 1..];
        Ok(&body[..end])
    }

    fn boolean(&mut self) -> Result<bool, ArrayErrorCause> {
        if self.take(b"True") {
            Ok(true)
        } else if self.take(b"False") {
            Ok(false)
        } else {
            Err(malformed("fortran_order must be True or False"))
        }
    }

    fn shape(&mut self) -> Result<Vec<u64>, ArrayErrorCause> {
        let mut dims = Vec::new();
        self.token(b"(")?;
        while !self.take(b")") {
            self.skip_space();
            let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let (number, rest) = self.rest.split_at(digits);
            let number = std::str::from_utf8(number).unwrap_or_default();
            let dim = number.parse().map_err(|_| match digits {
                0 => malformed("a dimension is not a number"),
                _ => malformed(format!("the dimension {} is too large", quoted(number.as_bytes()))),
            })?;
            // Python 2 wrote its long integers as 3L.
            self.rest = rest.strip_prefix(b"L").unwrap_or(rest);
            dims.push(dim);
            if dims.len() > MAX_RANK {
                return Err(malformed(format!("more than {MAX_RANK} dimensions")));
            }
            if !self.take(b",") {
                self.token(b")")?;
                break;
            }
        }
        Ok(dims)
    }

    /// The dtype and its byte order.
    fn descr(&mut self) -> Result<(DType, Order), ArrayErrorCause> {
        self.skip_space();
        if matches!(self.rest, [b'[' | b'(', ..]) {
            let what = "a structured dtype";
            return Err(ArrayErrorCause::DType { name: "[..]".into(), what, convert: None });
        }
        let descr = self.string()?;
        let (order, kind) = match descr {
            [order @ (b'<' | b'>' | b'|' | b'='), kind @ ..] => (*order, kind),
            kind => (b'=', kind),
        };
        let dtype = match kind {
            b"b1" | b"?" => DType::Bool,
            b"i4" => DType::I32,
            b"i8" => DType::I64,
            b"f4" => DType::F32,
            b"f8" => DType::F64,
            _ => {
                let (what, convert) = describe(kind);
                let convert = convert.map(|dtype| format!("x.astype(numpy.{dtype})"));
                return Err(ArrayErrorCause::DType { name: quoted(descr), what, convert });
            }
        };
        let order = match order {
            b'>' => Order::Big,
            b'<' => Order::Little,
            // `|`: one byte has no order.
            _ => Order::NATIVE,
        };
        Ok((dtype, order))
    }
}

/// What a dtype of NumPy is that Kina does not have, and the dtype to convert it to.
fn describe(kind: &[u8]) -> (&'static str, Option<&'static str>) {
    match kind {
        [b'O', ..] => ("Python objects", None),
        [b'U', ..] => ("unicode text", None),
        [b'S' | b'a', ..] => ("byte strings", None),
        [b'V', ..] => ("raw bytes", None),
        [b'c', ..] => ("complex numbers", None),
        [b'M' | b'm', ..] => ("dates or times", Some("int64")),
        [b'f', b'2'] => ("half precision", Some("float32")),
        [b'f', ..] => ("extended precision", Some("float64")),
        [b'i', b'1' | b'2'] => ("small integers", Some("int32")),
        [b'u', b'1' | b'2'] => ("unsigned integers", Some("int32")),
        [b'u', ..] => ("unsigned integers", Some("int64")),
        _ => ("unknown", None),
    }
}

/// Magic, version 1.0, length and dictionary, padded to a multiple of 64 bytes as NumPy does. Elements follow in row-major
/// order, little-endian on every machine.
pub(super) fn encode(dtype: DType, shape: &Shape) -> Vec<u8> {
    let descr = match dtype {
        DType::Bool => "|b1",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    };
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple = match dims.as_slice() {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}, }}");
    let preamble = 10;
    let padded = (preamble + text.len() + 1).next_multiple_of(64) - preamble;
    text.extend(std::iter::repeat_n(' ', padded - text.len() - 1));
    text.push('\n');
    let mut bytes = Vec::from(b"\x93NUMPY\x01\x00");
    // At most MAX_RANK dimensions of 20 digits: two bytes are enough.
    bytes.extend((padded as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn reads_what_numpy_has_written_over_the_years() {
        let plain = parse(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!((plain.dtype, plain.order, plain.fortran_order), (DType::F32, Order::Little, false));
        assert_eq!(&*plain.shape, &[3, 4]);
        let old = parse(b"{\"shape\":(2L,),\"fortran_order\":True,\"descr\":\">i8\"}").unwrap();
        assert_eq!((old.dtype, old.order, old.fortran_order), (DType::I64, Order::Big, true));
        assert_eq!(&*old.shape, &[2]);
        assert_eq!(parse(b"{'descr': '|b1', 'fortran_order': False, 'shape': ()}").unwrap().shape.rank(), 0);
    }

    #[test]
    fn refuses_by_name() {
        let with = |descr: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}");
        assert!(fails(&with("'|O'")).contains("Python objects"));
        assert!(fails(&with("'<U5'")).contains("unicode"));
        assert!(fails(&with("'<c8'")).contains("complex"));
        assert!(fails(&with("'<f2'")).contains("half"));
        assert!(fails(&with("[('a', '<f4')]")).contains("structured"));
        assert!(fails("{'descr': '<f4', 'fortran_order': False}").contains("'shape' is missing"));
        assert!(fails("{'shape': (1,), 'shape': (1,)}").contains("twice"));
        assert!(fails("{'shape': (-1,)}").contains("not a number"));
        assert!(fails("{'shape': (99999999999999999999,)}").contains("too large"));
        assert!(fails(&format!("{{'shape': ({})}}", "1,".repeat(65))).contains("64 dimensions"));
        let many = "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
        assert!(fails(many).contains("too many elements"));
        assert!(fails("{'a\n\x1b[31m': 1}").contains("'a\\n\\x1b[31m'"), "control bytes are escaped");
        for text in ["", "{", "{'descr'", "{'descr': '", "{'shape': (", "[]", "{}x", "{'fortran_order': None}"] {
            assert!(fails(text).contains("malformed"), "{text}");
        }
    }

    #[test]
    fn encodes_what_it_reads() {
        for dtype in DType::ALL {
            for dims in [vec![], vec![7], vec![2, 0, 3], vec![1; 64]] {
                let shape = Shape::new(dims).unwrap();
                let bytes = encode(dtype, &shape);
                assert_eq!(bytes.len() % 64, 0);
                assert_eq!(usize::from(bytes[8]) + 256 * usize::from(bytes[9]) + 10, bytes.len());
                let header = parse(&bytes[10..]).unwrap();
                assert_eq!((header.dtype, header.shape), (dtype, shape));
            }
        }
    }
}
