//! A station's channels: the sources of downlinks, and their settings.

use crate::channel_error::{ChannelError, LEAST_RECORDING, LONGEST_SELECT_WINDOW};
use crate::feeds::{ChannelInputs, ResolvedInput};
use crate::input::{Input, InputFormat, SoftForm};
use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_ccsds::select::MAX_INPUTS;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

section! {
    /// A downlink, from one input or several. A station has at least one channel.
    "[[channel]]" Channel checked by Channel::check {
        /// The channel's name in status output and in the accounts of products.
        name: Name => required,
        /// The data source: `tcp-listen:ADDR`, `tcp:HOST:PORT`, `udp:ADDR`, `file:PATH`, `stdin`,
        /// or `folder`: the files of the `[[folder]]` that names this channel. Give either this
        /// key or `inputs`.
        input: Input => optional,
        /// Up to 16 inputs of the same downlink (two antennas, two receivers). The station takes
        /// the better copy of each frame, once and in order. Write a list of values as for `input`,
        /// or tables as below.
        inputs: ChannelInputs => optional,
        /// With several inputs: the longest time that a frame waits for a better copy and for the
        /// frames before it, at most 10 s. A frame that only one input has is lost if it arrives
        /// later than this. 50 ms: the largest difference between antennas of one station. Files
        /// wait for each other instead.
        select_window: Duration => "50 ms",
        /// The data format: `auto`, `bits`, `cadus`, `frames`; a demodulator's symbols before the
        /// Viterbi decoder, as `symbols` (one bit each) or `soft` (one byte each); or `vita49`:
        /// VITA 49 or DIFI packets that carry bits or symbols. `auto` detects all except `soft` and
        /// `vita49`.
        format: InputFormat => "auto",
        /// With `soft`: `signed`, positive for a one, the magnitude is the confidence; or `offset`,
        /// above 127 for a one.
        soft: SoftForm => "signed",
        /// A mission's name, or a file ending in `.toml`. Default: the program identifies the
        /// mission from the data.
        mission: MissionRef => optional,
        /// How long the input may be silent before the contact closes. Two seconds are longer than
        /// a receiver needs to reacquire its carrier, and delay products no longer than that. A
        /// frame that a pause cut is complete when its rest arrives. Time in which the station did
        /// not run does not count as silence.
        silence: Duration => "2 s",
        /// For `file:` inputs: plays the file at this rate, like a live downlink. Default: as fast
        /// as the station accepts it.
        rate: Rate => optional,
        /// Sends the Reed-Solomon check symbols too (an eighth more bytes), for archives that keep
        /// CADUs as received.
        keep_check_symbols: bool => "false",
        /// Records every byte as received, under `raw/` in the node's state folder, indexed by
        /// time: for `skyhaul replay` and for decoding again. A full disk ends the recording, never
        /// the capture.
        record_raw: bool => "false",
        /// The largest size of an input's recording on disk, at least 128 MiB. The oldest files of
        /// 64 MiB are removed first. 64 GB: nine hours of 15 Mbit/s.
        raw_size: ByteCount => "64 GB",
        /// How long a recording is kept. A week is longer than a gap stays unnoticed.
        raw_retention: Duration => "7 d",
        /// Compresses blocks before they are stored and sent: `auto` as far as the line is slower
        /// than the processor; `fast`, `normal` or `thorough` always with that effort; `off` never.
        /// Compression is lossless.
        compress: Compress => "auto",
    }
}

/// How much effort goes into making blocks smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compress {
    /// As much as pays.
    Auto,
    /// None.
    Off,
    /// Little: gigabits a second.
    Fast,
    /// Some: a gigabit a second.
    Normal,
    /// Much: hundreds of megabits a second.
    Thorough,
}

/// Which mission a channel carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissionRef {
    /// One of the missions that the program or the configuration's `missions` hold.
    Named(String),
    /// A mission file.
    File(PathBuf),
}

impl Channel {
    fn check(&self) -> Result<(), ChannelError> {
        self.check_feeds()?;
        if self.record_raw && self.input == Some(Input::Folder) {
            return Err(ChannelError::RecordedFolder(self.name.clone()));
        }
        if self.select_window > LONGEST_SELECT_WINDOW {
            return Err(ChannelError::LongSelectWindow(self.name.clone(), self.select_window));
        }
        if self.raw_size < LEAST_RECORDING {
            return Err(ChannelError::SmallRecording(self.name.clone(), self.raw_size));
        }
        match (self.is_files(), self.rate) {
            (true, Some(Rate::ZERO)) => Err(ChannelError::StandingStill(self.name.clone())),
            (true, _) | (_, None) => Ok(()),
            (false, Some(_)) => Err(ChannelError::RateOfLiveInput(self.name.clone())),
        }
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        self.resolve_feeds(base);
        if let Some(MissionRef::File(path)) = &mut self.mission {
            crate::from_base(base, path);
        }
    }

    /// Its inputs, one or more, in the order of the configuration.
    pub fn feeds(&self) -> Vec<ResolvedInput> {
        let one = self.input.iter().map(|input| ResolvedInput {
            name: "1".to_owned(),
            input: input.clone(),
            format: self.format,
            soft: self.soft,
        });
        let several =
            self.inputs.iter().flat_map(ChannelInputs::entries).zip(1..).map(|(entry, number)| {
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

    fn check_feeds(&self) -> Result<(), ChannelError> {
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
        if self.inputs.is_some() && feeds.iter().any(|feed| feed.input == Input::Folder) {
            return Err(ChannelError::FolderAmongInputs(self.name.clone()));
        }
        let is_file = |feed: &ResolvedInput| feed.input.is_file();
        if feeds.iter().any(is_file) && !feeds.iter().all(is_file) {
            return Err(ChannelError::FileBesideLive(self.name.clone()));
        }
        Ok(())
    }

    fn resolve_feeds(&mut self, base: &Path) {
        let several = self
            .inputs
            .iter_mut()
            .flat_map(ChannelInputs::entries_mut)
            .map(|entry| &mut entry.input);
        for input in self.input.iter_mut().chain(several) {
            if let Input::File(path) = input {
                crate::from_base(base, path);
            }
        }
    }
}

impl FromStr for Compress {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            "fast" => Ok(Self::Fast),
            "normal" => Ok(Self::Normal),
            "thorough" => Ok(Self::Thorough),
            _ => Err(ChannelError::Compress(text.to_owned())),
        }
    }
}

impl FromStr for MissionRef {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        if text.is_empty() {
            return Err(ChannelError::Mission);
        }
        let path = Path::new(text);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Ok(Self::File(path.to_owned()));
        }
        Ok(Self::Named(text.to_owned()))
    }
}

impl std::fmt::Display for MissionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

from_text!(Compress, MissionRef);
