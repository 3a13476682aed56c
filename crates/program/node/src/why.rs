//! What limits a session of this node: its figures at the beginning, at the end and in between, as
//! the verdict of `skyhaul why` needs them. The command and the page judge by the same figures.

mod desk;
mod subject;

use crate::fault::Fault;
use crate::status::{
    CentreStatus, LinePath, LineState, LineStatus, NodeStatus, SessionStatus, ShortageStatus,
    StationPeer, StationStatus, StoreState, ThreadStatus,
};
use skyhaul_probe::why::{
    BusyThreads, Lack, LoadedLine, ObservedEnd, Owes, ReceiverLoad, Silence, SilenceDetector,
    SourceKind, Transfer, TransferFeed, Waited,
};
use skyhaul_units::{Duration, Instant};

pub(crate) use desk::WhyDesk;
pub(crate) use subject::KnowsOutlets;

/// The figures of a session.
#[derive(Debug)]
pub struct WatchedSession {
    /// Between whom.
    pub name: String,
    /// Its figures.
    pub transfer: Transfer,
}

/// The figures of the session with the node `with`, or with the destination that lacks most, or
/// with the peer that brings most, from looks one after the other.
///
/// # Errors
/// There is no such session, or it ended meanwhile.
pub fn judged(looks: &[&NodeStatus], with: Option<&str>) -> Result<WatchedSession, Fault> {
    let stations: Vec<&StationStatus> = looks.iter().copied().filter_map(as_station).collect();
    let centres: Vec<&CentreStatus> = looks.iter().copied().filter_map(as_centre).collect();
    if !stations.is_empty() && stations.len() != looks.len() {
        return Err(ended("another node now answers at the socket"));
    }
    let Some(last) = stations.last() else { return of_centre(&centres, with) };
    let place = match with {
        Some(name) => last.destinations.iter().position(|one| one.name == name),
        None => {
            let lacking = last.destinations.iter().enumerate().rev();
            lacking.max_by_key(|(_, one)| one.backlog.bytes).map(|(place, _)| place)
        }
    };
    match (place, with) {
        (Some(place), _) => of_station(&stations, place),
        (None, Some(_)) if !centres.is_empty() => of_centre(&centres, with),
        (None, _) => {
            let names: Vec<&str> = last.destinations.iter().map(|one| &*one.name).collect();
            let what = format!("this node has no destination `{}`", with.unwrap_or_default());
            let help = format!("its destinations are {}", names.join(", "));
            Err(Fault::configuration(what, PLACE, help))
        }
    }
}

fn as_station(status: &NodeStatus) -> Option<&StationStatus> {
    status.station.as_ref()
}

fn as_centre(status: &NodeStatus) -> Option<&CentreStatus> {
    status.centre.as_ref()
}

fn ended(what: &str) -> Fault {
    Fault::peer(what, PLACE, "ask again; if it repeats, check the node's log")
}

/// The first look and the last.
fn ends<'a, T>(looks: &[&'a T]) -> Result<(&'a T, &'a T), Fault> {
    match looks {
        [first, .., last] => Ok((first, last)),
        _ => Err(Fault::configuration(
            "one sample of a node is not enough",
            PLACE,
            "look for a longer time",
        )),
    }
}

/// A station at one look, and its line to one destination.
struct StationLook<'a> {
    status: &'a StationStatus,
    line: &'a LineStatus,
    /// Bytes in the spool that the destination lacks.
    waiting: u64,
}

impl<'a> StationLook<'a> {
    fn of(status: &'a StationStatus, place: usize) -> Option<Self> {
        let destination = status.destinations.get(place)?;
        Some(Self { status, line: &destination.line, waiting: destination.backlog.bytes })
    }
}

/// The figures of a station: its waits, and its input.
fn of_station(looks: &[&StationStatus], place: usize) -> Result<WatchedSession, Fault> {
    let looks: Vec<StationLook<'_>> =
        looks.iter().filter_map(|station| StationLook::of(station, place)).collect();
    let (first, last) = ends(&looks.iter().collect::<Vec<_>>())?;
    let session = |line: &LineStatus| line.session.filter(|_| line.state == LineState::Open);
    let Some((then, now)) = session(first.line).zip(session(last.line)) else {
        let lacks = [first, last].into_iter().find(|look| session(look.line).is_none());
        return Err(no_session(lacks.unwrap_or(last).line));
    };
    if first.line.connects != last.line.connects
        || last.status.process.uptime_s <= first.status.process.uptime_s
    {
        return Err(ended("the line reconnected during the observation"));
    }
    let seconds = last.status.process.uptime_s - first.status.process.uptime_s;
    let grown = |of: fn(&LineStatus) -> u64| of(last.line).saturating_sub(of(first.line));
    let sent = grown(|line| line.symbols_sent + line.symbols_repeated);
    let lost = grown(|line| line.symbols_lost);
    let waited = parts(&then, &now);
    let input = |look: &StationLook<'_>| {
        look.status.channels.iter().map(|channel| channel.bytes).sum::<u64>()
    };
    let millis = |of: fn(&LinePath) -> f64, look: &StationLook<'_>| shortest(look.line, of);
    let loaded: Vec<f64> =
        looks.iter().filter_map(|look| millis(|path| path.rtt_s, look)).collect();
    let least =
        looks.iter().filter_map(|look| millis(|path| path.min_rtt_s, look)).reduce(f64::min);
    // While blocks wait for the line, the threads that make them can be busy without harm.
    let names: &[&str] =
        if waited.application < MADE_TOO_SLOWLY { &["line"] } else { &["line", "channel"] };
    let silence = silence(&looks);
    let load =
        ThreadLoad { then: &first.status.threads, now: &last.status.threads, names, seconds };
    let transfer = Transfer {
        goodput_bps: rate(arrived(first.line, last.line, silence), seconds),
        silence: Some(silence),
        waited,
        controller: controller(last.line),
        declared_bps: declared(last.line),
        line: LoadedLine {
            round_trip_ms: (!loaded.is_empty())
                .then(|| loaded.iter().sum::<f64>() / loaded.len() as f64),
            shortest_round_trip_ms: least,
            loss: if sent == 0 { 0.0 } else { (lost as f64 / sent as f64).min(1.0) },
            payload: active(last.line)
                .map(|path| path.control.full_payload())
                .filter(|payload| *payload > 0)
                .max(),
            payload_shrunk: shrunk(last.line),
        },
        threads: BusyThreads {
            sender_share: load.busiest(),
            sender_lack: load.lack(&first.status.shortage, &last.status.shortage),
            ..BusyThreads::default()
        },
        receiver: ReceiverLoad {
            datagrams: sent,
            window_bytes: Some(now.window_bytes),
            ..ReceiverLoad::default()
        },
        feed: TransferFeed {
            source: source(last.status),
            source_bps: Some(rate(input(last).saturating_sub(input(first)), seconds)),
            waiting_bytes: Some(last.waiting),
        },
        ..Transfer::default()
    };
    Ok(WatchedSession {
        name: format!("of station {} to {}", last.status.name, last.line.peer),
        transfer,
    })
}

/// The longest time without an answer of the centre while the line waited for one. Each answer
/// changes the measured round trips.
fn silence(looks: &[StationLook<'_>]) -> Silence {
    let at = |look: &StationLook<'_>| {
        Instant::ZERO + Duration::from_micros((look.status.process.uptime_s * 1e6) as u64)
    };
    let trace = |look: &StationLook<'_>| {
        let of = |path: &LinePath| path.rtt_s.to_bits() ^ path.min_rtt_s.to_bits().rotate_left(32);
        look.line.paths.iter().map(of).fold(look.line.bytes_reported, u64::wrapping_add)
    };
    let idle = |look: &StationLook<'_>| {
        look.line.session.map_or(0.0, |session| session.waited_s.application)
    };
    let Some(first) = looks.first() else { return Silence::default() };
    let mut listener = SilenceDetector::new(at(first), trace(first));
    for pair in looks.windows(2) {
        let span = pair[1].status.process.uptime_s - pair[0].status.process.uptime_s;
        let is_idle = idle(&pair[1]) - idle(&pair[0]) > span / 2.0;
        listener.look(
            at(&pair[1]),
            trace(&pair[1]),
            if is_idle { Owes::Nothing } else { Owes::Answer },
        );
    }
    listener.silence()
}

/// Bytes that reached the centre between two observations, as far as the station knows.
fn arrived(then: &LineStatus, now: &LineStatus, silence: Silence) -> u64 {
    let reported = now.bytes_reported.saturating_sub(then.bytes_reported);
    let grown = |of: fn(&LineStatus) -> u64| of(now).saturating_sub(of(then));
    let (first, again) = (grown(|line| line.symbols_sent), grown(|line| line.symbols_repeated));
    // What is sent into a line that is out does not arrive; nor does what is sent again and again
    // while no block is reported.
    let is_out = silence.seconds > silence.of_s * ALL_BUT;
    let is_lost = again > first && grown(|line| line.symbols_lost) > first;
    if reported == 0 && (is_out || is_lost) { 0 } else { sent_first(then, now) }
}

/// The datagrams of a path that sends shorter ones than configured, since longer ones vanish.
fn shrunk(line: &LineStatus) -> Option<u64> {
    active(line)
        .filter(|path| path.control.payload < path.control.full_payload())
        .map(|path| path.control.payload)
        .min()
}

/// What brings a station's data.
fn source(station: &StationStatus) -> SourceKind {
    let has = |schemes: &[&str]| {
        let inputs = station.channels.iter().map(|channel| &*channel.input);
        inputs.filter(|input| schemes.iter().any(|scheme| input.contains(scheme))).count()
    };
    let (live, files) = (has(&["tcp-listen:", "tcp:", "udp:"]), has(&["file:"]));
    match (live, files) {
        (1.., _) => SourceKind::Live,
        (0, 1..) => SourceKind::File,
        (0, 0) => SourceKind::Program,
    }
}

/// Bytes of blocks sent between two observations, without retransmissions. Reports count whole
/// blocks only, which take seconds on a slow line.
fn sent_first(then: &LineStatus, now: &LineStatus) -> u64 {
    let bytes = |line: &LineStatus| line.paths.iter().map(|path| path.bytes_sent).sum::<u64>();
    let first = now.symbols_sent.saturating_sub(then.symbols_sent);
    let again = now.symbols_repeated.saturating_sub(then.symbols_repeated);
    let sent = bytes(now).saturating_sub(bytes(then)) as f64;
    (sent * first as f64 / (first + again).max(1) as f64) as u64
}

fn no_session(line: &LineStatus) -> Fault {
    let reason = line.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    let what = format!("the station has no session with its centre at {}{reason}", line.peer);
    let help = "check that the centre runs and is reachable: `skyhaul config check --connect` \
               shows the fault";
    Fault::peer(what, PLACE, help)
}

/// What of the time between two looks was waited for what.
fn parts(then: &SessionStatus, now: &SessionStatus) -> Waited {
    let (then, now) = (then.waited_s, now.waited_s);
    let [application, window, buffer, classes, path] = [
        now.application - then.application,
        now.window - then.window,
        now.buffer - then.buffer,
        now.classes - then.classes,
        now.path - then.path,
    ]
    .map(|seconds| seconds.max(0.0));
    let all = application + window + buffer + classes + path;
    let part = |seconds: f64| if all > 0.0 { seconds / all } else { 0.0 };
    Waited {
        application: part(application),
        window: part(window),
        buffer: part(buffer),
        classes: part(classes),
        path: part(path),
    }
}

/// What a centre knows: whether it keeps up.
fn of_centre(looks: &[&CentreStatus], station: Option<&str>) -> Result<WatchedSession, Fault> {
    let (first, last) = ends(looks)?;
    let (then, now) = connected(first, last, station)?;
    if now.bytes_delivered < then.bytes_delivered || last.process.uptime_s <= first.process.uptime_s
    {
        return Err(ended("the station reconnected during the observation"));
    }
    let seconds = last.process.uptime_s - first.process.uptime_s;
    let peers: Vec<&StationPeer> = looks.iter().filter_map(|look| find(look, &now.name)).collect();
    let shut = |peer: &&&StationPeer| {
        peer.window_bytes > 0 && peer.held_bytes >= peer.window_bytes / 8 * 7
    };
    let is_refusing = [first, last].iter().all(|look| look.store.state != StoreState::Ok);
    let disk = ((last.store.disk_busy_s - first.store.disk_busy_s) / seconds).clamp(0.0, 1.0);
    let drops = first.socket_drops.zip(last.socket_drops);
    let names = &["line", "store"];
    let load = ThreadLoad { then: &first.threads, now: &last.threads, names, seconds };
    let transfer = Transfer {
        seen_from: ObservedEnd::Receiver,
        goodput_bps: rate(now.bytes_delivered - then.bytes_delivered, seconds),
        waited: Waited {
            window: peers.iter().filter(shut).count() as f64 / peers.len().max(1) as f64,
            ..Waited::default()
        },
        threads: BusyThreads {
            receiver_share: load.busiest(),
            receiver_lack: load.lack(&first.shortage, &last.shortage),
            ..BusyThreads::default()
        },
        receiver: ReceiverLoad {
            // A full store is waited for all the time, though no call to the disk takes time.
            disk_share: Some(if is_refusing { 1.0 } else { disk }),
            socket_drops: drops.map(|(then, now)| now.saturating_sub(then)),
            datagrams: now.symbols_received.saturating_sub(then.symbols_received),
            window_bytes: Some(now.window_bytes),
            ..ReceiverLoad::default()
        },
        ..Transfer::default()
    };
    Ok(WatchedSession {
        name: format!("of station {} to centre {}", now.name, last.name),
        transfer,
    })
}

/// The station that is meant, at the first look and at the last.
fn connected<'a>(
    first: &'a CentreStatus,
    last: &'a CentreStatus,
    station: Option<&str>,
) -> Result<(&'a StationPeer, &'a StationPeer), Fault> {
    let both = last.stations.iter().filter_map(|now| Some((find(first, &now.name)?, now)));
    let grown = |(then, now): &(&StationPeer, &StationPeer)| {
        now.bytes_delivered.saturating_sub(then.bytes_delivered)
    };
    let found =
        both.filter(|(_, now)| station.is_none_or(|station| station == now.name)).max_by_key(grown);
    found.ok_or_else(|| {
        let names: Vec<&str> = last.stations.iter().map(|peer| &*peer.name).collect();
        let what = match station {
            Some(station) => format!("station {station} is not connected to this centre"),
            None => "no station is connected to this centre".to_owned(),
        };
        let help = match names[..] {
            [] => "start one; if one runs, `skyhaul status` there shows why it has no session"
                .to_owned(),
            _ => format!("connected are {}", names.join(", ")),
        };
        Fault::peer(what, PLACE, help)
    })
}

fn find<'a>(look: &'a CentreStatus, name: &str) -> Option<&'a StationPeer> {
    look.stations.iter().find(|peer| peer.name == name)
}

/// Some threads of a node at two looks.
struct ThreadLoad<'a> {
    then: &'a [ThreadStatus],
    now: &'a [ThreadStatus],
    /// The names of the threads that count.
    names: &'a [&'a str],
    /// The time between the looks.
    seconds: f64,
}

impl ThreadLoad<'_> {
    /// The threads that count, as they were and are. One that is new began with nothing.
    fn pairs(&self) -> impl Iterator<Item = (ThreadStatus, &ThreadStatus)> {
        self.now.iter().filter(|thread| self.names.contains(&&*thread.name)).map(|thread| {
            let before = self.then.iter().find(|before| before.id == thread.id);
            (before.cloned().unwrap_or_default(), thread)
        })
    }

    /// The share of the time for which the busiest thread ran.
    fn busiest(&self) -> Option<f64> {
        let ran = self.pairs().map(|(then, now)| now.cpu_s - then.cpu_s);
        ran.map(|ran| (ran / self.seconds).clamp(0.0, 1.0)).reduce(f64::max)
    }

    /// What kept the thread that most wanted to run from running.
    fn lack(&self, then: &ShortageStatus, now: &ShortageStatus) -> Option<Lack> {
        let wanted = self.pairs().map(|(then, now)| {
            let ready = now.ready_s - then.ready_s;
            (now.cpu_s - then.cpu_s + ready, ready)
        });
        let (_, ready) = wanted.max_by(|one, other| one.0.total_cmp(&other.0))?;
        let part = |of: f64| (of / self.seconds).clamp(0.0, 1.0);
        let ticks = now.ticks.saturating_sub(then.ticks);
        let stolen = now.stolen_ticks.saturating_sub(then.stolen_ticks);
        Some(Lack {
            ready: part(ready),
            throttled: part(now.throttled_s - then.throttled_s),
            stolen: if ticks == 0 { 0.0 } else { stolen as f64 / ticks as f64 },
        })
    }
}

fn active(line: &LineStatus) -> impl Iterator<Item = &LinePath> {
    line.paths.iter().filter(|path| ["active", "silent", "black-hole"].contains(&&*path.state))
}

/// Of several paths, that of the shortest, in milliseconds.
fn shortest(line: &LineStatus, of: fn(&LinePath) -> f64) -> Option<f64> {
    active(line)
        .map(of)
        .filter(|seconds| *seconds > 0.0)
        .reduce(f64::min)
        .map(|seconds| seconds * 1e3)
}

/// Who decides how fast the paths in use go.
fn controller(line: &LineStatus) -> String {
    let mut names: Vec<&str> = active(line)
        .map(|path| if path.over == "tcp" { "the system's TCP" } else { &*path.control.controller })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(" and ")
}

/// The declared rate of all paths in use, if each has one.
fn declared(line: &LineStatus) -> Option<u64> {
    let rates: Option<Vec<u64>> = active(line).map(|path| path.control.declared_bps).collect();
    rates.filter(|rates| !rates.is_empty()).map(|rates| rates.into_iter().sum())
}

fn rate(bytes: u64, seconds: f64) -> u64 {
    (bytes as f64 * 8.0 / seconds) as u64
}

/// Of the observation time: the answers in it belong to data sent before.
const ALL_BUT: f64 = 0.8;

/// Between two looks: short enough to see round trips, and a window that is closed for some time.
pub const LOOK: Duration = Duration::from_millis(250);

/// Where faults are.
const PLACE: &str = "the node";

/// As the verdict's own rule of what an application may take.
const MADE_TOO_SLOWLY: f64 = 0.2;

#[cfg(test)]
mod tests;
