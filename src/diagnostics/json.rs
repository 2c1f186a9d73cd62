//! Diagnostics for programs.

use serde_json::{Value, json};

use super::{Diagnostics, Label, Severity, SourceMap};

/// Version of the schema documented in `docs/diagnostics.md`; raised when a field changes meaning.
pub const JSON_VERSION: u32 = 1;

/// `{"version": 1, "diagnostics": [..], "omitted": 0}`.
pub fn to_json(bag: &Diagnostics, sources: &SourceMap) -> Value {
    let label = |l: &Label| {
        let position = sources.position(l.span);
        json!({
            "file": &*sources.file(l.span.file).name,
            "line": position.line,
            "column": position.column,
            "start": l.span.start,
            "end": l.span.end,
            "text": l.text,
        })
    };
    let list: Vec<Value> = bag
        .iter()
        .map(|d| {
            json!({
                "code": d.code,
                "severity": match d.severity { Severity::Error => "error", Severity::Warning => "warning" },
                "message": d.message,
                "primary": d.primary.as_ref().map(label),
                "secondary": d.secondary.iter().map(label).collect::<Vec<_>>(),
                "notes": d.notes,
                "help": d.help,
            })
        })
        .collect();
    json!({ "version": JSON_VERSION, "diagnostics": list, "omitted": bag.omitted() })
}
