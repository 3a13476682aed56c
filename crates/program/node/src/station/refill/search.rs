//! Searches the blocks of the spool and the recording of a channel for missing frames.

use super::super::front::Front;
use super::wanted::{Stretch, Wanted};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame, FrameVerdict};
use skyhaul_ccsds::sync::SyncConfig;
use skyhaul_records::payload::BlockHead;
use skyhaul_records::{Record, RecordReader};
use skyhaul_store::raw::{RawError, RawKind, RawReader};
use skyhaul_units::Utc;

/// The parameters of decoding a recording.
#[derive(Debug)]
pub struct Decoding<'a> {
    /// The configuration of the channel.
    pub channel: &'a skyhaul_config::Channel,
    /// Its input.
    pub feed: &'a skyhaul_config::ResolvedInput,
    /// The contact's mission.
    pub mission: &'a Mission,
    /// The missions known.
    pub missions: &'a MissionSet,
    /// The thresholds of each decoding in turn: each looks for what those before did not find.
    pub attempts: &'a [SyncConfig],
}

/// Takes the wanted frames of a block of the spool. Returns whether later blocks may have more.
pub fn in_block(
    payload: &[u8],
    mission: &Mission,
    wanted: &mut Wanted,
    found: &mut impl FnMut(&CapturedFrame),
) -> bool {
    let Some((_, until)) = wanted.extent() else { return false };
    // A block that cannot be read has nothing to send.
    let Ok((_, content)) = BlockHead::decode(payload) else { return true };
    let Ok(records) = content.records() else { return true };
    let (mut reader, mut records) = (RecordReader::new(), &records[..]);
    let mut first: Option<Utc> = None;
    while let Ok(Some(record)) = reader.read(&mut records) {
        let Record::Frame(frame) = record else { continue };
        first.get_or_insert(frame.received);
        if wanted.take(&frame, mission.frame()) {
            found(&frame);
        }
    }
    first.is_none_or(|first| first <= until)
}

/// Takes the wanted frames of a recording. It is decoded once for each set of thresholds while
/// something is missing. Only frames that a code proves are taken: tolerant thresholds see markers
/// where none are.
///
/// # Errors
/// The disk refuses.
pub fn in_recording(
    reader: &RawReader,
    decoding: &Decoding<'_>,
    wanted: &mut Wanted,
    found: &mut impl FnMut(&CapturedFrame, InputLayout),
) -> Result<(), RawError> {
    for (nth, sync) in decoding.attempts.iter().enumerate() {
        for stretch in wanted.stretches() {
            // A recording grows meanwhile: later attempts have what the first one had.
            let attempt = DecodingAttempt { decoding, sync: *sync, is_first: nth == 0 };
            in_stretch(reader, &stretch, attempt, wanted, found)?;
        }
    }
    Ok(())
}

/// One attempt to decode a recording.
#[derive(Clone, Copy)]
struct DecodingAttempt<'a> {
    decoding: &'a Decoding<'a>,
    /// The thresholds of the synchroniser.
    sync: SyncConfig,
    is_first: bool,
}

fn in_stretch(
    reader: &RawReader,
    stretch: &Stretch,
    attempt: DecodingAttempt<'_>,
    wanted: &mut Wanted,
    found: &mut impl FnMut(&CapturedFrame, InputLayout),
) -> Result<(), RawError> {
    let DecodingAttempt { decoding, sync, is_first } = attempt;
    let mut pieces = reader.read(stretch.span.clone())?;
    let mut run: Option<Run> = None;
    while let Some(piece) = pieces.next_piece()? {
        let start = piece.stamp.input;
        let end = start + piece.bytes.len() as u64;
        let is_break = piece.stamp.kind == RawKind::Break;
        if is_break || run.as_ref().is_some_and(|run| run.next != start) {
            // A hole in the recording, or the beginning of another transmission.
            if let Some(mut run) = run.take() {
                run.capture.finish();
                run.take(decoding, wanted, found);
            }
        }
        if is_break || end <= stretch.input.start || start >= stretch.input.end {
            continue;
        }
        let run = run.get_or_insert_with(|| Run::new(start, decoding, sync));
        if let Ok(Some(given)) = run.front.take(piece.stamp.received, &piece.bytes) {
            run.capture.push(given.received, &given.bytes);
        }
        run.next = end;
        if is_first {
            wanted.covered(&piece);
        }
        run.take(decoding, wanted, found);
        if wanted.is_complete() {
            return Ok(());
        }
    }
    if let Some(mut run) = run {
        run.capture.finish();
        run.take(decoding, wanted, found);
    }
    Ok(())
}

/// The decoding of a part of the recording without holes.
struct Run {
    front: Front,
    capture: Capture,
    format: InputLayout,
    /// The next byte of the input.
    next: u64,
}

impl Run {
    fn new(start: u64, decoding: &Decoding<'_>, sync: SyncConfig) -> Self {
        let front = Front::of(decoding.feed);
        let format = front.format();
        let options = CaptureOptions {
            format,
            mission: Some(decoding.mission.clone()),
            start: BitPosition::from_bits(8 * start),
            keep_check_symbols: decoding.channel.keep_check_symbols,
            sync,
            ..CaptureOptions::default()
        };
        let capture = Capture::new(decoding.missions.clone(), options);
        Self { front, capture, format: format.unwrap_or(InputLayout::Bits), next: start }
    }

    fn take(
        &mut self,
        decoding: &Decoding<'_>,
        wanted: &mut Wanted,
        found: &mut impl FnMut(&CapturedFrame, InputLayout),
    ) {
        while let Some(event) = self.capture.poll() {
            match event {
                CaptureEvent::Identified(identified) => self.format = identified.format,
                CaptureEvent::Frame(frame)
                    if is_proved(&frame) && wanted.take(&frame, decoding.mission.frame()) =>
                {
                    found(&frame, self.format);
                }
                _ => {}
            }
        }
    }
}

/// Whether a code proves that it is a frame, not only its position.
const fn is_proved(frame: &CapturedFrame) -> bool {
    frame.is_good()
        && matches!(frame.quality.verdict, FrameVerdict::Clean | FrameVerdict::Corrected)
}

#[cfg(test)]
mod tests;
