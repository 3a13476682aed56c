//! The text form of sources and sinks.

use core::str::FromStr;
use skyhaul_units::{ByteCount, Rate, Utc};
use std::path::PathBuf;

/// Where a stream comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Pipe,
    /// Datagrams to this address.
    Udp {
        /// Where they are received.
        address: String,
        /// Whether each begins with its number, as VTP and jive5ab number them.
        numbering: Numbering,
    },
    /// A ring in shared memory.
    Ring(RingName),
    /// Datagrams of zeros.
    Zero(Option<Rate>),
    /// Synthetic VDIF.
    Vdif {
        /// Of all threads; as fast as the line carries where it is not given.
        rate: Option<Rate>,
        /// Bytes of samples in a frame.
        payload: usize,
        /// How many.
        threads: u16,
    },
}

/// Whether datagrams carry a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// Each begins with its sequence number of 64 bits.
    Numbered,
    /// They hold nothing but the frame.
    Plain,
}

/// Where a stream goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkSpec {
    /// Nowhere.
    Null,
    /// Standard output.
    Pipe,
    /// A file of this name, in the folder that is served.
    File(PathBuf),
    /// Datagrams.
    Udp {
        /// Where they are sent.
        address: String,
        /// Whether each begins with its number.
        numbering: Numbering,
    },
    /// A ring in shared memory, made with this size.
    Ring(RingName, ByteCount),
}

/// A sink at a far node; the begin of the stream is put into its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarSink {
    text: String,
    spec: SinkSpec,
}

/// The name of shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingName(String);

/// The text is not a source or sink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: {help}")]
pub struct EndpointSpecError {
    text: String,
    what: &'static str,
    help: &'static str,
}

impl SourceSpec {
    /// Whether it is live: when it is opened again, it gives the current data.
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Udp { .. } | Self::Ring(_))
    }
}

impl FarSink {
    /// Of a stream that begins then.
    pub fn at(&self, begin: Utc) -> String {
        at(&self.text, begin)
    }

    /// Of what kind it is.
    pub const fn spec(&self) -> &SinkSpec {
        &self.spec
    }

    /// Whether a further stream may go there after one that broke off: no file that is there is
    /// written again.
    pub fn takes_further(&self) -> bool {
        match self.spec {
            SinkSpec::Null | SinkSpec::Udp { .. } | SinkSpec::Ring(..) => true,
            SinkSpec::File(_) => self.text.contains(BEGIN),
            SinkSpec::Pipe => false,
        }
    }
}

fn at(text: &str, begin: Utc) -> String {
    let ((year, month, day), seconds) = (begin.date(), begin.in_day().as_millis() / 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    text.replace(BEGIN, &format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"))
}

impl core::fmt::Display for FarSink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FarSink {
    type Err = EndpointSpecError;

    fn from_str(text: &str) -> Result<Self, EndpointSpecError> {
        Ok(Self { text: text.to_owned(), spec: at(text, Utc::from_nanos(0)).parse()? })
    }
}

impl RingName {
    /// Where it is.
    pub fn path(&self) -> PathBuf {
        PathBuf::from("/dev/shm").join(&self.0)
    }

    fn read(text: &str) -> Option<Self> {
        let name = text.strip_prefix('/')?;
        let plain = !name.is_empty()
            && name.len() <= 255
            && !name.contains(['/', '\0'])
            && !name.starts_with('.');
        plain.then(|| Self(name.to_owned()))
    }
}

impl core::fmt::Display for RingName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "shm:/{}", self.0)
    }
}

impl core::fmt::Display for SourceSpec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let rate = |rate: &Option<Rate>| rate.map_or("max".to_owned(), |rate| rate.to_string());
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Pipe => f.write_str("-"),
            Self::Udp { address, numbering } => write_udp(f, address, *numbering),
            Self::Ring(name) => name.fmt(f),
            Self::Zero(bits) => write!(f, "zero:{}", rate(bits)),
            Self::Vdif { rate: bits, payload, threads } => {
                write!(f, "vdif:{},{payload},{threads}", rate(bits))
            }
        }
    }
}

impl core::fmt::Display for SinkSpec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Pipe => f.write_str("-"),
            Self::File(path) => path.display().fmt(f),
            Self::Udp { address, numbering } => write_udp(f, address, *numbering),
            Self::Ring(name, size) => write!(f, "{name}?size={size}"),
        }
    }
}

fn write_udp(
    f: &mut core::fmt::Formatter<'_>,
    address: &str,
    numbering: Numbering,
) -> core::fmt::Result {
    let query = match numbering {
        Numbering::Numbered => "",
        Numbering::Plain => "?plain",
    };
    write!(f, "udp://{address}{query}")
}

impl FromStr for SourceSpec {
    type Err = EndpointSpecError;

    fn from_str(text: &str) -> Result<Self, EndpointSpecError> {
        let no = |help| EndpointSpecError { text: text.to_owned(), what: "source", help };
        if text == "-" {
            return Ok(Self::Pipe);
        }
        if let Some(rest) = text.strip_prefix("udp://") {
            let (address, numbering) = udp(rest).ok_or_else(|| no(UDP))?;
            return Ok(Self::Udp { address, numbering });
        }
        if let Some(name) = text.strip_prefix("shm:") {
            return RingName::read(name).map(Self::Ring).ok_or_else(|| no(RING));
        }
        if let Some(rate) = text.strip_prefix("zero:") {
            return rate_of(rate).map(Self::Zero).ok_or_else(|| no(MEMORY));
        }
        if let Some(rest) = text.strip_prefix("vdif:") {
            return vdif(rest).ok_or_else(|| no(MEMORY));
        }
        if text.is_empty() {
            Err(no("give a file, or a form that --help lists"))
        } else {
            Ok(Self::File(text.into()))
        }
    }
}

impl FromStr for SinkSpec {
    type Err = EndpointSpecError;

    fn from_str(text: &str) -> Result<Self, EndpointSpecError> {
        let no = |help| EndpointSpecError { text: text.to_owned(), what: "sink", help };
        match text {
            "null" => return Ok(Self::Null),
            "-" => return Ok(Self::Pipe),
            _ => {}
        }
        if let Some(rest) = text.strip_prefix("udp://") {
            let (address, numbering) = udp(rest).ok_or_else(|| no(UDP))?;
            return Ok(Self::Udp { address, numbering });
        }
        if let Some(rest) = text.strip_prefix("shm:") {
            let (name, size) = match rest.split_once("?size=") {
                Some((name, size)) => (name, size.parse::<ByteCount>().ok()),
                None => (rest, Some(RING_SIZE)),
            };
            let size = size.filter(|size| (RING_LEAST..=RING_MOST).contains(size));
            let ring = RingName::read(name).zip(size);
            return ring.map(|(name, size)| Self::Ring(name, size)).ok_or_else(|| no(RING));
        }
        let path = PathBuf::from(text);
        let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let named = !text.is_empty() && !text.ends_with('/') && path.file_name().is_some();
        if plain && named {
            Ok(Self::File(path))
        } else {
            Err(no("write a file path relative to the served folder, without `..`"))
        }
    }
}

/// `HOST:PORT`, and whether datagrams are numbered.
fn udp(text: &str) -> Option<(String, Numbering)> {
    let (address, numbering) = match text.split_once('?') {
        Some((address, "plain")) => (address, Numbering::Plain),
        Some(_) => return None,
        None => (text, Numbering::Numbered),
    };
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty())?.1;
    port.parse::<u16>().ok().map(|_| (address.to_owned(), numbering))
}

/// A rate, or `max`, which is `None` within.
fn rate_of(text: &str) -> Option<Option<Rate>> {
    match text {
        "max" => Some(None),
        rate => rate.parse::<Rate>().ok().filter(|rate| *rate > Rate::ZERO).map(Some),
    }
}

/// `RATE[,PAYLOAD[,THREADS]]`.
fn vdif(text: &str) -> Option<SourceSpec> {
    let mut parts = text.split(',');
    let rate = rate_of(parts.next()?)?;
    let payload = parts.next().map_or(Ok(8_000), str::parse).ok()?;
    let threads = parts.next().map_or(Ok(1), str::parse).ok()?;
    // Whether frames of this size are possible is checked where they are made.
    let fits = parts.next().is_none() && payload > 0 && threads > 0;
    fits.then_some(SourceSpec::Vdif { rate, payload, threads })
}

/// Stands for the time when a stream begins.
const BEGIN: &str = "{utc}";
const UDP: &str =
    "write it like udp://198.51.100.7:2630, and add ?plain if datagrams have no sequence number";
const RING: &str = "write it like shm:/ring0; for a sink add ?size=64MiB, from 64 KiB to 16 GiB";
const MEMORY: &str = "write it like zero:1gbit, vdif:1gbit, vdif:1gbit,5000,8 (rate, bytes of \
                     samples, threads), or vdif:max";
const RING_SIZE: ByteCount = ByteCount::mib(64);
const RING_LEAST: ByteCount = ByteCount::kib(64);
const RING_MOST: ByteCount = ByteCount::mib(16 << 10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_sinks_are_read_as_they_are_written() {
        let source = |text: &str| text.parse::<SourceSpec>();
        let udp = |numbering| SourceSpec::Udp { address: "0.0.0.0:2630".to_owned(), numbering };
        assert_eq!(source("udp://0.0.0.0:2630"), Ok(udp(Numbering::Numbered)));
        assert_eq!(source("udp://0.0.0.0:2630?plain"), Ok(udp(Numbering::Plain)));
        let rate = Some(Rate::from_mbps(1_000));
        assert_eq!(
            source("vdif:1gbit,5000,8"),
            Ok(SourceSpec::Vdif { rate, payload: 5_000, threads: 8 })
        );
        assert_eq!(source("zero:max"), Ok(SourceSpec::Zero(None)));
        assert_eq!(source("a/b.vdif"), Ok(SourceSpec::File("a/b.vdif".into())));
        for text in [
            "-",
            "a/b.vdif",
            "udp://0.0.0.0:2630?plain",
            "shm:/r",
            "zero:max",
            "vdif:1 Gbit/s,5000,8",
        ] {
            assert_eq!(source(text).map(|source| source.to_string()).as_deref(), Ok(text));
        }
        for text in ["-", "null", "a/b.vdif", "udp://10.0.0.5:2630", "shm:/r?size=1 MiB"] {
            assert_eq!(text.parse::<SinkSpec>().map(|sink| sink.to_string()).as_deref(), Ok(text));
        }
        let ring = RingName("r".to_owned());
        assert_eq!("shm:/r?size=1MiB".parse(), Ok(SinkSpec::Ring(ring, ByteCount::mib(1))));
        assert_eq!("pass/x.vdif".parse(), Ok(SinkSpec::File("pass/x.vdif".into())));
    }

    #[test]
    fn a_far_sink_has_the_time_of_its_stream_and_is_known_to_take_further_ones() {
        let sink = |text: &str| text.parse::<FarSink>().unwrap();
        let begin = Utc::from_nanos(1_773_500_966_000_000_000);
        assert_eq!(sink("in/{utc}.vdif").at(begin), "in/20260314T150926Z.vdif");
        assert_eq!(sink("in/{utc}.vdif").to_string(), "in/{utc}.vdif");
        for (text, takes_further) in [
            ("in/{utc}.vdif", true),
            ("in/x.vdif", false),
            ("-", false),
            ("null", true),
            ("udp://10.0.0.5:2630", true),
        ] {
            assert_eq!(sink(text).takes_further(), takes_further, "{text}");
        }
        assert!("../{utc}".parse::<FarSink>().is_err());
        let live = |text: &str| text.parse::<SourceSpec>().unwrap().is_live();
        assert!(live("udp://0.0.0.0:2630") && live("shm:/r"));
        assert!(!live("a.vdif") && !live("-") && !live("zero:max"));
    }

    #[test]
    fn what_names_nothing_is_told() {
        for text in [
            "",
            "udp://2630",
            "udp://a:1?x",
            "shm:ring",
            "shm:/a/b",
            "shm:/..",
            "zero:1",
            "vdif:1gbit,0",
            "vdif:",
        ] {
            assert!(text.parse::<SourceSpec>().is_err(), "{text}");
        }
        for text in ["", "../x", "/etc/x", "a/../b", "a/", "shm:/r?size=1", "udp://a"] {
            let error = text.parse::<SinkSpec>().unwrap_err().to_string();
            assert!(error.contains("is not a sink: "), "{error}");
        }
    }
}
