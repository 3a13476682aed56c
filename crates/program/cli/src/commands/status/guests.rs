//! Forwards, files and streams through a node's sessions, in words.

use super::megabytes;
use skyhaul_node::status::{
    BlocksStatus, FilesStatus, ForwardsStatus, MirrorState, MirrorStatus, ServeStatus, StreamState,
    StreamStatus, StreamsStatus, WebStatus,
};
use std::io::{self, Write};

/// The forwards, where there are any.
pub fn write_forwards(forwards: Option<&ForwardsStatus>, out: &mut dyn Write) -> io::Result<()> {
    let Some(ForwardsStatus { listens, counters }) = forwards else { return Ok(()) };
    writeln!(
        out,
        "  forwards {} connections; {} accepted, {} connected, {} refused, {} reset; {} sent, {} \
        received",
        counters.connections,
        counters.accepted,
        counters.connected,
        counters.refused,
        counters.reset,
        megabytes(counters.bytes_sent),
        megabytes(counters.bytes_received)
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

/// The mirrors, where there are any.
pub fn write_mirrors(mirrors: &[MirrorStatus], out: &mut dyn Write) -> io::Result<()> {
    for MirrorStatus { source, into, to, state, copied, bytes, removed, reason, .. } in mirrors {
        let at = to.as_ref().map_or(String::new(), |to| format!(" at {to}"));
        let state = match state {
            MirrorState::Waiting => "waits for the line",
            MirrorState::Copying => "is being copied",
            MirrorState::Done => "is there",
            MirrorState::Failed => "failed",
        };
        let reason = reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        writeln!(
            out,
            "  mirror   {source} to {into}{at} {state}{reason}\n           {copied} files \
            copied, {}; {removed} removed",
            megabytes(*bytes)
        )?;
    }
    Ok(())
}

/// The programs at the block service.
pub fn write_programs(blocks: &BlocksStatus, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "blocks of programs at {}", blocks.socket)?;
    for program in &blocks.programs {
        let state = match program.state.as_str() {
            "new" => "has said nothing yet".to_owned(),
            "listening" => "waits for sessions".to_owned(),
            "waiting" => "waits for its session".to_owned(),
            "unread" => "does not read what it is sent".to_owned(),
            _ => format!("has a session with {}", program.peer),
        };
        writeln!(
            out,
            "  {:<16} process {}, user {}: {state}\n    {:.3} Mbit/s; {} blocks sent ({}), {} \
            delivered, {} expired, {} refused; {} received",
            program.name,
            program.pid,
            program.uid,
            program.rate_bps as f64 / 1e6,
            program.taken,
            megabytes(program.bytes),
            program.delivered,
            program.expired,
            program.refused,
            program.received
        )?;
    }
    Ok(())
}

/// The server of products.
pub fn write_serve(serve: &ServeStatus, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "products served at {}\n  {} connections; {} requests answered ({}), {} without a valid \
         token, {} over budget, {} refused; {} connections refused, {} stalled",
        serve.address,
        serve.connections,
        serve.answered,
        megabytes(serve.bytes),
        serve.unauthorized,
        serve.over_budget,
        serve.refused,
        serve.refused_connections,
        serve.stalled
    )?;
    for account in &serve.accounts {
        writeln!(
            out,
            "  {:<16} {} requests now; {} answered ({})",
            account.name,
            account.requests,
            account.answered,
            megabytes(account.bytes)
        )?;
    }
    Ok(())
}

/// Stations' files, where there are any.
pub fn write_files(files: &[FilesStatus], out: &mut dyn Write) -> io::Result<()> {
    for FilesStatus { station, transfers, copied, bytes, removed, failed } in files {
        writeln!(
            out,
            "  files    {station}: {copied} copied, {}; {removed} removed, {failed} failed; \
            {transfers} transfers now",
            megabytes(*bytes)
        )?;
    }
    Ok(())
}

/// The streams of a station, where there are any.
pub fn write_streams(streams: &[StreamStatus], out: &mut dyn Write) -> io::Result<()> {
    for stream in streams {
        let state = match stream.state {
            StreamState::Waiting => "waits for the line",
            StreamState::Source => "waits for its source",
            StreamState::Streaming => "goes",
            StreamState::Ended => "has ended",
            StreamState::Failed => "failed",
        };
        let at = stream.to.as_ref().map_or(String::new(), |to| format!("{to}:"));
        let reason = stream.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        let StreamStatus { source, sink, frames, repaired, late, lost, unsent, restarts, .. } =
            stream;
        let anew = match restarts {
            0 => String::new(),
            count => format!("; the source began anew {count} times"),
        };
        writeln!(
            out,
            "  stream   {source} to {at}{sink} {state}{reason}\n           {frames} frames, {}; \
            {repaired} repaired, {late} late, {lost} lost, {unsent} of them unsent{anew}",
            megabytes(stream.bytes)
        )?;
    }
    Ok(())
}

/// Stations' streams at the centre, where there are any.
pub fn write_sinks(streams: &[StreamsStatus], out: &mut dyn Write) -> io::Result<()> {
    for stream in streams {
        let StreamsStatus { station, sinks, ended, failed, received, repaired, late, lost, bytes } =
            stream;
        let now = if sinks.is_empty() {
            "none now".to_owned()
        } else {
            format!("now to {}", sinks.join(", "))
        };
        writeln!(
            out,
            "  streams  {station}: {now}; {ended} ended, {failed} broke off; {} frames, {}; \
            {repaired} repaired, {late} late, {lost} lost",
            received + repaired,
            megabytes(*bytes)
        )?;
    }
    Ok(())
}

/// The page of the node.
pub fn write_web(web: &WebStatus, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "page at {}\n  {} connections, {} pages open; {} requests answered, {} refused, {} without \
         a valid token; {} connections refused",
        web.address,
        web.connections,
        web.streams,
        web.answered,
        web.refused,
        web.unauthorized,
        web.refused_connections
    )
}
