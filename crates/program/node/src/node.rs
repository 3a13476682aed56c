//! A node: what its configuration declares runs in one process, on one state folder, behind one
//! status socket.

mod parts;

use crate::adopted::Adopted;
use crate::alarms::Alarms;
use crate::audit::{AuditLog, by_signal};
use crate::blocks::{BlockLines, BlockService, PartLine};
use crate::centre::{Centre, NodeKind};
use crate::fault::Fault;
use crate::guests::ProgramBlocks;
use crate::history::{HistoryPlace, HistoryService, latency_budget};
use crate::journal::{EventLog, EventNote};
use crate::looks::{HeartBeat, LookTaker, Looks, NodeLook};
use crate::notices::{self, NoticePlace, Notices};
use crate::passes::PassWatch;
use crate::serve::{ServeService, ServedNode};
use crate::services;
use crate::station::{NodePlace, Station};
use crate::status::{NodeStatus, OrderWords, SocketAccess, StatusReply, StatusServer};
use crate::web::{WebOrders, WebService};
use skyhaul_config::{BlocksEntry, NodeConfig, NoticesConfig, StationConfig, WebEntry};
use skyhaul_events::{EventKind, Severity};
use skyhaul_net::Clock;
use skyhaul_store::{Disk, RealDisk};
use skyhaul_units::Duration;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

pub(crate) use parts::Parts;

/// How a node runs, beside its configuration.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// When it ends by itself.
    pub until: Until,
    /// The check symbols of channels.
    pub check_symbols: KeptSymbols,
}

/// When a node ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Stopped,
    /// When all inputs are exhausted and the destination has everything in custody.
    Sent,
}

/// Which channels also send their Reed-Solomon check symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptSymbols {
    /// Those whose configuration says so.
    AsConfigured,
    /// All of them.
    All,
}

/// What a service manager is told of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// Its sockets are bound and its state is read.
    Ready,
    /// It reads its configuration again.
    Reloading,
    /// It has done so.
    Reloaded,
    /// It ends.
    Stopping,
    /// No thread has panicked, and each lock that they share was free lately.
    Alive,
}

/// What the process asks of its node, and is told by it.
#[derive(Clone, Copy)]
pub struct Signals<'a> {
    /// The node is to end.
    pub stop: &'a AtomicBool,
    /// The configuration is to be read again.
    pub reload: &'a AtomicBool,
    /// Takes the states of the node.
    pub tell: &'a dyn Fn(ServiceState),
    /// How often to take a sign of life, which waits for locks of the threads; never without.
    pub pulse: Option<Duration>,
}

/// Signals, and whether everything is sent, are checked this often.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the node of `config`, which was read from `file`, until it is told to end.
///
/// # Errors
/// The node cannot start, or cannot go on; what it has captured or receipted is on its disk.
pub fn run(
    config: &NodeConfig,
    file: PathBuf,
    options: Options,
    signals: Signals<'_>,
) -> Result<(), Fault> {
    let mut node = Node::start(config, file, options)?;
    (signals.tell)(ServiceState::Ready);
    let clock = Clock::start();
    let mut told = clock.now();
    while !signals.stop.load(Ordering::Relaxed) && !node.is_ending() {
        node.pause();
        node.looks.turned();
        if signals.reload.swap(false, Ordering::Relaxed) {
            (signals.tell)(ServiceState::Reloading);
            node.reload();
            (signals.tell)(ServiceState::Reloaded);
        }
        node.tick();
        let is_due = signals.pulse.is_some_and(|pulse| clock.now() >= told + pulse);
        if is_due && node.is_alive() {
            told = clock.now();
            (signals.tell)(ServiceState::Alive);
        }
        if options.until == Until::Sent && node.station.as_ref().is_none_or(Station::is_sent) {
            break;
        }
    }
    (signals.tell)(ServiceState::Stopping);
    node.end()
}

/// A node that runs.
struct Node {
    file: PathBuf,
    station: Option<Station>,
    centre: Option<Centre>,
    blocks: Option<Arc<BlockService>>,
    serve: Option<Arc<ServeService>>,
    web: Option<Arc<WebService>>,
    looks: Arc<Looks>,
    history: Option<HistoryService>,
    server: StatusServer,
    audit: Arc<AuditLog>,
    passes: Option<Arc<PassWatch>>,
    /// Those who are told of events.
    tellers: Option<Notices>,
    notices: NoticesConfig,
    /// Ends last: the others tell it how they end.
    log: EventLog,
}

impl Node {
    fn start(config: &NodeConfig, file: PathBuf, options: Options) -> Result<Self, Fault> {
        let clock = Clock::start();
        let state = &config.node.state;
        services::make_state_folder(state)?;
        let disk = RealDisk::open(state).map_err(|error| services::disk_fault(state, &error))?;
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let log = EventLog::start(disk.clone(), config.node.name.as_str(), clock)?;
        let events = log.sink();
        let audit = AuditLog::open(disk.clone(), clock, events.clone()).map(Arc::new)?;
        // Before the first event: it is told too.
        let tellers = notices::prepare(&config.notices, &disk, clock, &events)?;
        let version = env!("CARGO_PKG_VERSION");
        let sentence = format!("node {} starts, version {version}", config.node.name);
        events.tell(EventKind::NodeStarted, config.node.name.as_str(), sentence);
        let served = match config.blocks {
            Some(_) => ProgramBlocks::Served,
            None => ProgramBlocks::Unserved,
        };
        let place = NodePlace { disk: disk.clone(), clock, blocks: served, events: events.clone() };
        let (station, centre) = start_parts(config, options, &place)?;
        if let (Some(centre), Some(station)) = (&centre, &station) {
            centre.shared().desk.doors.calls_peers(station.files());
        }
        let alarms = station.as_ref().map(|part| Arc::clone(&part.shared().alarms));
        let alarms =
            alarms.or_else(|| centre.as_ref().map(|part| Arc::clone(&part.shared().alarms)));
        let tellers = alarms
            .clone()
            .map(|alarms| Notices::start(tellers, &NoticePlace { events: events.clone(), alarms }));
        let tellers = tellers.transpose()?;
        let passes = alarms.clone().map(|alarms| PassWatch::start(&config.plans, alarms));
        let passes = passes.transpose()?.map(Arc::new);
        let history = start_history(config, centre.as_ref(), alarms.clone(), clock)?;
        let lines = block_lines(station.as_ref(), centre.as_ref(), alarms);
        let start = |entry| BlockService::start(entry, lines, clock);
        let blocks = config.blocks.as_ref().map(start).transpose()?.map(Arc::new);
        let serve = start_serve(config, station.as_ref(), centre.as_ref(), clock)?;
        let parts = Arc::new(Parts {
            blocks: blocks.clone(),
            serve: serve.clone(),
            station: station.as_ref().map(Station::shared).cloned(),
            centre: centre.as_ref().map(Centre::shared).cloned(),
            events: events.clone(),
            audit: audit.clone(),
            passes: passes.clone(),
            history: history.as_ref().map(|history| history.desk().clone()),
        });
        let access = SocketAccess::of(&config.status)?;
        let orders = Arc::new(WebOrders::new(parts.clone(), disk));
        let keep = history.as_ref().map(HistoryService::taker);
        let shown = ShownBy { web: config.web.as_ref(), orders: &orders, keep };
        let (looks, web) = look(shown, parts.clone(), clock)?;
        orders.look_again(&looks);
        let server = parts::answer(&config.node, access, looks.clone(), parts)?;
        let name = config.node.name.as_str();
        events.tell(EventKind::NodeReady, name, format!("node {name} is ready"));
        Ok(Self {
            file,
            station,
            centre,
            blocks,
            serve,
            web,
            looks,
            history,
            server,
            audit,
            passes,
            tellers,
            notices: config.notices.clone(),
            log,
        })
    }

    /// Whether a part of it cannot go on.
    fn is_ending(&self) -> bool {
        self.station.as_ref().is_some_and(|part| part.shared().shutdown.is_requested())
            || self.centre.as_ref().is_some_and(|part| part.shared().shutdown.is_requested())
    }

    /// Whether no thread has panicked. Waits for each lock that threads share: a node whose threads
    /// hold one for ever is told alive no more.
    fn is_alive(&self) -> bool {
        if let Some(station) = &self.station {
            drop(station.shared().spool());
        }
        if let Some(centre) = &self.centre {
            drop(centre.shared().journal());
            drop(centre.shared().store());
            drop(centre.shared().gaps());
        }
        !crate::log::has_panicked()
    }

    /// Moves the alarms on.
    fn tick(&self) {
        let station = self.station.as_ref().map(|part| &part.shared().alarms);
        let centre = self.centre.as_ref().map(|part| &part.shared().alarms);
        if let Some(alarms) = station.or(centre) {
            alarms.watch_events();
        }
        station.into_iter().chain(centre).for_each(|alarms| alarms.tick());
    }

    fn pause(&self) {
        match (&self.station, &self.centre) {
            (Some(station), _) => station.shared().shutdown.pause(LOOK),
            (None, Some(centre)) => centre.shared().shutdown.pause(LOOK),
            (None, None) => {}
        }
    }

    /// Reads the configuration again. A file with an error changes nothing.
    fn reload(&mut self) {
        let words = OrderWords {
            sentence: "read the configuration again".to_owned(),
            subject: "configuration".to_owned(),
        };
        let order = match self.audit.order(by_signal(), words, serde_json::Value::Null) {
            Ok(order) => order,
            Err(fault) => return self.refuse_reload(&fault.to_string()),
        };
        let read = skyhaul_config::load(&self.file).map_err(|error| error.to_string());
        let outcome = match read.and_then(|new| self.adopt(new)) {
            Ok(Adopted { changes, waits }) => {
                for what in waits {
                    tracing::warn!(
                        "{what} cannot change while the node runs: restart the node to apply it"
                    );
                }
                let changes = match changes.is_empty() {
                    true => "no changes".to_owned(),
                    false => changes.join("; "),
                };
                let sentence = format!("configuration reloaded: {changes}");
                tracing::info!("{sentence}");
                self.log.sink().tell(EventKind::ConfigReloaded, "configuration", &*sentence);
                Ok(sentence)
            }
            Err(error) => {
                self.refuse_reload(&error);
                let help = "correct the file";
                Err(Fault::configuration(error, self.file.display(), help))
            }
        };
        self.audit.outcome(order, &StatusReply::Answer(outcome.into()));
    }

    fn refuse_reload(&self, error: &str) {
        let sentence = format!("configuration reload failed, the old one stays in force: {error}");
        tracing::error!("{sentence}");
        self.log.sink().tell(EventKind::ConfigRefused, "configuration", sentence);
    }

    fn adopt(&mut self, new: NodeConfig) -> Result<Adopted, String> {
        let mut all = Adopted::default();
        let NodeConfig {
            node: _,
            station,
            centre,
            blocks: entry,
            serve,
            web,
            history,
            status,
            notices,
            plans,
        } = new;
        let kept = self.history.as_ref().map(HistoryService::entry);
        all.waits.extend(crate::history::waiting(kept, history.as_ref()));
        all.waits.extend(notices::waiting(&self.notices, &notices));
        // All parts are asked before one of them changes.
        crate::blocks::check(entry.as_ref())?;
        let access = SocketAccess::of(&status).map_err(|fault| fault.to_string())?;
        let files = self.serve.as_ref().map(|serve| serve.read()).transpose()?;
        let shown = self.web.as_ref().map(|web| web.read()).transpose()?;
        let station = match (&mut self.station, station) {
            (Some(part), Some(new)) => Some((part.plan(&new)?, part)),
            (None, None) => None,
            (_, _) => {
                all.waits.push("[[destination]] (the first, or the last)".to_owned());
                None
            }
        };
        let centre = match (&mut self.centre, centre) {
            (Some(part), Some(new)) => Some((part.plan(&new)?, part)),
            (None, None) => None,
            (_, _) => {
                all.waits.push("[[listen]] (the first, or the last)".to_owned());
                None
            }
        };
        if self.server.adopt(access) {
            all.changes.push("the users of [status] changed".to_owned());
        }
        let passes = self.passes.as_ref().map(|passes| passes.adopt(&plans)).transpose();
        if passes.map_err(|fault| fault.to_string())? == Some(true) {
            all.changes.push("the plans of passes changed".to_owned());
        }
        let station = station.map(|(plan, part)| part.adopt(plan)).transpose()?;
        let centre = centre.map(|(plan, part)| part.adopt(plan)).transpose()?;
        let blocks = self.adopt_blocks(entry.as_ref())?;
        let serve = match (&self.serve, files) {
            (Some(service), Some(files)) => service.adopt(&files, serve.as_ref())?,
            _ => {
                Adopted { waits: crate::serve::waiting(None, serve.as_ref()), ..Adopted::default() }
            }
        };
        let web = match (&self.web, shown) {
            (Some(service), Some(files)) => service.adopt(&files, web.as_ref())?,
            _ => Adopted { waits: crate::web::waiting(None, web.as_ref()), ..Adopted::default() },
        };
        for part in centre.into_iter().chain(station).chain([blocks, serve, web]) {
            all.changes.extend(part.changes);
            let other = |what: &String| !all.waits.contains(what);
            let waits: Vec<String> = part.waits.into_iter().filter(other).collect();
            all.waits.extend(waits);
        }
        Ok(all)
    }

    fn adopt_blocks(&self, entry: Option<&BlocksEntry>) -> Result<Adopted, String> {
        let Some(blocks) = &self.blocks else {
            let waits = crate::blocks::waiting(None, entry);
            return Ok(Adopted { waits, ..Adopted::default() });
        };
        blocks.name(
            self.station.as_ref().map(Station::config),
            self.centre.as_ref().map(Centre::config),
        );
        blocks.adopt(entry)
    }

    /// Ends its parts: first what sends, so that what still arrives is kept.
    fn end(self) -> Result<(), Fault> {
        // The block service ends with its last user, before the sessions that it uses.
        drop(self.server);
        drop(self.looks);
        drop(self.history);
        drop(self.web);
        drop(self.serve);
        drop(self.blocks);
        let station = self.station.map_or(Ok(()), Station::end);
        let centre = self.centre.map_or(Ok(()), Centre::end);
        let ended = station.and(centre);
        let stopped = match &ended {
            Ok(()) => EventNote::new(EventKind::NodeStopped, "the node", "the node has stopped"),
            Err(fault) => EventNote::new(EventKind::NodeStopped, "the node", fault.to_string())
                .severity(Severity::Critical),
        };
        self.log.sink().note(stopped);
        drop(self.tellers);
        drop(self.log);
        ended
    }
}

/// What gets the looks.
struct ShownBy<'a, K> {
    web: Option<&'a WebEntry>,
    orders: &'a Arc<WebOrders>,
    /// What keeps the history of them.
    keep: Option<K>,
}

/// Begins to keep the history, where it is kept.
fn start_history(
    config: &NodeConfig,
    centre: Option<&Centre>,
    alarms: Option<Arc<Alarms>>,
    clock: Clock,
) -> Result<Option<HistoryService>, Fault> {
    let budgets = config.centre.iter().flat_map(|centre| &centre.budget).map(latency_budget);
    let place = HistoryPlace {
        folder: config.node.state.join("history"),
        centre: centre.map(Centre::shared).cloned(),
        alarms,
        budgets: budgets.collect(),
    };
    let start = |entry| HistoryService::start(entry, place, clock);
    config.history.as_ref().map(start).transpose()
}

/// Begins to look at the node, and shows it where it has a page.
fn look(
    shown: ShownBy<'_, impl Fn(&Arc<NodeLook>) + Send + 'static>,
    parts: Arc<Parts>,
    clock: Clock,
) -> Result<(Arc<Looks>, Option<Arc<WebService>>), Fault> {
    let ShownBy { web: entry, orders, keep } = shown;
    let gaps = parts.centre.clone().filter(|_| entry.is_some());
    let page = Arc::new(OnceLock::<Arc<WebService>>::new());
    let counted = page.clone();
    let status = move || {
        let web = counted.get().map(|web| web.status());
        NodeStatus { web, ..parts.status() }
    };
    let mut taker = LookTaker::new(clock, Box::new(status), gaps);
    let first = Arc::new(taker.take_regular());
    let beat = Arc::new(HeartBeat::new(clock));
    let start = |entry| WebService::start(entry, first.clone(), &beat, orders);
    let web = entry.map(start).transpose()?;
    let web = web.map(|web| page.get_or_init(|| Arc::new(web)).clone());
    let shown = web.clone();
    let looks = Looks::start(taker, first, beat, move |look| {
        if let Some(keep) = &keep {
            keep(look);
        }
        if let Some(web) = &shown {
            web.show(look);
        }
    })?;
    Ok((Arc::new(looks), web))
}

/// Starts what receives, then what sends.
fn start_parts(
    config: &NodeConfig,
    options: Options,
    place: &NodePlace,
) -> Result<(Option<Station>, Option<Centre>), Fault> {
    let centre = config.centre.as_deref();
    let kind = match config.station {
        Some(_) => NodeKind::Relay,
        None => NodeKind::Final,
    };
    let start = |config| Centre::start(config, kind, place.clone());
    let centre = centre.map(start).transpose()?;
    let upstream = centre.as_ref().map(Centre::shared).cloned();
    let start = |written: &StationConfig| {
        let mut config = written.clone();
        for channel in &mut config.channel {
            channel.keep_check_symbols |= options.check_symbols == KeptSymbols::All;
        }
        Station::start(&config, written.clone(), upstream.clone(), place.clone())
    };
    let station = config.station.as_deref().map(start).transpose()?;
    Ok((station, centre))
}

/// Starts the server of products, where there is one.
fn start_serve(
    config: &NodeConfig,
    station: Option<&Station>,
    centre: Option<&Centre>,
    clock: Clock,
) -> Result<Option<Arc<ServeService>>, Fault> {
    let served = match (centre, station) {
        (Some(centre), _) => Some(ServedNode::Centre(centre)),
        (None, station) => station.map(ServedNode::Station),
    };
    let serve = config.serve.as_ref().zip(served);
    let start = |(entry, served)| ServeService::start(entry, served, &config.node, clock);
    Ok(serve.map(start).transpose()?.map(Arc::new))
}

/// What the block service is given of the node's parts.
fn block_lines<'a>(
    station: Option<&'a Station>,
    centre: Option<&'a Centre>,
    alarms: Option<Arc<Alarms>>,
) -> BlockLines<'a> {
    BlockLines {
        station: station.map(|part| PartLine {
            service: part.blocks(),
            config: part.config(),
            shared: Arc::clone(part.shared()),
        }),
        centre: centre.map(|part| PartLine {
            service: part.blocks(),
            config: part.config(),
            shared: Arc::clone(part.shared()),
        }),
        alarms,
    }
}

#[cfg(test)]
mod reload_tests;
