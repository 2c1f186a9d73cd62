//! Differentiation and optimisation as e-graph rewrites, and extraction.
