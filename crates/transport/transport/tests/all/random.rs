//! Sessions over anything, and what must hold whatever happens.

pub mod case;
pub mod chance;
pub mod line;
mod settings;
pub mod world;
