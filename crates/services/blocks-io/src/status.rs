//! What is shown of programs.

use skyhaul_blocks::ProgramCounters;

/// A program at the block service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStatus {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// What it does.
    pub state: ProgramState,
    /// The peer of its session; empty where it listens.
    pub peer: String,
    /// What it has sent.
    pub sent: ProgramCounters,
    /// Blocks that it was given.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Bits a second that it sent since the last update.
    pub rate_bps: u64,
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramState {
    /// It has said nothing yet.
    New,
    /// It waits for sessions.
    Listening,
    /// Its session is not open yet.
    Waiting,
    /// Its session is open.
    Open,
    /// It does not read what the node sends.
    Unread,
}
