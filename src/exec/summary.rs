//! Tensors in a line each, for people.

use std::fmt::Write as _;

use super::inputs::{Input, InputSource};
use super::tensor::{Data, Tensor};

/// Elements shown of a large tensor.
const SHOWN: usize = 8;

/// `logits   F32 [1, 4, 8]  generated: standard normal, seed 0`.
pub fn input_line(input: &Input, seed: u64) -> String {
    let source = match input.source {
        InputSource::Given => "given".to_owned(),
        InputSource::GeneratedIndices(bound) => format!("generated: uniform in 0..{bound}, seed {seed}"),
        InputSource::Generated if input.ty.dtype.is_float() => format!("generated: standard normal, seed {seed}"),
        InputSource::Generated => format!("generated, seed {seed}"),
    };
    format!("{:12} {} {}  {source}\n", input.name, input.ty.dtype, input.ty.shape)
}

/// Name, type, the first elements, and for large float tensors the least and the greatest.
pub fn result_line(name: &str, tensor: &Tensor) -> String {
    let mut out = format!("{name:12} {} {}", tensor.dtype(), tensor.shape());
    let texts = elements(tensor, SHOWN);
    let more = if tensor.data().len() > SHOWN { ", .." } else { "" };
    if tensor.shape().rank() == 0 {
        let _ = write!(out, " = {}", texts.join(""));
    } else {
        let _ = write!(out, " = [{}{more}]", texts.join(", "));
    }
    if let (false, Some((least, greatest))) = (more.is_empty(), extremes(tensor)) {
        let _ = write!(out, "  min {} max {}", number(least), number(greatest));
    }
    out.push('\n');
    out
}

/// Five significant digits, on which f32 runs of any level and machine agree for well-conditioned programs.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let exponent = value.abs().log10().floor();
    if (-4.0..9.0).contains(&exponent) {
        let decimals = (4.0 - exponent).clamp(0.0, 9.0) as usize;
        let text = format!("{value:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{value:.4e}")
    }
}

fn elements(tensor: &Tensor, limit: usize) -> Vec<String> {
    match tensor.data() {
        Data::Bool(v) => v.iter().take(limit).map(|b| (*b != 0).to_string()).collect(),
        Data::I32(v) => v.iter().take(limit).map(ToString::to_string).collect(),
        Data::I64(v) => v.iter().take(limit).map(ToString::to_string).collect(),
        Data::F32(v) => v.iter().take(limit).map(|x| number(f64::from(*x))).collect(),
        Data::F64(v) => v.iter().take(limit).map(|x| number(*x)).collect(),
    }
}

fn extremes(tensor: &Tensor) -> Option<(f64, f64)> {
    let fold = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), v| {
            // A NaN anywhere shows in both.
            if v.is_nan() || least.is_nan() { (f64::NAN, f64::NAN) } else { (least.min(v), greatest.max(v)) }
        })
    };
    match tensor.data() {
        Data::F32(v) => Some(fold(&mut v.iter().map(|x| f64::from(*x)))),
        Data::F64(v) => Some(fold(&mut v.iter().copied())),
        _ => None,
    }
}

/// The first `limit` elements as JSON; NaN and infinities, which JSON lacks, as text.
pub fn values(tensor: &Tensor, limit: usize) -> Vec<serde_json::Value> {
    use serde_json::json;
    let float = |x: f64| if x.is_finite() { json!(x) } else { json!(x.to_string()) };
    match tensor.data() {
        Data::Bool(v) => v.iter().take(limit).map(|b| json!(*b != 0)).collect(),
        Data::I32(v) => v.iter().take(limit).map(|x| json!(x)).collect(),
        Data::I64(v) => v.iter().take(limit).map(|x| json!(x)).collect(),
        Data::F32(v) => v.iter().take(limit).map(|x| float(f64::from(*x))).collect(),
        Data::F64(v) => v.iter().take(limit).map(|x| float(*x)).collect(),
    }
}
