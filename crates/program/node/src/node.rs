//! A node: what its configuration declares runs in one process, on one state folder, behind one
//! status socket.

mod parts;
mod starting;
mod upgrading;

use crate::adopted::Adopted;
use crate::audit::{AuditLog, by_signal};
use crate::blocks::BlockService;
use crate::centre::Centre;
use crate::config_desk::ConfigDesk;
use crate::fault::Fault;
use crate::history::HistoryService;
use crate::journal::{EventLog, EventNote};
use crate::keys::{ListedKeys, NodeKeys};
use crate::looks::Looks;
use crate::notices;
use crate::serve::ServeService;
use crate::station::{KeptInput, NodePlace, Station};
use crate::status::{OrderWords, SocketAccess, StatusReply, StatusServer};
use crate::upgrade::{HandedInputs, KeptSocket, NewProgram, NewSide, ProgramCommand, UpgradeDesk};
use crate::web::{WebOrders, WebService};
use crate::why::WhyDesk;
use skyhaul_config::{BlocksEntry, NodeConfig, NoticesConfig};
use skyhaul_events::{EventKind, Severity};
use skyhaul_net::Clock;
use skyhaul_transport::GOES_ON;
use skyhaul_units::Duration;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use parts::Parts;
use starting::{
    ShownBy, Watches, alarms_of, block_lines, config_desk, look, open_disk, programs, start_blocks,
    start_history, start_parts, start_serve, tell_ready, tell_start,
};
pub use upgrading::check;
use upgrading::{KeptNode, Upgrading};

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
    /// The node runs in the process of this number from now on.
    GoesOnIn(u32),
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

/// How a node goes on in another process.
#[derive(Debug)]
pub struct ProcessChange {
    /// The process that it takes over from.
    pub from: Option<NewSide>,
    /// How the program is started again.
    pub program: ProgramCommand,
}

/// Runs the node of `config`, which was read from `file`, until it is told to end, or goes on in
/// another process.
///
/// # Errors
/// The node cannot start, or cannot go on; what it has captured or receipted is on its disk.
pub fn run(
    config: &NodeConfig,
    file: PathBuf,
    options: Options,
    signals: Signals<'_>,
    change: ProcessChange,
) -> Result<(), Fault> {
    let ProcessChange { from, program } = change;
    let desk = Arc::<UpgradeDesk>::default();
    let mut start = NodeStart { file, options, desk, handed: Arc::default() };
    let mut node = match from {
        Some(old) => upgrading::take_over(config, &mut start, old)?,
        None => Node::start(config, &start)?,
    };
    (signals.tell)(ServiceState::Ready);
    loop {
        match node.serve(&start, signals, &program) {
            Served::Ended => break,
            Served::GoesOnIn(new) => match upgrading::hand_over(node, new, &mut start, signals)? {
                Some(same) => node = same,
                None => return Ok(()),
            },
        }
    }
    (signals.tell)(ServiceState::Stopping);
    node.end()
}

/// What a node starts with, beside its configuration.
#[derive(Debug, Clone)]
struct NodeStart {
    file: PathBuf,
    options: Options,
    desk: Arc<UpgradeDesk>,
    /// Live inputs that were read elsewhere before.
    handed: Arc<HandedInputs>,
}

/// Why a node is served no more.
enum Served {
    /// It is to end, or cannot go on.
    Ended,
    /// It goes on in this process, which is ready.
    GoesOnIn(Box<NewProgram>),
}

/// A node that runs.
struct Node {
    desk: Arc<ConfigDesk>,
    /// The file as it was read last, without an error.
    read: NodeConfig,
    station: Option<Station>,
    centre: Option<Centre>,
    blocks: Option<Arc<BlockService>>,
    serve: Option<Arc<ServeService>>,
    web: Option<Arc<WebService>>,
    looks: Arc<Looks>,
    history: Option<HistoryService>,
    server: StatusServer,
    audit: Arc<AuditLog>,
    keys: Arc<NodeKeys>,
    watches: Watches,
    notices: NoticesConfig,
    /// Ends last: the others tell it how they end.
    log: EventLog,
}

impl Node {
    fn start(config: &NodeConfig, start: &NodeStart) -> Result<Self, Fault> {
        let clock = Clock::start();
        let disk = open_disk(&config.node.state)?;
        let log = EventLog::start(disk.clone(), config.node.name.as_str(), clock)?;
        let events = log.sink();
        let desk = config_desk(&start.file, clock);
        let audit = AuditLog::open(disk.clone(), clock, events.clone()).map(Arc::new)?;
        let keys = NodeKeys::open(config, disk.clone(), clock, events.clone())?;
        // Before the first event: it is told too.
        let tellers = notices::prepare(&config.notices, &disk, clock, &events)?;
        tell_start(config, &events);
        let place = NodePlace {
            disk: disk.clone(),
            clock,
            blocks: programs(config),
            events: events.clone(),
            keys: keys.clone(),
            handed: start.handed.clone(),
            reports: Arc::default(),
        };
        let (station, centre) = start_parts(config, start.options, &place)?;
        start.handed.forget();
        if let (Some(centre), Some(station)) = (&centre, &station) {
            centre.shared().desk.doors.calls_peers(station.files());
        }
        let alarms = alarms_of(station.as_ref(), centre.as_ref());
        let watches = Watches::start(config, tellers, alarms.as_ref(), &events)?;
        let history = start_history(config, centre.as_ref(), alarms.clone(), clock)?;
        let lines = block_lines(station.as_ref(), centre.as_ref(), alarms);
        let blocks = start_blocks(config, lines, clock)?;
        let serve = start_serve(config, station.as_ref(), centre.as_ref(), clock)?;
        let parts = Arc::new(Parts {
            blocks: blocks.clone(),
            serve: serve.clone(),
            station: station.as_ref().map(Station::shared).cloned(),
            centre: centre.as_ref().map(Centre::shared).cloned(),
            events: events.clone(),
            audit: audit.clone(),
            keys: keys.clone(),
            config: desk.clone(),
            why: WhyDesk::new(clock),
            state: config.node.state.clone(),
            passes: watches.passes.clone(),
            upgrade: start.desk.clone(),
            history: history.as_ref().map(|history| history.desk().clone()),
            reports: place.reports,
        });
        let access = SocketAccess::of(&config.status)?;
        let orders = Arc::new(WebOrders::new(parts.clone(), disk));
        let keep = history.as_ref().map(HistoryService::taker);
        let shown = ShownBy { web: config.web.as_ref(), orders: &orders, keep };
        let (looks, web) = look(shown, parts.clone(), clock)?;
        orders.look_again(&looks);
        let server = parts::answer(&config.node, access, looks.clone(), parts)?;
        tell_ready(config, &events);
        Ok(Self {
            desk,
            read: config.clone(),
            station,
            centre,
            blocks,
            serve,
            web,
            looks,
            history,
            server,
            audit,
            keys,
            watches,
            notices: config.notices.clone(),
            log,
        })
    }

    /// Serves it until it is to end, or another process is ready to go on with it.
    fn serve(
        &mut self,
        start: &NodeStart,
        signals: Signals<'_>,
        program: &ProgramCommand,
    ) -> Served {
        let clock = Clock::start();
        let mut told = clock.now();
        let mut upgrade = Upgrading::new(&start.desk, program, &start.handed, clock);
        while !signals.stop.load(Ordering::Relaxed) && !self.is_ending() {
            self.pause();
            self.looks.turned();
            if signals.reload.swap(false, Ordering::Relaxed) {
                (signals.tell)(ServiceState::Reloading);
                self.reload();
                (signals.tell)(ServiceState::Reloaded);
            }
            self.tick();
            let is_due = signals.pulse.is_some_and(|pulse| clock.now() >= told + pulse);
            if is_due && self.is_alive() {
                told = clock.now();
                (signals.tell)(ServiceState::Alive);
            }
            if let Some(new) = upgrade.turn() {
                return Served::GoesOnIn(new);
            }
            if start.options.until == Until::Sent
                && self.station.as_ref().is_none_or(Station::is_sent)
            {
                break;
            }
        }
        Served::Ended
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
            self.keys.tick(alarms);
        }
        station.into_iter().chain(centre).for_each(|alarms| {
            alarms.tick();
            alarms.keep();
        });
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
        let text = skyhaul_config::read_text(self.desk.file());
        let read =
            text.and_then(|text| Ok((skyhaul_config::parse(&text, self.desk.file())?, text)));
        let read = read.map_err(|error| error.to_string());
        let outcome = match read.and_then(|(new, text)| Ok((self.adopt(new.clone())?, new, text))) {
            Ok((Adopted { changes, waits }, new, text)) => {
                self.read = new;
                self.desk.adopt(&text, Clock::start().utc(), &waits);
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
                Err(Fault::configuration(error, self.desk.file().display(), help))
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
        let listed = ListedKeys::of(&new);
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
        self.keys.adopt(listed);
        let passes = self.watches.passes.as_ref().map(|passes| passes.adopt(&plans)).transpose();
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
        let ends = |station: Station| station.end().map(|()| Vec::new());
        let centre_ends = |centre: Centre| centre.end().map(|()| Vec::new());
        self.end_with("the node has stopped", ends, centre_ends).map(drop)
    }

    /// Ends it, so that its live inputs and its sockets go on in another process.
    fn hand_over(self) -> Result<KeptNode, Fault> {
        self.end_with(GOES_ON, Station::hand_over, Centre::hand_over)
    }

    fn end_with(
        self,
        sentence: &str,
        end_station: impl FnOnce(Station) -> Result<Vec<KeptInput>, Fault>,
        end_centre: impl FnOnce(Centre) -> Result<Vec<KeptSocket>, Fault>,
    ) -> Result<KeptNode, Fault> {
        // The block service ends with its last user, before the sessions that it uses.
        drop(self.server);
        drop(self.looks);
        drop(self.history);
        drop(self.web);
        drop(self.serve);
        drop(self.blocks);
        let station = self.station.map_or(Ok(Vec::new()), end_station);
        let centre = self.centre.map_or(Ok(Vec::new()), end_centre);
        let ended = station.and_then(|inputs| Ok(KeptNode { inputs, sockets: centre? }));
        let stopped = match &ended {
            Ok(_) => EventNote::new(EventKind::NodeStopped, "the node", sentence),
            Err(fault) => EventNote::new(EventKind::NodeStopped, "the node", fault.to_string())
                .severity(Severity::Critical),
        };
        self.log.sink().note(stopped);
        self.watches.end();
        drop(self.log);
        ended
    }
}

#[cfg(test)]
mod reload_tests;
