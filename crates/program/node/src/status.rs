//! The status of a running node: the same JSON for `skyhaul status`, the demo and other programs.

mod access;
mod archive;
mod blocks;
mod config;
mod delivery;
mod folders;
mod gaps;
mod guests;
mod inputs;
mod keys;
mod knowledge;
mod measured;
mod model;
mod nodes;
mod passes;
mod process;
mod products;
mod recent;
mod reception;
mod reprocess;
mod request;
mod serve;
mod session;
mod socket;
mod standby;
mod states;
mod way;
mod web;
mod whole;

pub use crate::journal::{EventHole, EventPage};
pub use access::{SocketAccess, SocketRole};
pub use archive::{
    ArchiveEviction, ArchiveItem, ArchivePage, ArchiveRequest, DueItem, DueObstacle,
};
pub use blocks::{BlocksStatus, ProgramShown};
pub use config::{ConfigDifference, ConfigReport};
pub(crate) use delivery::count_deliveries;
pub use delivery::{
    BackfillAction, BackfillPage, BackfillRequest, BackfillShare, CataloguePage, DeliveryAction,
    DeliveryEvent, DeliveryFilter, DeliveryPage, DeliveryReport, DeliveryStatus, DestinationTrial,
    OutletStatus,
};
pub use folders::{FolderState, FolderStatus};
pub use gaps::{GapCounts, GapFilter, GapProgress, GapReport, GapStatus, GapsAsked};
pub use guests::{FilesStatus, ForwardsStatus, ListenStatus, MirrorState, MirrorStatus};
pub use guests::{StreamState, StreamStatus, StreamsStatus};
pub use inputs::{InputFrames, InputStatus};
pub use keys::{KeyReport, NextKeyStatus, PeerKeyStatus, RevokedKeyStatus, RotationStage};
pub(crate) use knowledge::seconds;
pub use knowledge::{FeedStatus, HintOrigin, HintSays, HintStatus, PathOutlook, PlanStatus};
pub(crate) use measured::smallest_rtt_s;
pub(crate) use model::segment;
pub use model::{
    BacklogStatus, CentreGuests, CentreProducts, CentreStatus, ChannelStatus, ContactCaptured,
    ContactForecast, ContactIntegrity, ContactReceived, DestinationStatus, FrameReception,
    LinePath, LineStatus, LiveStatus, PathControl, PathFec, ProductStatus, SpoolStatus,
    StageLatency, StationPeer, StationStatus, StoreStatus,
};
pub use nodes::{NodeSeen, NodeSeenState};
pub use passes::PassStatus;
pub use process::ProcessStatus;
pub use products::{AssembledProduct, AssemblyState};
pub(crate) use recent::Recent;
pub use reception::{ChannelState, RecordingStatus, Vita49Status};
pub use reprocess::{
    ReprocessAction, ReprocessJob, ReprocessOutcome, ReprocessReport, ReprocessRequest,
    ReprocessedProduct,
};
pub use request::{KeyOrder, OrderResult, OrderWords, PathHint, StatusReply, StatusRequest};
pub use serve::{ServeAccountStatus, ServeStatus};
pub(crate) use session::threads;
pub use session::{SessionStatus, ShareStatus, ShortageStatus, ThreadStatus, WaitedStatus};
pub use socket::{
    StatusServer, ask, ask_again, ask_alarms, ask_archive, ask_backfill, ask_config,
    ask_deliveries, ask_delivery, ask_events, ask_gaps, ask_history, ask_history_list, ask_items,
    ask_keys, ask_outlets, ask_reprocess, order, order_upgrade, try_outlet,
};
pub use standby::{StandbyStatus, StandbyWord};
pub use states::{ContactState, LineState, StoreState};
pub use way::{ContactWay, HopStatus};
pub use web::WebStatus;
pub use whole::NodeStatus;
