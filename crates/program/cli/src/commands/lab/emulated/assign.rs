//! `KEY=VALUE`: a change of a link, with the keys of its file.

use serde_json::{Map, Value};
use skyhaul_emulator::EmulatedDirection;
use skyhaul_exit::{Exit, Failure};
use skyhaul_link::LinkConfig;
use std::str::FromStr;

/// One change of a direction of a link.
#[derive(Debug, Clone)]
pub struct Assignment {
    key: String,
    value: toml::Value,
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("it is KEY=VALUE, such as loss=5%")?;
        let (key, value) = (key.trim(), value.trim());
        // As in the file, or a word that is quoted in the file.
        let read = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
        let value = read.and_then(|mut table| table.remove("value"));
        let value = value.unwrap_or_else(|| {
            toml::Value::String(text[text.find('=').unwrap_or(0) + 1..].trim().to_owned())
        });
        let value = match (key, &value) {
            ("loss", toml::Value::String(probability)) => {
                let table = [("kind", "independent"), ("probability", probability.as_str())];
                toml::Value::Table(
                    table.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect(),
                )
            }
            _ => value,
        };
        Ok(Self { key: key.to_owned(), value })
    }
}

/// The direction with the change.
pub fn changed(
    link: &Value,
    direction: EmulatedDirection,
    assignments: &[Assignment],
) -> Result<LinkConfig, Failure> {
    let name = match direction {
        EmulatedDirection::Up => "up",
        EmulatedDirection::Down => "down",
    };
    let mut config: Map<String, Value> = link
        .pointer(&format!("/{name}/config"))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    // Earlier plans have run, or would begin again: the change has its own plan.
    config.remove("outages");
    config.remove("changes");
    for Assignment { key, value } in assignments {
        let value = serde_json::to_value(value).expect("TOML without dates fits into JSON");
        config.insert(key.clone(), value);
    }
    serde_json::from_value(Value::Object(config)).map_err(|error| {
        let what = format!("the link cannot be changed: {error}");
        Failure::new(Exit::Usage, &what, "docs/how-to/emulator.md shows every key")
    })
}
