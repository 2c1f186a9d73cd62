//! The command line of kina-ad.

fn main() {}
