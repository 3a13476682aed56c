//! The centre's end of the lines: admits trusted stations, passes their blocks to the keeper, and
//! sends receipts back.

mod keys;
mod messages;
mod presence;

use super::admission::{AdmittedStation, CentreAdmission};
use super::keeper::{Kept, ToKeep};
use super::peer_paths::{KnownPeers, PeerPaths};
use super::rivals::{CallerVerdict, Rivals};
use super::shared::CentreShared;
use super::standby_teller::StandbyTeller;
use crate::custody::custody_of;
use crate::keys::{NodeKeys, SessionKeys};
use crate::reports::SessionReports;
use crate::status::{ForwardsStatus, StationPeer};
use bytes::Bytes;
use keys::AdmittedKeys;
use skyhaul_channels::SessionEnd;
use skyhaul_channels_io::{SessionPeer, Tenants};
use skyhaul_events::AlarmKind;
use skyhaul_level0::ledger::talk::Talk;
use skyhaul_net::{LastWord, Refusals, RefusedCaller, Service, SessionManager};
use skyhaul_quic::{Fingerprint, Refusal};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_store::{
    ContactSpace as Space, SpoolId, SpoolIdentity, SpoolKnown, SpoolSender as From, StationName,
};
use skyhaul_transport::{
    ClassTree, CloseReason, DownReason, Event, Opening, PolicyConfig, RefusalCause, SPOOLS_MAX,
};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// What the sessions with stations are made with.
#[derive(Debug)]
pub struct Lines {
    /// The stations that are admitted, by key.
    pub peers: BTreeMap<Fingerprint, AdmittedStation>,
    /// The keys of the configuration that may connect to each address that is listened on.
    pub trusted: Vec<BTreeSet<Fingerprint>>,
    /// The class tree of what the centre sends.
    pub classes: ClassTree,
    /// The address of each endpoint, in their order, by its index among those listened on.
    pub listens: Vec<usize>,
    /// What shares the sessions with contacts.
    pub guests: Tenants,
    /// The keys of the node.
    pub keys: Arc<NodeKeys>,
}

/// Serves the stations.
#[derive(Debug)]
pub struct Downlink {
    name: String,
    lines: Lines,
    shared: Arc<CentreShared>,
    connections: BTreeMap<SessionId, Caller>,
    /// By station: no more than the configuration has.
    rivals: BTreeMap<StationName, Rivals>,
    blocks: Sender<ToKeep>,
    kept: Receiver<Kept>,
    peer_paths: PeerPaths,
    update_at: Instant,
    ask_at: Instant,
    refusals: Refusals,
    admitted: AdmittedKeys,
}

/// A session with a station.
#[derive(Debug)]
struct Caller {
    admitted: AdmittedStation,
    /// What is said of keys, and the key that it has in the session.
    keys: SessionKeys,
    /// The custody that it was sent for each of the station's spools.
    told: Vec<SpoolKnown>,
    /// Whose contacts it brings; none until its greeting, and for a node without a spool.
    sender: Option<Arc<From>>,
    /// For one that stands by for another station.
    standby: Option<StandbyTeller>,
    /// What it is told of this node.
    reports: SessionReports,
}

/// Between two updates of the status.
const UPDATE: Duration = Duration::from_millis(200);
/// Between two looks for missing frames: short against the round trip of any line that loses many.
const ASK: Duration = Duration::from_millis(50);

impl Downlink {
    /// Serves the stations of `lines` under the centre's `name`.
    pub fn new(
        name: String,
        mut lines: Lines,
        shared: Arc<CentreShared>,
        blocks: Sender<ToKeep>,
        kept: Receiver<Kept>,
    ) -> Self {
        // Forwards treat a station that never connected as disconnected.
        let places: Vec<usize> =
            lines.peers.values().filter_map(|admitted| admitted.place).collect();
        places.into_iter().for_each(|place| lines.guests.unreached(place));
        presence::watch(&shared, &lines.peers);
        let (update_at, ask_at) = (Instant::ZERO, Instant::ZERO);
        let (connections, rivals) = (BTreeMap::new(), BTreeMap::new());
        let (peer_paths, refusals) = (PeerPaths::new(shared.clock()), Refusals::default());
        Self {
            name,
            lines,
            shared,
            connections,
            rivals,
            blocks,
            kept,
            peer_paths,
            update_at,
            ask_at,
            refusals,
            admitted: AdmittedKeys::default(),
        }
    }

    fn connected(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        fingerprint: Fingerprint,
    ) {
        self.follow_keys(now, manager);
        let Some(admitted) = self.admitted.get(fingerprint).cloned() else {
            return manager.close(now, id, "this key is not in the centre's configuration");
        };
        let told = self.shared.store().spaces().known(&admitted.name, SPOOLS_MAX);
        if let Some(session) = manager.session(id) {
            session.sender_mut().share(self.lines.classes.clone(), PolicyConfig::default());
            let custody = told.iter().map(custody_of).collect();
            session.open(Opening { name: self.name.clone(), custody, ..Opening::default() });
        }
        tracing::info!(station = admitted.name.as_str(), "connected");
        self.lines.keys.seen(admitted.name.as_str(), fingerprint);
        let (keys, sender, standby) = (SessionKeys::new(fingerprint), None, None);
        let reports = SessionReports::default();
        self.connections.insert(id, Caller { admitted, keys, told, sender, standby, reports });
    }

    /// The greeting of a station named its spool.
    fn greeted(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        spool: SpoolIdentity,
    ) {
        let Some(caller) = self.connections.get(&id) else { return };
        let (admitted, told) = (caller.admitted.clone(), caller.told.iter());
        let known = told.clone().find(|known| known.spool.id == spool.id).cloned();
        let present = self.present(&admitted.name, id);
        if spool.id == SpoolId::NONE {
            // A node without a spool only tests whether the centre answers; it replaces nobody.
            if present.is_none() {
                self.begin(manager, id);
            }
            return;
        }
        let is_behind = |known: &SpoolKnown| {
            known.spool.opening != spool.opening && known.spool.opening.count >= spool.opening.count
        };
        if known.as_ref().is_some_and(is_behind) {
            // It learns this from the centre's greeting, and connects again with a new spool
            // identity.
            return;
        }
        let rivals = self.rivals.entry(admitted.name.clone()).or_default();
        let verdict = rivals.judge(now, spool, present.map(|(_, spool)| spool));
        match (verdict, present) {
            (CallerVerdict::Refuse, _) => return self.refuse_rival(manager, id, &admitted.name),
            (CallerVerdict::Again | CallerVerdict::Oust, Some((older, _))) => {
                self.replace(now, manager, older, verdict);
            }
            (CallerVerdict::Again | CallerVerdict::Oust | CallerVerdict::Admit, _) => {}
        }
        let admission = self.shared.store().admit(&admitted.name, spool.id);
        let space = match admission {
            Ok(space) => space,
            Err(error) => return self.refuse(manager, id, &error.to_string()),
        };
        self.report_other_spool(&admitted.name, spool, &space);
        let told = known.unwrap_or_default().state;
        presence::connected(&self.shared, &admitted);
        let sender = From { station: admitted.name, space: space.space, spool, told };
        if let Some(caller) = self.connections.get_mut(&id) {
            caller.sender = Some(Arc::new(sender));
        }
        self.begin(manager, id);
    }

    /// The session of a station that brings contacts, beside `id`, and its spool.
    fn present(&self, station: &StationName, id: SessionId) -> Option<(SessionId, SpoolIdentity)> {
        let others = self.connections.iter().filter(|(other, _)| **other != id);
        let senders = others.filter_map(|(other, caller)| Some((*other, caller.sender.as_ref()?)));
        let mut its = senders.filter(|(_, sender)| sender.station == *station);
        its.next().map(|(other, sender)| (other, sender.spool))
    }

    /// Starts what shares the session with contacts.
    fn begin(&mut self, manager: &mut SessionManager, id: SessionId) {
        let Some(caller) = self.connections.get(&id) else { return };
        let (admitted, key) = (&caller.admitted, caller.admitted.listed);
        if let Some(session) = manager.session(id) {
            let (node, rules) = (admitted.place, Arc::clone(&admitted.rules));
            self.lines.guests.begun(
                id,
                session,
                SessionPeer { end: SessionEnd::Called, node, rules, key },
            );
        }
        self.lines.guests.opened(id, admitted.name.as_str());
    }

    /// Ends a session in favour of a newer one.
    fn replace(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        older: SessionId,
        verdict: CallerVerdict,
    ) {
        if verdict == CallerVerdict::Again {
            // The station reconnected before its old connection timed out.
            return self.let_go(now, manager, older, "the station reconnected");
        }
        self.forget(older, &DownReason::ClosedHere);
        let reason =
            "another node with this key has connected since; give each station its own key";
        if let Some(session) = manager.session(older) {
            session.refuse(RefusalCause::Replaced, reason);
        }
    }

    fn refuse_rival(&self, manager: &mut SessionManager, id: SessionId, station: &StationName) {
        let reason = "two nodes connect with it in turns: the newer stays connected, the other \
                     waits; give each station its own key \
                      (skyhaul keygen)";
        self.shared.alarms.raise(AlarmKind::KeyShared, the_key_of(station), reason);
        if let Some(session) = manager.session(id) {
            let reason = "another node with this key is connected; give each station its own key";
            session.refuse(RefusalCause::Replaced, reason);
        }
    }

    fn refuse(&self, manager: &mut SessionManager, id: SessionId, reason: &str) {
        self.shared.alarms.raise(AlarmKind::StationRefused, "a station's connection", reason);
        if let Some(session) = manager.session(id) {
            session.refuse(RefusalCause::Told, reason);
        }
    }

    /// Raises the alarm that a station connected with another spool than before.
    fn report_other_spool(&self, station: &StationName, spool: SpoolIdentity, space: &Space) {
        if let Some(other) = space.other.filter(|_| !space.is_known) {
            let (new, old, name) = (spool.id.short(), other.short(), &space.space);
            let reason = format!(
                "it connected with spool {new}, before with {old}: its contacts are stored as \
                {name}; unless its disk was replaced, or its \
                 state folder removed or restored, two nodes use one key"
            );
            let subject = format!("station {station}");
            self.shared.alarms.raise(AlarmKind::OtherSpool, subject, &reason);
        }
    }

    /// The session has ended or was replaced.
    fn forget(&mut self, id: SessionId, reason: &DownReason) {
        self.lines.guests.ended(id);
        let Some(caller) = self.connections.remove(&id) else { return };
        self.peer_paths.ended(caller.admitted.name.as_str(), id);
        if self.present(&caller.admitted.name, id).is_none() {
            presence::lost(&self.shared, &caller.admitted);
        }
        if let Some(sender) = caller.sender {
            presence::ended(&self.shared, &caller.admitted, reason);
            self.shared.gaps().ledger().disconnected(sender.space.as_str());
        }
    }

    fn let_go(&mut self, now: Instant, manager: &mut SessionManager, id: SessionId, reason: &str) {
        self.forget(id, &DownReason::ClosedHere);
        manager.close(now, id, reason);
    }

    /// Adopts a configuration that was read again. A station whose permissions changed or that was
    /// removed is disconnected; the new permissions apply when it connects again.
    fn adopt(&mut self, now: Instant, manager: &mut SessionManager, admission: CentreAdmission) {
        presence::forget(&self.shared, &self.lines.peers, &admission.peers);
        (self.lines.peers, self.lines.trusted) = (admission.peers, admission.trusted);
        self.accept_keys(manager);
        let is_other =
            |caller: &Caller| self.admitted.get(caller.keys.shown()) != Some(&caller.admitted);
        let others = self.connections.iter().filter(|(_, caller)| is_other(caller));
        for id in others.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.let_go(now, manager, id, "the centre's configuration of this station has changed");
        }
        let Some(classes) = admission.classes else { return };
        self.lines.classes = classes;
        for id in self.connections.keys() {
            if let Some(session) = manager.session(*id) {
                session.sender_mut().share(self.lines.classes.clone(), PolicyConfig::default());
            }
            self.lines.guests.shared(*id, &self.lines.classes);
        }
    }

    fn session_event(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        event: Event,
    ) {
        let Some(caller) = self.connections.get(&id) else { return };
        let (station, sender) = (&caller.admitted.name, &caller.sender);
        let Some(event) = self.lines.guests.event(now, manager, id, event) else { return };
        match event {
            Event::Greeted { name, .. } if name != station.as_str() => {
                let reason = format!(
                    "this key belongs to `{}` here, but the station is named `{name}`: correct \
                    `name` in one of the two configurations",
                    station.as_str()
                );
                tracing::warn!("{reason}");
                if let Some(session) = manager.session(id) {
                    session.refuse(RefusalCause::Told, &reason);
                }
            }
            Event::Greeted { spool, .. } => self.greeted(now, manager, id, spool),
            Event::Custody { .. } | Event::Settled { .. } => {}
            Event::Application { body } => messages::received(self, now, id, &body),
            Event::PathUp(path) => self.peer_paths.up(manager, id, station.as_str(), path),
            Event::PathResized(_) | Event::PathStalled(_) => {}
            Event::PathBack(_) | Event::PathDown(..) => {}
            Event::Block(received) => match sender {
                Some(sender) => {
                    let block = ToKeep { connection: id, sender: Arc::clone(sender), received };
                    // A keeper whose thread has ended failed, and the centre is stopping.
                    let _ = self.blocks.send(block);
                }
                // Its spool keeps the block, and sends it again after it is admitted.
                None => {
                    if let Some(session) = manager.session(id).filter(|session| session.is_open()) {
                        session.refuse(
                            RefusalCause::Told,
                            "only a station's spool sends blocks of contacts",
                        );
                    }
                }
            },
            Event::Closed(reason) => {
                tracing::info!(station = station.as_str(), "disconnected: {reason}");
                match reason {
                    CloseReason::Path(down) => self.forget(id, &down),
                    _ => self.forget(id, &DownReason::ClosedHere),
                }
            }
        }
    }

    fn kept(&self, manager: &mut SessionManager, kept: Kept) {
        match kept {
            Kept::Written(id, len) => {
                if let Some(session) = manager.session(id) {
                    session.release(len);
                }
            }
            Kept::Durable(receipt) => {
                let is_its = |caller: &Caller| {
                    let sender =
                        caller.sender.as_ref().filter(|sender| sender.space == receipt.station);
                    sender.is_some_and(|sender| self.shared.store().spaces().is_taken_up(sender))
                };
                let connection = self.connections.iter().find(|(_, caller)| is_its(caller));
                if let Some(session) = connection.and_then(|(id, _)| manager.session(*id)) {
                    session.control_mut().receipt(receipt.flow, receipt.next);
                }
            }
            Kept::Broken(id, reason) => self.refuse(manager, id, &reason),
            Kept::Overtaken(id, reason) => {
                if let Some(session) = self.connections.get(&id).and_then(|_| manager.session(id)) {
                    session.refuse(RefusalCause::Told, &reason);
                }
            }
        }
    }

    /// Asks the stations for missing frames of their contacts.
    fn ask(&self, now: Instant, manager: &mut SessionManager) {
        for (id, caller) in &self.connections {
            let Some(station) = caller.sender.as_ref().map(|sender| &sender.space) else {
                continue;
            };
            let Some(session) = manager.session(*id).filter(|session| session.is_open()) else {
                continue;
            };
            loop {
                let ask = self.shared.gaps().ledger().ask(station.as_str(), now);
                let Some(ask) = ask else { break };
                let (number, contact, frames) =
                    (ask.number, ask.contact, ask.spans.iter().map(|span| span.count));
                let frames: u64 = frames.sum();
                if session.control_mut().tell(Bytes::from(Talk::Ask(ask).encode())).is_err() {
                    // Backpressure of the line: asked again at the next look.
                    self.shared.gaps().ledger().not_asked(number);
                    break;
                }
                tracing::info!(
                    station = station.as_str(),
                    contact = contact.0,
                    frames,
                    "missing frames requested"
                );
                let name = format!("contact {}-{}", station.as_str(), contact.0);
                presence::asked(&self.shared, name, frames);
            }
        }
    }

    /// Takes the hints for paths of peers, and now and then brings earlier ones up to date.
    fn take_hints(&mut self, now: Instant, manager: &mut SessionManager) {
        let mut next = self.shared.desk.hints.next();
        if next.is_none() && now < self.update_at {
            return;
        }
        let known = KnownPeers {
            // Each once, whatever its keys.
            names: self.lines.peers.values().map(|peer| peer.name.as_str()).collect(),
            sessions: {
                let all = self.connections.iter();
                all.map(|(id, caller)| (*id, caller.admitted.name.as_str())).collect()
            },
        };
        while let Some((order, done)) = next {
            // Who gave the hint may not wait any more.
            let _ = done.try_send(self.peer_paths.take(manager, &known, &order));
            next = self.shared.desk.hints.next();
        }
        self.peer_paths.refresh(manager, &known);
    }

    fn update(&self, manager: &SessionManager) {
        let stations = manager.sessions().filter_map(|(id, session)| {
            let station = &self.connections.get(&id)?.admitted.name;
            let stats = session.stats();
            let paths = self.peer_paths.status(manager, id, station.as_str());
            Some(StationPeer {
                name: station.as_str().to_owned(),
                bytes_delivered: stats.received.bytes_delivered,
                blocks_delivered: stats.received.blocks_delivered,
                blocks_repaired: stats.received.blocks_repaired,
                blocks_in_flight: stats.received.blocks_in_flight,
                symbols_received: stats.received.symbols_received,
                held_bytes: stats.received.buffer,
                window_bytes: stats.received.window,
                paths,
            })
        });
        self.shared.board.stations(stations.collect());
        self.shared.board.forwards(ForwardsStatus::of(self.lines.guests.forwards()));
    }
}

impl Drop for Downlink {
    fn drop(&mut self) {
        let now = self.shared.now();
        self.refusals.rest(now).iter().for_each(warn);
    }
}

fn warn(refused: &RefusedCaller) {
    tracing::warn!("{refused}");
}

impl Service for Downlink {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, fingerprint, .. } => {
                self.connected(now, manager, id, fingerprint);
            }
            SessionManagerEvent::Session { id, event } => {
                self.session_event(now, manager, id, event);
            }
            SessionManagerEvent::Disconnected { id, reason } => {
                if let Some(caller) = self.connections.get(&id) {
                    tracing::info!(
                        station = caller.admitted.name.as_str(),
                        "disconnected: {reason}"
                    );
                }
                self.forget(id, &reason);
            }
            SessionManagerEvent::PathRefused { .. } => {}
            // A station that calls over UDP and TCP withdraws the slower call.
            SessionManagerEvent::Refused { remote, reason: Refusal::Withdrawn, .. } => {
                tracing::debug!(%remote, "{}", Refusal::Withdrawn);
            }
            SessionManagerEvent::Refused { remote, fingerprint, reason, .. } => {
                self.shared.board.count_refused();
                if let Some(refused) = self.refusals.add(now, remote, &reason) {
                    let key =
                        fingerprint.map_or("no key presented".to_owned(), |key| key.to_string());
                    tracing::warn!(key, "{refused}");
                    presence::refused(&self.shared, &remote, format!("{refused} (key: {key})"));
                }
            }
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        while let Ok(kept) = self.kept.try_recv() {
            self.kept(manager, kept);
        }
        if let Some(admission) = self.shared.desk.admission.take() {
            self.adopt(now, manager, admission);
        }
        self.follow_keys(now, manager);
        self.refusals.due(now).iter().for_each(warn);
        self.take_hints(now, manager);
        if now >= self.ask_at {
            self.ask_at = now + ASK;
            self.ask(now, manager);
            messages::tell_standbys(self, now, manager);
        }
        if now >= self.update_at {
            self.update_at = now + UPDATE;
            self.update(manager);
            messages::report(self, now, manager);
            for (station, rivals) in &mut self.rivals {
                if rivals.is_over(now) {
                    self.shared.alarms.clear(AlarmKind::KeyShared, the_key_of(station));
                }
            }
        }
        let guests_due = self.lines.guests.work(now, manager);
        Some(self.update_at.min(self.ask_at).min(guests_due))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.lines.guests.fd()
    }

    fn last_word(&self) -> LastWord {
        self.shared.shutdown.last_word()
    }
}

/// The subject of the alarm.
fn the_key_of(station: &StationName) -> String {
    format!("the key of station {station}")
}
