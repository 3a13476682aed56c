//! Where a path is between the beginning of its setup and its end.
//!
//! ```text
//!            handshake confirmed, and the far end's greeting has come
//!   Setup ─────────────────────────────────────────────────────────► Up
//!     │                                                               │
//!     └──────────────► Over ◄── closed here or there, timed out ◄─────┘
//! ```

use crate::closing::Closing;
use skyhaul_transport::DownReason;

#[derive(Debug)]
pub(crate) enum PathState {
    Setup,
    Up,
    Over {
        /// `Some` until the end has been polled.
        reason: Option<DownReason>,
        closing: Closing,
    },
}

impl PathState {
    pub(crate) const fn is_setup(&self) -> bool {
        matches!(self, Self::Setup)
    }

    pub(crate) const fn is_up(&self) -> bool {
        matches!(self, Self::Up)
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Over { .. })
    }

    /// Whether closing datagrams are still to be sent.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self, Self::Over { closing, .. } if closing.is_pending())
    }

    /// Whether nothing is left to poll after the end.
    pub(crate) const fn is_polled_out(&self) -> bool {
        matches!(self, Self::Over { reason: None, .. })
    }

    /// The closing, after the end.
    pub(crate) const fn closing(&mut self) -> Option<&mut Closing> {
        match self {
            Self::Over { closing, .. } => Some(closing),
            Self::Setup | Self::Up => None,
        }
    }

    /// The end, once.
    pub(crate) const fn poll_end(&mut self) -> Option<DownReason> {
        match self {
            Self::Over { reason, .. } => reason.take(),
            Self::Setup | Self::Up => None,
        }
    }
}
