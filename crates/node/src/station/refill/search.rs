//! Looks for frames where the station may still have them: in the blocks of its spool, and in the recording of a channel.

use super::wanted::{Stretch, Wanted};
use crate::config;
use crate::payload::Head;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::InputFormat;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_ccsds::record::{Record, RecordReader};
use skyhaul_ccsds::sync::SyncConfig;
use skyhaul_store::raw::{RawError, RawKind, RawReader};
use skyhaul_units::Utc;

/// How a recording is decoded again.
#[derive(Debug)]
pub struct Decoding<'a> {
    /// The channel, as it is configured.
    pub channel: &'a config::Channel,
    /// The contact's mission.
    pub mission: &'a Mission,
    /// The missions known.
    pub missions: &'a MissionSet,
    /// The thresholds.
    pub sync: SyncConfig,
}

/// Takes what is wanted of a block that was in the spool. Whether there may be more in later ones.
pub fn in_block(
    payload: &[u8],
    mission: &Mission,
    wanted: &mut Wanted,
    found: &mut impl FnMut(&CapturedFrame),
) -> bool {
    let Some((_, until)) = wanted.extent() else { return false };
    // A block that cannot be read holds nothing that could be sent.
    let Ok((_, content)) = Head::decode(payload) else { return true };
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

/// Takes what is wanted of a stretch of a recording, decoding it again. How its input is laid out, where that was found out.
///
/// # Errors
/// The disk refuses.
pub fn in_recording(
    reader: &RawReader,
    stretch: &Stretch,
    decoding: &Decoding<'_>,
    wanted: &mut Wanted,
    found: &mut impl FnMut(&CapturedFrame, InputFormat),
) -> Result<(), RawError> {
    let mut pieces = reader.read(stretch.span.clone())?;
    let mut run: Option<Run> = None;
    while let Some(piece) = pieces.next_piece()? {
        let start = piece.stamp.input;
        let end = start + piece.bytes.len() as u64;
        let is_break = piece.stamp.kind == RawKind::Break;
        if is_break || run.as_ref().is_some_and(|run| run.next != start) {
            // Something was not recorded, or another transmission begins.
            if let Some(mut run) = run.take() {
                run.capture.finish();
                run.take(decoding, wanted, found);
            }
        }
        if is_break || end <= stretch.input.start || start >= stretch.input.end {
            continue;
        }
        let run = run.get_or_insert_with(|| Run::new(start, decoding));
        run.capture.push(piece.stamp.received, &piece.bytes);
        run.next = end;
        wanted.covered(&piece);
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

/// A part of the recording without a hole, being decoded.
struct Run {
    capture: Capture,
    format: InputFormat,
    /// The next byte of the input.
    next: u64,
}

impl Run {
    fn new(start: u64, decoding: &Decoding<'_>) -> Self {
        let format = decoding.channel.format.known();
        let options = CaptureOptions {
            format,
            mission: Some(decoding.mission.clone()),
            start: BitPosition::from_bits(8 * start),
            keep_check_symbols: decoding.channel.keep_check_symbols,
            sync: decoding.sync,
            ..CaptureOptions::default()
        };
        let capture = Capture::new(decoding.missions.clone(), options);
        Self { capture, format: format.unwrap_or(InputFormat::Bits), next: start }
    }

    fn take(
        &mut self,
        decoding: &Decoding<'_>,
        wanted: &mut Wanted,
        found: &mut impl FnMut(&CapturedFrame, InputFormat),
    ) {
        while let Some(event) = self.capture.poll() {
            match event {
                CaptureEvent::Identified(identified) => self.format = identified.format,
                CaptureEvent::Frame(frame) if wanted.take(&frame, decoding.mission.frame()) => {
                    found(&frame, self.format);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_ccsds::frame::Frame;
    use skyhaul_level0::ledger::Place;
    use skyhaul_level0::ledger::talk::{Ask, Span, Why};
    use skyhaul_store::raw::{RawConfig, RawRecorder, RawStamp};
    use skyhaul_store::{Disk, sim::SimDisk};
    use skyhaul_units::{Bytes, FlowId};
    use std::sync::Arc;

    const CADU: usize = 1_024;
    const STRICT: SyncConfig = SyncConfig {
        search_errors: 0,
        check_errors: 0,
        lock_errors: 0,
        check_frames: 1,
        flywheel_frames: 0,
        slip_bits: 0,
    };

    fn channel() -> config::Channel {
        let text = "name = \"x\"\ninput = \"udp:127.0.0.1:9\"\nrecord_raw = true\n";
        toml::from_str(text).expect("a channel")
    }

    fn frames(bytes: &[u8], sync: SyncConfig) -> Vec<CapturedFrame> {
        let mission = MissionSet::built_in().by_name("suomi-npp").cloned();
        let options = CaptureOptions { mission, sync, ..CaptureOptions::default() };
        let mut capture = Capture::new(MissionSet::built_in(), options);
        for (at, piece) in bytes.chunks(PIECE).enumerate() {
            capture.push(Utc::from_micros(1_000 * at as i64), piece);
        }
        capture.finish();
        let mut frames = Vec::new();
        while let Some(event) = capture.poll() {
            if let CaptureEvent::Frame(frame) = event {
                frames.extend(Some(frame).filter(CapturedFrame::is_good));
            }
        }
        frames
    }

    const PIECE: usize = 3_000;

    /// What is between the frames that are there, by channel.
    fn spans(all: &[CapturedFrame], there: &[CapturedFrame], mission: &Mission) -> Vec<Span> {
        let parsed = |frame: &CapturedFrame| {
            let parsed = Frame::parse(&frame.bytes, mission.frame()).expect("a frame");
            (parsed.channel, parsed.count.value)
        };
        let place = |frame: &CapturedFrame| Place { received: frame.received, position: frame.position };
        let lost = all.iter().filter(|frame| !there.iter().any(|other| other.position == frame.position));
        let span = |frame: &CapturedFrame| {
            let (channel, first) = parsed(frame);
            let same = || there.iter().filter(|other| parsed(other).0 == channel);
            let from = same().rfind(|other| other.position < frame.position)?;
            let to = same().find(|other| other.position > frame.position)?;
            Some(Span { channel, first, count: 1, from: place(from), to: place(to) })
        };
        lost.filter_map(span).collect()
    }

    #[test]
    fn what_strict_thresholds_lose_is_found_in_the_recording_with_tolerant_ones() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cadu/snpp_synchronized_cadus.dat");
        let mut bytes = std::fs::read(path).expect("the bundled capture");
        let whole = frames(&bytes, SyncConfig::default());
        for cadu in bytes.chunks_exact_mut(CADU).skip(5).step_by(11) {
            cadu[1] ^= 0x24;
            cadu[3] ^= 0x81;
        }
        let live = frames(&bytes, STRICT);
        let mission = MissionSet::built_in().by_name("suomi-npp").expect("a mission").clone();
        let spans = spans(&whole, &live, &mission);
        assert!(spans.len() > 2, "{} of {} frames lost", whole.len() - live.len(), whole.len());

        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(Bytes::mib(512)));
        let mut recorder =
            RawRecorder::open(disk.clone(), "raw/x", RawConfig::default()).expect("a recording");
        for (at, piece) in bytes.chunks(PIECE).enumerate() {
            let received = Utc::from_micros(1_000 * at as i64);
            let stamp = RawStamp { received, input: (PIECE * at) as u64, kind: RawKind::Stream };
            recorder.append(stamp, piece).expect("room");
        }
        recorder.flush().expect("room");

        let ask = Ask {
            number: 1,
            contact: FlowId(1),
            channel: "x".to_owned(),
            mission: "snpp".to_owned(),
            is_damaged: false,
            is_last: false,
            spans,
        };
        let (channel, missions) = (channel(), MissionSet::built_in());
        let reader = RawReader::open(disk, "raw/x");
        let refill: config::Refill = toml::from_str("").expect("defaults");
        for (sync, why) in [(refill.thresholds(), Why::Found), (STRICT, Why::NotDecodable)] {
            let decoding = Decoding { channel: &channel, mission: &mission, missions: &missions, sync };
            let (mut wanted, mut found) = (Wanted::new(&ask), Vec::new());
            for stretch in wanted.stretches() {
                let mut keep = |frame: &CapturedFrame, _| found.push(frame.clone());
                in_recording(&reader, &stretch, &decoding, &mut wanted, &mut keep).expect("a disk");
            }
            let answer = wanted.answer(1, None);
            assert!(answer.outcomes.iter().all(|outcome| outcome.1 == why), "{answer:?}");
            for frame in &found {
                let same = whole.iter().find(|other| other.position == frame.position).expect("a true place");
                assert_eq!((&same.bytes, same.received), (&frame.bytes, frame.received));
            }
            assert_eq!(found.len(), if why == Why::Found { ask.spans.len() } else { 0 });
        }
    }
}
