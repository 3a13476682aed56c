//! `[[stream]]` and `[peer.streams]`: constant-rate streams of a station that a centre gets, over
//! the session that they have.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::forwards::AsFlag;
use crate::name::Name;
use crate::section::section;
use skyhaul_streams::StreamFormat;
use skyhaul_streams_io::{
    self as streams, AllowedSinks, Options, SinkSpec, SourcePace, SourceSpec, StreamSource,
    StreamSourceError, groups,
};
use skyhaul_transport::{ClassId, ClassTree};
use skyhaul_units::{ByteCount, Duration};
use std::path::{Path, PathBuf};
use std::str::FromStr;

section! {
    /// A stream at a constant rate from this station to a sink of the centre, as with
    /// `skyhaul stream`. The centre's `[peer.streams]` must allow the sink. Up to 16.
    "[[stream]]" StreamEntry checked by StreamEntry::check {
        /// The source: a file, `udp://HOST:PORT` (numbered as by VTP and jive5ab; otherwise add
        /// `?plain`), `rtp://HOST:PORT` (with `?codec=h264`, `h265` or `any`, and `&clock=90000`),
        /// `shm:/NAME`, `zero:RATE` or `vdif:RATE`.
        from: AsFlag<SourceSpec> => required,
        /// The sink at the centre: a new file in the folder that the centre has for this station,
        /// `udp://HOST:PORT`, `rtp://HOST:PORT` (for a source `rtp://` only), `shm:/NAME` or
        /// `null`. `{utc}` in it becomes the start time of the stream, such as `20260314T150926Z`,
        /// so that each stream gets its own file.
        to: CentreSink => required,
        /// The name of the destination that gets the stream. Default: the first destination.
        destination: Name => optional,
        /// The stream format: `vdif`, `mark5b` or `datagrams`. Default: the program detects VDIF
        /// and Mark 5B.
        format: AsFlag<StreamFormat> => optional,
        /// How long the sink waits for a frame after the fastest frames; of `rtp://`, how much
        /// later than these each frame goes out.
        lateness: Duration => "500 ms",
        /// The reading speed: `frames` by the times of the frames, `live` as the data arrives,
        /// `line` as fast as the line carries it, or a rate. Default: `frames` for files, `live`
        /// for other sources.
        pace: AsFlag<SourcePace> => optional,
        /// Frames of each thread in a second. Default: determined from the first second of the
        /// stream.
        frames_per_second: u32 => optional,
        /// The largest group of frames that is sent together. A loss affects whole groups.
        group: ByteCount => "64 KiB",
        /// Starts again when the stream has ended, for example for a ring buffer that is written
        /// again. Otherwise the stream runs once after each start of the station.
        again: bool => "false",
        /// Its class. Default: the first leaf class.
        class: String => optional,
        /// Its priority within the class, 0 (the most important) to 255.
        priority: u8 => "1",
    }
}

section! {
    /// The sinks of streams of the station above at this centre. Without this table it has none.
    "[peer.streams]" StreamsEntry checked by StreamsEntry::check {
        /// The folder for files, which the station cannot leave. The centre creates it if it does
        /// not exist. Default: no files.
        root: PathBuf => optional,
        /// The sinks that the station may name: `null`, `udp://HOST:PORT`, `udp://HOST:PORT?plain`,
        /// `rtp://HOST:PORT` or `shm:/NAME` (with `?size=SIZE` for ring buffers up to that size).
        allow: Sinks => "[]",
    }
}

/// A sink of the centre, with the time of its stream to be put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CentreSink(pub streams::FarSink);

/// Sinks of this node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sinks(pub Vec<SinkSpec>);

impl core::fmt::Display for CentreSink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CentreSink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<streams::FarSink>() {
            Ok(sink) if *sink.spec() == SinkSpec::Pipe => Err(
                "a centre has no standard output for a stream; name a file, an address or a ring"
                    .to_owned(),
            ),
            Ok(sink) => Ok(Self(sink)),
            Err(error) => Err(error.to_string()),
        }
    }
}

crate::name::from_text!(CentreSink);

impl<'de> serde::Deserialize<'de> for Sinks {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sinks = <Vec<AsFlag<SinkSpec>> as serde::Deserialize>::deserialize(deserializer)?;
        Ok(Self(sinks.into_iter().map(|sink| sink.0).collect()))
    }
}

impl FromStr for Sinks {
    type Err = &'static str;

    /// The default of a key alone: a file writes an array.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "[]" { Ok(Self::default()) } else { Err("an array of sinks") }
    }
}

impl StreamEntry {
    fn check(&self) -> Result<(), String> {
        if self.from.0 == SourceSpec::Pipe {
            return Err(
                "a station has no standard input for a stream; name a file, an address or a ring"
                    .to_owned(),
            );
        }
        let pace = self.pace.as_ref().map(|pace| pace.0);
        self.from.0.check(self.to.0.spec(), self.format(), pace)?;
        if self.frames_per_second == Some(0) {
            return Err("a stream of 0 frames per second is not possible; write 1 at least, or \
                       leave it out"
                .to_owned());
        }
        if groups(self.group).is_none() {
            return Err(format!("groups of {} are not possible; write 1 B to 8 MiB", self.group));
        }
        Ok(())
    }

    /// The source, opened.
    ///
    /// # Errors
    /// It cannot be used now.
    pub fn open(&self) -> Result<StreamSource, StreamSourceError> {
        StreamSource::open(&self.from.0, self.format())
    }

    fn format(&self) -> Option<StreamFormat> {
        self.format.as_ref().map(|format| format.0)
    }

    /// How it is sent. Reads the beginning of a file that is played by its frames' times.
    ///
    /// # Errors
    /// In words: how fast the file was recorded is not to be found.
    pub fn options(&self) -> Result<Options, String> {
        let pace =
            self.pace.as_ref().map_or_else(|| StreamSource::pace(&self.from.0), |pace| pace.0);
        let frames_per_second = match (self.frames_per_second, &self.from.0, pace) {
            (None, SourceSpec::File(path), SourcePace::Frames) => {
                let found = StreamSource::frames_per_second(path, self.format());
                let found = found
                    .map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
                Some(found.ok_or_else(|| {
                    let what = "its recording rate cannot be found from its first frames";
                    format!(
                        "{what}; give `frames_per_second`, or `pace` with a rate, and `format` \
                            if it is neither VDIF nor Mark 5B"
                    )
                })?)
            }
            (given, ..) => given,
        };
        let packing = groups(self.group).expect("it was checked when the configuration was read");
        let (lateness, priority, class) = (self.lateness, self.priority, ClassId::default());
        Ok(Options { lateness, pace, frames_per_second, packing, priority, class })
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        if let SourceSpec::File(path) = &mut self.from.0 {
            crate::from_base(base, path);
        }
    }
}

impl StreamsEntry {
    fn check(&self) -> Result<(), String> {
        if self.allow.0.contains(&SinkSpec::Pipe) {
            return Err("a centre has no standard output for a stream; remove \"-\" from `allow`"
                .to_owned());
        }
        if self.allow.0.iter().any(|sink| matches!(sink, SinkSpec::File(_))) {
            return Err("`allow` names a file; files go into the folder that `root` \
                names"
                .to_owned());
        }
        if self.root.is_none() && self.allow.0.is_empty() {
            return Err(
                "[peer.streams] allows no sink; give `root` for files, or `allow`, or remove the \
                table"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// What may be a sink.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn allowed(&self) -> std::io::Result<AllowedSinks> {
        AllowedSinks::new(self.root.as_deref(), self.allow.0.clone())
    }
}

/// Checks that each stream names a class that exists.
pub(super) fn check(
    config: ConfigText<'_>,
    streams: &[StreamEntry],
    tree: &ClassTree,
) -> Result<(), ConfigError> {
    if streams.len() > MAX_STREAMS {
        return Err(ConfigError::many(config, HEADING, streams.len(), MAX_STREAMS));
    }
    for (nth, stream) in streams.iter().enumerate() {
        if let Some(class) = stream.class.as_ref().filter(|class| tree.find(class).is_none()) {
            let place = KeyPlace { heading: HEADING, nth, key: "class" };
            return Err(ConfigError::no_class(config, place, class, "a stream", tree));
        }
    }
    Ok(())
}

const HEADING: &str = "[[stream]]";
/// Each has three threads, and a link of the session.
const MAX_STREAMS: usize = 16;
