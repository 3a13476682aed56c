//! The properties of items that filters name.

use crate::item::Item;
use skyhaul_units::Utc;

/// A property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// The name of the item without version.
    Id,
    /// The name of the item with its version: `NAME-v2`.
    VersionedId,
    /// The collection: mission and product.
    Collection,
    /// What the item is: `contact`, `session`, `time`, `expedited` or `file`.
    Kind,
    /// The mission.
    Mission,
    /// The stations whose data it has; a comparison holds if it does for any of them.
    Station,
    /// The product of the mission.
    Product,
    /// The applications whose packets it has; a comparison holds if it does for any of them.
    Apid,
    /// The version, from 1.
    Version,
    /// The time of the first packet.
    Start,
    /// The time of the last packet.
    End,
    /// When it was published.
    Published,
    /// The bytes of its files.
    Size,
    /// Packets that are missing from it.
    Missing,
    /// `present`, `removing` or `removed`.
    State,
}

/// What the values of a property are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyType {
    /// Text.
    Text,
    /// A number.
    Number,
    /// An instant.
    Time,
}

/// A value of a property.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValue {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// An instant.
    Time(Utc),
}

impl Property {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Id,
        Self::VersionedId,
        Self::Collection,
        Self::Kind,
        Self::Mission,
        Self::Station,
        Self::Product,
        Self::Apid,
        Self::Version,
        Self::Start,
        Self::End,
        Self::Published,
        Self::Size,
        Self::Missing,
        Self::State,
    ];

    /// Its name in filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::VersionedId => "versioned_id",
            Self::Collection => "collection",
            Self::Kind => "kind",
            Self::Mission => "mission",
            Self::Station => "station",
            Self::Product => "product",
            Self::Apid => "apid",
            Self::Version => "version",
            Self::Start => "start_datetime",
            Self::End => "end_datetime",
            Self::Published => "published",
            Self::Size => "size",
            Self::Missing => "missing",
            Self::State => "state",
        }
    }

    /// The type of its values.
    pub const fn of_type(self) -> PropertyType {
        match self {
            Self::Apid | Self::Version | Self::Size | Self::Missing => PropertyType::Number,
            Self::Start | Self::End | Self::Published => PropertyType::Time,
            _ => PropertyType::Text,
        }
    }

    /// Whether an item may have several values of it.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Station | Self::Apid)
    }

    /// The property of this name, or of the name that STAC has for it.
    pub fn named(name: &str) -> Option<Self> {
        match name.strip_prefix("properties.").unwrap_or(name) {
            "platform" => Some(Self::Mission),
            "datetime" => Some(Self::Start),
            "created" | "updated" => Some(Self::Published),
            "product:type" => Some(Self::Product),
            "skyhaul:kind" => Some(Self::Kind),
            "skyhaul:station" => Some(Self::Station),
            "skyhaul:apid" => Some(Self::Apid),
            "skyhaul:missing" => Some(Self::Missing),
            name => Self::ALL.into_iter().find(|property| property.name() == name),
        }
    }

    /// The values of an item; none where it has none.
    pub fn of(self, item: &Item) -> Vec<PropertyValue> {
        let text = |text: &str| vec![PropertyValue::Text(text.to_owned())];
        let number = |number: u64| vec![PropertyValue::Number(number as f64)];
        let time = |time: Option<Utc>| time.into_iter().map(PropertyValue::Time).collect();
        match self {
            Self::Id => text(&item.name),
            Self::VersionedId => text(&item.versioned_id()),
            Self::Collection => text(&item.collection()),
            Self::Kind => text(item.form.name()),
            Self::Mission => text(&item.mission),
            Self::Station => item.stations.iter().flat_map(|station| text(station)).collect(),
            Self::Product => text(&item.product),
            Self::Apid => item.apids.iter().flat_map(|apid| number(u64::from(*apid))).collect(),
            Self::Version => number(u64::from(item.version)),
            Self::Start => time(item.start),
            Self::End => time(item.end),
            Self::Published => time(Some(item.published)),
            Self::Size => number(item.size()),
            Self::Missing => number(item.missing),
            Self::State => text(item.state.name()),
        }
    }
}

impl PropertyType {
    /// How its values are written in a filter.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Text => "text such as 'aqua'",
            Self::Number => "a number such as 826",
            Self::Time => "a time such as TIMESTAMP('2026-11-23T06:00:00Z')",
        }
    }
}

impl PropertyValue {
    /// Its type.
    pub const fn of_type(&self) -> PropertyType {
        match self {
            Self::Text(_) => PropertyType::Text,
            Self::Number(_) => PropertyType::Number,
            Self::Time(_) => PropertyType::Time,
        }
    }

    /// Its order beside a value of the same type; none beside another.
    pub fn order(&self, other: &Self) -> Option<core::cmp::Ordering> {
        match (self, other) {
            (Self::Text(own), Self::Text(other)) => Some(own.cmp(other)),
            (Self::Number(own), Self::Number(other)) => own.partial_cmp(other),
            (Self::Time(own), Self::Time(other)) => Some(own.cmp(other)),
            _ => None,
        }
    }
}

impl core::fmt::Display for PropertyValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Number(number) => write!(f, "{number}"),
            Self::Time(time) => write!(f, "TIMESTAMP('{time}')"),
        }
    }
}
