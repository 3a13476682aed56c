//! `skyhaul probe paths`: whether flows take routes of different length.

use super::far::{FarEnd, FarFlags, Heading, Missed};
use super::page::{PageFlag, subject};
use super::{tell, words};
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::paths::{PathFlow, Routes as Found};
use skyhaul_probe::{NearError, ProbeClient, SESSIONS_MAX, report};
use skyhaul_probe_io::SocketLine;
use skyhaul_units::{Duration, Instant};
use std::io::{self, Write};

/// The arguments of `skyhaul probe paths`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  skyhaul probe paths far.example.org --flows 32 --pings 100")]
pub struct PathsCommand {
    #[command(flatten)]
    far: FarFlags,
    /// The number of flows. Each has its own source port.
    #[arg(long, value_name = "N", default_value_t = 16,
        value_parser = clap::value_parser!(u16).range(2..=FLOWS_MAX))]
    flows: u16,
    /// The number of pings of each flow.
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pings: u32,
    /// The time between two pings of a flow.
    #[arg(long, value_name = "DURATION", default_value = "200 ms")]
    spacing: Duration,
    #[command(flatten)]
    page: PageFlag,
    /// Prints the result as one JSON object (docs/reference/schema/probe-paths.json).
    #[arg(long)]
    json: bool,
}

/// Pings over all flows at the same time and says into which groups they fall.
///
/// # Errors
/// The far end is not there, is none or refuses; the run was interrupted.
pub fn run(command: &PathsCommand, out: &mut dyn Write) -> Result<(), Failure> {
    if command.spacing == Duration::ZERO || command.spacing > SPACING_MAX {
        let help = "give --spacing more than 0 and no more than 1 s";
        return Err(Failure::new(
            Exit::Usage,
            &format!("a spacing of {} is not possible", command.spacing),
            help,
        ));
    }
    let page = command.page.open("paths")?;
    let far = command.far.find()?;
    let heading = Heading::of("paths", &far);
    let (mut nears, silent) = open(&far, command.flows)?;
    let ports: Vec<u16> =
        nears.iter().map(|near| near.line().local_addr().map_or(0, |at| at.port())).collect();
    if !command.json {
        let time = command.spacing * u64::from(command.pings);
        tell(&format!("measuring: {} flows for {:.0} s", nears.len(), time.as_secs_f64()));
    }
    let mut due = nears.first().map_or(Instant::ZERO, ProbeClient::now);
    for _ in 0..command.pings {
        // One after the other, so that the flows' pings do not queue behind each other.
        let step = command.spacing / ports.len() as u64;
        for near in &mut nears {
            near.ping().map_err(|error| far.failure(&error))?;
            due += step;
            near.listen(due).map_err(|error| far.failure(&error))?;
        }
    }
    let mut flows: Vec<PathFlow> = silent;
    let longest = nears.iter().filter_map(|near| near.comparison().longest()).max();
    let until = nears.first().map_or(Instant::ZERO, ProbeClient::now)
        + longest.unwrap_or(LAST_WAIT).min(LAST_WAIT);
    for (near, port) in nears.iter_mut().zip(ports) {
        near.listen(until).map_err(|error| far.failure(&error))?;
        let round_trips = near.comparison().pings().map(|ping| ping.round_trip()).collect();
        flows.push(PathFlow { port, round_trips, asked: near.comparison().counts().0 });
    }
    nears.into_iter().for_each(|near| drop(near.close()));
    let found = Found::of(&flows);
    if let Some(page) = page {
        page.write(&report::paths(&subject(&far, &heading), &found))?;
    }
    if command.json {
        return heading.write_json(&found, out);
    }
    Ok(write_text(&far.place(), &found, out)?)
}

/// Opens all flows at the same time. Those that nothing answered take a route that fails, and come
/// back by their ports.
///
/// # Errors
/// Nothing answered any of them, the far end refuses, or this host does not let it be tried.
fn open(
    far: &FarEnd,
    flows: u16,
) -> Result<(Vec<ProbeClient<SocketLine>>, Vec<PathFlow>), Failure> {
    let opened: Vec<_> = std::thread::scope(|scope| {
        let flow = |flow| scope.spawn(move || far.open_from(far.port_of(flow)));
        let flows: Vec<_> = (0..flows).map(flow).collect();
        let end = |flow: std::thread::ScopedJoinHandle<'_, _>| {
            flow.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        flows.into_iter().map(end).collect()
    });
    let (mut nears, mut silent, mut nothing) = (Vec::new(), Vec::new(), None);
    for flow in opened {
        match flow {
            Ok(near) => nears.push(near),
            Err(Missed::There { port, error: error @ NearError::Silent(_) }) => {
                silent.push(PathFlow { port, round_trips: Vec::new(), asked: 0 });
                nothing = Some(error);
            }
            Err(missed) => return Err(far.missed(missed)),
        }
    }
    match nothing.filter(|_| nears.is_empty()) {
        Some(error) => Err(far.failure(&error)),
        None => Ok((nears, silent)),
    }
}

fn write_text(place: &str, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let (flows, routes) = (found.flows.len(), found.routes.len());
    match routes {
        0 => writeln!(out, "{flows} flows to {place}: too few answers to distinguish routes")?,
        1 => writeln!(out, "{flows} flows to {place}: all answers took routes of one length")?,
        _ => writeln!(out, "{flows} flows to {place}: routes of {routes} lengths")?,
    }
    let listed = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" ");
    for route in &found.routes {
        writeln!(
            out,
            "  round trip {:.3} to {:.3} ms, loss {}: {} flows, from ports {}",
            route.min_ms,
            route.max_ms,
            words::percent(route.loss),
            route.ports.len(),
            listed(&route.ports)
        )?;
    }
    if !found.silent.is_empty() {
        writeln!(
            out,
            "  too few answers: {} more flows, from ports {}; a route that fails looks like this",
            found.silent.len(),
            listed(&found.silent)
        )?;
    }
    writeln!(
        out,
        "routes distinguished from {:.3} ms; one flow varies by {:.3} ms",
        found.gap_ms, found.noise_ms
    )
}

/// A far end has no more sessions, and others may want some.
const FLOWS_MAX: i64 = SESSIONS_MAX as i64 / 2;

/// Flows are read once in this time, and the kernel's times of arrival are believed for twice as
/// long.
const SPACING_MAX: Duration = Duration::from_secs(1);

/// No answer is waited for longer at the end.
const LAST_WAIT: Duration = Duration::from_secs(1);
