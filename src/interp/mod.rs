//! The reference interpreter, one operator at a time.
