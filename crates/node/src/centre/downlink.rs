//! The centre's end of the lines: sessions of trusted stations, blocks to the keeper, receipts back.

use super::keeper::{Kept, ToKeep};
use super::shared::Shared;
use crate::status::StationPeer;
use skyhaul_engine::{EngineEvent, SessionId};
use skyhaul_net::Engine;
use skyhaul_net::Service;
use skyhaul_quic::Fingerprint;
use skyhaul_store::StationName;
use skyhaul_transport::{Event, Opening, Resume};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// Serves the stations.
#[derive(Debug)]
pub struct Downlink {
    name: String,
    /// The stations that may come, by key.
    peers: BTreeMap<Fingerprint, StationName>,
    shared: Arc<Shared>,
    connections: BTreeMap<SessionId, StationName>,
    blocks: Sender<ToKeep>,
    kept: Receiver<Kept>,
    update_at: Instant,
}

/// Between two looks at the figures.
const UPDATE: Duration = Duration::from_millis(200);

impl Downlink {
    /// Serves `peers` under the centre's `name`.
    pub fn new(
        name: String,
        peers: BTreeMap<Fingerprint, StationName>,
        shared: Arc<Shared>,
        channels: (Sender<ToKeep>, Receiver<Kept>),
    ) -> Self {
        let (blocks, kept) = channels;
        Self { name, peers, shared, connections: BTreeMap::new(), blocks, kept, update_at: Instant::ZERO }
    }

    fn connected(&mut self, now: Instant, engine: &mut Engine, id: SessionId, fingerprint: Fingerprint) {
        let Some(station) = self.peers.get(&fingerprint).cloned() else {
            return engine.close(now, id, "this key is not in the centre's configuration");
        };
        let older = self.connections.iter().find(|(_, known)| **known == station).map(|(older, _)| *older);
        if let Some(older) = older {
            // The station came back before its old connection was given up.
            self.connections.remove(&older);
            engine.close(now, older, "the station has connected again");
        }
        let resume = self.shared.store().resume(&station);
        let resume = Resume { finished_below: resume.finished_below, open: resume.flows };
        if let Some(session) = engine.session(id) {
            session.open(Opening { name: self.name.clone(), resume, ..Opening::default() });
        }
        tracing::info!(station = station.as_str(), "connected");
        self.connections.insert(id, station);
    }

    fn session_event(&mut self, engine: &mut Engine, id: SessionId, event: Event) {
        let Some(station) = self.connections.get(&id) else { return };
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
            Event::Greeted { .. } | Event::Custody { .. } | Event::Settled { .. } => {}
            Event::PathUp(_) | Event::PathStalled(_) | Event::PathBack(_) | Event::PathDown(..) => {}
            Event::Block(received) => {
                let block = ToKeep { connection: id, station: station.clone(), received };
                // A keeper that is gone has failed, and the centre is stopping.
                let _ = self.blocks.send(block);
            }
            Event::Closed(reason) => {
                tracing::info!(station = station.as_str(), "disconnected: {reason}");
                self.connections.remove(&id);
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
            })
        });
        self.shared.stations(stations.collect());
    }
}

impl Service for Downlink {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, fingerprint, .. } => self.connected(now, engine, id, fingerprint),
            EngineEvent::Session { id, event } => self.session_event(engine, id, event),
            EngineEvent::Disconnected { id, reason } => {
                if let Some(station) = self.connections.remove(&id) {
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
        if now >= self.update_at {
            self.update_at = now + UPDATE;
            self.update(engine);
        }
        Some(self.update_at)
    }
}
