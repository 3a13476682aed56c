//! The block service of a node on its socket.
//!
//! The node runs a [`BlockServer`]: one thread, which takes programs' blocks and hands them to the
//! node's sessions ([`BlockLine`]), and tells programs what became of them. A program has a
//! [`LocalNode`], whose sessions have the calls of one that it would open itself.
//!
//! ```
//! use skyhaul_blocks_io::LocalNode;
//! # fn main() {
//! let no_service = LocalNode::at("/nowhere/blocks.sock".as_ref(), "camera");
//! assert!(no_service.is_err());
//! # }
//! ```

mod entrance;
mod line;
mod link;
mod local;
mod local_link;
mod memory;
mod notices;
mod packet;
mod server;
mod status;
mod turns;
mod waiting;

pub use line::{ArrivedLineBlock, BlockLine, HintTaker, LineChannel, LineNames};
pub use line::{SessionsLine, TakeHint};
pub use local::{LocalError, LocalNode};
pub use notices::{EntranceNotice, ProgramNotice};
pub use server::{BlockServer, ServerSetup};
pub use status::{ProgramState, ProgramStatus};
