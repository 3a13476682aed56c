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
