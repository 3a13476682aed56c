//! How an endpoint's turn to receive or to send has ended.

use skyhaul_units::{ByteCount, Duration};

/// How much had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arrived {
    Nothing,
    /// Less than [`PLENTY`], and all of it was taken.
    Little,
    Plenty,
    /// More than is taken in one turn.
    More,
}

/// How much of what was ready has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    /// Nothing was ready, or the sockets are full.
    Nothing,
    /// All that was ready.
    All,
    /// As much as is sent in one turn; there may be more.
    Part,
}

/// How long a thread that ends waits for its closing datagrams: all copies of one leave within
/// 400 ms.
pub(crate) const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// 64 datagrams of 1500 bytes are not gathered: waking up for them costs less than processing them,
/// and what comes meanwhile might not fit the socket.
const PLENTY: ByteCount = ByteCount::kib(96);

impl Arrived {
    /// All of so much was taken.
    pub(crate) fn all(taken: ByteCount) -> Self {
        match taken {
            ByteCount::ZERO => Self::Nothing,
            taken if taken < PLENTY => Self::Little,
            _ => Self::Plenty,
        }
    }
}
