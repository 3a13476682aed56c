//! What other nodes report of themselves, in short.

use skyhaul_node::status::{NodeSeen, NodeSeenState};
use std::io::{self, Write};

/// How many nodes have alarms, and of how many nothing is known any more.
pub fn write_nodes(nodes: &[NodeSeen], out: &mut dyn Write) -> io::Result<()> {
    let count = |state| nodes.iter().filter(|one| one.state == state).count();
    let (alarm, stale) = (count(NodeSeenState::Alarm), count(NodeSeenState::Stale));
    if alarm + stale == 0 {
        return Ok(());
    }
    let all = nodes.len();
    writeln!(
        out,
        "\n  nodes    of {all}, {alarm} report alarms and {stale} are stale: `skyhaul nodes`"
    )
}
