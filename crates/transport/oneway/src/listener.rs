//! The receiving end: opens datagrams, and follows the sessions of a sender.

use bytes::Bytes;
use skyhaul_identity::{OneWayKey, OneWaySession, Opener, Unopened};
use skyhaul_transport::oneway::{Event, OneWayReceiver, ReceiverConfig};
use skyhaul_units::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Receives what was sealed with one key. It follows at most four sessions: a sender that starts
/// again begins a new one, and the oldest is then given up.
#[derive(Debug)]
pub struct Listener {
    config: ReceiverConfig,
    opener: Opener,
    sessions: BTreeMap<OneWaySession, OneWayReceiver>,
    /// Of sessions that were given up.
    last: VecDeque<(OneWaySession, Event)>,
    counters: ListenerCounters,
}

/// Datagrams by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListenerCounters {
    /// That came at all.
    pub datagrams: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// That were opened.
    pub opened: u64,
    /// That were no sealed datagram of this version.
    pub malformed: u64,
    /// That were not sealed with the key.
    pub forged: u64,
    /// That had come before, or were too old to tell.
    pub replayed: u64,
    /// Of sessions that a later one has replaced.
    pub superseded: u64,
}

impl Listener {
    /// With nothing received.
    pub const fn new(key: OneWayKey, config: ReceiverConfig) -> Self {
        Self {
            config,
            opener: Opener::new(key),
            sessions: BTreeMap::new(),
            last: VecDeque::new(),
            counters: ListenerCounters {
                datagrams: 0,
                bytes: 0,
                opened: 0,
                malformed: 0,
                forged: 0,
                replayed: 0,
                superseded: 0,
            },
        }
    }

    /// What came.
    pub const fn counters(&self) -> &ListenerCounters {
        &self.counters
    }

    /// A session that is followed.
    pub fn session(&self, session: OneWaySession) -> Option<&OneWayReceiver> {
        self.sessions.get(&session)
    }

    /// Bytes kept, over all sessions.
    pub fn memory(&self) -> u64 {
        self.sessions.values().map(OneWayReceiver::memory).sum()
    }

    /// A datagram arrived, from whomever. Take the events after each.
    pub fn datagram(&mut self, now: Instant, mut datagram: impl AsMut<[u8]>) {
        let datagram = datagram.as_mut();
        self.counters.datagrams += 1;
        self.counters.bytes += datagram.len() as u64;
        let opened = match self.opener.open(datagram) {
            Ok(opened) => opened,
            Err(reason) => return self.drop_for(reason),
        };
        self.counters.opened += 1;
        let (session, plain) = (opened.session, Bytes::copy_from_slice(opened.plain));
        if opened.is_new {
            self.replace();
            self.sessions.insert(session, OneWayReceiver::new(self.config));
        }
        if let Some(receiver) = self.sessions.get_mut(&session) {
            receiver.datagram(now, plain);
        }
    }

    /// The next thing to know, of any session.
    pub fn poll_event(&mut self) -> Option<(OneWaySession, Event)> {
        if let Some(event) = self.last.pop_front() {
            return Some(event);
        }
        self.sessions.iter_mut().find_map(|(name, receiver)| Some((*name, receiver.poll_event()?)))
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Instant) {
        for receiver in self.sessions.values_mut() {
            receiver.expire(now);
        }
    }

    /// When [`Self::expire`] has something to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.sessions.values().filter_map(OneWayReceiver::next_timeout).min()
    }

    fn drop_for(&mut self, reason: Unopened) {
        let counters = &mut self.counters;
        *match reason {
            Unopened::Malformed => &mut counters.malformed,
            Unopened::Forged => &mut counters.forged,
            Unopened::Replayed => &mut counters.replayed,
            Unopened::Superseded => &mut counters.superseded,
        } += 1;
    }

    /// Gives up the sessions that are followed no longer.
    fn replace(&mut self) {
        let opener = &self.opener;
        for (name, mut receiver) in self.sessions.extract_if(.., |name, _| !opener.follows(*name)) {
            receiver.expire(Instant::FAR_FUTURE);
            self.last
                .extend(core::iter::from_fn(|| receiver.poll_event()).map(|event| (name, event)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TransmitSession, Transmitter, assumptions_for};
    use skyhaul_transport::oneway::SenderConfig;
    use skyhaul_transport::{Block, FlowId};
    use skyhaul_units::{ByteCount, Rate, Utc};

    fn key() -> OneWayKey {
        OneWayKey::from_bytes([3; 32])
    }

    /// All datagrams of a session that sends `blocks`.
    fn sent(began: i64, blocks: &[&'static str]) -> Vec<Vec<u8>> {
        let session = TransmitSession { key: key(), began: Utc::from_micros(began), salt: [1; 8] };
        let assumptions =
            assumptions_for(Rate::from_mbps(50), ByteCount::new(1_500), crate::HEADERS_IPV4);
        let mut now = Instant::ZERO;
        let mut transmitter =
            Transmitter::new(now, session, &assumptions, SenderConfig::default()).unwrap();
        for block in blocks {
            transmitter.sender().send(now, Block::reliable(FlowId(0), (*block).into())).unwrap();
        }
        transmitter.sender().finish();
        let mut datagrams = Vec::new();
        while let Some(due) = transmitter.next_timeout(now) {
            now = now.max(due);
            while let Some(datagram) = transmitter.poll(now) {
                assert!(datagram.len() <= transmitter.datagram_max());
                datagrams.push(datagram);
            }
        }
        datagrams
    }

    fn blocks(listener: &mut Listener) -> Vec<Bytes> {
        let events = core::iter::from_fn(|| listener.poll_event());
        let block =
            |(_, event)| if let Event::Block(block) = event { Some(block.bytes) } else { None };
        events.filter_map(block).collect()
    }

    #[test]
    fn a_sender_that_starts_again_is_followed_and_replays_are_dropped() {
        let mut listener = Listener::new(key(), ReceiverConfig::default());
        let (first, second) = (sent(1, &["a", "b"]), sent(2, &["c"]));
        for datagram in first.iter().chain(&first).chain(&second).chain(&first) {
            listener.datagram(Instant::ZERO, datagram.clone());
        }
        assert_eq!(blocks(&mut listener), ["a", "b", "c"]);
        let counters = *listener.counters();
        assert_eq!(counters.opened, (first.len() + second.len()) as u64);
        assert_eq!(counters.replayed, 2 * first.len() as u64);
        // A receiver that never heard the first session takes it for older.
        let mut listener = Listener::new(key(), ReceiverConfig::default());
        for datagram in second.iter().chain(&first) {
            listener.datagram(Instant::ZERO, datagram.clone());
        }
        assert_eq!(
            (blocks(&mut listener).len(), listener.counters().superseded),
            (1, first.len() as u64)
        );
    }

    #[test]
    fn strangers_are_counted_and_heard_by_nobody() {
        let mut listener = Listener::new(OneWayKey::from_bytes([4; 32]), ReceiverConfig::default());
        for datagram in sent(1, &["a"]) {
            listener.datagram(Instant::ZERO, datagram);
        }
        listener.datagram(Instant::ZERO, vec![0; 9]);
        let counters = listener.counters();
        assert!(counters.opened == 0 && counters.forged > 5 && counters.malformed == 1);
        assert!(
            listener.poll_event().is_none()
                && listener.memory() == 0
                && listener.next_timeout().is_none()
        );
    }

    #[test]
    fn the_sessions_followed_are_few() {
        let mut listener = Listener::new(key(), ReceiverConfig::default());
        for began in 1..20 {
            for datagram in sent(began, &["x"]).into_iter().take(2) {
                listener.datagram(Instant::ZERO, datagram);
            }
        }
        assert_eq!((listener.sessions.len(), blocks(&mut listener).len()), (4, 19));
    }
}
