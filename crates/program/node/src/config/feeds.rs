//! The inputs of a channel: one, or several of the same downlink of which the better copy of each
//! frame is taken.

use super::channel::{Channel, ChannelError, Input, InputFormat, SoftForm};
use super::name::Name;
use super::section::section;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use skyhaul_ccsds::select::MAX_INPUTS;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

section! {
    /// One of several inputs of the same downlink (two antennas, two receivers). If only `input` is
    /// needed, a list in `[[channel]]` is enough: `inputs = ["tcp-listen:127.0.0.1:5000",
    /// "tcp:receiver-2:5000"]`.
    "[[channel.inputs]]" ChannelInput {
        /// The data source, as for `input` of the channel. Files combine only with other files.
        input: Input => required,
        /// Its name in status output, accounts and recordings. Default: its number, from 1.
        name: Name => optional,
        /// Its data format. Default: that of the channel.
        format: InputFormat => optional,
        /// The coding of its soft symbols. Default: that of the channel.
        soft: SoftForm => optional,
    }
}

/// A channel's list of inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelInputs(Vec<ChannelInput>);

/// An input of a channel, with everything that the channel says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedInput {
    /// What it is called among the inputs of its channel.
    pub name: String,
    /// Where its data comes from.
    pub input: Input,
    /// What its data is.
    pub format: InputFormat,
    /// What its soft symbols mean.
    pub soft: SoftForm,
}

impl Channel {
    /// Its inputs, one or more, in the order of the configuration.
    pub fn feeds(&self) -> Vec<ResolvedInput> {
        let one = self.input.iter().map(|input| ResolvedInput {
            name: "1".to_owned(),
            input: input.clone(),
            format: self.format,
            soft: self.soft,
        });
        let several =
            self.inputs.iter().flat_map(|inputs| &inputs.0).zip(1..).map(|(entry, number)| {
                ResolvedInput {
                    name: entry
                        .name
                        .as_ref()
                        .map_or_else(|| number.to_string(), ToString::to_string),
                    input: entry.input.clone(),
                    format: entry.format.unwrap_or(self.format),
                    soft: entry.soft.unwrap_or(self.soft),
                }
            });
        one.chain(several).collect()
    }

    /// Its inputs in words.
    pub fn sources(&self) -> String {
        let sources: Vec<String> = self.feeds().iter().map(|feed| feed.input.to_string()).collect();
        sources.join(" and ")
    }

    /// Whether all of its inputs are files: then they can be held back, and read again.
    pub fn is_files(&self) -> bool {
        self.feeds().iter().all(|feed| feed.input.is_file())
    }

    pub(super) fn check_feeds(&self) -> Result<(), ChannelError> {
        match (&self.input, &self.inputs) {
            (Some(_), Some(_)) => return Err(ChannelError::BothInputs(self.name.clone())),
            (None, None) => return Err(ChannelError::NoInput(self.name.clone())),
            _ => {}
        }
        let feeds = self.feeds();
        if feeds.is_empty() || feeds.len() > MAX_INPUTS {
            return Err(ChannelError::InputCount(self.name.clone(), feeds.len()));
        }
        let (mut inputs, mut names) = (BTreeSet::new(), BTreeSet::new());
        for feed in &feeds {
            // A port that the system chooses is another one each time.
            if !inputs.insert(feed.input.to_string()) && !feed.input.is_any_port() {
                return Err(ChannelError::SameInput(self.name.clone(), feed.input.to_string()));
            }
            if !names.insert(&feed.name) {
                return Err(ChannelError::SameName(self.name.clone(), feed.name.clone()));
            }
            if feed.format == InputFormat::Vita49 && !matches!(feed.input, Input::Udp(_)) {
                return Err(ChannelError::NoDatagrams(self.name.clone()));
            }
        }
        let is_file = |feed: &ResolvedInput| feed.input.is_file();
        if feeds.iter().any(is_file) && !feeds.iter().all(is_file) {
            return Err(ChannelError::FileBesideLive(self.name.clone()));
        }
        Ok(())
    }

    pub(super) fn resolve_feeds(&mut self, base: &Path) {
        let several =
            self.inputs.iter_mut().flat_map(|inputs| &mut inputs.0).map(|entry| &mut entry.input);
        for input in self.input.iter_mut().chain(several) {
            if let Input::File(path) = input {
                super::from_base(base, path);
            }
        }
    }
}

impl Input {
    /// Whether it can be read again from any place.
    pub const fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Whether the system chooses its port.
    const fn is_any_port(&self) -> bool {
        matches!(self, Self::TcpListen(address) | Self::Udp(address) if address.port() == 0)
    }
}

/// A text or a table.
struct Entry(ChannelInput);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ChannelInput;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ChannelInput, E> {
                let input = Input::deserialize(StrDeserializer::<E>::new(text))?;
                Ok(ChannelInput { input, name: None, format: None, soft: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ChannelInput, A::Error> {
                ChannelInput::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Either).map(Self)
    }
}

impl<'de> Deserialize<'de> for ChannelInputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = ChannelInputs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list such as [\"tcp-listen:127.0.0.1:5000\", \"udp:0.0.0.0:5000\"]")
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut entries: A,
            ) -> Result<ChannelInputs, A::Error> {
                let mut inputs = Vec::new();
                while let Some(Entry(input)) = entries.next_element()? {
                    inputs.push(input);
                }
                Ok(ChannelInputs(inputs))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(keys: &str) -> Result<Channel, String> {
        let text = format!("name = \"x\"\n{keys}");
        toml::from_str(&text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_list_of_texts_and_tables_makes_inputs_with_names_and_formats() {
        let channel = channel(
            "format = \"cadus\"\ninputs = [\"tcp-listen:127.0.0.1:5000\", \
             { input = \"udp:0.0.0.0:5001\", name = \"south\", format = \"soft\", soft = \
             \"offset\" }]",
        );
        let feeds = channel.unwrap().feeds();
        let shown = |feed: &ResolvedInput| {
            (feed.name.clone(), feed.input.to_string(), feed.format, feed.soft)
        };
        assert_eq!(
            feeds.iter().map(shown).collect::<Vec<_>>(),
            [
                (
                    "1".to_owned(),
                    "tcp-listen:127.0.0.1:5000".to_owned(),
                    InputFormat::Cadus,
                    SoftForm::Signed
                ),
                (
                    "south".to_owned(),
                    "udp:0.0.0.0:5001".to_owned(),
                    InputFormat::Soft,
                    SoftForm::Offset
                ),
            ]
        );
        let tables = "[[inputs]]\ninput = \"file:a\"\n[[inputs]]\ninput = \"file:b\"\nname = \"b\"";
        assert_eq!(channel_names(tables), ["1", "b"]);
        assert_eq!(
            channel_names("inputs = [\"udp:127.0.0.1:0\", \"udp:127.0.0.1:0\"]"),
            ["1", "2"]
        );
    }

    fn channel_names(keys: &str) -> Vec<String> {
        channel(keys).unwrap().feeds().into_iter().map(|feed| feed.name).collect()
    }

    #[test]
    fn lists_that_contradict_themselves_are_refused_in_words() {
        let many: Vec<String> = (1..=17).map(|port| format!("\"udp:0.0.0.0:{port}\"")).collect();
        for (keys, words) in [
            ("", "neither `input` nor `inputs`"),
            ("input = \"stdin\"\ninputs = [\"stdin\"]", "both `input` and `inputs`"),
            ("inputs = []", "0 inputs"),
            (&*format!("inputs = [{}]", many.join(",")), "17 inputs"),
            ("inputs = [\"udp:0.0.0.0:1\", \"udp:0.0.0.0:1\"]", "`udp:0.0.0.0:1` twice"),
            (
                "inputs = [{ input = \"udp:0.0.0.0:1\", name = \"a\" }, { input = \"stdin\", name \
                = \"a\" }]",
                "two inputs named `a`",
            ),
            ("inputs = [\"file:a\", \"stdin\"]", "beside a live input"),
            ("inputs = [\"stdin\", { input = \"udp:0.0.0.0:1\", colour = \"red\" }]", "`colour`"),
            ("inputs = [{ input = \"stdin\", format = \"vita49\" }]", "no udp: input"),
            ("inputs = [\"nonsense\"]", "`nonsense` is not an input"),
            ("inputs = [7]", "integer"),
            ("inputs = \"stdin\"", "a list such as"),
            ("inputs = [\"stdin\"]\nrate = \"1 Mbit/s\"", "not read from a file"),
            ("input = \"stdin\"\nselect_window = \"11 s\"", "select_window"),
        ] {
            let refused = channel(keys).unwrap_err();
            assert!(refused.contains(words), "{keys}: {refused}");
        }
    }
}
