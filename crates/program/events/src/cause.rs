//! Which event explains another one: the event before it without which it would not be.
//!
//! A node that is killed gives a chain, each link of which names the one before:
//!
//! ```text
//! path.stalled ◄ path.down ◄ peer.disconnected ◄ alarm.raised (peer-silent) ◄ alarm.cleared
//! ```

use crate::event::{EventCause, EventKind, NodeEvent};
use crate::kind::AlarmKind;
use serde_json::Value;
use skyhaul_units::{Duration, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// What may explain the events that come.
#[derive(Debug, Default)]
pub struct CauseBook {
    open: BTreeMap<Trace, KnownCause>,
    /// Paths that carry data: the node at the other end, and the path.
    carrying: BTreeSet<(String, String)>,
}

#[derive(Debug)]
struct KnownCause {
    cause: EventCause,
    /// As the event has it.
    time: String,
}

/// What a later event is looked up by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trace {
    /// An alarm stands, about this.
    Alarm(AlarmKind, String),
    /// There is no session with this node.
    Gone(String),
    /// A path to this node carries nothing.
    Path(String, String),
    /// A key of this node was revoked.
    Revoked(String),
    /// Frames of this contact are missing.
    Gap(String),
    /// The newest trouble of a delivery to this destination.
    Delivery(String),
    /// This pass was missed.
    Pass(String),
    /// A change of this key is under way.
    Key(String),
    /// The order of this line of the audit log is carried out.
    Order(u64),
    /// The spool has no room.
    Spool,
    /// The store has no room.
    Store,
}

/// More are not remembered: the oldest goes, and explains nothing any more.
const OPEN_MAX: usize = 4_096;
/// 256 peers with 16 paths each.
const PATHS_MAX: usize = 4_096;
/// The session of a key that is revoked ends within moments.
const REVOKED_WITHIN: Duration = Duration::from_secs(30);

impl CauseBook {
    /// Takes an event, which comes after those before. Returns what explains it.
    pub fn follow(&mut self, event: &NodeEvent) -> Option<EventCause> {
        let cause = self.cause_of(event).map(|known| known.cause.clone());
        self.note(event);
        cause
    }

    fn at(&self, trace: Option<Trace>) -> Option<&KnownCause> {
        self.open.get(&trace?)
    }

    fn cause_of(&self, event: &NodeEvent) -> Option<&KnownCause> {
        let subject = || event.subject.clone();
        match event.kind {
            EventKind::AlarmRaised => self.cause_of_alarm(event),
            EventKind::AlarmCleared | EventKind::AlarmAcknowledged => self.at(alarm_of(event)),
            EventKind::PathDown => self.at(path_of(event)).or_else(|| self.at(gone(event))),
            EventKind::PathBack => self.at(path_of(event)),
            EventKind::PeerDisconnected => self.cause_of_end(event),
            EventKind::PassMissed => self.at(Some(Trace::Alarm(AlarmKind::PassNoLock, subject()))),
            EventKind::GapAsked | EventKind::GapFilled | EventKind::GapUnrecoverable => {
                self.at(Some(Trace::Gap(subject())))
            }
            EventKind::DeliveryFailed => self.cause_of_delivery(event),
            EventKind::SpoolFull => {
                self.at(Some(Trace::Alarm(AlarmKind::SpoolNearlyFull, SPOOL.to_owned())))
            }
            EventKind::SpoolOk => self.at(Some(Trace::Spool)),
            EventKind::StoreOk => self.at(Some(Trace::Store)),
            EventKind::KeySwitched | EventKind::KeyRetired | EventKind::KeyAllowed => {
                self.order_about(event).or_else(|| self.at(Some(Trace::Key(subject()))))
            }
            EventKind::OrderDone => self.at(event.data.get("of").and_then(order)),
            EventKind::OrderGiven => None,
            EventKind::NodeStopped => {
                let stops = |trace: &Trace| matches!(trace, Trace::Alarm(AlarmKind::NodeStops, _));
                self.open.iter().find(|(trace, _)| stops(trace)).map(|(_, known)| known)
            }
            _ => self.order_about(event),
        }
    }

    fn cause_of_alarm(&self, event: &NodeEvent) -> Option<&KnownCause> {
        let subject = &*event.subject;
        let trace = match alarm_kind(event)? {
            AlarmKind::PeerSilent => Trace::Gone(subject.strip_prefix("node ")?.to_owned()),
            AlarmKind::KeyRevoked => Trace::Revoked(subject.strip_prefix("node ")?.to_owned()),
            AlarmKind::InputsPaused | AlarmKind::ContactUnopened | AlarmKind::DataGaveWay => {
                Trace::Spool
            }
            AlarmKind::StationsPaused | AlarmKind::StoreEvicted => Trace::Store,
            AlarmKind::PassMissed => Trace::Pass(subject.to_owned()),
            AlarmKind::DeliveryLost => {
                Trace::Delivery(subject.strip_prefix("a product for ")?.to_owned())
            }
            AlarmKind::DeliveryRefused => Trace::Delivery(subject.to_owned()),
            _ => return None,
        };
        self.open.get(&trace)
    }

    /// A session ends because its key was revoked, or because its last path carries nothing.
    fn cause_of_end(&self, event: &NodeEvent) -> Option<&KnownCause> {
        let peer = word(event, "peer")?;
        let time = |text: &str| Utc::from_rfc3339(text);
        let is_recent = |known: &&KnownCause| {
            let times = time(&event.time).zip(time(&known.time));
            times.is_some_and(|(now, then)| now.since(then) <= REVOKED_WITHIN)
        };
        let revoked = self.at(Some(Trace::Revoked(peer.clone()))).filter(is_recent);
        if revoked.is_some() || self.carrying.len() >= PATHS_MAX {
            return revoked;
        }
        let carries = self.carrying.iter().any(|(node, _)| *node == peer);
        let of_peer = |trace: &Trace| matches!(trace, Trace::Path(node, _) if *node == peer);
        let paths = self.open.iter().filter(|(trace, _)| !carries && of_peer(trace));
        paths.map(|(_, known)| known).max_by_key(|known| known.cause.number)
    }

    /// A product does not go to a destination that takes none now, or is silent.
    fn cause_of_delivery(&self, event: &NodeEvent) -> Option<&KnownCause> {
        let to = word(event, "destination")?;
        let about = format!("products for {to}");
        let failed = self.at(Some(Trace::Alarm(AlarmKind::DeliveryFailed, about)));
        failed.or_else(|| self.order_about(event))
    }

    /// The newest order about the subject of an event that is carried out now.
    fn order_about(&self, event: &NodeEvent) -> Option<&KnownCause> {
        let orders = self.open.iter().rev().filter(|(trace, _)| matches!(trace, Trace::Order(_)));
        orders.map(|(_, known)| known).find(|known| known.cause.subject == event.subject)
    }

    /// Remembers what may explain later events, and forgets what is over.
    fn note(&mut self, event: &NodeEvent) {
        let subject = || event.subject.clone();
        match event.kind {
            EventKind::NodeStarted => self.begin_again(),
            EventKind::AlarmRaised => self.put(alarm_of(event), event),
            EventKind::AlarmCleared => self.remove(alarm_of(event)),
            EventKind::PathUp | EventKind::PathBack => {
                self.remove(path_of(event));
                if let Some(Trace::Path(peer, path)) = path_of(event)
                    && self.carrying.len() < PATHS_MAX
                {
                    self.carrying.insert((peer, path));
                }
            }
            EventKind::PathStalled | EventKind::PathDown => {
                if let Some(Trace::Path(peer, path)) = path_of(event) {
                    self.carrying.remove(&(peer, path));
                }
                self.put(path_of(event), event);
            }
            EventKind::PeerConnected => {
                self.remove(gone(event));
                self.remove(word(event, "peer").map(Trace::Revoked));
            }
            EventKind::PeerDisconnected => {
                if let Some(peer) = word(event, "peer") {
                    self.open
                        .retain(|trace, _| !matches!(trace, Trace::Path(to, _) if *to == peer));
                    self.carrying.retain(|(to, _)| *to != peer);
                }
                self.put(gone(event), event);
            }
            EventKind::KeyRevoked => {
                self.put(word(event, "peer").map(Trace::Revoked), event);
                self.put(Some(Trace::Key(subject())), event);
            }
            EventKind::KeyStaged | EventKind::KeySwitched => {
                self.put(Some(Trace::Key(subject())), event);
            }
            EventKind::KeyRetired | EventKind::KeyAllowed => {
                self.remove(Some(Trace::Key(subject())));
            }
            EventKind::GapFound | EventKind::GapAsked => {
                self.put(Some(Trace::Gap(subject())), event);
            }
            EventKind::DeliveryFailed | EventKind::DeliveryRefused => {
                self.put(word(event, "destination").map(Trace::Delivery), event);
            }
            EventKind::PassMissed => self.put(Some(Trace::Pass(subject())), event),
            EventKind::SpoolFull => self.put(Some(Trace::Spool), event),
            EventKind::SpoolOk => self.remove(Some(Trace::Spool)),
            EventKind::StoreFull => self.put(Some(Trace::Store), event),
            EventKind::StoreOk => self.remove(Some(Trace::Store)),
            EventKind::OrderGiven => {
                let line = event.data.get("audit").and_then(|head| head.get("number"));
                self.put(line.and_then(order), event);
            }
            EventKind::OrderDone => self.remove(event.data.get("of").and_then(order)),
            _ => {}
        }
    }

    /// The node begins again: of what was before, gaps and keys go on.
    fn begin_again(&mut self) {
        self.open.retain(|trace, _| matches!(trace, Trace::Gap(_) | Trace::Key(_)));
        self.carrying.clear();
    }

    fn put(&mut self, trace: Option<Trace>, event: &NodeEvent) {
        let Some(trace) = trace else { return };
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&trace) {
            let oldest = self.open.values().map(|known| known.cause.number).min();
            self.open.retain(|_, known| Some(known.cause.number) != oldest);
        }
        let NodeEvent { number, kind, subject, time, .. } = event;
        let cause = EventCause { number: *number, kind: *kind, subject: subject.clone() };
        self.open.insert(trace, KnownCause { cause, time: time.clone() });
    }

    fn remove(&mut self, trace: Option<Trace>) {
        if let Some(trace) = trace {
            self.open.remove(&trace);
        }
    }
}

/// The subject of the alarms and events about the spool.
const SPOOL: &str = "the spool";

/// A value of an event that is a text.
fn word(event: &NodeEvent, name: &str) -> Option<String> {
    event.data.get(name)?.as_str().map(str::to_owned)
}

fn alarm_kind(event: &NodeEvent) -> Option<AlarmKind> {
    event.data.get("alarm")?.as_str()?.parse().ok()
}

fn alarm_of(event: &NodeEvent) -> Option<Trace> {
    Some(Trace::Alarm(alarm_kind(event)?, event.subject.clone()))
}

fn path_of(event: &NodeEvent) -> Option<Trace> {
    Some(Trace::Path(word(event, "peer")?, event.subject.clone()))
}

fn gone(event: &NodeEvent) -> Option<Trace> {
    word(event, "peer").map(Trace::Gone)
}

fn order(line: &Value) -> Option<Trace> {
    line.as_u64().map(Trace::Order)
}

#[cfg(test)]
mod tests;
