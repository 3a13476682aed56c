//! Blocks over paths: symbols, reports, repair, flow control. Sans-IO: time and bytes are arguments.

mod path;

pub use path::{DownReason, Estimate, Path, PathEvent, PathId, Token};
