//! The text form of sources and sinks.

use crate::SourcePace;
use core::str::FromStr;
use skyhaul_rtp::{RtpRules, VideoCodec};
use skyhaul_streams::StreamFormat;
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
    /// An RTP stream to this address.
    Rtp(RtpSourceSpec),
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

/// An RTP stream that comes to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpSourceSpec {
    /// Where it is received.
    pub address: String,
    /// What it carries, which says what its frames depend on.
    pub codec: VideoCodec,
    /// Ticks of its time stamp in a second.
    pub clock_rate: u32,
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
    /// The RTP stream, as it came to the source.
    Rtp {
        /// Where it is sent.
        address: String,
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
        matches!(self, Self::Udp { .. } | Self::Rtp(_) | Self::Ring(_))
    }

    /// Whether a stream from here may go to `sink`, of this format and at this pace where they are
    /// given.
    ///
    /// # Errors
    /// It may not; in words.
    pub fn check(
        &self,
        sink: &SinkSpec,
        format: Option<StreamFormat>,
        pace: Option<SourcePace>,
    ) -> Result<(), &'static str> {
        let Self::Rtp(_) = self else {
            return if matches!(sink, SinkSpec::Rtp { .. }) { Err(RTP_SINK) } else { Ok(()) };
        };
        match (sink, format, pace) {
            (SinkSpec::Rtp { .. }, None, None | Some(SourcePace::Live)) => Ok(()),
            (SinkSpec::Rtp { .. }, ..) => Err(RTP_FORMAT),
            _ => Err(RTP_SOURCE),
        }
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
            SinkSpec::Null | SinkSpec::Udp { .. } | SinkSpec::Rtp { .. } | SinkSpec::Ring(..) => {
                true
            }
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
            Self::Rtp(rtp) => rtp.fmt(f),
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
            Self::Rtp { address } => write!(f, "rtp://{address}"),
            Self::Ring(name, size) => write!(f, "{name}?size={size}"),
        }
    }
}

impl core::fmt::Display for RtpSourceSpec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let usual = RtpRules::default();
        write!(f, "rtp://{}", self.address)?;
        let mut lead = '?';
        if self.codec != usual.codec {
            write!(f, "{lead}codec={}", self.codec.name())?;
            lead = '&';
        }
        if self.clock_rate != usual.clock_rate {
            write!(f, "{lead}clock={}", self.clock_rate)?;
        }
        Ok(())
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
        if let Some(rest) = rtp(text) {
            return rtp_source(rest).map(Self::Rtp).ok_or_else(|| no(RTP));
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
        if let Some(address) = rtp(text) {
            let address = address.to_owned();
            return if has_port(&address) { Ok(Self::Rtp { address }) } else { Err(no(RTP)) };
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
    has_port(address).then(|| (address.to_owned(), numbering))
}

/// Whether it is `HOST:PORT`.
fn has_port(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// What stands behind `rtp://`, or `rtp:` for short.
fn rtp(text: &str) -> Option<&str> {
    text.strip_prefix("rtp:").map(|rest| rest.strip_prefix("//").unwrap_or(rest))
}

/// `HOST:PORT[?codec=NAME&clock=TICKS]`.
fn rtp_source(text: &str) -> Option<RtpSourceSpec> {
    let (address, query) = text.split_once('?').unwrap_or((text, ""));
    let RtpRules { mut codec, mut clock_rate, .. } = RtpRules::default();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=')? {
            ("codec", name) => codec = name.parse().ok()?,
            ("clock", ticks) => clock_rate = ticks.parse().ok().filter(|ticks| *ticks > 0)?,
            _ => return None,
        }
    }
    has_port(address).then(|| RtpSourceSpec { address: address.to_owned(), codec, clock_rate })
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
const RTP: &str = "write it like rtp://198.51.100.7:5004; for a source add ?codec=h264 (h265, any) \
                   and &clock=90000 where they differ from any and 90000";
/// A source `rtp://` with another sink.
const RTP_SOURCE: &str = "a stream from rtp:// goes to rtp:// only; write the sink like \
                          rtp://198.51.100.7:5004, or receive the packets with \
                          udp://HOST:PORT?plain";
/// A sink `rtp://` with another source.
const RTP_SINK: &str = "a sink rtp:// takes only a stream from rtp://; write the source like \
                        rtp://0.0.0.0:5004, or the sink like udp://198.51.100.7:5004?plain";
/// A format or a pace with `rtp://`.
const RTP_FORMAT: &str = "a stream from rtp:// has its own format and is read as it arrives; leave \
                          out the format and the pace";
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
    fn an_rtp_source_says_what_it_carries_and_has_a_short_form() {
        let source = |text: &str| text.parse::<SourceSpec>().map(|source| source.to_string());
        for (text, written) in [
            ("rtp://0.0.0.0:5004", "rtp://0.0.0.0:5004"),
            ("rtp:0.0.0.0:5004", "rtp://0.0.0.0:5004"),
            ("rtp://[::]:5004?codec=any&clock=90000", "rtp://[::]:5004"),
            ("rtp://cam:5004?codec=h265", "rtp://cam:5004?codec=h265"),
            ("rtp:cam:5004?clock=48000&codec=h264", "rtp://cam:5004?codec=h264&clock=48000"),
        ] {
            assert_eq!(source(text).as_deref(), Ok(written), "{text}");
        }
        for text in
            ["rtp:", "rtp://5004", "rtp://a:1?codec=av1", "rtp://a:1?clock=0", "rtp://a:1?x"]
        {
            assert!(source(text).unwrap_err().to_string().contains("rtp://198.51"), "{text}");
        }
        let sink: SinkSpec = "rtp:10.0.0.5:5004".parse().unwrap();
        assert_eq!(sink.to_string(), "rtp://10.0.0.5:5004");
        assert!("rtp://10.0.0.5:5004?codec=h264".parse::<SinkSpec>().is_err());
    }

    #[test]
    fn rtp_goes_to_rtp_and_nothing_else_does() {
        let (rtp, udp) = ("rtp://a:1".parse::<SourceSpec>(), "udp://a:1".parse::<SourceSpec>());
        let (rtp, udp) = (rtp.unwrap(), udp.unwrap());
        let sink = |text: &str| text.parse::<SinkSpec>().unwrap();
        let live = Some(SourcePace::Live);
        assert_eq!(rtp.check(&sink("rtp://b:1"), None, live), Ok(()));
        assert_eq!(udp.check(&sink("null"), Some(StreamFormat::Vdif), None), Ok(()));
        assert_eq!(rtp.check(&sink("null"), None, None), Err(RTP_SOURCE));
        assert_eq!(udp.check(&sink("rtp://b:1"), None, None), Err(RTP_SINK));
        let other = rtp.check(&sink("rtp://b:1"), Some(StreamFormat::Datagrams), None);
        assert_eq!(other, Err(RTP_FORMAT));
        assert_eq!(rtp.check(&sink("rtp://b:1"), None, Some(SourcePace::Line)), Err(RTP_FORMAT));
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
