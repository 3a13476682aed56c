//! What happened once: a numbered record, one line of JSON in the event log.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is to be done.
    Info,
    /// It can wait for office hours.
    Minor,
    /// Data are late, or will be.
    Major,
    /// Data are lost or refused, or will be.
    Critical,
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Critical => "critical",
        })
    }
}

/// Declares the kinds: the name in JSON, the severity, what it means.
macro_rules! kinds {
    ($( $name:ident $text:literal $severity:ident $meaning:literal; )+) => {
        /// What happened.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum EventKind {
            $( #[doc = $meaning] #[serde(rename = $text)] $name, )+
        }

        impl EventKind {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Self] = &[$( Self::$name, )+];

            /// The name in JSON and in filters.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )+ }
            }

            /// How bad it is, unless the event itself says otherwise.
            pub const fn severity(self) -> Severity {
                match self { $( Self::$name => Severity::$severity, )+ }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$name => $meaning, )+ }
            }
        }
    };
}

kinds! {
    NodeStarted "node.started" Info "The node begins.";
    NodeReady "node.ready" Info "Its sockets are bound and its state is read.";
    NodeStopped "node.stopped" Info "It ends, with the fault if there is one.";
    PeerConnected "peer.connected" Info "A session with another node is set up.";
    PeerDisconnected "peer.disconnected" Minor "The session with another node has ended.";
    PeerRefused "peer.refused" Minor "A node was refused, or refuses this one.";
    PathUp "path.up" Info "A path carries data.";
    PathDown "path.down" Minor "A path has ended.";
    PathStalled "path.stalled" Minor "A path does not answer.";
    PathBack "path.back" Info "A path answers again.";
    PassDue "pass.due" Info "A planned pass begins.";
    PassMissed "pass.missed" Major "A planned pass is over, and no frame of it came.";
    ContactOpened "contact.opened" Info "The first frame of a contact came.";
    ContactClosed "contact.closed" Info "The last frame of a contact came.";
    ContactDone "contact.done" Info "The products of a contact are written.";
    ContactFailed "contact.failed" Critical "A contact gets no products.";
    ContactRefused "contact.refused" Major "A contact came through this node before.";
    GapFound "gap.found" Minor "Frames of a contact are missing.";
    GapAsked "gap.asked" Info "Missing frames are requested of the station.";
    GapFilled "gap.filled" Info "Missing frames came.";
    GapUnrecoverable "gap.unrecoverable" Major "Missing frames cannot be had.";
    ProductPublished "product.published" Info "A product is in the catalogue.";
    DeliveryHanded "delivery.handed" Info "A product is at its destination.";
    DeliveryAccepted "delivery.accepted" Info "A consumer has accepted a product.";
    DeliveryRefused "delivery.refused" Major "A consumer has refused a product.";
    DeliveryFailed "delivery.failed" Major "A product does not go to a destination.";
    SpoolFull "spool.full" Critical "The spool has no room: the inputs wait.";
    SpoolOk "spool.ok" Info "The spool takes data again.";
    StoreFull "store.full" Critical "The store has no room: stations wait.";
    StoreOk "store.ok" Info "The store takes data again.";
    AlarmRaised "alarm.raised" Major "An alarm stands.";
    AlarmCleared "alarm.cleared" Info "An alarm stands no more.";
    AlarmAcknowledged "alarm.acknowledged" Info "Somebody works on an alarm.";
    OrderGiven "order.given" Info "Somebody gave an order.";
    OrderDone "order.done" Info "An order was carried out, or refused.";
    AccessGranted "access.granted" Info "Somebody has logged in at the page.";
    AccessShut "access.shut" Minor "Too many logins have failed: the next ones have to wait.";
    KeyStaged "key.staged" Info "A node has announced its next key, or this node has one.";
    KeySwitched "key.switched" Info "A node uses its next key, or this node does.";
    KeyRetired "key.retired" Info "The former key of this node is removed.";
    KeyRevoked "key.revoked" Major "A key is refused from now on.";
    KeyAllowed "key.allowed" Minor "A key that was revoked is accepted again.";
    ConfigReloaded "config.reloaded" Info "The configuration was read again.";
    ConfigRefused "config.refused" Major "The configuration that was read again is wrong.";
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeEvent {
    /// Counts from 1; what lacks was not kept.
    pub number: u64,
    /// When (UTC).
    pub time: String,
    /// The node's name.
    pub node: String,
    /// What happened.
    pub kind: EventKind,
    /// How bad it is.
    pub severity: Severity,
    /// To what.
    pub subject: String,
    /// What happened, where, and what to do.
    pub sentence: String,
    /// The event that explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EventCause>,
    /// More of it, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}

/// The event that explains another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCause {
    /// Its number.
    pub number: u64,
    /// What happened.
    pub kind: EventKind,
    /// To what.
    pub subject: String,
}

/// Why a line is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an event ({0})")]
pub struct EventError(String);

/// A longer sentence is cut.
const SENTENCE_MAX: usize = 4_096;
/// A longer subject is cut.
const SUBJECT_MAX: usize = 512;

impl NodeEvent {
    /// The longest line of an event.
    pub const LINE_MAX: usize = 64 << 10;

    /// As a line of the log, with its end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("an event has text keys only");
        if line.len() >= Self::LINE_MAX {
            let short = Self { data: Map::new(), ..self.clone() };
            line = serde_json::to_vec(&short).expect("an event has text keys only");
        }
        line.push(b'\n');
        line
    }

    /// From a line of the log.
    ///
    /// # Errors
    /// It is none.
    pub fn from_line(line: &[u8]) -> Result<Self, EventError> {
        if line.len() > Self::LINE_MAX {
            return Err(EventError("the line is too long".to_owned()));
        }
        serde_json::from_slice(line).map_err(|error| EventError(error.to_string()))
    }

    /// Texts no longer than a line takes.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        cut(&mut self.subject, SUBJECT_MAX);
        cut(&mut self.sentence, SENTENCE_MAX);
        if let Some(cause) = &mut self.cause {
            cut(&mut cause.subject, SUBJECT_MAX);
        }
        self
    }
}

/// Cuts at a character's border.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sentence: &str) -> NodeEvent {
        NodeEvent {
            number: 7,
            time: "2026-11-26T21:00:00Z".to_owned(),
            node: "polar".to_owned(),
            kind: EventKind::PathDown,
            severity: Severity::Minor,
            subject: "path a".to_owned(),
            sentence: sentence.to_owned(),
            cause: Some(EventCause {
                number: 6,
                kind: EventKind::PathStalled,
                subject: "path a".to_owned(),
            }),
            data: Map::from_iter([("rtt_s".to_owned(), Value::from(0.5))]),
        }
    }

    #[test]
    fn an_event_is_one_line_and_comes_back_from_it() {
        let it = event("two\nlines, \u{1F6F0}");
        let line = it.to_line();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(NodeEvent::from_line(&line), Ok(it));
        assert!(NodeEvent::from_line(&line[..line.len() / 2]).is_err());
    }

    #[test]
    fn texts_of_any_length_fit_a_line() {
        let long = "\u{1F6F0}\u{1}".repeat(10_000);
        let mut it = event(&long);
        it.subject = long.clone();
        it.cause.as_mut().unwrap().subject = long.clone();
        it.data.insert("x".to_owned(), Value::from(long.repeat(10)));
        let it = it.bounded();
        assert!(it.sentence.len() <= SENTENCE_MAX && it.subject.len() <= SUBJECT_MAX);
        assert!(it.to_line().len() <= NodeEvent::LINE_MAX);
        assert!(NodeEvent::from_line(&it.to_line()).is_ok());
    }

    #[test]
    fn the_reference_has_each_kind_with_its_words() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/events.md");
        let page = std::fs::read_to_string(path).unwrap();
        for kind in EventKind::ALL {
            let row = format!("| `{kind}` | {} | {} |", kind.severity(), kind.meaning());
            assert!(page.contains(&row), "docs/reference/events.md lacks: {row}");
        }
    }
}
