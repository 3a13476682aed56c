//! `[[subscription]]`: which contacts go to which destinations, and how.

use crate::destination::Destination;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_units::Duration;
use std::str::FromStr;

section! {
    /// Which contacts go to which destinations, and how. For each destination the first
    /// subscription that takes the contact and names the destination decides. Contacts of this
    /// node that no subscription takes go to every destination, settled by `all`, in the first
    /// class. A contact has its mission as soon as it begins: nothing is sent before that. Up to
    /// 256.
    "[[subscription]]" SubscriptionEntry applies at_once checked by SubscriptionEntry::check {
        /// What is subscribed to: `contacts`.
        of: ItemKind => required,
        /// The names of the destinations; `[]` is none: such contacts are captured and not sent,
        /// whatever later subscriptions say. Shadows get them. Default: every destination.
        to: Vec<Name> => optional,
        /// Only contacts of these missions, by the names in the mission files. Default: all.
        mission: Vec<String> => optional,
        /// Only contacts that these nodes captured; this node passes on what it receives of them.
        /// Those of a node that does not connect here come through one that does. A contact that
        /// began is passed on to its end, whatever changes meanwhile. Default: this node.
        station: Vec<Name> => optional,
        /// Only contacts of these channels. Default: all.
        channel: Vec<Name> => optional,
        /// When the spool may free data for room on its disk: `all`, every destination of the
        /// contact has it; `any`, one of them has; `first`, the first one of `to` has. Data that
        /// a destination lacks is freed only where the disk is full. Where subscriptions of one
        /// contact differ, `all` comes before `first`, and `first` before `any`.
        settle: SettleName => "all",
        /// The class of these contacts. Default: the first leaf class.
        class: Name => optional,
        /// Their priority within the class, 0 (the most important) to 7, for the policies that use
        /// it.
        priority: u8 => "1",
        /// The time after capture by which data should be at the destination. A shorter deadline is
        /// sent sooner, and status and log forecast late data. Late data is still sent.
        deadline: Duration => optional,
    }
}

/// What is subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// Contacts.
    Contacts,
}

/// When the spool may free a contact's data for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettleName {
    /// One destination has it.
    Any,
    /// The first destination has it.
    First,
    /// Every destination has it.
    All,
}

/// What a subscription is matched against.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ContactLabel {
    /// The node that captured it.
    pub station: String,
    /// The channel there.
    pub channel: String,
    /// The name of its mission.
    pub mission: String,
}

/// Where the contacts with one label go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactRoute {
    /// When their data may be freed for room.
    pub settle: SettleName,
    /// The indexes of the destinations; the first of them first.
    pub to: Vec<usize>,
}

impl FromStr for ItemKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "contacts" => Ok(Self::Contacts),
            _ => Err(format!("`{text}` cannot be subscribed to; write contacts")),
        }
    }
}
impl FromStr for SettleName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "any" => Ok(Self::Any),
            "first" => Ok(Self::First),
            _ => Err(format!("`{text}` is not a rule for freeing data; write all, any or first")),
        }
    }
}
from_text!(ItemKind, SettleName);

impl SubscriptionEntry {
    fn check(&self) -> Result<(), String> {
        if self.priority > LAST_PRIORITY {
            return Err(format!(
                "a subscription has priority {}; write one from 0, the most important, to \
                {LAST_PRIORITY}",
                self.priority
            ));
        }
        if self.deadline == Some(Duration::ZERO) {
            return Err(
                "a subscription has a deadline of zero, all data would be late; write one \
                such as \"30 s\""
                    .to_owned(),
            );
        }
        for (key, is_empty) in [
            ("mission", self.mission.as_ref().is_some_and(Vec::is_empty)),
            ("station", self.station.as_ref().is_some_and(Vec::is_empty)),
            ("channel", self.channel.as_ref().is_some_and(Vec::is_empty)),
        ] {
            if is_empty {
                return Err(format!(
                    "a subscription has an empty list `{key}` and takes nothing; name one, or \
                    remove the key"
                ));
            }
        }
        Ok(())
    }

    /// Whether it takes the contacts with this label, at the node `own`.
    pub fn takes(&self, label: &ContactLabel, own: &str) -> bool {
        let station = match &self.station {
            None => label.station == own,
            Some(stations) => names(stations, &label.station),
        };
        station
            && self.channel.as_ref().is_none_or(|channels| names(channels, &label.channel))
            && self.mission.as_ref().is_none_or(|missions| missions.contains(&label.mission))
    }

    /// Whether it names the destination.
    pub fn is_to(&self, destination: &Destination) -> bool {
        self.to.as_ref().is_none_or(|to| to.contains(&destination.peer.name))
    }

    /// Whether it takes every contact that `other` takes, for every destination of that.
    fn covers(&self, other: &Self) -> bool {
        fn within<T: PartialEq>(wide: Option<&Vec<T>>, narrow: Option<&Vec<T>>) -> bool {
            match (wide, narrow) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(wide), Some(narrow)) => narrow.iter().all(|one| wide.contains(one)),
            }
        }
        // Without a key the station is this node, and not every one.
        let stations = match (&self.station, &other.station) {
            (None, None) => true,
            (Some(wide), Some(narrow)) => narrow.iter().all(|one| wide.contains(one)),
            (None, Some(_)) | (Some(_), None) => false,
        };
        stations
            && within(self.channel.as_ref(), other.channel.as_ref())
            && within(self.mission.as_ref(), other.mission.as_ref())
            && (self.is_to_nobody() || within(self.to.as_ref(), other.to.as_ref()))
    }

    /// Whether the contacts that it takes are not sent.
    fn is_to_nobody(&self) -> bool {
        self.to.as_ref().is_some_and(Vec::is_empty)
    }
}

fn names(list: &[Name], one: &str) -> bool {
    list.iter().any(|name| name.as_str() == one)
}

/// The subscription that decides how a destination gets the contacts with this label; none where
/// none takes them, or none for this destination.
pub(super) fn deciding<'a>(
    subscriptions: &'a [SubscriptionEntry],
    destination: &Destination,
    label: &ContactLabel,
    own: &str,
) -> Option<&'a SubscriptionEntry> {
    let mut taking = subscriptions.iter().filter(|entry| entry.takes(label, own));
    if destination.entry.shadow {
        return taking.next();
    }
    taking.find(|entry| entry.is_to(destination) || entry.is_to_nobody())
}

/// Where the contacts with this label go, from the node `own`.
pub(super) fn route(
    subscriptions: &[SubscriptionEntry],
    destinations: &[Destination],
    label: &ContactLabel,
    own: &str,
) -> ContactRoute {
    let taking: Vec<&SubscriptionEntry> =
        subscriptions.iter().filter(|entry| entry.takes(label, own)).collect();
    if taking.is_empty() {
        let is_own = label.station == own;
        let to = if is_own { (0..destinations.len()).collect() } else { Vec::new() };
        return ContactRoute { settle: SettleName::All, to };
    }
    let (mut to, mut settle) = (Vec::new(), SettleName::Any);
    for entry in taking.iter().take_while(|entry| !entry.is_to_nobody()) {
        let named: Vec<usize> = match &entry.to {
            None => (0..destinations.len()).collect(),
            Some(names) => names
                .iter()
                .filter_map(|name| destinations.iter().position(|one| one.peer.name == *name))
                .collect(),
        };
        let new: Vec<usize> = named.into_iter().filter(|place| !to.contains(place)).collect();
        if !new.is_empty() {
            settle = settle.max(entry.settle);
        }
        to.extend(new);
    }
    let shadows = destinations.iter().enumerate().filter(|(_, one)| one.entry.shadow);
    let shadows: Vec<usize> =
        shadows.map(|(place, _)| place).filter(|place| !to.contains(place)).collect();
    to.extend(shadows);
    ContactRoute { settle, to }
}

/// Checks that each subscription names destinations, channels and stations that are there, and
/// that each decides something.
pub(super) fn check(
    config: ConfigText<'_>,
    subscriptions: &[SubscriptionEntry],
    known: &KnownNames<'_>,
) -> Result<(), ConfigError> {
    if subscriptions.len() > MAX_SUBSCRIPTIONS {
        let count = subscriptions.len();
        return Err(ConfigError::many(config, HEADING, count, MAX_SUBSCRIPTIONS));
    }
    for (nth, entry) in subscriptions.iter().enumerate() {
        let lists = [
            ("to", "destination", &entry.to, Some(known.destinations)),
            ("channel", "channel", &entry.channel, Some(known.channels)),
            ("station", "node", &entry.station, known.stations),
        ];
        for (key, kind, list, known) in lists {
            let Some(known) = known else { continue };
            // Other stations have channels that this node does not know.
            if key == "channel" && entry.station.is_some() {
                continue;
            }
            let unknown = list.iter().flatten().find(|name| !known.contains(&name.as_str()));
            if let Some(unknown) = unknown {
                let what = format!("there is no {kind} `{unknown}` for a subscription");
                let help = match known {
                    [] => format!("add one, or remove `{key}`"),
                    known => format!("write one of {}", known.join(", ")),
                };
                let place = KeyPlace { heading: HEADING, nth, key };
                return Err(ConfigError::at(config, place, what, &help));
            }
        }
        if let Some(earlier) = subscriptions[..nth].iter().position(|other| other.covers(entry)) {
            let place = KeyPlace { heading: HEADING, nth, key: HEADING };
            let what = format!(
                "subscription {} has no effect: subscription {} takes the same contacts for the \
                same destinations",
                nth + 1,
                earlier + 1
            );
            let help = "remove one of the two, or write the narrower one first";
            return Err(ConfigError::at(config, place, what, help));
        }
    }
    Ok(())
}

/// The names that a subscription can use.
pub(super) struct KnownNames<'a> {
    pub destinations: &'a [&'a str],
    pub channels: &'a [&'a str],
    /// This node and the others whose contacts come here; none where that may be any.
    pub stations: Option<&'a [&'a str]>,
}

const HEADING: &str = "[[subscription]]";
const MAX_SUBSCRIPTIONS: usize = 256;
/// As many as classes have.
const LAST_PRIORITY: u8 = 7;

#[cfg(test)]
mod tests;
