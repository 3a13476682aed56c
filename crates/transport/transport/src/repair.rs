//! FEC repair: recovers lost symbol datagrams without a round trip.
//!
//! A protected datagram carries a [`Sid`], a number that the sender counts up for each path.
//! Protected datagrams form groups; a [`RepairSymbol`] names its group and carries one coded symbol
//! of it. Of each source, `u16 length ‖ datagram without its sid` is coded, zero-padded to the
//! longest of the group, so that recovery yields a whole datagram, as if it had arrived. The code
//! is [`skyhaul_coding::erasure`]: any k of a group's symbols are enough.
//!
//! - [`LossMeter`]: share and burst length of the losses, from the fate of each datagram in the
//!   order of sending.
//! - [`Planner`]: group size, number of repair symbols and datagram size, from loss, deadline,
//!   round trip and spare rate.
//! - [`Coder`] and [`RepairDecoder`]: encoder and decoder of one path, which know nothing of blocks
//!   or sessions.
//! - [`repetition`]: copies of a missing symbol as its deadline nears.
//!
//! ```
//! use bytes::Bytes;
//! use skyhaul_transport::repair::{Coder, RepairDecoder, LossEstimate, Planner, Situation};
//! use skyhaul_units::{Duration, Instant, Rate};
//! let plan = Planner::default().plan(&Situation {
//!     loss: LossEstimate::assumed("5 %".parse()?),
//!     rtt: Some(Duration::from_millis(600)),
//!     slack: Duration::from_millis(60),
//!     flow: Rate::from_mbps(20),
//!     spare: Rate::from_mbps(20),
//!     payload: 1_430,
//! });
//! let (mut coder, mut decoder) = (Coder::new(), RepairDecoder::new());
//! coder.adopt(plan);
//! let due = Instant::ZERO + Duration::from_millis(60);
//! for number in 0..20u8 {
//!     let content = Bytes::from(vec![number; 100]);
//!     let sid = coder.protect(Instant::ZERO, &content, Some(due));
//!     if number != 7 {
//!         decoder.source(sid, content);
//!     }
//! }
//! // The path has room, and the group's time is over.
//! while let Some(symbol) = coder.poll(due) {
//!     decoder.repair(symbol);
//! }
//! assert_eq!(decoder.poll().map(|(_, content)| content[0]), Some(7));
//! # Ok::<(), skyhaul_units::ParseError>(())
//! ```
//!
//! Against bursts of loss, datagrams are distributed round robin to several groups: the sources of
//! a group are then `stride` numbers apart (interleaving).

mod coder;
mod decoder;
mod group;
mod history;
mod losses;
mod meter;
mod plan;
mod recent;
pub mod repetition;
#[cfg(test)]
mod tests;

pub(crate) use coder::RETAINED_MAX;
pub use coder::{Coder, CoderCounters};
pub(crate) use decoder::REPAIRS_MAX;
pub use decoder::{DecoderCounters, RepairDecoder};
pub(crate) use losses::GroupLosses;
pub use losses::RepairTable;
pub use meter::{DatagramFate, LossEstimate, LossMeter};
pub use plan::{Goal, Planner, RepairPlan, Situation};

use bytes::Bytes;

/// The coding number of a protected datagram: 24 bits, counted up for each path, and from the last
/// to zero again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sid(u32);

impl Sid {
    /// From the number on the wire; bits above the lowest 24 are dropped.
    pub const fn from_wire(number: u32) -> Self {
        Self(number & MASK)
    }

    /// The number on the wire, below 2^24.
    pub const fn to_wire(self) -> u32 {
        self.0
    }

    const fn of(full: u64) -> Self {
        Self((full & MASK as u64) as u32)
    }

    /// The full number with these low bits that is nearest to `near`.
    const fn full(self, near: u64) -> u64 {
        let ahead = (self.0 as u64).wrapping_sub(near) & MASK as u64;
        if ahead <= MASK as u64 / 2 {
            near.saturating_add(ahead)
        } else {
            near.saturating_sub(MASK as u64 + 1 - ahead)
        }
    }
}

/// One coded symbol of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairSymbol {
    /// The group's first source.
    pub first: Sid,
    /// Sources in the group, 1 to 255.
    pub count: u8,
    /// How far apart the numbers of the group's sources are, 1 to [`STRIDE_MAX`].
    pub stride: u8,
    /// Which of the group's repair symbols; `count` + `index` is at most 255.
    pub index: u8,
    /// The coded bytes.
    pub bytes: Bytes,
}

/// Most groups among which datagrams are distributed: enough against bursts of a few dozen
/// datagrams.
pub const STRIDE_MAX: u8 = 16;

/// Headers of IP, UDP and QUIC below a symbol datagram.
pub const UNDER_SYMBOL: usize = 62;

/// Bytes of a repair symbol's type, group and index on the wire: 1 + 3 + 1 + 1 + 1.
pub const REPAIR_HEADER: usize = 7;

/// Bytes of the length in front of each coded source.
const LENGTH: usize = 2;

/// Bytes of datagrams that a decoder keeps, the newest one included.
pub(crate) const DECODER_MAX: u64 = history::HISTORY_BYTES_MAX as u64 + (1 << 16);

const MASK: u32 = (1 << 24) - 1;
