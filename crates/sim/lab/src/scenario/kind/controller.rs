//! A controller as a scenario names it.

use serde::de::{
    Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer,
};
use skyhaul_congestion::{ControllerConfig, LineConfig};
use skyhaul_units::Rate;

/// By name alone, with everything at its default, or a table with the controller's own keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// `line`: the declared rate is the cell's.
    Declared,
    /// Any controller with its parameters.
    Config(ControllerConfig),
}

impl Choice {
    /// The controller for a line of `rate`.
    pub fn config(self, rate: Rate) -> ControllerConfig {
        match self {
            Self::Declared => ControllerConfig::Line(LineConfig::declared(rate)),
            Self::Config(config) => config,
        }
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Choice;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a controller's name, or a table with its `kind`")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Choice, E> {
        if name == "line" {
            return Ok(Choice::Declared);
        }
        let table =
            toml::Table::from_iter([("kind".to_owned(), toml::Value::String(name.to_owned()))]);
        ControllerConfig::deserialize(table)
            .map(Choice::Config)
            .map_err(|error| E::custom(error.message()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice, A::Error> {
        ControllerConfig::deserialize(MapAccessDeserializer::new(map)).map(Choice::Config)
    }
}
