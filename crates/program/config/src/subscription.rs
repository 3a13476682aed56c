//! `[[subscription]]`: which contacts and products go to which destinations, and how.

use crate::destination::Destination;
use crate::destination_names::SubscribedNames;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::{Name, from_text};
use crate::product_terms::{
    AnswerEntry, FileTypesEntry, ItemFilter, OrderName, OutletFolder, RecordForm, RetryEntry,
    VersionsName,
};
use crate::section::section;
use crate::time::ConfigTime;
use skyhaul_dispatch::{ChecksumKind, PromiseRule};
use skyhaul_units::Duration;
use std::str::FromStr;

section! {
    /// Which contacts or products go to which destinations, and how. Up to 256.
    ///
    /// Contacts: for each destination the first subscription that takes the contact and names the
    /// destination decides. Contacts of this node that no subscription takes go to every node
    /// among the destinations, settled by `all`, in the first class. A contact has its mission as
    /// soon as it begins: nothing is sent before that.
    ///
    /// Products: each subscription that takes a product delivers it to each of its destinations.
    /// Two subscriptions that may write files of one name to one destination are refused.
    "[[subscription]]" SubscriptionEntry applies at_once checked by SubscriptionEntry::check {
        /// What is subscribed to: `contacts` or `products`.
        of: ItemKind => required,
        /// Of products, where it is needed: the name by which commands and status name it.
        name: Name => optional,
        /// The names of the destinations, one or a list. Of contacts, `[]` is none: such contacts
        /// are captured and not sent, whatever later subscriptions say; shadows get them. Default:
        /// of contacts, every node among the destinations; of products, every other destination.
        to: SubscribedNames => optional,
        /// Of products: only those that this filter takes, as CQL2 text, such as `"mission = 'aqua'
        /// AND kind = 'session'"`; the properties are those of `skyhaul catalogue search`. Default:
        /// all.
        filter: ItemFilter => optional,
        /// Of products: the folder below the destination that gets the files. It is created if it
        /// does not exist. Default: the destination itself.
        into: OutletFolder => "",
        /// Of contacts: only those of these missions, by the names in the mission files. Default:
        /// all.
        mission: Vec<String> => optional,
        /// Of contacts: only those that these nodes captured; this node passes on what it receives
        /// of them. Those of a node that does not connect here come through one that does. A
        /// contact that began is passed on to its end, whatever changes meanwhile. Default: this
        /// node.
        station: Vec<Name> => optional,
        /// Of contacts: only those of these channels. Default: all.
        channel: Vec<Name> => optional,
        /// Whose arrival counts: `all` destinations, `any` of them, or the `first` one of `to`. Of
        /// contacts it says when the spool may free data for room on its disk; data that a
        /// destination lacks is freed only where the disk is full. Where subscriptions of one
        /// contact differ, `all` comes before `first`, and `first` before `any`. Of products it
        /// says when the `deadline` is kept; each destination gets the product in any case.
        settle: SettleName => "all",
        /// Of contacts: their class. Default: the first leaf class.
        class: Name => optional,
        /// Of contacts: their priority within the class, 0 (the most important) to 7, for the
        /// policies that use it.
        priority: u8 => "1",
        /// The time by which data should be at the destination: of contacts after capture, of
        /// products after publication. A shorter deadline of contacts is sent sooner. Status and
        /// log name late data; it is still sent.
        deadline: Duration => optional,
        /// Of products: which goes first where several wait for a destination: the `newest`, the
        /// `oldest`, or the one with the nearest `deadline`. Subscriptions of one destination take
        /// turns.
        order: OrderName => "newest",
        /// Of products: the `latest` version, an earlier one that has not begun is replaced; `all`;
        /// or the `first`, later ones are not sent.
        versions: VersionsName => "latest",
        /// Of products: how long one that is incomplete waits for missing data. 6 hours are four
        /// orbits. Default: it goes at once.
        patience: Duration => optional,
        /// Of products: the delivery record that follows the files: `sips`, PVL text as the science
        /// data processing systems read it, or `edos`, binary, both with a signal file; `cnm`, a
        /// cloud notification message, which is answered by one; or `none`.
        record: RecordForm => "none",
        /// The checksum in `sips` records: `md5` or `cksum`, as the utilities of these names print
        /// them; in `cnm` records: `md5` or `sha256`.
        checksum: ChecksumKind => "md5",
        /// The types of files in `sips` records: a table `[subscription.file_types]`.
        file_types: FileTypesEntry => optional,
        /// The version of the collection at the consumer. `sips` and `cnm` records give it with the
        /// collection's name, which is that of the product.
        data_version: Name => "001",
        /// The host from which the consumer fetches, by the consumer's name for it. Default: `sips`
        /// records name no host, and the consumer uses the host where it found the record.
        node_name: Name => optional,
        /// How long the files stay for the consumer, as stated in delivery records.
        expires: Duration => "7 d",
        /// The notice that the consumer answers a delivery record with: a table
        /// `[subscription.answer]`. Default: none is awaited; one that comes counts.
        answer: AnswerEntry => optional,
        /// When failed attempts are repeated: a table `[subscription.retry]`.
        retry: RetryEntry => optional,
        /// Of products: also those that were published since this time. Default: those that are
        /// published from now on.
        since: ConfigTime => optional,
    }
}

/// What is subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// Contacts.
    Contacts,
    /// Products.
    Products,
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
            "products" => Ok(Self::Products),
            _ => Err(format!("`{text}` cannot be subscribed to; write contacts or products")),
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
            _ => Err(format!("`{text}` is not a rule of `settle`; write all, any or first")),
        }
    }
}
from_text!(ItemKind, SettleName);

impl SettleName {
    /// As deliveries of products use it.
    pub const fn promise(self) -> PromiseRule {
        match self {
            Self::All => PromiseRule::All,
            Self::Any => PromiseRule::Any,
            Self::First => PromiseRule::First,
        }
    }
}

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
        if let Some(key) = self.foreign_key() {
            let (own, other) = match self.of {
                ItemKind::Contacts => ("contacts", "products"),
                ItemKind::Products => ("products", "contacts"),
            };
            let help = match key {
                "mission" | "station" | "channel" => {
                    "choose products by `filter`, such as \"mission = 'aqua'\""
                }
                _ => "remove it",
            };
            return Err(format!(
                "a subscription to {own} has the key `{key}`, which is for {other}; {help}"
            ));
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

    /// The first key that it has although it is for another kind of item.
    fn foreign_key(&self) -> Option<&'static str> {
        let of_contacts = [
            ("mission", self.mission.is_some()),
            ("station", self.station.is_some()),
            ("channel", self.channel.is_some()),
            ("class", self.class.is_some()),
            ("priority", self.priority != USUAL_PRIORITY),
        ];
        let of_products = [
            ("name", self.name.is_some()),
            ("filter", self.filter.is_some()),
            ("into", self.into != OutletFolder::default()),
            ("order", self.order != OrderName::Newest),
            ("versions", self.versions != VersionsName::Latest),
            ("patience", self.patience.is_some()),
            ("record", self.record != RecordForm::None),
            ("checksum", self.checksum != ChecksumKind::Md5),
            ("file_types", self.file_types.is_some()),
            ("data_version", self.data_version.as_str() != USUAL_DATA_VERSION),
            ("expires", self.expires != USUAL_EXPIRY),
            ("node_name", self.node_name.is_some()),
            ("answer", self.answer.is_some()),
            ("retry", self.retry.is_some()),
            ("since", self.since.is_some()),
        ];
        let foreign: &[_] = match self.of {
            ItemKind::Contacts => &of_products,
            ItemKind::Products => &of_contacts,
        };
        foreign.iter().find(|(_, is_given)| *is_given).map(|(key, _)| *key)
    }

    /// The names of its destinations, where it has some.
    pub fn names(&self) -> Option<&[Name]> {
        self.to.as_ref().map(|to| &to.0[..])
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
        destination.takes_contacts()
            && self.names().is_none_or(|to| to.contains(&destination.peer.name))
    }

    /// Whether it takes every contact that `other` takes, for every destination of that.
    fn covers(&self, other: &Self) -> bool {
        fn within<T: PartialEq>(wide: Option<&[T]>, narrow: Option<&[T]>) -> bool {
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
            && within(self.channel.as_deref(), other.channel.as_deref())
            && within(self.mission.as_deref(), other.mission.as_deref())
            && (self.is_to_nobody() || within(self.names(), other.names()))
    }

    /// Whether the contacts that it takes are not sent.
    fn is_to_nobody(&self) -> bool {
        self.names().is_some_and(<[Name]>::is_empty)
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
    let takes = |place: &usize| destinations.get(*place).is_some_and(Destination::takes_contacts);
    let every = || -> Vec<usize> { (0..destinations.len()).filter(takes).collect() };
    if taking.is_empty() {
        let is_own = label.station == own;
        let to = if is_own { every() } else { Vec::new() };
        return ContactRoute { settle: SettleName::All, to };
    }
    let (mut to, mut settle) = (Vec::new(), SettleName::Any);
    for entry in taking.iter().take_while(|entry| !entry.is_to_nobody()) {
        let named: Vec<usize> = match entry.names() {
            None => every(),
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
    let places = contact_places(config);
    for (index, (entry, nth)) in subscriptions.iter().zip(places.iter().copied()).enumerate() {
        let lists = [
            ("to", "destination", entry.names(), Some(known.destinations)),
            ("channel", "channel", entry.channel.as_deref(), Some(known.channels)),
            ("station", "node", entry.station.as_deref(), known.stations),
        ];
        for (key, kind, list, known) in lists {
            let Some(known) = known else { continue };
            // Other stations have channels that this node does not know.
            if key == "channel" && entry.station.is_some() {
                continue;
            }
            let unknown = list.into_iter().flatten().find(|name| !known.contains(&name.as_str()));
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
        if let Some(earlier) = subscriptions[..index].iter().position(|other| other.covers(entry)) {
            let place = KeyPlace { heading: HEADING, nth, key: HEADING };
            let what = format!(
                "subscription {} has no effect: subscription {} takes the same contacts for the \
                same destinations",
                nth + 1,
                places[earlier] + 1
            );
            let help = "remove one of the two, or write the narrower one first";
            return Err(ConfigError::at(config, place, what, help));
        }
    }
    Ok(())
}

/// The places of the subscriptions to contacts among all.
pub(super) fn contact_places(config: ConfigText<'_>) -> Vec<usize> {
    config.places("subscription", "of", |of| of == "contacts")
}

/// The names that a subscription can use.
pub(super) struct KnownNames<'a> {
    pub destinations: &'a [&'a str],
    pub channels: &'a [&'a str],
    /// This node and the others whose contacts come here; none where that may be any.
    pub stations: Option<&'a [&'a str]>,
}

pub(super) const HEADING: &str = "[[subscription]]";
pub(super) const MAX_SUBSCRIPTIONS: usize = 256;
/// The default of `priority`.
const USUAL_PRIORITY: u8 = 1;
/// As the keys above have them.
const USUAL_DATA_VERSION: &str = "001";
const USUAL_EXPIRY: Duration = Duration::from_secs(7 * 86_400);
/// As many as classes have.
const LAST_PRIORITY: u8 = 7;

#[cfg(test)]
mod tests;
