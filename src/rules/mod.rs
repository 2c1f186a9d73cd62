//! Rule files to compiled rules.
