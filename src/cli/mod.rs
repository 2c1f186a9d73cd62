//! Commands only: no logic that a library user would miss.
