//! Contact records: what a station puts into blocks and a centre reads back from the contact's log.
//!
//! A record is a head byte (version 1 in the high four bits, kind in the low four), the body's
//! length as a varint, and the body. Varints are LEB128: seven bits a byte, lowest first, the top
//! bit set on all but the last, at most ten bytes; signed ones are zigzag coded. Fixed fields are
//! big-endian. Texts are a varint length and UTF-8.
//!
//! | kind | record | body |
//! |---|---|---|
//! | 1 | [`Record::Open`] | opened i64 us since 1970; flags u8 (bit 0 check symbols kept, bit 1 spacecraft id present, bit 2 completed contact present, bit 3 other missions fit too, bit 4 file name present); spacecraft id u16 if present; flow of the completed contact u32 if present; channel text; mission text (TOML); if other missions fit, their count as a varint and the text of each name; file name text if present |
//! | 2 | [`Record::Frame`], good | annotations, then the transfer frame, then its check symbols if kept |
//! | 3 | [`Record::Frame`], set aside | reason u8 (1 Reed-Solomon, 2 frame error control, 3 header, 4 low-density parity-check code), annotations, then the block as received |
//! | 4 | [`Record::Progress`] | ten varints in the order of [`SyncCounts`] |
//! | 5 | [`Record::Resumed`] | input position in bits, varint |
//! | 6 | [`Record::Close`] | closed i64 us; last bit i64 us; set aside varint; corrected symbols varint; channel count varint, then for each: spacecraft id u16, channel id u8, frames varint |
//! | 7 | [`Record::Inputs`] | count varint (1 to 16), then for each: name text; source text; nine varints: given, chosen, only here, worse, duplicates, repeated, late, skew in us, foreign |
//!
//! Annotations of a frame:
//!
//! | field | size | present |
//! |---|---|---|
//! | flags | u8 | always: bits 0-1 verdict (0 clean, 1 corrected, 2 uncorrectable, 3 not checked), bit 2 sync detail, bit 3 corrected symbols, bit 4 check symbols, bit 5 check fields, bit 6 base, bit 7 iterations |
//! | received | i64 us, or signed varint us since the frame before | base, or not |
//! | position | u64 bits, or signed varint: step from the frame before less the step before that one | base, or not |
//! | marker errors u8, slip i8, bit 0 inverted and bit 1 flywheel u8 | 3 | bit 2 |
//! | codewords u8, then corrected symbols of each u8 (255: uncorrectable) | 1 to 9 | bit 3 |
//! | length of the check symbols | varint | bit 4 |
//! | header and frame error control, 2 bits each (0 none, 1 good, 2 corrected, 3 bad), header high | u8 | bit 5 |
//! | goes at the checks of a low-density parity-check code, symbols corrected by it | two varints | bit 7 |
//!
//! A clean frame's annotations take 4 bytes at 2 Mbit/s, so its record takes 7 bytes more than the
//! frame. The differences run on from record to record; [`RecordWriter::restart`] makes the next
//! frame a base, so that what follows can be read without what came before: call it at the start of
//! each block.

mod wire;

use skyhaul_ccsds::id::{Channel, Scid};
use skyhaul_ccsds::mission::MAX_MISSIONS;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_ccsds::select::{InputAccount, MAX_INPUTS};
use skyhaul_ccsds::sync::SyncCounts;
use skyhaul_units::wire::{ByteReader, ByteWriter};
use skyhaul_units::{Duration, FlowId, Utc};
use wire::{Acceptance, put_annotations, put_text, take_annotations, take_text};

/// One record of a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The contact begins.
    Open(Open),
    /// A frame, good or set aside.
    Frame(CapturedFrame),
    /// How synchronisation went up to here.
    Progress(SyncCounts),
    /// The station started again and goes on from this place of its input.
    Resumed(BitPosition),
    /// The contact ends.
    Close(Close),
    /// What each of several inputs gave up to here: at most [`MAX_INPUTS`].
    Inputs(Vec<InputReport>),
}

/// What one of several inputs of a contact gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputReport {
    /// What the station calls it.
    pub name: String,
    /// Where it is read from.
    pub source: String,
    /// What became of its frames; the skew to the microsecond.
    pub account: InputAccount,
    /// Frames of another downlink, left out.
    pub foreign: u64,
}

/// What begins a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The station's name for the input.
    pub channel: String,
    /// The mission as TOML: the frame format, coding and products that the contact is read by.
    pub mission: String,
    /// Names of other missions that fitted the downlink as well when it was identified; at most
    /// [`MAX_MISSIONS`].
    pub also_fits: Vec<String>,
    /// The spacecraft seen when the downlink was identified.
    pub scid: Option<Scid>,
    /// When the contact began, to the microsecond.
    pub opened: Utc,
    /// Frames come with their check symbols.
    pub keeps_check_symbols: bool,
    /// The contact of the same station that this one completes: frames that were missing in it,
    /// found in a recording.
    pub completes: Option<FlowId>,
    /// The name of the file that it was read from, where a folder brought it; bytes that are no
    /// UTF-8 stand as `\xe9`.
    pub file: Option<String>,
}

/// What ends a contact, for checking against what arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// When the contact was closed, to the microsecond.
    pub closed: Utc,
    /// When the last bit was received, to the microsecond.
    pub last_bit: Utc,
    /// Frames set aside.
    pub set_aside: u64,
    /// Symbols corrected in good frames.
    pub corrected_symbols: u64,
    /// Good frames of each channel; at most [`MAX_CLOSE_CHANNELS`].
    pub frames: Vec<(Channel, u64)>,
}

/// Whether the records of a block end their contact.
pub fn ends_contact(mut records: &[u8]) -> bool {
    let mut reader = RecordReader::new();
    while let Ok(Some(record)) = reader.read(&mut records) {
        if let Record::Close(_) = record {
            return true;
        }
    }
    false
}

/// Most channels that a closing record lists.
pub const MAX_CLOSE_CHANNELS: usize = skyhaul_ccsds::extract::MAX_CHANNELS;
/// Longest record body in bytes: a mission's text, or a frame of 16 KiB with its check symbols,
/// with room.
pub const LONGEST_BODY: usize = 80 * 1024;
/// The version written, and the only one read.
pub const VERSION: u8 = 1;

/// Why bytes are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Written by another version of the program.
    #[error(
        "contact record of version {0}, this program reads version 1; install the same release at \
        both ends"
    )]
    Version(u8),
    /// A kind that this version does not have.
    #[error("contact record of unknown kind {0}; the contact's log is damaged")]
    Kind(u8),
    /// A body longer than any record.
    #[error("contact record of {0} bytes, longer than any; the contact's log is damaged")]
    TooLong(u64),
    /// A frame that goes on from one that was not read.
    #[error("a frame record goes on from one that was not read; begin at the start of a block")]
    NoBase,
    /// The body is not what its kind has.
    #[error("the {record} record is damaged at its {field}")]
    Body {
        /// Which record.
        record: &'static str,
        /// Which field.
        field: &'static str,
    },
}

/// Where the differences between frames start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Base {
    received_us: i64,
    position: u64,
    step: u64,
}

/// Encodes the records of one contact.
#[derive(Debug, Default)]
pub struct RecordWriter {
    base: Option<Base>,
}

impl RecordWriter {
    /// At a contact's or block's start.
    pub const fn new() -> Self {
        Self { base: None }
    }

    /// Makes what follows readable without what came before: call it at the start of each block.
    pub fn restart(&mut self) {
        self.base = None;
    }

    /// Appends `record` to `out`. Times are kept to the microsecond.
    pub fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        let mut body = ByteWriter::default();
        let kind = match record {
            Record::Open(open) => {
                put_open(open, &mut body);
                KIND_OPEN
            }
            Record::Frame(frame) => return self.write_frame(frame, out),
            Record::Progress(counts) => {
                for count in counts_in_order(counts) {
                    body.leb128(count);
                }
                KIND_PROGRESS
            }
            Record::Resumed(position) => {
                body.leb128(position.as_bits());
                KIND_RESUMED
            }
            Record::Close(close) => {
                put_close(close, &mut body);
                KIND_CLOSE
            }
            Record::Inputs(inputs) => {
                put_inputs(inputs, &mut body);
                KIND_INPUTS
            }
        };
        let body = body.into_bytes();
        put_head(kind, body.len(), out);
        out.extend_from_slice(&body);
    }

    /// Appends the record of a frame: the same as [`Self::write`] with [`Record::Frame`], without
    /// taking it.
    pub fn write_frame(&mut self, frame: &CapturedFrame, out: &mut Vec<u8>) {
        let mut head = ByteWriter::from(Vec::with_capacity(48));
        if let Some(reason) = frame.set_aside {
            head.u8(wire::reason_code(reason));
        }
        self.base = Some(put_annotations(frame, self.base, &mut head));
        let kind = if frame.is_good() { KIND_FRAME } else { KIND_SET_ASIDE };
        let head = head.into_bytes();
        put_head(kind, head.len() + frame.bytes.len() + frame.check_symbols.len(), out);
        out.extend_from_slice(&head);
        out.extend_from_slice(&frame.bytes);
        out.extend_from_slice(&frame.check_symbols);
    }
}

/// Decodes the records of one contact.
#[derive(Debug, Default)]
pub struct RecordReader {
    base: Option<Base>,
}

impl RecordReader {
    /// At a contact's or block's start.
    pub const fn new() -> Self {
        Self { base: None }
    }

    /// Takes the next record off the front of `bytes`; `None` (and nothing taken) where it is not
    /// whole.
    ///
    /// # Errors
    /// [`RecordError`]; `bytes` is left where it was.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Record>, RecordError> {
        let Some(head) = bytes.first() else { return Ok(None) };
        if head >> 4 != VERSION {
            return Err(RecordError::Version(head >> 4));
        }
        let mut input = ByteReader::new(&bytes[1..]);
        let Some(length) = input.leb128() else {
            // A length that is cut short goes on with the next bytes.
            let is_whole = input.rest().len() >= LONGEST_LENGTH;
            return if is_whole { Err(RecordError::TooLong(u64::MAX)) } else { Ok(None) };
        };
        if length > LONGEST_BODY as u64 {
            return Err(RecordError::TooLong(length));
        }
        let Some(body) = input.take(length as usize) else { return Ok(None) };
        let after = input.rest();
        let record = self.body(head & 0x0F, body)?;
        *bytes = after;
        Ok(Some(record))
    }

    fn body(&mut self, kind: u8, body: &[u8]) -> Result<Record, RecordError> {
        let mut input = ByteReader::new(body);
        let record = match kind {
            KIND_OPEN => take_open(&mut input).map(Record::Open).ok_or(damaged("opening", "texts")),
            KIND_FRAME | KIND_SET_ASIDE => {
                let acceptance =
                    if kind == KIND_FRAME { Acceptance::Good } else { Acceptance::SetAside };
                let (frame, base) = take_annotations(&mut input, acceptance, self.base)?;
                self.base = Some(base);
                return Ok(Record::Frame(frame));
            }
            KIND_PROGRESS => {
                take_counts(&mut input).map(Record::Progress).ok_or(damaged("progress", "counts"))
            }
            KIND_RESUMED => input
                .leb128()
                .map(|bits| Record::Resumed(BitPosition::from_bits(bits)))
                .ok_or(damaged("resuming", "position")),
            KIND_CLOSE => {
                take_close(&mut input).map(Record::Close).ok_or(damaged("closing", "counts"))
            }
            KIND_INPUTS => {
                take_inputs(&mut input).map(Record::Inputs).ok_or(damaged("inputs'", "counts"))
            }
            other => Err(RecordError::Kind(other)),
        }?;
        if input.rest().is_empty() { Ok(record) } else { Err(damaged("whole", "length")) }
    }
}

/// Kind and length at the beginning of a record.
fn put_head(kind: u8, len: usize, out: &mut Vec<u8>) {
    let mut head = ByteWriter::from(core::mem::take(out));
    head.u8(VERSION << 4 | kind);
    head.leb128(len as u64);
    *out = head.into_bytes();
}

/// Bytes of the longest varint: a length that has as many and no end is damage.
const LONGEST_LENGTH: usize = 10;

const KIND_OPEN: u8 = 1;
const KIND_FRAME: u8 = 2;
const KIND_SET_ASIDE: u8 = 3;
const KIND_PROGRESS: u8 = 4;
const KIND_RESUMED: u8 = 5;
const KIND_CLOSE: u8 = 6;
const KIND_INPUTS: u8 = 7;

const fn damaged(record: &'static str, field: &'static str) -> RecordError {
    RecordError::Body { record, field }
}

fn put_open(open: &Open, out: &mut ByteWriter) {
    out.i64(open.opened.as_micros());
    let others = &open.also_fits[..open.also_fits.len().min(MAX_MISSIONS)];
    let flags = [
        open.keeps_check_symbols,
        open.scid.is_some(),
        open.completes.is_some(),
        !others.is_empty(),
        open.file.is_some(),
    ];
    out.u8((0u8..).zip(flags).map(|(bit, flag)| u8::from(flag) << bit).sum());
    if let Some(scid) = open.scid {
        out.u16(scid.value());
    }
    if let Some(flow) = open.completes {
        out.u32(flow.0);
    }
    put_text(&open.channel, out);
    put_text(&open.mission, out);
    if !others.is_empty() {
        out.leb128(others.len() as u64);
        others.iter().for_each(|name| put_text(name, out));
    }
    if let Some(file) = &open.file {
        put_text(file, out);
    }
}

fn take_open(input: &mut ByteReader<'_>) -> Option<Open> {
    let opened = Utc::from_micros(input.i64()?);
    let flags = input.u8()?;
    if flags > 31 {
        return None;
    }
    let scid = if flags & 2 == 0 { None } else { Some(Scid::new(input.u16()?)?) };
    let completes = if flags & 4 == 0 { None } else { Some(FlowId(input.u32()?)) };
    let (channel, mission) = (take_text(input)?, take_text(input)?);
    let others = if flags & 8 == 0 { Some(0) } else { usize::try_from(input.leb128()?).ok() };
    let others =
        others.filter(|others| *others <= MAX_MISSIONS && (*others > 0 || flags & 8 == 0))?;
    let also_fits = (0..others).map(|_| take_text(input)).collect::<Option<_>>()?;
    let keeps_check_symbols = flags & 1 != 0;
    let file = if flags & 16 == 0 { None } else { Some(take_text(input)?) };
    Some(Open { channel, mission, also_fits, scid, opened, keeps_check_symbols, completes, file })
}

fn put_close(close: &Close, out: &mut ByteWriter) {
    out.i64(close.closed.as_micros());
    out.i64(close.last_bit.as_micros());
    out.leb128(close.set_aside);
    out.leb128(close.corrected_symbols);
    let frames = &close.frames[..close.frames.len().min(MAX_CLOSE_CHANNELS)];
    out.leb128(frames.len() as u64);
    for (channel, count) in frames {
        out.u16(channel.scid.value());
        out.u8(channel.vcid.value());
        out.leb128(*count);
    }
}

fn take_close(input: &mut ByteReader<'_>) -> Option<Close> {
    let closed = Utc::from_micros(input.i64()?);
    let last_bit = Utc::from_micros(input.i64()?);
    let (set_aside, corrected_symbols) = (input.leb128()?, input.leb128()?);
    let channels =
        usize::try_from(input.leb128()?).ok().filter(|count| *count <= MAX_CLOSE_CHANNELS)?;
    let mut frames = Vec::with_capacity(channels);
    for _ in 0..channels {
        let scid = Scid::new(input.u16()?)?;
        let vcid = skyhaul_ccsds::id::Vcid::new(input.u8()?)?;
        frames.push((Channel { scid, vcid }, input.leb128()?));
    }
    Some(Close { closed, last_bit, set_aside, corrected_symbols, frames })
}

fn put_inputs(inputs: &[InputReport], out: &mut ByteWriter) {
    let inputs = &inputs[..inputs.len().min(MAX_INPUTS)];
    out.leb128(inputs.len() as u64);
    for input in inputs {
        put_text(&input.name, out);
        put_text(&input.source, out);
        let InputAccount { given, chosen, only_here, worse, duplicates, repeated, late, skew } =
            input.account;
        let skew = skew.as_micros();
        for count in
            [given, chosen, only_here, worse, duplicates, repeated, late, skew, input.foreign]
        {
            out.leb128(count);
        }
    }
}

fn take_inputs(input: &mut ByteReader<'_>) -> Option<Vec<InputReport>> {
    let inputs =
        usize::try_from(input.leb128()?).ok().filter(|inputs| (1..=MAX_INPUTS).contains(inputs))?;
    let report = |_| {
        let (name, source) = (take_text(input)?, take_text(input)?);
        let account = InputAccount {
            given: input.leb128()?,
            chosen: input.leb128()?,
            only_here: input.leb128()?,
            worse: input.leb128()?,
            duplicates: input.leb128()?,
            repeated: input.leb128()?,
            late: input.leb128()?,
            skew: Duration::from_micros(input.leb128()?.min(LONGEST_SKEW)),
        };
        Some(InputReport { name, source, account, foreign: input.leb128()? })
    };
    (0..inputs).map(report).collect()
}

/// In microseconds: a day. Anything longer is damage.
const LONGEST_SKEW: u64 = 86_400_000_000;

const fn counts_in_order(counts: &SyncCounts) -> [u64; 10] {
    let SyncCounts { bits, frames, locks, losses, inverted, slips, flywheel, .. } = *counts;
    let SyncCounts { marker_errors, skipped_bits, dropped_bits, .. } = *counts;
    [
        bits,
        frames,
        locks,
        losses,
        inverted,
        slips,
        flywheel,
        marker_errors,
        skipped_bits,
        dropped_bits,
    ]
}

fn take_counts(input: &mut ByteReader<'_>) -> Option<SyncCounts> {
    Some(SyncCounts {
        bits: input.leb128()?,
        frames: input.leb128()?,
        locks: input.leb128()?,
        losses: input.leb128()?,
        inverted: input.leb128()?,
        slips: input.leb128()?,
        flywheel: input.leb128()?,
        marker_errors: input.leb128()?,
        skipped_bits: input.leb128()?,
        dropped_bits: input.leb128()?,
    })
}

#[cfg(test)]
mod tests;
