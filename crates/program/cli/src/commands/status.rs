//! `skyhaul status`: shows the state of a running node.

mod contacts;
mod folders;
mod guests;
mod nodes;
mod outlook;
mod watch;

use super::gaps::in_words;
use super::node_socket::NodeArguments;
use contacts::{CONTACTS_SHOWN, write_captured, write_received};
use folders::write_folders;
use guests::{
    write_files, write_forwards, write_mirrors, write_programs, write_serve, write_sinks,
    write_streams, write_web,
};
use nodes::write_nodes;
use skyhaul_events::AlarmStatus;
use skyhaul_exit::Failure;
use skyhaul_node::status::{
    AssembledProduct, CentreStatus, ContactCaptured, ContactForecast, DeliveryStatus,
    DestinationStatus, InputFrames, InputStatus, LinePath, LineState, LineStatus, LiveStatus,
    NodeStatus, RecordingStatus, ShareStatus, StageLatency, StandbyStatus, StationStatus,
    StoreState, Vita49Status, WaitedStatus, ask,
};
use skyhaul_units::{Duration, Probability};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The arguments of `skyhaul status`.
#[derive(clap::Args)]
#[command(after_help = "\
        Asks through the local socket of the node, which must run on this machine.

Example:
  skyhaul status --config station.toml
  skyhaul status --config centre.toml --watch 5s
  skyhaul status --socket state/status.sock --json")]
pub struct Status {
    #[command(flatten)]
    node: NodeArguments,
    /// Prints the status as one line of JSON.
    #[arg(long)]
    json: bool,
    /// Repeats at this interval until interrupted; without a value, every 2 s.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "2 s")]
    watch: Option<Duration>,
}

/// Asks, and prints the answer.
///
/// # Errors
/// No node answers, or the configuration is wrong.
pub fn run(command: &Status, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(span) = command.watch {
        return watch::run(command, span, out);
    }
    Ok(command.show(&ask(&command.node.socket()?)?, out)?)
}

impl Status {
    fn show(&self, status: &NodeStatus, out: &mut dyn Write) -> io::Result<()> {
        if self.json {
            let line = serde_json::to_string(status).expect("a status has text keys only");
            return writeln!(out, "{line}");
        }
        status.station.iter().try_for_each(|station| write_station(station, out))?;
        status.centre.iter().try_for_each(|centre| write_centre(centre, out))?;
        super::passes::write_next(&status.passes, out)?;
        write_nodes(&status.nodes, out)?;
        status.blocks.iter().try_for_each(|blocks| write_programs(blocks, out))?;
        status.serve.iter().try_for_each(|serve| write_serve(serve, out))?;
        status.web.iter().try_for_each(|web| write_web(web, out))
    }
}

fn write_station(station: &StationStatus, out: &mut dyn Write) -> io::Result<()> {
    write_head(
        "station",
        &station.name,
        station.process.uptime_s,
        MemoryUse { now: station.process.rss_bytes, peak: station.process.rss_peak_bytes },
        out,
    )?;
    write_log(station.process.log_dropped, out)?;
    writeln!(
        out,
        "\n  {:<16} {:<8} {:<12} {:>10} {:>10} {:>9}",
        "input", "state", "mission", "frames", "corrected", "set aside"
    )?;
    for channel in &station.channels {
        writeln!(
            out,
            "  {:<16} {:<8} {:<12} {:>10} {:>10} {:>9}\n    {}",
            channel.name,
            word(&channel.state),
            channel.mission.as_deref().unwrap_or("-"),
            channel.frames,
            channel.corrected_symbols,
            channel.set_aside,
            channel.address.as_deref().unwrap_or(&channel.input)
        )?;
        write_inputs(&channel.inputs, out)?;
        if let Some(packets) = &channel.vita49 {
            write_packets(packets, out)?;
        }
        if let Some(recording) = &channel.recording {
            write_recording(recording, out)?;
        }
    }
    write_captured(&station.contacts, out)?;
    write_saved(&station.contacts, out)?;
    let spool = &station.spool;
    writeln!(
        out,
        "\n  spool    {}, {} on disk\n           {} blocks ({}) wait for a receipt",
        store_word(spool.state),
        megabytes(spool.disk_bytes),
        spool.blocks,
        megabytes(spool.bytes)
    )?;
    station.destinations.iter().try_for_each(|destination| write_destination(destination, out))?;
    write_shared_line(station, out)?;
    write_forwards(station.forwards.as_ref(), out)?;
    write_folders(&station.folders, out)?;
    write_mirrors(&station.mirrors, out)?;
    write_streams(&station.streams, out)?;
    write_files(&station.files, out)?;
    write_alarms(&station.alarms, out)
}

/// A destination: what it lacks, the line to it and its paths, and what waits of each contact.
fn write_destination(destination: &DestinationStatus, out: &mut dyn Write) -> io::Result<()> {
    let DestinationStatus { name, shadow, backlog, standby, line, forecasts } = destination;
    let role = if *shadow { " (shadow)" } else { "" };
    writeln!(
        out,
        "\n  to {name}{role}\n           {} blocks ({}) wait for its receipt",
        backlog.blocks,
        megabytes(backlog.bytes)
    )?;
    if backlog.gave_way_blocks > 0 {
        let gone = backlog.gave_way_blocks;
        writeln!(out, "           {gone} blocks left the full spool before it had them")?;
    }
    if let Some(standby) = standby {
        write_standby(standby, out)?;
    }
    let reason = line.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    writeln!(out, "  line     {}{reason} to {}", word(&line.state), line.peer)?;
    if line.state == LineState::Open {
        writeln!(
            out,
            "           {} symbols sent, {} again{}",
            line.symbols_sent,
            line.symbols_repeated,
            if line.held_back { ", held back by the centre" } else { "" }
        )?;
        write_share(line, out)?;
        write_waits(line, out)?;
    }
    write_paths(&line.paths, out)?;
    write_forecasts(forecasts, out)
}

/// What a standby does, and what it did not send.
fn write_standby(standby: &StandbyStatus, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "           {}", standby.sentence())?;
    let StandbyStatus { of, settled_contacts, settled_blocks, kept_back_blocks, .. } = standby;
    if settled_contacts + kept_back_blocks == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "           not sent, there from {of}: {settled_contacts} contacts ({settled_blocks} \
         blocks), {kept_back_blocks} blocks of others"
    )
}

/// What the session uses of a shared line.
fn write_share(line: &LineStatus, out: &mut dyn Write) -> io::Result<()> {
    let share = line.session.and_then(|session| session.share);
    let Some(ShareStatus { rate_bps, sent_bytes, borrowed_bytes }) = share else {
        return Ok(());
    };
    writeln!(
        out,
        "           {} of the shared line now; {} sent, {} of them borrowed",
        mega(rate_bps),
        megabytes(sent_bytes),
        megabytes(borrowed_bytes)
    )
}

/// Says that data for several destinations crosses the line once for each.
fn write_shared_line(station: &StationStatus, out: &mut dyn Write) -> io::Result<()> {
    match station.destinations.len() {
        0 | 1 => Ok(()),
        count => {
            writeln!(out, "\n  A contact for {count} destinations crosses the line {count} times.")
        }
    }
}

/// What the session waited for since it was set up.
fn write_waits(line: &LineStatus, out: &mut dyn Write) -> io::Result<()> {
    let Some(session) = line.session else { return Ok(()) };
    let WaitedStatus { application, window, buffer, classes, path } = session.waited_s;
    let all = application + window + buffer + classes + path;
    let part = |seconds: f64| if all > 0.0 { seconds / all * 1e2 } else { 0.0 };
    writeln!(
        out,
        "           waited for the spool {:.0} %, the centre {:.0} %, its buffer {:.0} %, classes \
        {:.0} %, the paths {:.0} %",
        part(application),
        part(window),
        part(buffer),
        part(classes),
        part(path)
    )
}

/// What each of several inputs gives: a line, and lines of what only some have.
fn write_inputs(inputs: &[InputStatus], out: &mut dyn Write) -> io::Result<()> {
    for input in inputs {
        let InputFrames { frames, chosen, only_here, worse, skew_s, .. } = &input.frames;
        let place = input.address.as_deref().unwrap_or(&input.input);
        writeln!(
            out,
            "    {:<14} {:<8} {frames} frames, {chosen} taken, {only_here} only here, {worse} no \
            better, {:.1} ms behind  {place}",
            input.name,
            word(&input.state),
            skew_s * 1e3
        )?;
        let InputFrames { late, foreign, .. } = &input.frames;
        if *late > 0 {
            writeln!(out, "      {late} frames received too late and lost")?;
        }
        if *foreign > 0 {
            writeln!(out, "      {foreign} frames of another downlink excluded")?;
        }
        if input.dropped_datagrams > 0 {
            writeln!(out, "      {} datagrams dropped by the system", input.dropped_datagrams)?;
        }
        if let Some(packets) = &input.vita49 {
            write_packets(packets, out)?;
        }
        if let Some(recording) = &input.recording {
            write_recording(recording, out)?;
        }
    }
    Ok(())
}

fn write_recording(recording: &RecordingStatus, out: &mut dyn Write) -> io::Result<()> {
    let (taken, disk) = (megabytes(recording.bytes), megabytes(recording.disk_bytes));
    writeln!(out, "    recorded as received: {taken}, {disk} on disk{}", not_recorded(recording))
}

fn write_packets(packets: &Vita49Status, out: &mut dyn Write) -> io::Result<()> {
    let Vita49Status { data, lost, reordered, lossy, refused, .. } = packets;
    write!(
        out,
        "    VITA 49: {data} packets, {lost} lost, {reordered} late, {lossy} with samples missing, \
        {refused} refused"
    )?;
    if let Some(rate) = packets.symbol_rate_bps {
        write!(out, ", {} a second", mega_symbols(rate))?;
    }
    if let Some(level) = packets.reference_level_dbm {
        write!(out, ", {level:.1} dBm")?;
    }
    writeln!(out)
}

#[allow(clippy::cast_precision_loss, reason = "a report")]
fn mega_symbols(rate: u64) -> String {
    format!("{:.3} million symbols", rate as f64 / 1e6)
}

fn not_recorded(recording: &RecordingStatus) -> String {
    match recording.dropped_bytes {
        0 => String::new(),
        bytes => format!(", {} NOT recorded", megabytes(bytes)),
    }
}

/// What stays off the line, a line a mission.
fn write_saved(contacts: &[ContactCaptured], out: &mut dyn Write) -> io::Result<()> {
    let mut missions: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for contact in contacts.iter().filter(|contact| contact.bytes_captured > 0) {
        let (saved, captured) = missions.entry(&contact.mission).or_default();
        *saved += contact.bytes_saved;
        *captured += contact.bytes_captured;
    }
    for (at, (mission, (saved, captured))) in missions.iter().enumerate() {
        let head = if at == 0 { "\n  saved   " } else { "          " };
        let percent = Probability::of(*saved, *captured).as_f64() * 1e2;
        writeln!(
            out,
            "{head} {percent:.1} % of {} of {mission} stay off the line",
            megabytes(*captured)
        )?;
    }
    Ok(())
}

/// A line a path, and the reason below where there is one.
pub fn write_paths(paths: &[LinePath], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\n  {:<12} {:<8} {:>11} {:>9} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "path", "state", "rate", "rtt", "lost", "repair", "used", "wasted", "stalls"
    )?;
    for path in paths {
        let is_used = path.rate_bps > 0;
        let or_none = |text: String| if is_used { text } else { "-".to_owned() };
        writeln!(
            out,
            "  {:<12} {:<8} {:>11} {:>9} {:>6} {:>6} {:>6} {:>6} {:>6}",
            path.name,
            path.state,
            or_none(mega(path.rate_bps)),
            or_none(format!("{:.1} ms", path.rtt_s * 1e3)),
            or_none(format!("{:.1} %", path.loss * 1e2)),
            path.repair.sent,
            path.repair.used,
            path.repair.wasted,
            path.stalls
        )?;
        let over = if path.over == "tcp" { " over TCP" } else { "" };
        let sent = megabytes(path.bytes_sent);
        writeln!(out, "    {} to {}{over}, {sent} sent", path.local, path.remote)?;
        if let Some(reason) = &path.reason {
            writeln!(out, "    {}: {reason}", path.state)?;
        }
        outlook::write(&path.outlook, out)?;
    }
    Ok(())
}

/// What waits of each contact, the newest last.
fn write_forecasts(forecasts: &[ContactForecast], out: &mut dyn Write) -> io::Result<()> {
    if forecasts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {:<12} {:<16} {:>11} {:>11}  deadline",
        "contact", "of", "to send", "through in"
    )?;
    let from = forecasts.len().saturating_sub(CONTACTS_SHOWN);
    for forecast in &forecasts[from..] {
        let done = forecast.done_s.map_or("not known".to_owned(), seconds);
        let deadline = match forecast.spare_s {
            None if forecast.done_s.is_none() => "not known".to_owned(),
            None => "none".to_owned(),
            Some(spare) if spare < 0.0 => format!("LATE by {}", seconds(-spare)),
            Some(spare) => format!("on time, {} to spare", seconds(spare)),
        };
        writeln!(
            out,
            "  {:<12} {:<16} {:>11} {done:>11}  {deadline}",
            forecast.flow,
            if forecast.channel.is_empty() { "-" } else { &forecast.channel },
            megabytes(forecast.unsent_bytes),
        )?;
    }
    Ok(())
}

/// A rate in a column.
#[allow(clippy::cast_precision_loss, reason = "a report")]
fn mega(bps: u64) -> String {
    match bps {
        ..10_000_000 => format!("{:.2} Mbit/s", bps as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{:.1} Mbit/s", bps as f64 / 1e6),
        _ => format!("{:.2} Gbit/s", bps as f64 / 1e9),
    }
}

/// A size in a column.
#[allow(clippy::cast_precision_loss, reason = "a report")]
pub(super) fn megabytes(bytes: u64) -> String {
    match bytes {
        ..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A span in a column.
fn seconds(span: f64) -> String {
    match span {
        ..9.95 => format!("{span:.1} s"),
        ..600.0 => format!("{span:.0} s"),
        ..36_000.0 => format!("{:.0} min", span / 60.0),
        // A rate near zero gives no meaningful time.
        86_400.0.. => "> 1 day".to_owned(),
        _ => format!("{:.1} h", span / 3_600.0),
    }
}

fn write_centre(centre: &CentreStatus, out: &mut dyn Write) -> io::Result<()> {
    write_head(
        "centre",
        &centre.name,
        centre.process.uptime_s,
        MemoryUse { now: centre.process.rss_bytes, peak: centre.process.rss_peak_bytes },
        out,
    )?;
    write_log(centre.process.log_dropped, out)?;
    writeln!(out, "\n  listens  on {}, {} strangers refused", centre.address, centre.refused)?;
    for station in &centre.stations {
        writeln!(
            out,
            "  station  {}: {} delivered, {} blocks at once and {} after repair, {} under way",
            station.name,
            megabytes(station.bytes_delivered),
            station.blocks_delivered,
            station.blocks_repaired,
            station.blocks_in_flight
        )?;
    }
    write_forwards(centre.guests.forwards.as_ref(), out)?;
    write_files(&centre.guests.files, out)?;
    write_sinks(&centre.guests.streams, out)?;
    let store = &centre.store;
    writeln!(
        out,
        "  store    {}, {} blocks, {} on disk",
        store_word(store.state),
        store.blocks,
        megabytes(store.disk_bytes)
    )?;
    writeln!(out, "  {}", in_words(&centre.products.gaps))?;
    write_received(&centre.contacts, out)?;
    write_assembled(&centre.products.assembled, out)?;
    write_deliveries(&centre.products.deliveries, out)?;
    for live in &centre.live {
        let LiveStatus { to, packets, bytes, dropped } = live;
        writeln!(
            out,
            "  live     {packets} packets to {to}, {}; {dropped} dropped",
            megabytes(*bytes)
        )?;
    }
    write_latency(&centre.latency_s, out)?;
    write_alarms(&centre.alarms, out)
}

fn write_assembled(products: &[AssembledProduct], out: &mut dyn Write) -> io::Result<()> {
    if !products.is_empty() {
        writeln!(
            out,
            "\n  {:<22} {:<14} {:<8} {:>7} {:>9} {:>10} {:>8}",
            "window or contact", "product", "state", "version", "contacts", "packets", "missing"
        )?;
    }
    for product in products.iter().rev().take(CONTACTS_SHOWN).rev() {
        let window = product.from.as_deref().map(|from| from.get(..16).unwrap_or(from));
        let of = product.contact.as_deref().or(window).unwrap_or("-");
        let name = if product.product.is_empty() { &product.mission } else { &product.product };
        writeln!(
            out,
            "  {of:<22} {name:<14} {:<8} {:>7} {:>9} {:>10} {:>8}",
            word(&product.state),
            product.version,
            product.contacts,
            product.packets,
            product.missing
        )?;
    }
    Ok(())
}

fn write_deliveries(deliveries: &[DeliveryStatus], out: &mut dyn Write) -> io::Result<()> {
    if !deliveries.is_empty() {
        writeln!(
            out,
            "\n  {:<16} {:<14} {:<36} {:<9}",
            "delivered to", "product", "name", "state"
        )?;
    }
    for delivery in deliveries.iter().rev().take(CONTACTS_SHOWN).rev() {
        let reason =
            delivery.reason.as_deref().map_or(String::new(), |reason| format!("  {reason}"));
        writeln!(
            out,
            "  {:<16} {:<14} {:<36} {:<9}{reason}",
            delivery.destination,
            delivery.product,
            delivery.name,
            word(&delivery.state)
        )?;
    }
    Ok(())
}

fn write_latency(latency: &StageLatency, out: &mut dyn Write) -> io::Result<()> {
    let Some(total) = latency.get("total").filter(|total| total.count > 0) else { return Ok(()) };
    writeln!(
        out,
        "\n  latency  of {} frames from their last bit to this disk: median {:.0} ms, {:.0} ms at \
        99 %, at most {:.0} ms",
        total.count,
        total.p50 * 1e3,
        total.p99 * 1e3,
        total.max * 1e3
    )
}

/// Resident bytes of a process.
struct MemoryUse {
    now: u64,
    peak: u64,
}

fn write_head(
    role: &str,
    name: &str,
    uptime_s: f64,
    memory: MemoryUse,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mega = |bytes: u64| bytes / 1_000_000;
    writeln!(
        out,
        "{role} {name}, up {uptime_s:.0} s, memory {} MB, at the most {} MB",
        mega(memory.now),
        mega(memory.peak)
    )
}

fn write_log(dropped: u64, out: &mut dyn Write) -> io::Result<()> {
    match dropped {
        0 => Ok(()),
        dropped => writeln!(out, "  log      {dropped} lines dropped: standard error was not read"),
    }
}

/// Alarms that another one explains are counted behind the others.
fn write_alarms(alarms: &[AlarmStatus], out: &mut dyn Write) -> io::Result<()> {
    let (caused, own): (Vec<_>, Vec<_>) =
        alarms.iter().partition(|alarm| alarm.caused_by.is_some());
    for alarm in own {
        let by = alarm.acknowledged.as_ref();
        let by = by.map_or(String::new(), |said| format!(" (acknowledged by {})", said.by));
        writeln!(out, "  ALARM    {}{by}", alarm.sentence)?;
    }
    match caused.len() {
        0 => Ok(()),
        count => writeln!(out, "           and {count} because of them: `skyhaul alarms list`"),
    }
}

/// A state, as its JSON form names it.
fn word(state: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(state).expect("a state is a word");
    value.as_str().unwrap_or_default().to_owned()
}

const fn store_word(state: StoreState) -> &'static str {
    match state {
        StoreState::Ok => "takes data",
        StoreState::Full => "full: stations are paused until space is free",
        StoreState::Failed => "disk failed: stations are paused, retrying",
    }
}
