//! A node goes on in another process, of another version of the program, without losing what its
//! live inputs bring.
//!
//! ```text
//!  old process                                     new process
//!  lets its inputs catch up, if they came from
//!  another upgrade
//!  starts it ─────────────────────────────────────► reads and checks the configuration
//!  goes on as before             ◄── ready ──────── holds nothing yet
//!  ends its threads; a thread for each live input
//!  writes down what that brings; its sockets for
//!  calls stay bound, and nobody reads them
//!                                ── inputs ───────► opens the state folder, starts the node, and
//!                                                   reads the sockets for calls
//!                                ◄── running ────── its channels wait
//!  stops reading                 ── go ───────────►
//!  ends                          ◄── taken ──────── reads the rest, then the sockets
//! ```
//!
//! Until `taken` the old process has everything that it needs to go on by itself: the sockets, what
//! they brought, and the state folder once the new process is gone. It ends that one first, so that
//! no two processes ever use one state folder.
//!
//! Both ends of the talk are a pair of sockets without a name, which the new process has as its
//! standard input: nobody else can join.

mod backlog;
mod messages;
mod new_side;
mod order;
mod outcome;
mod pair;
mod program;
mod slot;
mod sockets;

#[cfg(test)]
pub(crate) use backlog::held;
pub use backlog::{BacklogHead, BacklogKind, BacklogReader, BacklogWriter, MAX_ENTRY};
pub use messages::{
    FromNew, FromOld, MAX_MESSAGE, OldSide, PROTOCOL, PassedInput, PassedKind, PassedSocket,
    PassedSource,
};
pub(crate) use new_side::HandedInput;
pub use new_side::{HandedInputs, NewSide};
pub use order::UpgradeDesk;
pub(crate) use order::UpgradeOrder;
pub use outcome::failures;
pub(crate) use outcome::note_failure;
pub(crate) use program::NewProgram;
pub use program::ProgramCommand;
pub(crate) use slot::{GivenSource, SourceSlot};
pub use sockets::CallOrigin;
pub(crate) use sockets::{HandedSocket, KeptSocket};
