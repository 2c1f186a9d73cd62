//! The order of execution, fusion groups and the buffer plan.
