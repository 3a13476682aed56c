//! The block service and its programs.

use serde::{Deserialize, Serialize};

/// The block service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlocksStatus {
    /// Its socket file.
    pub socket: String,
    /// Its programs, as of the last second, in the order in which they came.
    pub programs: Vec<ProgramShown>,
}

/// A program at the block service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramShown {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// `new`: it has said nothing yet; `listening`: it waits for sessions; `waiting`: its session
    /// is not open yet; `open`; `unread`: it does not read what the node sends.
    pub state: String,
    /// The peer of its session.
    pub peer: String,
    /// What it sends, in bits per second.
    pub rate_bps: u64,
    /// Blocks taken of it.
    pub taken: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks of it that arrived.
    pub delivered: u64,
    /// Blocks of it that were given up.
    pub expired: u64,
    /// Blocks of it that were not accepted.
    pub refused: u64,
    /// Memory that its blocks without a fate take.
    pub held_bytes: u64,
    /// Blocks that it was given.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
}
