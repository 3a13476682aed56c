//! The centre's end of the lines: sessions of trusted stations, blocks to the keeper, receipts back.

use super::keeper::{Kept, ToKeep};
use super::shared::Shared;
use crate::status::{ForwardsStatus, StationPeer};
use bytes::Bytes;
use skyhaul_engine::{EngineEvent, SessionId};
use skyhaul_forward::Role;
use skyhaul_level0::ledger::talk::Talk;
use skyhaul_net::forward::Rules;
use skyhaul_net::guests::{Far, Guests};
use skyhaul_net::{Engine, Service};
use skyhaul_quic::Fingerprint;
use skyhaul_store::StationName;
use skyhaul_transport::{ClassTree, Event, Opening, PolicyConfig, Resume};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// What the sessions with stations are.
#[derive(Debug)]
pub struct Lines {
    /// The stations that may come, by key.
    pub peers: BTreeMap<Fingerprint, Admitted>,
    /// How what the centre sends is shared.
    pub classes: ClassTree,
    /// What goes through the sessions beside contacts.
    pub guests: Guests,
}

/// A station that may come.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Its name.
    pub name: StationName,
    /// Its place in the configuration.
    pub place: usize,
    /// What it may have this centre do for applications.
    pub rules: Arc<Rules>,
}

/// Serves the stations.
#[derive(Debug)]
pub struct Downlink {
    name: String,
    lines: Lines,
    shared: Arc<Shared>,
    connections: BTreeMap<SessionId, StationName>,
    blocks: Sender<ToKeep>,
    kept: Receiver<Kept>,
    update_at: Instant,
    ask_at: Instant,
}

/// Between two looks at the figures.
const UPDATE: Duration = Duration::from_millis(200);
/// Between two looks at what is missing: little beside the round trip of any line that loses much.
const ASK: Duration = Duration::from_millis(50);

impl Downlink {
    /// Serves the stations of `lines` under the centre's `name`.
    pub fn new(
        name: String,
        mut lines: Lines,
        shared: Arc<Shared>,
        channels: (Sender<ToKeep>, Receiver<Kept>),
    ) -> Self {
        let (blocks, kept) = channels;
        // A station that never came is one that is gone.
        let places: Vec<usize> = lines.peers.values().map(|admitted| admitted.place).collect();
        places.into_iter().for_each(|place| lines.guests.unreached(place));
        let (update_at, ask_at) = (Instant::ZERO, Instant::ZERO);
        Self { name, lines, shared, connections: BTreeMap::new(), blocks, kept, update_at, ask_at }
    }

    fn connected(&mut self, now: Instant, engine: &mut Engine, id: SessionId, fingerprint: Fingerprint) {
        let Some(admitted) = self.lines.peers.get(&fingerprint).cloned() else {
            return engine.close(now, id, "this key is not in the centre's configuration");
        };
        let Admitted { name: station, place, rules } = admitted;
        let older = self.connections.iter().find(|(_, known)| **known == station).map(|(older, _)| *older);
        if let Some(older) = older {
            // The station came back before its old connection was given up.
            self.connections.remove(&older);
            self.lines.guests.ended(older);
            self.shared.gaps().ledger().disconnected(station.as_str());
            engine.close(now, older, "the station has connected again");
        }
        let resume = self.shared.store().resume(&station);
        let resume = Resume { finished_below: resume.finished_below, open: resume.flows };
        if let Some(session) = engine.session(id) {
            session.share(self.lines.classes.clone(), PolicyConfig::default());
            session.open(Opening { name: self.name.clone(), resume, ..Opening::default() });
            self.lines.guests.begun(
                id,
                session,
                Far { role: Role::Called, node: Some(place), rules, key: fingerprint },
            );
        }
        tracing::info!(station = station.as_str(), "connected");
        self.connections.insert(id, station);
    }

    fn session_event(&mut self, now: Instant, engine: &mut Engine, id: SessionId, event: Event) {
        let Some(station) = self.connections.get(&id) else { return };
        let Some(event) = self.lines.guests.event(now, engine, id, event) else { return };
        match event {
            Event::Greeted { name, .. } if name != station.as_str() => {
                let reason = format!(
                    "this key belongs to `{}` here, and the station calls itself `{name}`: correct one configuration",
                    station.as_str()
                );
                tracing::warn!("{reason}");
                if let Some(session) = engine.session(id) {
                    session.refuse(&reason);
                }
            }
            Event::Greeted { name, .. } => self.lines.guests.opened(id, &name),
            Event::Custody { .. } | Event::Settled { .. } => {}
            Event::Application { body } => match Talk::decode(&body) {
                Ok(Talk::Answer(answer)) => self.shared.gaps().ledger().answer(station.as_str(), &answer),
                Ok(Talk::Ask(_)) => {}
                Err(error) => tracing::warn!(station = station.as_str(), "{error}"),
            },
            Event::PathUp(_) | Event::PathStalled(_) | Event::PathBack(_) | Event::PathDown(..) => {}
            Event::Block(received) => {
                let block = ToKeep { connection: id, station: station.clone(), received };
                // A keeper that is gone has failed, and the centre is stopping.
                let _ = self.blocks.send(block);
            }
            Event::Closed(reason) => {
                tracing::info!(station = station.as_str(), "disconnected: {reason}");
                self.shared.gaps().ledger().disconnected(station.as_str());
                self.connections.remove(&id);
                self.lines.guests.ended(id);
            }
        }
    }

    fn kept(&self, engine: &mut Engine, kept: Kept) {
        match kept {
            Kept::Written(id, len) => {
                if let Some(session) = engine.session(id) {
                    session.release(len);
                }
            }
            Kept::Durable(receipt) => {
                let connection = self.connections.iter().find(|(_, station)| **station == receipt.station);
                if let Some(session) = connection.and_then(|(id, _)| engine.session(*id)) {
                    session.receipt(receipt.flow, receipt.next);
                }
            }
            Kept::Broken(id, reason) => {
                self.shared.life.alarm("a station's connection was broken off", &reason);
                if let Some(session) = engine.session(id) {
                    session.refuse(&reason);
                }
            }
        }
    }

    /// Asks the stations for what is missing of their contacts.
    fn ask(&self, now: Instant, engine: &mut Engine) {
        for (id, station) in &self.connections {
            let Some(session) = engine.session(*id).filter(|session| session.is_open()) else { continue };
            loop {
                let ask = self.shared.gaps().ledger().ask(station.as_str(), now);
                let Some(ask) = ask else { break };
                let (number, contact, frames) =
                    (ask.number, ask.contact, ask.spans.iter().map(|span| span.count));
                let frames: u64 = frames.sum();
                if session.tell(Bytes::from(Talk::Ask(ask).encode())).is_err() {
                    // The line holds back: asked again when it is looked at next.
                    self.shared.gaps().ledger().not_asked(number);
                    break;
                }
                tracing::info!(
                    station = station.as_str(),
                    contact = contact.0,
                    frames,
                    "missing frames asked for"
                );
            }
        }
    }

    fn update(&self, engine: &Engine) {
        let stations = engine.sessions().filter_map(|(id, session)| {
            let station = self.connections.get(&id)?;
            let stats = session.stats();
            Some(StationPeer {
                name: station.as_str().to_owned(),
                bytes_delivered: stats.bytes_delivered,
                blocks_delivered: stats.blocks_delivered,
                blocks_repaired: stats.blocks_repaired,
                blocks_in_flight: stats.blocks_in_flight,
                symbols_received: stats.symbols_received,
                held_bytes: session.held().as_u64(),
                window_bytes: session.receive_window().as_u64(),
            })
        });
        self.shared.stations(stations.collect());
        self.shared.forwards(ForwardsStatus::of(self.lines.guests.forwards()));
    }
}

impl Service for Downlink {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, fingerprint, .. } => self.connected(now, engine, id, fingerprint),
            EngineEvent::Session { id, event } => self.session_event(now, engine, id, event),
            EngineEvent::Disconnected { id, reason } => {
                self.lines.guests.ended(id);
                if let Some(station) = self.connections.remove(&id) {
                    self.shared.gaps().ledger().disconnected(station.as_str());
                    tracing::info!(station = station.as_str(), "disconnected: {reason}");
                }
            }
            EngineEvent::PathRefused { .. } => {}
            EngineEvent::Refused { remote, fingerprint, reason, .. } => {
                self.shared.count_refused();
                let key = fingerprint.map_or("no key shown".to_owned(), |key| key.to_string());
                tracing::warn!(%remote, key, "refused: {reason}");
            }
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        while let Ok(kept) = self.kept.try_recv() {
            self.kept(engine, kept);
        }
        if now >= self.ask_at {
            self.ask_at = now + ASK;
            self.ask(now, engine);
        }
        if now >= self.update_at {
            self.update_at = now + UPDATE;
            self.update(engine);
        }
        let guests_due = self.lines.guests.work(now, engine);
        Some(self.update_at.min(self.ask_at).min(guests_due))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.lines.guests.fd()
    }
}
