//! Typed graph and schedule to host linalg.
