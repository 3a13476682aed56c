//! What goes through a node's sessions beside contacts.

use serde::{Deserialize, Serialize};
use skyhaul_net::forward::{Arrival, Counters, Forwards};

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
                Arrival::For(target) => format!("{node}:{target}"),
                Arrival::Proxy => format!("SOCKS through {node}"),
                Arrival::Diverted => format!("what is diverted to {node}"),
            },
        });
        let (listens, counters): (Vec<_>, _) = (listens.collect(), forwards.counters());
        let is_used = counters.accepted + counters.connected + counters.refused > 0;
        (is_used || !listens.is_empty()).then_some(Self { listens, counters })
    }
}
