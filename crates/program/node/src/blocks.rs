//! The block service of a node: programs of this host, in the node's sessions with its peers.

use crate::adopted::Adopted;
use crate::alarms::Alarms;
use crate::centre::{self, CentreShared};
use crate::fault::Fault;
use crate::forecasts::{GivenHint, HintGiver};
use crate::host_users::HostUsers;
use crate::station::{self, StationShared};
use crate::status::{BlocksStatus, PathHint, ProgramShown};
use skyhaul_blocks::{AllowRule, HintRequest, ProgramHint, ProgramLimits};
use skyhaul_blocks_io::{
    BlockLine, BlockServer, EntranceNotice, HintTaker, LineNames, ProgramNotice, ProgramState,
    ProgramStatus, ServerSetup, SessionsLine,
};
use skyhaul_channels_io::ChannelService;
use skyhaul_config::{
    AllowEntry, BlocksEntry, CentreConfig, ConfigTime, NodeConfig, StationConfig, UserName,
};
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_transport::ClassTree;
use skyhaul_units::Duration;
use std::sync::{Arc, Mutex, PoisonError};

/// The block service at work.
#[derive(Debug)]
pub(crate) struct BlockService {
    server: BlockServer,
    /// The entry in force.
    entry: Mutex<BlocksEntry>,
    /// What is known of the sessions of the node's parts.
    station: Arc<Mutex<LineNames>>,
    centre: Arc<Mutex<LineNames>>,
}

/// The sessions that blocks go in, with what is configured for them.
#[derive(Debug)]
pub(crate) struct BlockLines<'a> {
    /// Those with destinations.
    pub station: Option<PartLine<'a, StationConfig, StationShared>>,
    /// Those with peers that connect.
    pub centre: Option<PartLine<'a, CentreConfig, CentreShared>>,
    /// Where its alarms are raised.
    pub alarms: Option<Arc<Alarms>>,
}

/// The sessions of one part of a node.
#[derive(Debug)]
pub(crate) struct PartLine<'a, C, S> {
    /// Where channels are opened.
    pub service: ChannelService,
    /// The part's configuration.
    pub config: &'a C,
    /// What its threads share: hints go there.
    pub shared: Arc<S>,
}

impl BlockService {
    /// Starts it.
    ///
    /// # Errors
    /// The socket cannot be used, or a user is not known.
    pub(crate) fn start(
        entry: &BlocksEntry,
        lines: BlockLines<'_>,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let (station, centre) = <(Arc<Mutex<LineNames>>, Arc<Mutex<LineNames>>)>::default();
        // Named before the first program can ask.
        lines.station.iter().for_each(|part| name_station(&station, part.config));
        lines.centre.iter().for_each(|part| name_centre(&centre, part.config));
        let alarms = lines.alarms;
        let lines = [
            lines.station.map(|PartLine { service, shared, .. }| {
                let names = Arc::clone(&station);
                let hints = taker(clock, move |peer, path, hint| {
                    station::take_hint(&shared, peer, path, hint)
                });
                Box::new(SessionsLine { service, names, hints }) as Box<dyn BlockLine>
            }),
            lines.centre.map(|PartLine { service, shared, .. }| {
                let names = Arc::clone(&centre);
                let hints = taker(clock, move |peer, path, hint| {
                    centre::take_hint(&shared, peer, path, hint)
                });
                Box::new(SessionsLine { service, names, hints }) as Box<dyn BlockLine>
            }),
        ];
        let server = BlockServer::start(ServerSetup {
            socket: entry.socket.clone(),
            allow: rules(entry)?,
            limits: ProgramLimits::default(),
            lines: lines.into_iter().flatten().collect(),
            clock,
            notify: Box::new(|notice| report(&notice)),
            entrance: Box::new(move |notice| {
                let Some(alarms) = &alarms else { return };
                match notice {
                    EntranceNotice::Short(why) => {
                        alarms.raise(AlarmKind::ProgramsShut, SHORT, &why);
                    }
                    EntranceNotice::Open => _ = alarms.clear(AlarmKind::ProgramsShut, SHORT),
                }
            }),
        });
        let place = entry.socket.display();
        let server = server.map_err(|error| {
            let help = "stop the program that listens there, make its folder and give this user \
                        write permission, or correct `socket` in [blocks]";
            let what = format!("the socket of the block service cannot be used ({error})");
            Fault::environment(what, &place, help)
        })?;
        tracing::info!("programs may hand over blocks at {place}");
        Ok(Self { server, entry: Mutex::new(entry.clone()), station, centre })
    }

    /// The peers and classes of the node's parts, as configured now.
    pub(crate) fn name(&self, station: Option<&StationConfig>, centre: Option<&CentreConfig>) {
        station.into_iter().for_each(|config| name_station(&self.station, config));
        centre.into_iter().for_each(|config| name_centre(&self.centre, config));
    }

    /// Adopts a configuration that was read again: who is allowed changes at once.
    ///
    /// # Errors
    /// A user is not known; nothing has changed.
    pub(crate) fn adopt(&self, new: Option<&BlocksEntry>) -> Result<Adopted, String> {
        let mut entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = waiting(Some(&entry), new);
        let mut adopted = Adopted { waits, ..Adopted::default() };
        let Some(new) = new else { return Ok(adopted) };
        if new.allow != entry.allow {
            self.server.allow(rules(new).map_err(|fault| fault.to_string())?);
            entry.allow.clone_from(&new.allow);
            adopted.changes.push("the users of the block service changed".to_owned());
        }
        Ok(adopted)
    }

    /// The programs, as of the last second.
    pub(crate) fn status(&self) -> BlocksStatus {
        let entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        let programs = self.server.status().iter().map(shown).collect();
        BlocksStatus { socket: entry.socket.display().to_string(), programs }
    }
}

/// Checks that the users of a configuration that was read again are known.
///
/// # Errors
/// The first that is not.
pub(crate) fn check(new: Option<&BlocksEntry>) -> Result<(), String> {
    new.map_or(Ok(()), |new| rules(new).map(drop).map_err(|fault| fault.to_string()))
}

/// What has to wait for a restart, at a node that runs with `before`.
pub(crate) fn waiting(before: Option<&BlocksEntry>, new: Option<&BlocksEntry>) -> Vec<String> {
    let waits = match (before, new) {
        (Some(before), Some(new)) if before.socket != new.socket => "`socket` in [blocks]",
        (None, Some(_)) => "[blocks] (new)",
        (Some(_), None) => "[blocks] (removed)",
        (Some(_), Some(_)) | (None, None) => return Vec::new(),
    };
    vec![waits.to_owned()]
}

fn name_station(names: &Mutex<LineNames>, config: &StationConfig) {
    let peers = config.destinations.iter().map(|one| one.name().to_owned());
    set(names, peers.collect(), &config.sharing(0).tree);
}

fn name_centre(names: &Mutex<LineNames>, config: &CentreConfig) {
    let peers = config.peer.iter().map(|peer| peer.name.to_string());
    set(names, peers.collect(), &config.classes());
}

/// Takes programs' hints for `take`, which is given the peer, the path's number and the hint.
fn taker(
    clock: Clock,
    take: impl Fn(&str, u8, GivenHint) -> Result<(), String> + Send + 'static,
) -> HintTaker {
    HintTaker(Box::new(move |peer, program, hint: &HintRequest| {
        let now = clock.utc();
        let until = |lasts: Duration| ConfigTime::at(now + lasts);
        let says = match hint.says {
            ProgramHint::Rate { rate, lasts } => {
                PathHint::Rate { from: None, until: lasts.map(until), rate }
            }
            ProgramHint::Loss { loss, lasts } => {
                PathHint::Loss { from: None, until: until(lasts), loss }
            }
            ProgramHint::Withdraw => PathHint::Withdraw,
        };
        take(peer, hint.path, GivenHint { by: HintGiver::Program(program.into()), says })
    }))
}

fn set(names: &Mutex<LineNames>, peers: Vec<String>, tree: &ClassTree) {
    let default = tree.default_leaf();
    let first = tree.leaves().filter(|(leaf, _)| *leaf == default);
    let rest = tree.leaves().filter(|(leaf, _)| *leaf != default);
    let classes = first.chain(rest).map(|(_, name)| name.to_owned()).collect();
    *names.lock().unwrap_or_else(PoisonError::into_inner) = LineNames { peers, classes };
}

/// The alarm while no program can connect.
const SHORT: &str = "programs";

fn report(notice: &ProgramNotice) {
    let ProgramNotice { program, what, left_out } = notice;
    match left_out {
        0 => tracing::warn!("block service: {program}: {what}"),
        count => tracing::warn!(
            "block service: {program}: {what} (notices about this user left out: {count})"
        ),
    }
}

fn shown(program: &ProgramStatus) -> ProgramShown {
    ProgramShown {
        name: program.name.clone(),
        pid: program.pid,
        uid: program.uid,
        state: match program.state {
            ProgramState::New => "new",
            ProgramState::Listening => "listening",
            ProgramState::Waiting => "waiting",
            ProgramState::Open => "open",
            ProgramState::Unread => "unread",
        }
        .to_owned(),
        peer: program.peer.clone(),
        rate_bps: program.rate_bps,
        taken: program.sent.taken,
        bytes: program.sent.bytes,
        delivered: program.sent.delivered,
        expired: program.sent.expired,
        refused: program.sent.refused,
        held_bytes: program.sent.held,
        received: program.received,
        received_bytes: program.received_bytes,
    }
}

fn rules(entry: &BlocksEntry) -> Result<Vec<AllowRule>, Fault> {
    if entry.allowed().is_empty() {
        let own = rustix::process::geteuid().as_raw();
        let root = Some(AllowRule::all(0)).filter(|_| own != 0);
        return Ok([AllowRule::all(own)].into_iter().chain(root).collect());
    }
    let users = HostUsers::read();
    entry.allowed().iter().map(|allow| rule(allow, &users)).collect()
}

fn rule(allow: &AllowEntry, users: &HostUsers) -> Result<AllowRule, Fault> {
    let uid = match &allow.user {
        UserName::Number(number) => *number,
        UserName::Named(name) => users.uid(name).ok_or_else(|| {
            let help = "correct `user`, add the user, or write its number";
            let what = format!("there is no user `{name}` on this host");
            Fault::configuration(what, "[[blocks.allow]]", help)
        })?,
    };
    let classes = allow.classes.as_ref();
    let classes = classes.map(|classes| classes.0.iter().map(ToString::to_string).collect());
    Ok(AllowRule { uid, classes, rate: allow.rate, hints: allow.hints })
}

/// The names in `[[blocks.allow]]` and `[status]` that are no user's of this host, each with the
/// table.
pub fn unknown_users(config: &NodeConfig) -> Vec<(String, &'static str)> {
    let users = HostUsers::read();
    let blocks = config.blocks.iter().flat_map(BlocksEntry::allowed).map(|allow| &allow.user);
    let status = config.status.operators().iter().chain(config.status.readers());
    let all = blocks.map(|user| (user, "[[blocks.allow]]"));
    let all = all.chain(status.map(|user| (user, "[status]")));
    let unknown = all.filter_map(|(user, table)| match user {
        UserName::Named(name) => users.uid(name).is_none().then(|| (name.clone(), table)),
        UserName::Number(_) => None,
    });
    unknown.collect()
}
