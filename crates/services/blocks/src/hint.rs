//! What a program says of a path of its session.

use skyhaul_units::{Duration, Probability, Rate};

/// A program's hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HintRequest {
    /// Its number, under which the answer comes: the program's choice.
    pub number: u64,
    /// The path, by its place among those of the node to the peer.
    pub path: u8,
    /// What it says.
    pub says: ProgramHint,
}

/// What a program knows of a path, from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramHint {
    /// It carries this rate, counted in IP packets.
    Rate {
        /// The rate.
        rate: Rate,
        /// For so long it carries no more; none until its rate was measured.
        lasts: Option<Duration>,
    },
    /// It loses at least this share of datagrams.
    Loss {
        /// The share.
        loss: Probability,
        /// For so long.
        lasts: Duration,
    },
    /// What this program said before holds no more.
    Withdraw,
}
