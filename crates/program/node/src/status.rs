//! What a running node says of itself: the same JSON for `skyhaul status`, the demo and other
//! programs.

mod delivery;
mod gaps;
mod guests;
mod inputs;
mod model;
mod products;
mod recent;
mod reception;
mod request;
mod session;
mod socket;

pub use delivery::{DeliveryState, DeliveryStatus};
pub use gaps::{GapCounts, GapFilter, GapProgress, GapReport, GapStatus, GapsAsked};
pub use guests::{FilesStatus, ForwardsStatus, ListenStatus, MirrorState, MirrorStatus};
pub use guests::{StreamState, StreamStatus, StreamsStatus};
pub use inputs::{InputFrames, InputStatus};
pub use model::{
    CentreStatus, ChannelStatus, ContactCaptured, ContactForecast, ContactReceived, ContactState,
    LinePath, LineState, LineStatus, LiveStatus, NodeStatus, ProductStatus, SpoolStatus,
    StageLatency, StationPeer, StationStatus, StoreState, StoreStatus,
};
pub use products::{AssembledProduct, AssemblyState};
pub(crate) use recent::Recent;
pub use reception::{ChannelState, RecordingStatus, Vita49Status};
pub use request::{OrderResult, PathHint, StatusReply, StatusRequest};
pub(crate) use session::threads;
pub use session::{SessionStatus, ShortageStatus, ThreadStatus, WaitedStatus};
pub use socket::{StatusServer, ask, ask_again, ask_gaps, order};

/// Memory of this process that is resident now, in bytes; zero where the system does not tell.
pub fn resident_bytes() -> u64 {
    memory("VmRSS:")
}

/// The most memory that this process had resident, in bytes; zero where the system does not tell.
pub fn peak_resident_bytes() -> u64 {
    memory("VmHWM:")
}

fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
