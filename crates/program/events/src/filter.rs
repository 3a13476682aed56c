//! Which events somebody wants: `alarm.raised`, `contact.*`, `*`, and how bad they are.

use crate::event::{EventKind, NodeEvent, Severity};
use serde::{Deserialize, Deserializer};
use std::str::FromStr;

/// Events of some kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// `*`, `group.*` or a kind.
    patterns: Vec<String>,
}

/// Why a filter takes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventFilterError {
    /// No event is like that.
    #[error(
        "there are no events `{0}`; write a kind of docs/reference/events.md, a group such as \
         `contact.*`, a severity such as `major+`, or `*`"
    )]
    Unknown(String),
    /// There is no pattern.
    #[error("a filter without a pattern takes no events; write `*` for all")]
    Empty,
    /// There are too many.
    #[error("a filter has up to 64 patterns")]
    Many,
}

const PATTERNS_MAX: usize = 64;

impl EventFilter {
    /// From its patterns.
    ///
    /// # Errors
    /// One takes nothing.
    pub fn new(patterns: Vec<String>) -> Result<Self, EventFilterError> {
        if patterns.is_empty() {
            return Err(EventFilterError::Empty);
        }
        if patterns.len() > PATTERNS_MAX {
            return Err(EventFilterError::Many);
        }
        for pattern in &patterns {
            let takes_one = EventKind::ALL.iter().any(|kind| takes(pattern, *kind));
            if !takes_one && least(pattern).is_none() {
                return Err(EventFilterError::Unknown(pattern.clone()));
            }
        }
        Ok(Self { patterns })
    }

    /// Whether it wants this event.
    pub fn wants(&self, event: &NodeEvent) -> bool {
        self.patterns.iter().any(|pattern| {
            takes(pattern, event.kind)
                || least(pattern).is_some_and(|least| event.severity >= least)
        })
    }
}

fn takes(pattern: &str, kind: EventKind) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(group) => group.ends_with('.') && kind.name().starts_with(group),
        None => kind.name() == pattern,
    }
}

/// The least severity that a pattern such as `major+` takes.
fn least(pattern: &str) -> Option<Severity> {
    Some(match pattern {
        "minor+" => Severity::Minor,
        "major+" => Severity::Major,
        "critical+" => Severity::Critical,
        _ => return None,
    })
}

impl FromStr for EventFilter {
    type Err = EventFilterError;

    /// Patterns with commas between them.
    fn from_str(text: &str) -> Result<Self, EventFilterError> {
        Self::new(text.split(',').map(|pattern| pattern.trim().to_owned()).collect())
    }
}

impl<'de> Deserialize<'de> for EventFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let patterns = Vec::<String>::deserialize(deserializer)?;
        Self::new(patterns).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_a_kind_a_group_a_severity_or_all() {
        for (patterns, contact, path, refused) in [
            ("*", true, true, true),
            ("contact.*", true, false, false),
            ("contact.opened, path.down", true, true, false),
            ("minor+", false, true, true),
            ("major+", false, false, true),
        ] {
            let filter: EventFilter = patterns.parse().unwrap();
            let wants = |kind: EventKind| {
                filter.wants(&NodeEvent {
                    number: 1,
                    time: String::new(),
                    node: String::new(),
                    kind,
                    severity: kind.severity(),
                    subject: String::new(),
                    sentence: String::new(),
                    cause: None,
                    data: serde_json::Map::new(),
                })
            };
            assert_eq!(wants(EventKind::ContactOpened), contact, "{patterns}");
            assert_eq!(wants(EventKind::PathDown), path, "{patterns}");
            assert_eq!(wants(EventKind::ConfigRefused), refused, "{patterns}");
        }
        for wrong in ["", "contact", "contact*", "contact.gone", "alarm.*, x", "info+"] {
            assert!(wrong.parse::<EventFilter>().is_err(), "{wrong}");
        }
    }
}
