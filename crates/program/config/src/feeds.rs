//! The inputs of a channel: one, or several of the same downlink of which the better copy of each
//! frame is taken.

use crate::input::{Input, InputFormat, SoftForm};
use crate::name::Name;
use crate::section::section;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

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

/// An input of a channel, with the defaults of the channel filled in.
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

impl ChannelInputs {
    /// The inputs.
    pub fn entries(&self) -> &[ChannelInput] {
        &self.0
    }

    /// The inputs, to be changed.
    pub(super) fn entries_mut(&mut self) -> &mut [ChannelInput] {
        &mut self.0
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
    use crate::Channel;

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
