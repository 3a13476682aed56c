//! What goes through a node's sessions beside contacts.

use serde::{Deserialize, Serialize};
use skyhaul_forward_io::{Counters, FarTarget, Forwards};

/// The forwards of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardsStatus {
    /// Where applications come in here, as configured.
    pub listens: Vec<ListenStatus>,
    /// What was carried since the node started. `line` is of whole sessions, contacts included.
    pub counters: Counters,
}

/// A folder that the centre's is made like.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorStatus {
    /// The folder here.
    pub source: String,
    /// The folder at the centre.
    pub into: String,
    /// How it stands.
    pub state: MirrorState,
    /// How often all, or all that had changed, was gone through without a fault.
    pub passes: u64,
    /// Files copied since the station started.
    pub copied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries removed at the centre.
    pub removed: u64,
    /// Why it failed.
    pub reason: Option<String>,
}

/// How a mirror stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MirrorState {
    /// For the line.
    #[default]
    Waiting,
    /// Files are gone through.
    Copying,
    /// What was here at the last look is there.
    Done,
    /// It is tried again.
    Failed,
}

/// What a station did with files of the centre.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesStatus {
    /// The station.
    pub station: String,
    /// Transfers now.
    pub transfers: u64,
    /// Files that came or went since the centre started.
    pub copied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries removed.
    pub removed: u64,
    /// Entries that could not be copied.
    pub failed: u64,
}

/// A stream that the centre gets. Counts are of the one under way, or of the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamStatus {
    /// The source here.
    pub source: String,
    /// The sink at the centre.
    pub sink: String,
    /// How it stands.
    pub state: StreamState,
    /// How often it came to its end since the station started.
    pub ended: u64,
    /// Frames that the source gave.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames among them that the line had no room for in time.
    pub unsent: u64,
    /// Frames that the sink got in time, without and after repair, as far as the centre has told.
    pub received: u64,
    /// After repair.
    pub repaired: u64,
    /// Frames that came too late.
    pub late: u64,
    /// Frames that did not come.
    pub lost: u64,
    /// Why it failed.
    pub reason: Option<String>,
}

/// How a stream stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamState {
    /// For the line.
    #[default]
    Waiting,
    /// For what its source gives.
    Source,
    /// Frames go.
    Streaming,
    /// It has come to its end.
    Ended,
    /// It is tried again.
    Failed,
}

/// A station's streams to sinks of the centre, since that started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamsStatus {
    /// The station.
    pub station: String,
    /// Where streams go now.
    pub sinks: Vec<String>,
    /// Streams that came to their end.
    pub ended: u64,
    /// Streams that did not.
    pub failed: u64,
    /// Frames that were there in time and needed no repair.
    pub received: u64,
    /// Frames that were there in time after repair.
    pub repaired: u64,
    /// Frames that came too late.
    pub late: u64,
    /// Frames that did not come.
    pub lost: u64,
    /// Bytes of frames that were there in time.
    pub bytes: u64,
}

/// A place where applications come in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenStatus {
    /// Where: with the port that the system gave.
    pub at: String,
    /// The far node, and where that connects to.
    pub leads: String,
}

impl ForwardsStatus {
    /// What is to be shown; none where nothing is forwarded and nothing ever was.
    pub fn of(forwards: &Forwards) -> Option<Self> {
        let listens = forwards.locals().map(|(local, listen, node)| ListenStatus {
            at: local.to_string(),
            leads: match &listen.arrival {
                FarTarget::For(target) => format!("{node}:{target}"),
                FarTarget::Proxy => format!("SOCKS through {node}"),
                FarTarget::Diverted => format!("transparent to {node}"),
            },
        });
        let (listens, counters): (Vec<_>, _) = (listens.collect(), forwards.counters());
        let is_used = counters.accepted + counters.connected + counters.refused > 0;
        (is_used || !listens.is_empty()).then_some(Self { listens, counters })
    }
}
