//! Forwards, files and streams that share a node's sessions with contacts.

use serde::{Deserialize, Serialize};
use skyhaul_forward_io::{Counters, FarTarget, Forwards};

/// The forwards of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardsStatus {
    /// Where applications connect here, as configured.
    pub listens: Vec<ListenStatus>,
    /// Traffic since the node started. `line` is of whole sessions, contacts included.
    pub counters: Counters,
}

/// A mirror.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorStatus {
    /// The folder here.
    pub source: String,
    /// The folder at the centre.
    pub into: String,
    /// The destination, where the configuration names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its state.
    pub state: MirrorState,
    /// Passes that were complete without a fault.
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

/// The state of a mirror.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MirrorState {
    /// It waits for the line.
    #[default]
    Waiting,
    /// A pass is running.
    Copying,
    /// The centre's folder equals the one here, as of the last look.
    Done,
    /// It failed and is tried again.
    Failed,
}

/// The file transfers of a station.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesStatus {
    /// The peer.
    pub station: String,
    /// Transfers in progress.
    pub transfers: u64,
    /// Files transferred since the node started.
    pub copied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries removed.
    pub removed: u64,
    /// Entries that could not be copied.
    pub failed: u64,
}

/// A stream to the centre. Counts are of the present run, or of the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamStatus {
    /// The source here.
    pub source: String,
    /// The sink at the centre.
    pub sink: String,
    /// The destination, where the configuration names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its state.
    pub state: StreamState,
    /// Runs that were complete since the station started.
    pub ended: u64,
    /// Frames that the source gave.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames among them that were dropped because the line had no room in time.
    pub unsent: u64,
    /// Frames that the sink got in time, with and without repair, as of the centre's last report.
    pub received: u64,
    /// Of these, frames that needed repair.
    pub repaired: u64,
    /// Frames that came too late.
    pub late: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// How often its source began anew: an RTP stream under another source, or far from where it
    /// was.
    #[serde(default)]
    pub restarts: u64,
    /// Why it failed.
    pub reason: Option<String>,
}

/// The state of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamState {
    /// It waits for the line.
    #[default]
    Waiting,
    /// It waits for its source.
    Source,
    /// It is sending.
    Streaming,
    /// It is complete.
    Ended,
    /// It failed and is tried again.
    Failed,
}

/// A station's streams to sinks of the centre, since that started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamsStatus {
    /// The station.
    pub station: String,
    /// The sinks of the streams that run.
    pub sinks: Vec<String>,
    /// Streams that were complete.
    pub ended: u64,
    /// Streams that failed.
    pub failed: u64,
    /// Frames that arrived in time without repair.
    pub received: u64,
    /// Frames that arrived in time after repair.
    pub repaired: u64,
    /// Frames that came too late.
    pub late: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// Bytes of frames that arrived in time.
    pub bytes: u64,
}

/// A listening address for applications.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenStatus {
    /// The address, with the port that the system chose.
    pub at: String,
    /// The far node, and the target that it connects to.
    pub leads: String,
}

impl ForwardsStatus {
    /// The status of forwards; none where nothing is or was forwarded.
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
