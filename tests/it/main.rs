//! Integration tests: the program `kina-ad` as its users run it. One binary, because linking MLIR is slow.

mod conformance;
