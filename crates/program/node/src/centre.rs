//! The centre: receives data from trusted stations, stores it, and makes Level-0 products.
//!
//! Threads: one for the lines (`downlink`), one that writes blocks and syncs the disk (`keeper`),
//! one for Level-0 (`processor`), one for products of several contacts and one for those that are
//! made again (`assembly`), one that writes the catalogue, one that removes what is over its time
//! (`retention`), one that watches deliveries and more for each destination (`delivery`), one for
//! each receiver of live packets (`live`), one that accepts files (`incoming`, and five for each
//! transfer), one that accepts streams (`streams`, and two for each), one that answers status
//! requests; and one that cuts contacts into files for pollers (`crate::sessions`), where `[serve]`
//! offers them. They meet in `shared`.

mod admission;
mod archive;
mod assembly;
mod awaited;
mod board;
mod commits;
mod contact;
mod delivered;
mod delivery;
mod downlink;
mod files;
mod gaps;
mod keeper;
mod live;
mod offered;
mod onward;
mod peer_paths;
mod processor;
mod rdr;
pub(crate) mod reload;
mod retention;
mod rivals;
mod shared;
mod standby_teller;
mod store_news;
mod streams;
mod ways;

use crate::address_family::AddressFamily;
use crate::adopted::{Adopted, ReloadPlan};
use crate::alarms::{AlarmPart, Alarms};
use crate::custody::PREFACE;
use crate::fault::Fault;
use crate::forecasts::{GivenHint, HintGiver};
use crate::guests::{self, ProgramBlocks};
use crate::incoming::{self, FileService};
use crate::services::{self, SessionMemory};
use crate::station::NodePlace;
use crate::status::{PathHint, StatusReply, StatusRequest};
use crate::upgrade::{HandedInputs, HandedSocket, KeptSocket, PassedKind};
use admission::{AdmittedStation, PeerHint};
use assembly::{AgainThread, Assembler, AssemblyJournal};
use board::CentreBoard;
pub(crate) use board::{FrameStage, RecentTimes};
pub(crate) use delivery::FILE as CATALOGUE_FILE;
use delivery::{DeliveryLedger, DeliveryThreads, LedgerSetup};
use downlink::{Downlink, Lines};
use gaps::GapLedger;
pub use gaps::kept as kept_gaps;
use keeper::Keeper;
use live::Receivers;
pub use onward::NodeKind;
use onward::Onward;
use processor::Processor;
use reload::Reload;
use retention::RetentionThread;
pub(crate) use shared::CentreShared;
use shared::CentreState;
use skyhaul_channels_io::{ChannelService, TakenChannels};
use skyhaul_config::{CentreConfig, PeerEntry, ProductDestination};
use skyhaul_events::AlarmKind;
use skyhaul_net::{AnyEndpoint, Clock, Driver, LastWord, Socket, TcpConfig};
use skyhaul_quic::{EndpointConfig, Fingerprint, OwnKey, PathConfig};
use skyhaul_store::{ContactConfig, ContactStore, Disk, StationName};
use skyhaul_streams_io::AllowedSinks;
use skyhaul_units::ByteCount;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use streams::Streams;

/// The part of a node that receives, and makes products.
#[derive(Debug)]
pub(crate) struct Centre {
    shared: Arc<CentreShared>,
    threads: Vec<JoinHandle<()>>,
    blocks: ChannelService,
    /// The configured address of each endpoint that waits for calls.
    binds: Vec<SocketAddr>,
    reload: Reload,
}

impl Centre {
    /// Starts it. `disk` is the node's state folder.
    ///
    /// # Errors
    /// It cannot start; what it has receipted is in its store.
    pub(crate) fn start(
        config: &CentreConfig,
        kind: NodeKind,
        place: NodePlace,
    ) -> Result<Self, Fault> {
        let NodePlace { disk, clock, blocks, events, keys, handed, reports } = place;
        if let Some(products) = &config.products {
            services::make_folder(&products.dir)?;
        }
        let folders = config.outlets.destinations.iter().filter_map(ProductDestination::folder);
        folders.into_iter().try_for_each(services::make_folder)?;
        let peers = peers(config, &config.peer)?;
        let at = ListenPlace { identity: keys.own(), clock, blocks, handed: &handed };
        let Listening { driver, listens, addresses } = listen(config, &at)?;
        let binds = listens.iter().map(|nth| config.listen[*nth].bind).collect();
        let kept = open_store(config, disk.clone(), clock)?;
        let sockets = driver.endpoints().filter_map(AnyEndpoint::inode).collect();
        for address in &addresses {
            tracing::info!("listening on {address}");
        }
        let live = Receivers::start(&config.live, clock)?;
        let name = config.node.name.to_string();
        let onward = Onward::new(name.clone(), kind);
        let board = CentreBoard::new(name, addresses.join(", "));
        let alarms = Arc::new(Alarms::open(clock, events, disk, AlarmPart::Centre));
        let mut shared = CentreShared::new(board, kept, onward, alarms, driver.waker());
        shared.live = live;
        shared.desk.reports = reports;
        let shared = Arc::new(shared);
        shared.board.sockets(sockets);
        shared.hold_contacts();
        for record in shared.journal().damaged() {
            shared.alarms.raise(
                AlarmKind::ProductRecordDamaged,
                "a record of Level-0 products",
                record,
            );
        }
        for record in shared.gaps().damaged() {
            shared.alarms.raise(AlarmKind::GapRecordDamaged, "a record of gaps", record);
        }
        let guests = guests::start(
            config.forwarding(),
            TakenChannels::ALL,
            driver.waker(),
            shared.alarms.clone(),
        )?;
        let blocks = guests.blocks();
        shared.desk.doors.called_by_peers(guests.files());
        let (classes, trusted) = (config.classes(), config.trusted());
        let lines = Lines { peers, trusted, classes, listens, guests, keys };
        let threads = start(config, lines, &shared, clock, driver)?;
        Ok(Self { shared, threads, blocks, binds, reload: Reload::new(config.clone()) })
    }

    /// What its threads share.
    pub(crate) fn shared(&self) -> &Arc<CentreShared> {
        &self.shared
    }

    /// Channels for programs' blocks.
    pub(crate) fn blocks(&self) -> ChannelService {
        self.blocks.clone()
    }

    /// The configuration in force.
    pub(crate) const fn config(&self) -> &CentreConfig {
        self.reload.config()
    }

    /// What becomes of a configuration that was read again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn plan(&self, new: &CentreConfig) -> Result<ReloadPlan<CentreConfig>, String> {
        self.reload.plan(new)
    }

    /// Adopts what a plan says.
    ///
    /// # Errors
    /// Why it cannot; nothing has changed.
    pub(crate) fn adopt(&mut self, plan: ReloadPlan<CentreConfig>) -> Result<Adopted, String> {
        self.reload.adopt(plan, &self.shared)
    }

    /// Ends it, so that it goes on in another process; returns the sockets that wait for calls.
    ///
    /// # Errors
    /// As [`Self::end`]; the system gives no memory.
    pub(crate) fn hand_over(self) -> Result<Vec<KeptSocket>, Fault> {
        let (shared, binds) = (self.shared.clone(), self.binds.clone());
        shared.shutdown.go_on();
        self.end()?;
        let left = binds.into_iter().zip(shared.shutdown.take_sockets());
        let kept = left.map(|(listen, socket)| KeptSocket::new(listen, socket));
        kept.collect::<std::io::Result<_>>().map_err(|error| {
            let what = format!("the sockets of the lines cannot be kept ({error})");
            Fault::environment(what, "the lines", "give the system more memory")
        })
    }

    /// Ends it: what its threads do now, they finish.
    ///
    /// # Errors
    /// Why it could not go on, if that is why it ends.
    pub(crate) fn end(self) -> Result<(), Fault> {
        self.shared.shutdown.request();
        for thread in self.threads {
            // A panic was logged; what is on the disk is checked at the next start.
            let _ = thread.join();
        }
        self.shared.shutdown.fault().map_or(Ok(()), Err)
    }
}

/// Answers about gaps, deliveries, the catalogue and the archive of the centre.
pub(crate) fn answer(shared: &CentreShared, request: StatusRequest) -> StatusReply {
    match request {
        request if delivery::is_for_deliveries(&request) => delivery::answer(shared, request),
        request if retention::is_for_archive(&request) => retention::answer(shared, request),
        request if assembly::is_for_reprocessing(&request) => assembly::answer(shared, request),
        StatusRequest::AskGaps(which) => match shared.gaps().ask_again(&which) {
            Ok(asked) => {
                shared.shutdown.wake_line();
                StatusReply::Asked(asked)
            }
            Err(fault) => StatusReply::Answer(Err(fault).into()),
        },
        _ => StatusReply::Gaps(Box::new(shared.gaps().report())),
    }
}

/// Takes a hint of the operator for the paths of a peer.
pub(crate) fn hint(shared: &CentreShared, path: String, says: PathHint) -> StatusReply {
    let order = PeerHint { path, hint: GivenHint { by: HintGiver::Operator, says } };
    let outcome = shared.desk.hints.give(order, || shared.shutdown.wake_line());
    if let Ok(said) = &outcome {
        tracing::info!("{said}");
    }
    StatusReply::Answer(outcome.into())
}

/// Takes a hint of a program for path number `path` of the session with a peer.
///
/// # Errors
/// A sentence: there is no such path, or the hint is out of range.
pub(crate) fn take_hint(
    shared: &CentreShared,
    peer: &str,
    path: u8,
    hint: GivenHint,
) -> Result<(), String> {
    hint.check()?;
    let names = shared.board.paths_of(peer);
    let name = format!("{peer}/{path}");
    if !names.contains(&name) {
        let all = names.join(", ");
        return Err(format!("there is no path {path} to {peer}; its paths are {all}"));
    }
    if !shared.desk.hints.post(PeerHint { path: name, hint }) {
        return Err("the line's thread does not answer; give the hint again".to_owned());
    }
    shared.shutdown.wake_line();
    Ok(())
}

/// The stations of `config`. Forwards stay with the stations that the centre began with.
fn peers(
    config: &CentreConfig,
    begun: &[PeerEntry],
) -> Result<BTreeMap<Fingerprint, AdmittedStation>, Fault> {
    let mut peers = BTreeMap::new();
    for peer in &config.peer {
        let place = begun.iter().position(|begun| begun.name == peer.name);
        let name = StationName::new(peer.name.as_str()).map_err(|error| {
            Fault::configuration(error.to_string(), "[[peer]]", "give the peer another name")
        })?;
        let rules = Arc::new(peer.rules());
        peers.extend(peer.fingerprints.iter().map(|listed| {
            let (name, rules, patience) = (name.clone(), Arc::clone(&rules), peer.patience());
            (listed, AdmittedStation { name, place, rules, patience, listed })
        }));
    }
    Ok(peers)
}

/// The allowed sinks of each station.
fn sinks(config: &CentreConfig) -> Result<BTreeMap<Fingerprint, (String, AllowedSinks)>, Fault> {
    let of = |peer: &PeerEntry| {
        let allowed = match &peer.streams {
            None => AllowedSinks::default(),
            Some(streams) => {
                streams.root.as_deref().map(services::make_folder).transpose()?;
                let place =
                    streams.root.as_deref().unwrap_or(Path::new("[peer.streams]")).display();
                streams.allowed().map_err(|error| {
                    let help = "give this user write permission there, or configure another folder";
                    Fault::environment(format!("the folder cannot be used ({error})"), place, help)
                })?
            }
        };
        Ok(allowed)
    };
    let mut sinks = BTreeMap::new();
    for peer in &config.peer {
        for key in peer.fingerprints.iter() {
            sinks.insert(key, (peer.name.to_string(), of(peer)?));
        }
    }
    Ok(sinks)
}

/// The endpoints that wait for peers.
struct Listening {
    driver: Driver,
    /// The address of each endpoint, by its index among those of the configuration.
    listens: Vec<usize>,
    /// The addresses as they were bound.
    addresses: Vec<String>,
}

/// What endpoints are made with.
struct ListenPlace<'a> {
    identity: &'a OwnKey,
    clock: Clock,
    blocks: ProgramBlocks,
    /// Sockets that another process listened on before.
    handed: &'a HandedInputs,
}

/// Listens on every address of the configuration: over UDP, and over TCP where that is wanted.
fn listen(config: &CentreConfig, place: &ListenPlace<'_>) -> Result<Listening, Fault> {
    let ListenPlace { identity, clock, blocks, handed } = *place;
    let own = SessionMemory { receive: config.session.receive_window, send: ByteCount::mib(1) };
    let has_guests = config.has_guests() || blocks == ProgramBlocks::Served;
    let send = if has_guests { guests::window(own).send } else { own.send };
    let window = SessionMemory { send, ..own };
    let mut found: Option<Listening> = None;
    for (nth, (listen, trusted)) in config.listen.iter().zip(config.trusted()).enumerate() {
        let (bind, place) = (listen.bind, listen.bind.to_string());
        let payload = services::udp_payload(listen.mtu, AddressFamily::of_socket(&bind));
        let path = PathConfig {
            udp_payload: payload,
            controller: config.controller(),
            ..PathConfig::default()
        };
        let quic = EndpointConfig {
            trusted: trusted.clone(),
            listen: true,
            ..EndpointConfig::new(identity.clone(), path, clock.std_start())
        };
        let given = handed.take_socket(PassedKind::Udp, bind).map(HandedSocket::open);
        let (socket, calls) = match given {
            Some((socket, calls)) => (Socket::given(socket), calls),
            None if listen.tcp => (services::socket_beside_tcp(bind), Vec::new()),
            None => (Socket::bind(bind), Vec::new()),
        };
        let endpoint = services::endpoint(socket, &place, quic)?.with_calls(calls);
        let at = endpoint.socket().local_addr().unwrap_or(bind);
        let listening = match &mut found {
            Some(listening) => {
                listening.driver.add_endpoint(endpoint);
                listening
            }
            None => found.insert(Listening {
                driver: services::driver(endpoint.into(), &place, window, clock)?,
                listens: Vec::new(),
                addresses: Vec::new(),
            }),
        };
        listening.listens.push(nth);
        listening.addresses.push(at.to_string());
        if listen.tcp {
            let over_tcp = TcpConfig {
                trusted,
                listen: Some(at),
                udp_payload: payload,
                ..TcpConfig::new(identity.clone())
            };
            let given = handed.take_socket(PassedKind::TcpListen, bind);
            let given = given.map(|given| given.socket);
            listening.driver.add_endpoint(services::over_tcp(over_tcp, given, &place)?);
            listening.listens.push(nth);
        }
    }
    found.ok_or_else(|| {
        Fault::configuration("no address to listen on", "[[listen]]", "add a [[listen]]")
    })
}

fn open_store(
    config: &CentreConfig,
    disk: Arc<dyn Disk>,
    clock: Clock,
) -> Result<CentreState, Fault> {
    let settings = ContactConfig {
        max_size: config.store.max_size,
        preface: PREFACE,
        ..ContactConfig::default()
    };
    let fault = |error: String| {
        let help = "repair the disk or the permissions, then restart the centre";
        Fault::environment(
            format!("the store cannot be used: {error}"),
            config.node.state.display(),
            help,
        )
    };
    let store =
        ContactStore::open(disk.clone(), settings).map_err(|error| fault(error.to_string()))?;
    let journal = AssemblyJournal::open(&disk, config.product_rules())
        .map_err(|error| fault(error.to_string()))?;
    let deliveries = {
        let products = config.products.as_ref().map(|products| products.dir.clone());
        let state = &config.node.state;
        let (outlets, archive) = (config.outlets.clone(), reload::archive_rules(config));
        let products = products.unwrap_or_default();
        DeliveryLedger::open(LedgerSetup { state, outlets, products, archive })
    };
    let deliveries = deliveries.map_err(|error| {
        let help = "do what it says, then start the node again";
        Fault::environment(error.to_string(), "the catalogue", help)
    })?;
    // Questions are numbered from the time on: above the numbers of every earlier run.
    let first_ask = clock.utc().as_micros().max(0).cast_unsigned();
    // The contacts of a station's first spool are stored under its name, those of later spools
    // under names derived from it.
    let names = config.peer.iter().filter_map(|peer| StationName::new(peer.name.as_str()).ok());
    let stations = names
        .flat_map(|station| store.spaces().of(&station))
        .map(|space| space.to_string())
        .collect();
    let gaps = GapLedger::open(&disk, first_ask, &stations);
    Ok(CentreState {
        store,
        journal,
        deliveries,
        gaps: gaps.map_err(|error| fault(error.to_string()))?,
    })
}

fn start(
    config: &CentreConfig,
    lines: Lines,
    shared: &Arc<CentreShared>,
    clock: Clock,
    mut driver: Driver,
) -> Result<Vec<JoinHandle<()>>, Fault> {
    // Bounded by the sessions' windows: see `ToKeep`.
    let (blocks, to_keep) = channel();
    let (kept, receipts) = channel();
    let keeper = Keeper::new(shared.clone(), clock, config.store.sync_interval, to_keep, kept);
    let processor = Processor::new(shared.clone(), clock, config.product_rules());
    let name = config.node.name.to_string();
    let deliveries = DeliveryThreads::new(shared.clone(), clock, name);
    let assembler = Assembler::new(shared.clone(), clock, config.product_rules());
    let roots = incoming::roots(config.peer.iter(), &config.classes())?;
    let incoming = FileService::new(lines.guests.files(), roots, shared.clone());
    let streams = Streams::new(lines.guests.streams(), sinks(config)?, shared.clone(), clock);
    let name = config.node.name.to_string();
    let mut downlink = Downlink::new(name, lines, shared.clone(), blocks, receipts);
    let of = shared.clone();
    let line = services::thread("line", move || {
        let ended = driver.run(&mut downlink, of.shutdown.flag());
        let left = ended.and_then(|()| match of.shutdown.last_word() {
            LastWord::Stops => Ok(Vec::new()),
            LastWord::GoesOn => driver.left_sockets(),
        });
        match left {
            Ok(sockets) => of.shutdown.leave(sockets),
            Err(error) => {
                let help = "restart the centre: all acknowledged data is in the store";
                of.shutdown.fail(Fault::environment(
                    format!("the socket of the lines failed ({error})"),
                    "the lines",
                    help,
                ));
            }
        }
    })?;
    let keeper = services::thread("store", move || keeper.run())?;
    let processor = services::thread("level0", move || processor.run())?;
    let assembler = services::thread("assembly", move || assembler.run())?;
    let deliveries = services::thread("deliveries", move || deliveries.run())?;
    let retention = RetentionThread::new(shared.clone());
    let retention = services::thread("retention", move || retention.run())?;
    let again = AgainThread::new(shared.clone(), config.product_rules());
    let again = services::thread("reprocess", move || again.run())?;
    let incoming = services::thread("files", move || incoming.run())?;
    let streams = services::thread("streams", move || streams.run())?;
    let made = [processor, assembler, again];
    let kept = [line, keeper, deliveries, retention, incoming, streams];
    Ok(kept.into_iter().chain(made).collect())
}
