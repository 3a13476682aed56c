//! What goes through a node's sessions beside contacts, in words.

use skyhaul_node::status::ForwardsStatus;
use skyhaul_units::Bytes;
use std::io::{self, Write};

/// The forwards, where there are any.
pub fn write_forwards(forwards: Option<&ForwardsStatus>, out: &mut dyn Write) -> io::Result<()> {
    let Some(ForwardsStatus { listens, counters }) = forwards else { return Ok(()) };
    writeln!(
        out,
        "  forwards {} connections; {} accepted, {} connected, {} refused, {} reset; {} sent, {} received",
        counters.connections,
        counters.accepted,
        counters.connected,
        counters.refused,
        counters.reset,
        Bytes::new(counters.bytes_sent),
        Bytes::new(counters.bytes_received)
    )?;
    let datagrams = &counters.datagrams;
    if datagrams.sent + datagrams.received + datagrams.late + datagrams.dropped > 0 {
        writeln!(
            out,
            "           datagrams: {} sent, {} received, {} late, {} dropped",
            datagrams.sent, datagrams.received, datagrams.late, datagrams.dropped
        )?;
    }
    for listen in listens {
        writeln!(out, "           listening on {}, for {}", listen.at, listen.leads)?;
    }
    Ok(())
}
