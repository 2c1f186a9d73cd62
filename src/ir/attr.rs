//! Compile-time attributes of operators.

use std::fmt;

use super::types::{DType, TensorType};

/// An `f64` compared by its bits, so that attributes can be hashed and ordered. All NaNs are one value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct F64Bits(u64);

impl F64Bits {
    pub fn new(value: f64) -> Self {
        if value.is_nan() { Self(f64::NAN.to_bits()) } else { Self(value.to_bits()) }
    }

    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl PartialOrd for F64Bits {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for F64Bits {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.get().total_cmp(&other.get())
    }
}

impl fmt::Debug for F64Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttrValue {
    Bool(bool),
    Int(i64),
    Float(F64Bits),
    Ints(Vec<i64>),
    DType(DType),
    Type(TensorType),
    Word(String),
}

impl AttrValue {
    pub fn float(value: f64) -> Self {
        AttrValue::Float(F64Bits::new(value))
    }

    /// What it is, for messages: "an integer", "a list of integers".
    pub fn describe(&self) -> &'static str {
        match self {
            AttrValue::Bool(_) => "true or false",
            AttrValue::Int(_) => "an integer",
            AttrValue::Float(_) => "a number",
            AttrValue::Ints(_) => "a list of integers",
            AttrValue::DType(_) => "a dtype",
            AttrValue::Type(_) => "a tensor type",
            AttrValue::Word(_) => "a word",
        }
    }

    pub fn as_int(&self) -> Option<i64> {
        match self {
            AttrValue::Int(i) => Some(*i),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            AttrValue::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// A float, or an integer taken as one.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            AttrValue::Float(v) => Some(v.get()),
            AttrValue::Int(i) => Some(*i as f64),
            _ => None,
        }
    }

    pub fn as_ints(&self) -> Option<&[i64]> {
        match self {
            AttrValue::Ints(v) => Some(v),
            _ => None,
        }
    }

    pub fn as_type(&self) -> Option<&TensorType> {
        match self {
            AttrValue::Type(t) => Some(t),
            _ => None,
        }
    }
}

/// Prints a float so that it reads back as the same float and never as an integer.
pub fn format_float(v: f64) -> String {
    if v.is_nan() {
        "nan".into()
    } else if v.is_infinite() {
        if v > 0.0 { "inf".into() } else { "-inf".into() }
    } else if v != 0.0 && (v.abs() < 1e-5 || v.abs() >= 1e16) {
        format!("{v:e}")
    } else {
        format!("{v:?}")
    }
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Bool(b) => write!(f, "{b}"),
            AttrValue::Int(i) => write!(f, "{i}"),
            AttrValue::Float(v) => f.write_str(&format_float(v.get())),
            AttrValue::Ints(v) => write!(f, "{v:?}"),
            AttrValue::DType(d) => write!(f, "{d}"),
            AttrValue::Type(t) => write!(f, "{t}"),
            AttrValue::Word(w) => f.write_str(w),
        }
    }
}

/// What an attribute must be. Axes and permutations refer to operand 0 of the call; where there is none, to its `shape`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    Bool,
    Int,
    /// A float; an integer literal is taken as one.
    Float,
    /// One axis of operand 0: `Int`, 0 <= axis < rank in the IR; programs may count from the end.
    Axis,
    /// Where a new axis goes: `Int`, 0 <= axis <= rank of operand 0; programs may count from the end of the result.
    NewAxis,
    /// Distinct ascending axes of operand 0: `Ints`; programs may also write one integer or count from the end.
    Axes,
    /// A shape: `Ints`, none negative.
    Shape,
    /// One integer for each axis of operand 0: `Ints`.
    PerAxis,
    /// A permutation of the axes of operand 0: `Ints`.
    Permutation,
    DType,
    /// A tensor type; programs write `like=x`, rules `type(x)`.
    Type,
    /// One of the words that the parameter lists.
    Word,
}

impl AttrKind {
    /// Is the value in the form that the kind asks for?
    pub fn accepts(self, value: &AttrValue) -> bool {
        matches!(
            (self, value),
            (AttrKind::Bool, AttrValue::Bool(_))
                | (AttrKind::Int | AttrKind::Axis | AttrKind::NewAxis, AttrValue::Int(_))
                | (AttrKind::Axes | AttrKind::Shape | AttrKind::PerAxis | AttrKind::Permutation, AttrValue::Ints(_))
                | (AttrKind::DType, AttrValue::DType(_))
                | (AttrKind::Type, AttrValue::Type(_))
                | (AttrKind::Float, AttrValue::Float(_))
                | (AttrKind::Word, AttrValue::Word(_))
        )
    }

    /// Brings a value into the form the kind asks for: an integer for a list of one axis, an integer for a float.
    /// Returns the value unchanged in `Err` if it is of the wrong kind.
    pub fn coerce(self, value: AttrValue) -> Result<AttrValue, AttrValue> {
        if self.accepts(&value) {
            return Ok(value);
        }
        match (self, value) {
            (AttrKind::Float, AttrValue::Int(i)) => Ok(AttrValue::float(i as f64)),
            (AttrKind::Axes, AttrValue::Int(i)) => Ok(AttrValue::Ints(vec![i])),
            (_, v) => Err(v),
        }
    }

    /// For messages: "an axis", "a list of axes".
    pub fn describe(self) -> &'static str {
        match self {
            AttrKind::Bool => "true or false",
            AttrKind::Int => "an integer",
            AttrKind::Float => "a number",
            AttrKind::Axis | AttrKind::NewAxis => "an axis (an integer)",
            AttrKind::Axes => "an axis or a list of axes",
            AttrKind::Shape => "a shape (a list of integers)",
            AttrKind::PerAxis => "a list of integers, one for each axis",
            AttrKind::Permutation => "a permutation (a list of axes)",
            AttrKind::DType => "a dtype",
            AttrKind::Type => "a tensor type",
            AttrKind::Word => "a word",
        }
    }
}
