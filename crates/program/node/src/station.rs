//! The station: captures downlinks, stores them in its spool, and sends them to its destinations.
//!
//! Threads: one for each channel (`channel`) and for each input that is recorded (`recording`), one
//! that syncs the disk (`spooler`), one that looks for frames that a destination misses (`refill`),
//! one for the line (`uplinks`: an `uplink` for each destination), one for each drop folder
//! (`folders`), one for each mirror (`mirrors`), one for each path with a feed or a plan
//! (`outside`), three for each stream (`streams`), one that accepts files where a destination may
//! write some here, one that answers status requests. They meet in `shared`.

mod appending;
mod board;
mod channel;
mod channel_context;
mod connect;
mod contact;
mod continuation;
mod early;
mod fallback;
mod folders;
mod front;
mod handed_reads;
mod handing_over;
mod input;
mod inputs;
mod lateness;
mod left_input;
mod line_plan;
mod memo;
mod mirrors;
mod offered;
mod opening;
mod order;
pub(crate) mod outside;
mod packing;
mod paths;
mod quiet;
mod reach;
mod receiver;
mod recent_bytes;
mod recording;
mod refill;
mod relay;
pub(crate) mod reload;
mod resume;
mod rivals;
mod routing;
mod shared;
mod sockets;
mod spool_watch;
mod spooler;
mod streams;
mod union;
mod uplink;
mod uplinks;

use crate::adopted::{Adopted, ReloadPlan};
use crate::alarms::{AlarmPart, Alarms};
use crate::centre::CentreShared;
use crate::fault::Fault;
use crate::forecasts::{GivenHint, HintGiver};
use crate::guests::{self, ProgramBlocks};
use crate::incoming::{self, FileService};
use crate::journal::EventSink;
use crate::keys::NodeKeys;
use crate::reports::ReportDesk;
use crate::services::{self, SessionMemory};
use crate::status::{ChannelState, ChannelStatus, DestinationStatus, StatusReply, StatusRequest};
use crate::status::{FolderState, FolderStatus};
use crate::upgrade::HandedInputs;
use board::StationBoard;
use channel::ChannelRunner;
use channel_context::ChannelContext;
use folders::FolderRunner;
use line_plan::LinePlan;
use mirrors::{Mirror, MirrorWay};
use opening::LineOpening;
use order::StationOrder;
use outside::OutsideWatches;
use paths::StationPaths;
use refill::RefillRunner;
use relay::RelayRunner;
use routing::Routing;
pub(crate) use shared::StationShared;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_channels_io::ChannelService;
use skyhaul_channels_io::{IncomingChannels, TakenChannels, Tenants};
use skyhaul_config::{Destination, Input, MirrorEntry, MissionRef, StationConfig};
use skyhaul_net::{Clock, Driver};
use skyhaul_store::{Disk, Spool, SpoolConfig, SpoolDraw, SpoolError};
use skyhaul_units::{ByteCount, FlowId};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use streams::Streams;
use uplinks::Uplinks;

pub(crate) use handing_over::{KeptInput, give, handed, passed, read_on, sources, stop_reading};
pub use reach::reach;
use reload::Reload;
pub use union::{Sighting, Union};

/// A session's memory at the station. The send buffer holds eight round trips of 660 ms at 93
/// Mbit/s: a block stays in it until the centre reports it whole. The centre sends only messages.
/// Guests have buffers of their own: see `guests`.
const WINDOW: SessionMemory =
    SessionMemory { receive: ByteCount::mib(1), send: ByteCount::mib(64) };
/// The source of a channel that reads the files of a folder, as status shows it.
const FOLDER: &str = "folder";
/// Where a node works.
#[derive(Debug, Clone)]
pub(crate) struct NodePlace {
    /// Its state folder.
    pub disk: Arc<dyn Disk>,
    /// Its clock.
    pub clock: Clock,
    /// Whether programs' blocks share its sessions.
    pub blocks: ProgramBlocks,
    /// Takes what happens.
    pub events: EventSink,
    /// Live inputs that were read elsewhere before.
    pub handed: Arc<HandedInputs>,
    /// Its keys.
    pub keys: Arc<NodeKeys>,
    /// Reports of nodes.
    pub reports: Arc<ReportDesk>,
}

/// The part of a node that captures and sends.
#[derive(Debug)]
pub(crate) struct Station {
    shared: Arc<StationShared>,
    threads: Vec<JoinHandle<()>>,
    streams: Streams,
    outside: OutsideWatches,
    blocks: ChannelService,
    files: ChannelService,
    reload: Reload,
}

impl Station {
    /// Starts it. `upstream` is what the node receives, and may pass on.
    ///
    /// # Errors
    /// It cannot start; what was captured is in the spool.
    pub(crate) fn start(
        config: &StationConfig,
        written: StationConfig,
        upstream: Option<Arc<CentreShared>>,
        place: NodePlace,
    ) -> Result<Self, Fault> {
        let NodePlace { disk, clock, blocks, events, keys, handed, reports } = place;
        let alarms = Arc::new(Alarms::open(clock, events, disk.clone(), AlarmPart::Station));
        routing::check_missions(config, &services::missions(&config.missions)?)?;
        memo::check(&config.node.state)?;
        let opening = LineOpening::of(config, keys.own().clone(), clock, blocks);
        let (driver, paths) = opening.open(config, &config.destinations)?;
        let mut spool = open_spool(config, disk.clone(), clock)?;
        let routing = Routing::declare(config, &mut spool).map_err(|error| spool_fault(&error))?;
        let board = StationBoard::new(
            config.node.name.to_string(),
            config.channel.iter().map(shown).collect(),
            config.destinations.iter().map(shown_destination).collect(),
        );
        let mut shared = StationShared::new(board, routing, spool, alarms, driver.waker());
        shared.reports = reports;
        let shared = Arc::new(shared);
        let peers = config.destinations.iter().map(|one| &one.peer);
        let roots = incoming::roots(peers, &config.sharing(0).tree)?;
        let files = match roots.is_empty() {
            true => IncomingChannels::Refused,
            false => IncomingChannels::Accepted,
        };
        let taken = TakenChannels { files, ..TakenChannels::NONE };
        let guests =
            guests::start(config.forwarding(), taken, driver.waker(), shared.alarms.clone())?;
        let doors = (guests.files(), guests.streams());
        let blocks = guests.blocks();
        let line = LineParts { driver, paths, guests, keys };
        let from = StationInputs { disk, upstream, handed };
        let mut threads = start(config, &shared, from, clock, line)?;
        threads.extend(mirrors(config, &doors.0, &shared, clock)?);
        if !roots.is_empty() {
            let incoming = FileService::new(doors.0.clone(), roots, shared.clone());
            threads.push(services::thread("files", move || incoming.run())?);
        }
        let streams = Streams::start(config, &doors.1, &shared, clock)?;
        let outside = OutsideWatches::start(config.paths(), &shared, clock)?;
        let reload = Reload::new(written, opening);
        let files = doors.0;
        Ok(Self { shared, threads, streams, outside, blocks, files, reload })
    }

    /// What its threads share.
    pub(crate) fn shared(&self) -> &Arc<StationShared> {
        &self.shared
    }

    /// Channels for programs' blocks.
    pub(crate) fn blocks(&self) -> ChannelService {
        self.blocks.clone()
    }

    /// Channels for files.
    pub(crate) fn files(&self) -> ChannelService {
        self.files.clone()
    }

    /// The configuration in force.
    pub(crate) const fn config(&self) -> &StationConfig {
        self.reload.config()
    }

    /// What becomes of a configuration that was read again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn plan(&self, new: &StationConfig) -> Result<ReloadPlan<StationConfig>, String> {
        self.reload.plan(new)
    }

    /// Adopts what a plan says.
    ///
    /// # Errors
    /// Why it cannot; nothing has changed.
    pub(crate) fn adopt(&mut self, plan: ReloadPlan<StationConfig>) -> Result<Adopted, String> {
        let paths = plan.in_force.paths();
        let mut adopted = self.reload.adopt(plan, &self.shared)?;
        adopted.changes.extend(self.outside.adopt(paths));
        Ok(adopted)
    }

    /// Whether all inputs are over and everything is sent.
    pub(crate) fn is_sent(&self) -> bool {
        let status = self.shared.status();
        let over = |channel: &ChannelStatus| {
            matches!(channel.state, ChannelState::Ended | ChannelState::Failed)
                || channel.input == FOLDER
        };
        let is_idle = |folder: &FolderStatus| folder.state == FolderState::Done;
        status.channels.iter().all(over)
            && status.folders.iter().all(is_idle)
            && status.spool.blocks == 0
            && self.shared.spool().queue().open_flows().is_empty()
    }

    /// Ends it, so that its live inputs go on in another process; returns them.
    ///
    /// # Errors
    /// As [`Self::end`].
    pub(crate) fn hand_over(self) -> Result<Vec<KeptInput>, Fault> {
        let shared = self.shared.clone();
        shared.handing_over.order();
        shared.shutdown.go_on();
        self.end()?;
        Ok(shared.handing_over.take())
    }

    /// What cannot be passed on, or not used by this program, and can be known before.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(config: &StationConfig) -> Result<(), Fault> {
        routing::check_missions(config, &services::missions(&config.missions)?)?;
        memo::check(&config.node.state)
    }

    /// Ends it: what its threads do now, they finish.
    ///
    /// # Errors
    /// Why it could not go on, if that is why it ends.
    pub(crate) fn end(self) -> Result<(), Fault> {
        let ended = self.streams.end();
        self.shared.shutdown.request();
        self.outside.end();
        for thread in self.threads.into_iter().chain(ended) {
            // A panic was logged; what is on the disk is checked at the next start.
            let _ = thread.join();
        }
        self.shared.shutdown.fault().map_or(Ok(()), Err)
    }
}

/// Carries out an order for the paths.
pub(crate) fn obey(shared: &StationShared, request: StatusRequest) -> StatusReply {
    let order = match request {
        StatusRequest::AddPath { path } => {
            match serde_json::from_value::<skyhaul_config::LinePath>(path) {
                Ok(path) if path.feed.is_some() || path.plan.is_some() => {
                    return refused(
                        "a path that a command adds has no feed and no plan; write it in the \
                        configuration and send SIGHUP",
                    );
                }
                Ok(path) if path.name.is_some() => StationOrder::Add(Box::new(path)),
                Ok(_) => return refused("the path has no name"),
                Err(error) => return refused(&error.to_string()),
            }
        }
        StatusRequest::RemovePath { name } => StationOrder::Remove(name),
        StatusRequest::HintPath { name, hint: says } => {
            StationOrder::Hint(name, GivenHint { by: HintGiver::Operator, says })
        }
        _ => return refused("this is no order for a path"),
    };
    let outcome = shared.orders.give(order, || shared.shutdown.wake_line());
    if let Ok(said) = &outcome {
        tracing::info!("{said}");
    }
    StatusReply::Answer(outcome.into())
}

/// Whether a path of the configuration, or one that was added, has this name.
pub(crate) fn has_path(shared: &StationShared, name: &str) -> bool {
    shared.board.paths().iter().any(|(_, paths)| paths.iter().any(|path| path == name))
}

/// Takes a hint of a program for path number `path` to a destination, in the order in which status
/// shows them.
///
/// # Errors
/// A sentence: there is no such path, or the hint is out of range.
pub(crate) fn take_hint(
    shared: &StationShared,
    to: &str,
    path: u8,
    hint: GivenHint,
) -> Result<(), String> {
    hint.check()?;
    let lines = shared.board.paths();
    let names = lines.iter().find(|(name, _)| name == to).map_or(&[][..], |(_, paths)| paths);
    let Some(name) = names.get(usize::from(path)) else {
        let all = names.iter().enumerate().map(|(place, name)| format!("{place} ({name})"));
        let all = all.collect::<Vec<_>>().join(", ");
        return Err(format!("there is no path {path} to {to}; its paths are {all}"));
    };
    if !shared.orders.post(StationOrder::Hint(name.clone(), hint)) {
        return Err("the line's thread does not answer; give the hint again".to_owned());
    }
    shared.shutdown.wake_line();
    Ok(())
}

fn refused(sentence: &str) -> StatusReply {
    let (what, help) =
        sentence.split_once("; ").unwrap_or((sentence, "see `skyhaul path add --help`"));
    StatusReply::Answer(Err(Fault::configuration(what, "the new path", help)).into())
}

fn shown(channel: &skyhaul_config::Channel) -> ChannelStatus {
    let (name, input) = (channel.name.to_string(), channel.sources());
    ChannelStatus { name, input, ..ChannelStatus::default() }
}

fn shown_destination(destination: &Destination) -> DestinationStatus {
    DestinationStatus {
        name: destination.name().to_owned(),
        shadow: destination.entry.shadow,
        ..DestinationStatus::default()
    }
}

fn open_spool(config: &StationConfig, disk: Arc<dyn Disk>, clock: Clock) -> Result<Spool, Fault> {
    let settings = SpoolConfig {
        segment_size: config.spool.segment_size,
        max_size: config.spool.max_size,
        retention: config.spool.retention,
        ..SpoolConfig::default()
    };
    Spool::open(disk, settings, clock.utc(), draw()?).map_err(|error| spool_fault(&error))
}

/// What the threads that fill the spool read from.
struct StationInputs {
    /// The node's state folder.
    disk: Arc<dyn Disk>,
    /// What the node receives.
    upstream: Option<Arc<CentreShared>>,
    /// Live inputs that were read elsewhere before.
    handed: Arc<HandedInputs>,
}

/// What the thread of the line serves.
struct LineParts {
    driver: Driver,
    /// The paths to each destination.
    paths: Vec<StationPaths>,
    guests: Tenants,
    keys: Arc<NodeKeys>,
}

/// Starts the threads, in the order in which they end.
fn start(
    config: &StationConfig,
    shared: &Arc<StationShared>,
    from: StationInputs,
    clock: Clock,
    line: LineParts,
) -> Result<Vec<JoinHandle<()>>, Fault> {
    let StationInputs { disk, upstream, handed } = from;
    let (blocks, queue) = sync_channel(spooler::QUEUE);
    let missions = services::missions(&config.missions)?;
    let context = ChannelContext {
        shared: shared.clone(),
        disk,
        blocks,
        clock,
        missions,
        handed,
        gather: config.spool.sync_interval / 2,
        sync: config.sync.thresholds(),
    };
    let is_read = |channel: &skyhaul_config::Channel| channel.input != Some(Input::Folder);
    let channels = config.channel.iter().enumerate().filter(|(_, channel)| is_read(channel));
    let runners: Vec<ChannelRunner> = channels
        .map(|(index, channel)| {
            ChannelRunner::open(index, channel.clone(), &config.node.state, context.clone())
        })
        .collect::<Result<_, Fault>>()?;
    let folder_context = context.clone();
    let refill = RefillRunner::open(&config.refill, &config.channel, &config.node.state, context)?;
    let folders = folders::open(config, &folder_context, &line.guests.files())?;
    let relay = upstream.map(|upstream| RelayRunner::open(upstream, &folder_context));
    let relay = relay.transpose()?;
    let known = runners.iter().filter_map(ChannelRunner::flow).chain(refill.flows());
    let known = known.chain(folders.iter().filter_map(FolderRunner::flow));
    let known: Vec<FlowId> = known.chain(relay.iter().flat_map(RelayRunner::flows)).collect();
    close_forgotten(shared, &known)?;
    let mut threads = Vec::new();
    for runner in runners {
        threads.push(services::thread("channel", move || drop(runner.run()))?);
    }
    for runner in folders {
        threads.push(services::thread("folder", move || runner.run())?);
    }
    if let Some(relay) = relay {
        threads.push(services::thread("relay", move || relay.run())?);
    }
    threads.push(services::thread("refill", move || refill.run())?);
    let of = shared.clone();
    threads.push(services::thread("spool", move || spooler::run(&of, &queue, clock))?);
    threads.push(self::line(config, shared, clock, line)?);
    Ok(threads)
}

fn mirrors(
    config: &StationConfig,
    door: &ChannelService,
    shared: &Arc<StationShared>,
    clock: Clock,
) -> Result<Vec<JoinHandle<()>>, Fault> {
    let ways = mirrors::ways(config);
    shared.board.mirrors(ways.iter().map(|(mirror, way)| mirrors::shown(mirror, way)).collect());
    let start = |(mirror, way): (&MirrorEntry, MirrorWay)| {
        let mirror = Mirror::new(mirror.clone(), way, door.clone(), shared.clone(), clock);
        services::thread("mirror", move || mirror.run())
    };
    ways.into_iter().map(start).collect()
}

/// Closes the flows that neither a channel nor the refill resumes: the station ended between
/// opening a flow and saving its number.
fn close_forgotten(shared: &StationShared, known: &[FlowId]) -> Result<(), Fault> {
    let mut spool = shared.spool();
    for open in spool.queue().open_flows() {
        if !known.contains(&open.flow) {
            spool.close_flow(open.flow).map_err(|error| spool_fault(&error))?;
        }
    }
    Ok(())
}

fn line(
    config: &StationConfig,
    shared: &Arc<StationShared>,
    clock: Clock,
    line: LineParts,
) -> Result<JoinHandle<()>, Fault> {
    let LineParts { mut driver, paths, guests, keys } = line;
    let plan = LinePlan::new(config.clone(), shared.clone(), clock, keys);
    let named = config.destinations.iter().map(Destination::name).zip(paths);
    let list = named.filter_map(|(name, paths)| plan.uplink(name, paths)).collect();
    let mut uplinks = Uplinks::new(list, plan, guests);
    let shared = shared.clone();
    services::thread("line", move || {
        if let Err(error) = driver.run(&mut uplinks, shared.shutdown.flag()) {
            let help = "restart the station: all captured data is in the spool";
            shared.shutdown.fail(Fault::environment(
                format!("the line's socket failed ({error})"),
                "the line",
                help,
            ));
        }
    })
}

/// Random numbers for the identity of a spool, and of this opening of it.
fn draw() -> Result<SpoolDraw, Fault> {
    let random = skyhaul_net::random().map_err(|error| {
        Fault::environment(
            "the system gives no random numbers",
            error,
            "check that /dev/urandom exists",
        )
    })?;
    let (draw, _) = random.split_first_chunk().expect("there are more than 24 random bytes");
    Ok(SpoolDraw(*draw))
}

fn spool_fault(error: &SpoolError) -> Fault {
    let help = "repair the disk and restart the station: it continues from the data on disk";
    Fault::environment("the spool cannot be used", error, help)
}

/// The mission that a channel's configuration names, if any.
fn mission_of(
    config: &skyhaul_config::Channel,
    missions: &MissionSet,
) -> Result<Option<Mission>, Fault> {
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
