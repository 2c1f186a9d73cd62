//! Running: compiled code, array files, generated inputs.
