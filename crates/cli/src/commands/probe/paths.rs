//! `skyhaul probe paths`: whether flows take routes of different length.

use super::far::{FarFlags, Heading};
use super::page::{PageFlag, subject};
use super::{tell, words};
use crate::failure::{Exit, Failure};
use skyhaul_probe::paths::{Flow, Paths as Found};
use skyhaul_probe::{Near, SESSIONS_MAX, report};
use skyhaul_units::{Duration, Instant};
use std::io::{self, Write};

/// The arguments of `skyhaul probe paths`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  skyhaul probe paths far.example.org --flows 32 --pings 100")]
pub struct Paths {
    #[command(flatten)]
    far: FarFlags,
    /// Flows, each from a source port of its own.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=FLOWS_MAX))]
    flows: u16,
    /// Pings of each flow.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pings: u32,
    /// From one ping of a flow to its next.
    #[arg(long, value_name = "DURATION", default_value = "200 ms")]
    spacing: Duration,
    #[command(flatten)]
    page: PageFlag,
    /// Prints the result as one JSON object (docs/schema/probe-paths.json).
    #[arg(long)]
    json: bool,
}

/// Pings over all flows at the same time and says into which groups they fall.
///
/// # Errors
/// The far end is not there, is none or refuses; the run was interrupted.
pub fn run(command: &Paths, out: &mut dyn Write) -> Result<(), Failure> {
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
    let mut nears = Vec::new();
    for flow in 0..command.flows {
        nears.push(far.open_from(far.port_of(flow))?);
    }
    let ports: Vec<u16> =
        nears.iter().map(|near| near.line().local_addr().map_or(0, |at| at.port())).collect();
    if !command.json {
        let time = command.spacing * u64::from(command.pings);
        tell(&format!("measuring: {} flows for {:.0} s", nears.len(), time.as_secs_f64()));
    }
    let mut due = nears.first().map_or(Instant::ZERO, Near::now);
    for _ in 0..command.pings {
        // One after the other, so that the flows' pings do not queue behind each other.
        let step = command.spacing / u64::from(command.flows);
        for near in &mut nears {
            near.ping().map_err(|error| far.failure(&error))?;
            due += step;
            near.listen(due).map_err(|error| far.failure(&error))?;
        }
    }
    let mut flows = Vec::new();
    for (near, port) in nears.iter_mut().zip(ports) {
        let last = near.comparison().longest().unwrap_or(LAST_WAIT).min(LAST_WAIT);
        let until = near.now() + last;
        near.listen(until).map_err(|error| far.failure(&error))?;
        let round_trips = near.comparison().pings().map(|ping| ping.round_trip()).collect();
        flows.push(Flow { port, round_trips, asked: near.comparison().counts().0 });
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

fn write_text(place: &str, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let (flows, routes) = (found.flows.len(), found.routes.len());
    match routes {
        0 => writeln!(out, "{flows} flows to {place}: too few answers to tell routes apart")?,
        1 => writeln!(out, "{flows} flows to {place}: all take routes of one length")?,
        _ => writeln!(out, "{flows} flows to {place}: routes of {routes} lengths")?,
    }
    for route in &found.routes {
        let ports: Vec<String> = route.ports.iter().map(u16::to_string).collect();
        writeln!(
            out,
            "  round trip {:.3} to {:.3} ms, loss {}: {} flows, from ports {}",
            route.min_ms,
            route.max_ms,
            words::percent(route.loss),
            route.ports.len(),
            ports.join(" ")
        )?;
    }
    writeln!(
        out,
        "told apart from {:.3} ms on; the same flow varies by {:.3} ms",
        found.gap_ms, found.noise_ms
    )
}

/// A far end has no more sessions, and others may want some.
const FLOWS_MAX: i64 = SESSIONS_MAX as i64 / 2;

/// Flows are read once in this time, and the kernel's times of arrival are believed for twice as long.
const SPACING_MAX: Duration = Duration::from_secs(1);

/// No answer is waited for longer at the end.
const LAST_WAIT: Duration = Duration::from_secs(1);
