//! How the parts of a node begin, in their order.

use super::{KeptSymbols, Options, Parts};
use crate::alarms::Alarms;
use crate::blocks::{BlockLines, BlockService, PartLine};
use crate::centre::{Centre, NodeKind};
use crate::config_desk::ConfigDesk;
use crate::fault::Fault;
use crate::guests::ProgramBlocks;
use crate::history::{HistoryPlace, HistoryService, latency_budget};
use crate::journal::EventSink;
use crate::looks::{HeartBeat, LookTaker, Looks, NodeLook};
use crate::notices::{NoticePlace, Notices, PreparedNotice};
use crate::passes::PassWatch;
use crate::reports::own_report;
use crate::serve::{ServeService, ServedNode};
use crate::services;
use crate::station::{NodePlace, Station};
use crate::status::NodeStatus;
use crate::web::{WebOrders, WebService};
use skyhaul_config::{NodeConfig, StationConfig, WebEntry};
use skyhaul_events::EventKind;
use skyhaul_net::Clock;
use skyhaul_store::{Disk, RealDisk};
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub fn tell_start(config: &NodeConfig, events: &EventSink) {
    let name = config.node.name.as_str();
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    let sentence = format!("node {name} starts, version {version}, process {pid}");
    events.tell(EventKind::NodeStarted, name, sentence);
}

pub fn tell_ready(config: &NodeConfig, events: &EventSink) {
    let name = config.node.name.as_str();
    events.tell(EventKind::NodeReady, name, format!("node {name} is ready"));
}

/// Knows the configuration in force: that of the file, which was read just now.
pub fn config_desk(file: &Path, clock: Clock) -> Arc<ConfigDesk> {
    // A file that went meanwhile has other keys than those in force: all of them are named.
    let text = skyhaul_config::read_text(file).unwrap_or_default();
    Arc::new(ConfigDesk::new(file.to_owned(), &text, clock.utc()))
}

/// Makes the state folder, and takes it for this process.
pub fn open_disk(state: &Path) -> Result<Arc<dyn Disk>, Fault> {
    services::make_state_folder(state)?;
    let disk = RealDisk::open(state).map_err(|error| services::disk_fault(state, &error))?;
    Ok(Arc::new(disk))
}

/// The alarms of the node: those of what it sends, if it sends.
pub fn alarms_of(station: Option<&Station>, centre: Option<&Centre>) -> Option<Arc<Alarms>> {
    let sending = station.map(|part| Arc::clone(&part.shared().alarms));
    sending.or_else(|| centre.map(|part| Arc::clone(&part.shared().alarms)))
}

/// What follows the alarms and contacts of a node.
#[derive(Default)]
pub struct Watches {
    /// Those who are told of events.
    pub tellers: Option<Notices>,
    pub passes: Option<Arc<PassWatch>>,
}

impl Watches {
    pub fn start(
        config: &NodeConfig,
        tellers: Vec<PreparedNotice>,
        alarms: Option<&Arc<Alarms>>,
        events: &EventSink,
    ) -> Result<Self, Fault> {
        let Some(alarms) = alarms else { return Ok(Self::default()) };
        let place = NoticePlace { events: events.clone(), alarms: alarms.clone() };
        let tellers = Some(Notices::start(tellers, &place)?);
        let passes = PassWatch::start(&config.plans, alarms.clone())?;
        Ok(Self { tellers, passes: Some(Arc::new(passes)) })
    }

    /// Tells what is to be told still.
    pub fn end(self) {
        drop(self.tellers);
    }
}

/// What gets the looks.
pub struct ShownBy<'a, K> {
    pub web: Option<&'a WebEntry>,
    pub orders: &'a Arc<WebOrders>,
    /// What keeps the history of them.
    pub keep: Option<K>,
}

/// Begins to keep the history, where it is kept.
pub fn start_history(
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
pub fn look(
    shown: ShownBy<'_, impl Fn(&Arc<NodeLook>) + Send + 'static>,
    parts: Arc<Parts>,
    clock: Clock,
) -> Result<(Arc<Looks>, Option<Arc<WebService>>), Fault> {
    let ShownBy { web: entry, orders, keep } = shown;
    let gaps = parts.centre.clone().filter(|_| entry.is_some());
    let page = Arc::new(OnceLock::<Arc<WebService>>::new());
    let counted = page.clone();
    let reports = parts.reports.clone();
    let status = move || {
        let web = counted.get().map(|web| web.status());
        let nodes = parts.reports.seen(clock.now());
        NodeStatus { web, nodes, ..parts.status() }
    };
    let mut taker = LookTaker::new(clock, Box::new(status), gaps);
    let first = Arc::new(taker.take_regular());
    reports.show(own_report(&first.status));
    let beat = Arc::new(HeartBeat::new(clock));
    let start = |entry| WebService::start(entry, first.clone(), &beat, orders);
    let web = entry.map(start).transpose()?;
    let web = web.map(|web| page.get_or_init(|| Arc::new(web)).clone());
    let shown = web.clone();
    let looks = Looks::start(taker, first, beat, move |look| {
        reports.show(own_report(&look.status));
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
pub fn start_parts(
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
pub fn start_serve(
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

/// Whether programs give blocks to this node.
pub const fn programs(config: &NodeConfig) -> ProgramBlocks {
    match config.blocks {
        Some(_) => ProgramBlocks::Served,
        None => ProgramBlocks::Unserved,
    }
}

/// Starts the block service, where there is one.
pub fn start_blocks(
    config: &NodeConfig,
    lines: BlockLines<'_>,
    clock: Clock,
) -> Result<Option<Arc<BlockService>>, Fault> {
    let start = |entry| BlockService::start(entry, lines, clock);
    Ok(config.blocks.as_ref().map(start).transpose()?.map(Arc::new))
}

/// What the block service is given of the node's parts.
pub fn block_lines<'a>(
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
