//! The station: captures downlinks, keeps them in its spool, sends them to its centre.
//!
//! Threads: one for each input (`channel`), one that waits for the disk (`spooler`), one for the line (`uplink`), one
//! that answers for status. They meet in `shared`.

mod channel;
mod contact;
mod input;
mod memo;
mod paths;
mod reach;
mod resume;
mod shared;
mod spooler;
mod uplink;

use crate::config::{self, MissionRef, StationConfig};
use crate::fault::Fault;
use crate::services::{self, Window};
use crate::status::{ChannelState, ChannelStatus, NodeStatus, StatusServer};
use channel::{ChannelRunner, Common};
use paths::PathPlan;
use shared::Shared;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_congestion::ControllerConfig;
use skyhaul_engine::SocketId;
use skyhaul_net::{Clock, Driver};
use skyhaul_quic::{EndpointConfig, PathConfig};
use skyhaul_store::{RealDisk, Spool, SpoolConfig, SpoolError};
use skyhaul_transport::PathOptions;
use skyhaul_units::{Bytes, Duration};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use uplink::{Centre, Uplink};

pub use reach::reach;

/// How a station runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Ends by itself when all inputs are exhausted and the centre has everything in custody.
    pub until_sent: bool,
}

/// A session's memory at the station: blocks handed over and not yet reported whole take eight round trips of 660 ms at
/// 93 Mbit/s; the centre sends nothing but messages.
const WINDOW: Window = Window { receive: Bytes::mib(1), send: Bytes::mib(64) };
/// The stop flag, and whether everything is sent, are looked at this often.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a station until `stop` is set.
///
/// # Errors
/// The station cannot start, or cannot go on; what was captured is in the spool.
pub fn run(config: &StationConfig, options: Options, stop: &AtomicBool) -> Result<(), Fault> {
    let clock = Clock::start();
    let state = &config.node.state;
    services::make_folder(state)?;
    let (driver, paths) = driver(config, clock)?;
    let spool = open_spool(config, state, clock)?;
    let (name, channels) = (config.node.name.to_string(), config.channel.iter().map(shown).collect());
    let shared = Arc::new(Shared::new(name, channels, spool, clock, driver.waker()));
    let status = shared.clone();
    let server = StatusServer::start(&config.node.status_socket(), move || status.status())?;
    let threads = start(config, &shared, clock, (driver, paths))?;
    while !stop.load(Ordering::Relaxed) && !shared.life.is_stopping() {
        shared.life.pause(LOOK);
        if options.until_sent && is_sent(&shared) {
            break;
        }
    }
    shared.life.stop();
    for thread in threads {
        // A thread that panicked has said so; what is on the disk is checked at the next start.
        let _ = thread.join();
    }
    drop(server);
    shared.life.failure().map_or(Ok(()), Err)
}

/// Whether nothing more comes in, and nothing is left to send.
fn is_sent(shared: &Shared) -> bool {
    let NodeStatus::Station(status) = shared.status() else { return false };
    let over = |channel: &ChannelStatus| matches!(channel.state, ChannelState::Ended | ChannelState::Failed);
    status.channels.iter().all(over) && status.spool.blocks == 0 && shared.spool().open_flows().is_empty()
}

fn shown(channel: &config::Channel) -> ChannelStatus {
    let (name, input) = (channel.name.to_string(), channel.input.to_string());
    ChannelStatus { name, input, ..ChannelStatus::default() }
}

/// The sockets of the configured paths, and what is to be done with each.
fn driver(config: &StationConfig, clock: Clock) -> Result<(Driver, Vec<PathPlan>), Fault> {
    let identity = services::identity(&config.node)?;
    let one = [config::LinePath { local: None, remote: None, rate: None, metered: false, standby: false }];
    let paths: &[config::LinePath] = if config.path.is_empty() { &one } else { &config.path };
    let mut driver: Option<Driver> = None;
    let mut plans = Vec::new();
    for path in paths {
        let remote = path.remote.as_ref().unwrap_or(&config.centre.address).to_string();
        let found = remote.to_socket_addrs().ok().and_then(|mut found| found.next());
        let is_ipv6 =
            path.local.map_or(found.is_some_and(|address| address.is_ipv6()), |local| local.is_ipv6());
        let any: IpAddr = if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let bind = SocketAddr::new(path.local.unwrap_or(any), 0);
        let line = path.rate.map_or(config.line.controller(), ControllerConfig::declared);
        let settings = PathConfig {
            udp_payload: services::udp_payload(config.line.mtu, is_ipv6),
            controller: line,
            ..PathConfig::default()
        };
        let endpoint = EndpointConfig::new(identity.clone(), settings, clock.std_start());
        let socket = match &mut driver {
            None => {
                driver = Some(services::driver(bind, endpoint, WINDOW, clock)?);
                SocketId(0)
            }
            Some(driver) => driver.add_carrier(services::carrier(bind, endpoint)?),
        };
        let options = PathOptions { metered: path.metered, standby: path.standby };
        plans.push(PathPlan { socket, local: bind.ip().to_string(), remote, options });
    }
    let driver = driver.ok_or_else(|| Fault::configuration("no path", "[[path]]", "write one"))?;
    Ok((driver, plans))
}

fn open_spool(config: &StationConfig, state: &Path, clock: Clock) -> Result<Spool, Fault> {
    let settings = SpoolConfig {
        segment_size: config.spool.segment_size,
        max_size: config.spool.max_size,
        retention: config.spool.retention,
        ..SpoolConfig::default()
    };
    let disk = RealDisk::open(state).map_err(|error| services::disk_fault(state, &error))?;
    let spool = Spool::open(Arc::new(disk), settings, clock.utc()).map_err(|error| spool_fault(&error))?;
    for damage in spool.damages() {
        tracing::warn!("the spool is damaged: {damage}");
    }
    Ok(spool)
}

/// Starts the threads; the order is that in which they end.
fn start(
    config: &StationConfig,
    shared: &Arc<Shared>,
    clock: Clock,
    line: (Driver, Vec<PathPlan>),
) -> Result<Vec<JoinHandle<()>>, Fault> {
    let (blocks, queue) = sync_channel(spooler::QUEUE);
    let missions = services::missions(&config.missions)?;
    let gather = config.spool.sync_interval / 2;
    let common =
        Common { shared: shared.clone(), blocks, clock, missions, gather, sync: config.sync.thresholds() };
    let channels = config.channel.iter().enumerate();
    let runners: Vec<ChannelRunner> = channels
        .map(|(index, channel)| {
            ChannelRunner::open(index, channel.clone(), &config.node.state, common.clone())
        })
        .collect::<Result<_, Fault>>()?;
    drop(common);
    close_forgotten(shared, &runners)?;
    let mut threads = Vec::new();
    for runner in runners {
        threads.push(services::thread("channel", move || runner.run())?);
    }
    let of = shared.clone();
    threads.push(services::thread("spool", move || spooler::run(&of, &queue, clock))?);
    threads.push(self::line(config, shared, clock, line)?);
    Ok(threads)
}

/// Closes the flows that no channel goes on with: the station ended between opening them and remembering so.
fn close_forgotten(shared: &Shared, runners: &[ChannelRunner]) -> Result<(), Fault> {
    let mut spool = shared.spool();
    for open in spool.open_flows() {
        if !runners.iter().any(|runner| runner.flow() == Some(open.flow)) {
            spool.close_flow(open.flow).map_err(|error| spool_fault(&error))?;
        }
    }
    Ok(())
}

fn line(
    config: &StationConfig,
    shared: &Arc<Shared>,
    clock: Clock,
    (mut driver, paths): (Driver, Vec<PathPlan>),
) -> Result<JoinHandle<()>, Fault> {
    let mut uplink =
        Uplink::new(config.node.name.to_string(), centre_of(config), (shared.clone(), clock), paths);
    let shared = shared.clone();
    services::thread("line", move || {
        if let Err(error) = driver.run(&mut uplink, shared.life.stop_flag()) {
            let help = "start the station again: what was captured is in the spool";
            shared.life.fail(Fault::environment(
                format!("the line's socket failed ({error})"),
                "the line",
                help,
            ));
        }
    })
}

fn centre_of(config: &StationConfig) -> Centre {
    Centre {
        name: config.centre.name.to_string(),
        address: config.centre.address.to_string(),
        fingerprint: config.centre.fingerprint.fingerprint(),
    }
}

fn spool_fault(error: &SpoolError) -> Fault {
    let help = "mend the disk and start the station again: it goes on from what is on the disk";
    Fault::environment("the spool cannot be used", error, help)
}

/// The mission that a channel's configuration names, if it does.
fn mission_of(config: &config::Channel, missions: &MissionSet) -> Result<Option<Mission>, Fault> {
    match &config.mission {
        None => Ok(None),
        Some(MissionRef::File(file)) => services::mission_file(file).map(Some),
        Some(MissionRef::Named(name)) => match missions.by_name(name) {
            Some(mission) => Ok(Some(mission.clone())),
            None => {
                let known: Vec<&str> = missions.iter().map(Mission::name).collect();
                let help = format!("write one of {}, or a file ending in .toml", known.join(", "));
                Err(Fault::configuration(
                    format!("mission `{name}` is not known"),
                    format!("channel {}", config.name),
                    help,
                ))
            }
        },
    }
}
