//! Why a transfer is not faster: what was measured of the line, of the transfer and of both hosts,
//! and the verdict on it.
//!
//! [`examine`] measures a line through a [`ProbeClient`](crate::ProbeClient); a [`Transfer`] is
//! what the ends of a transfer report. [`judge`] weighs both by rules whose thresholds say where
//! they come from; nothing is trained. Several causes may hold at once: the first is the one to
//! remove first.
//!
//! ```
//! use skyhaul_probe::why::{Cause, Evidence, ReceiverLoad, Transfer, Waited, judge};
//! let transfer = Transfer {
//!     goodput_bps: 20_000_000,
//!     waited: Waited { application: 0.05, window: 0.9, path: 0.05, ..Waited::default() },
//!     receiver: ReceiverLoad { disk_share: Some(0.02), ..ReceiverLoad::default() },
//!     ..Transfer::default()
//! };
//! let verdict = judge(&Evidence { line: None, transfer: Some(transfer) });
//! assert_eq!(verdict.cause, Cause::FlowWindow);
//! ```

mod advice;
mod cause;
mod evidence;
mod examine;
mod judge;
mod overload;
mod rest;
mod silence;
mod steps;
mod tcp;
mod waver;

pub use cause::Cause;
pub use evidence::{
    BusyThreads, DelayShape, DiskBacklog, DropPlaces, Evidence, Lack, LineFound, LoadedLine,
    LossShape, ObservedEnd, OtherTraffic, ReceiverLoad, Rest, Silence, SourceKind, StreamResult,
    Transfer, TransferFeed, Waited,
};
pub use examine::{ExaminePlan, examine};
pub use judge::{Finding, Verdict, judge};
pub use silence::{Owes, SilenceDetector};
pub use tcp::{TcpSample, TcpTextError, read_sockets};
