//! The two ends against each other, and the whole over a simulated line.

mod ends;
mod simulation;
