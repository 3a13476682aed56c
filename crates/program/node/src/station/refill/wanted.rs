//! The wanted frames of a question, and the parts of a recording where they may be.

use skyhaul_ccsds::count::Modulus;
use skyhaul_ccsds::frame::Frame;
use skyhaul_ccsds::mission::FrameFormat;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_level0::ledger::talk::{Ask, GapAnswer, Span, UnavailableReason};
use skyhaul_level0::ledger::{DurableFrame, MissingCounts, MissingFrames, Place};
use skyhaul_store::raw::{RawPiece, RawSpan};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;

/// The wanted frames of one question.
#[derive(Debug)]
pub struct Wanted {
    spans: Vec<Sought>,
    /// The spans, ordered by the time of the frame before them.
    by_time: BTreeMap<(Utc, usize), Utc>,
}

#[derive(Debug)]
struct Sought {
    span: Span,
    /// The frame counts not found yet; none while the frame count is unknown, because no frame has
    /// shown it.
    gap: Option<MissingFrames>,
    found: u64,
    /// The end of the part that every attempt searched, in bits of the input; zero where nothing
    /// was.
    covered_to: u64,
}

/// A stretch of a recording in which wanted frames may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The time span of its pieces.
    pub span: RawSpan,
    /// The bytes of the input to decode.
    pub input: core::ops::Range<u64>,
}

/// The margin read before and after a gap: the synchroniser regains lock within a few frames, and a
/// receiver delivers data several times a second.
const MARGIN: Duration = Duration::from_millis(500);
/// The same margin in frames, for slow downlinks.
const MARGIN_FRAMES: u64 = 16;

impl Wanted {
    /// The frames that `ask` requests.
    pub fn new(ask: &Ask) -> Self {
        let sought = |span: &Span| Sought { span: *span, gap: None, found: 0, covered_to: 0 };
        let by_time = ask
            .spans
            .iter()
            .enumerate()
            .map(|(at, span)| ((span.from.received, at), span.to.received));
        Self { spans: ask.spans.iter().map(sought).collect(), by_time: by_time.collect() }
    }

    /// Whether all were found.
    pub fn is_complete(&self) -> bool {
        self.spans.iter().all(|sought| sought.found >= sought.span.count)
    }

    /// The time span of the wanted frames.
    pub fn extent(&self) -> Option<(Utc, Utc)> {
        let left = || self.spans.iter().filter(|sought| sought.found < sought.span.count);
        let from = left().map(|sought| sought.span.from.received).min()?;
        Some((from, left().map(|sought| sought.span.to.received).max()?))
    }

    /// Whether a good frame is wanted and was not found yet.
    pub fn take(&mut self, frame: &CapturedFrame, format: &FrameFormat) -> bool {
        let place = Place { received: frame.received, position: frame.position };
        if !frame.is_good() || self.about(place).next().is_none() {
            return false;
        }
        seen(frame, format).is_some_and(|seen| self.take_seen(&seen))
    }

    /// The same for a frame whose position is known.
    pub fn take_seen(&mut self, seen: &DurableFrame) -> bool {
        let about: Vec<usize> = self.about(seen.place).collect();
        about.into_iter().any(|at| self.spans.get_mut(at).is_some_and(|sought| sought.take(seen)))
    }

    /// The spans that contain a position. The position decides; the time only shows that it is the
    /// same transmission.
    fn about(&self, place: Place) -> impl Iterator<Item = usize> + '_ {
        // All spans that begin before it are checked: a span is as long as a fade, and few overlap.
        let before = self.by_time.range(..=(place.received + MARGIN, usize::MAX)).rev();
        let going_on = before.filter(move |(_, until)| place.received <= **until + MARGIN);
        going_on.map(|((_, at), _)| *at).filter(move |at| {
            self.spans.get(*at).is_some_and(|Sought { span, .. }| {
                span.from.position < place.position && place.position < span.to.position
            })
        })
    }

    /// A piece of the recording was searched.
    pub fn covered(&mut self, piece: &RawPiece) {
        let (start, end) =
            (8 * piece.stamp.input, 8 * (piece.stamp.input + piece.bytes.len() as u64));
        let received = piece.stamp.received;
        for ((_, at), until) in self.by_time.range(..=(received + MARGIN, usize::MAX)) {
            if *until + MARGIN < received {
                continue;
            }
            if let Some(sought) = self.spans.get_mut(*at) {
                let (from, to) =
                    (sought.span.from.position.as_bits(), sought.span.to.position.as_bits());
                if start < to && from < end {
                    sought.covered_to = sought.covered_to.max(end);
                }
            }
        }
    }

    /// The reception time of the newest wanted frame that the recording does not reach yet; none
    /// where everything before it was found.
    pub fn behind(&self) -> Option<Utc> {
        let left = self.spans.iter().filter(|sought| sought.found < sought.span.count);
        let behind = left.filter(|sought| sought.covered_to < sought.span.to.position.as_bits());
        behind.map(|sought| sought.span.to.received).max()
    }

    /// The stretches of a recording to read for frames not found yet, in the order of time, without
    /// overlap.
    pub fn stretches(&self) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        let left = self.by_time.keys().filter_map(|(_, at)| self.spans.get(*at));
        for sought in left.filter(|sought| sought.found < sought.span.count) {
            let next = stretch(&sought.span);
            match stretches.last_mut() {
                Some(last)
                    if next.span.from <= last.span.to && next.input.start <= last.input.end =>
                {
                    last.span.to = last.span.to.max(next.span.to);
                    last.input.start = last.input.start.min(next.input.start);
                    last.input.end = last.input.end.max(next.input.end);
                }
                _ => stretches.push(next),
            }
        }
        stretches
    }

    /// The answer; `no_recording` is the reason where no recording could be searched.
    pub fn answer(&self, number: u64, no_recording: Option<UnavailableReason>) -> GapAnswer {
        let outcome = |sought: &Sought| {
            let why = match no_recording {
                _ if sought.found >= sought.span.count => UnavailableReason::Found,
                Some(why) => why,
                None if sought.covered_to > 0 => UnavailableReason::NotDecodable,
                None => UnavailableReason::NotCovered,
            };
            (sought.found, why)
        };
        GapAnswer { number, outcomes: self.spans.iter().map(outcome).collect() }
    }
}

impl Sought {
    fn take(&mut self, seen: &DurableFrame) -> bool {
        let Span { channel, first, count, from, to } = self.span;
        if channel != seen.channel {
            return false;
        }
        let gap = self.gap.get_or_insert_with(|| {
            let missing = MissingCounts { first, missed: count, modulus: seen.modulus };
            MissingFrames::new(channel, missing, from, to)
        });
        let is_new = gap.modulus == seen.modulus && gap.take(seen.count);
        self.found += u64::from(is_new);
        is_new
    }
}

/// The virtual channel, frame count and position of a frame; none for a frame without a count.
pub fn seen(frame: &CapturedFrame, format: &FrameFormat) -> Option<DurableFrame> {
    let parsed = Frame::parse(&frame.bytes, format).ok()?;
    let (count, modulus) = (parsed.count.value, parsed.count.modulus);
    if modulus == Modulus::NONE {
        return None;
    }
    let place = Place { received: frame.received, position: frame.position };
    Some(DurableFrame { channel: parsed.channel, count, modulus, place, packet: None })
}

fn stretch(span: &Span) -> Stretch {
    let (from, to) = (span.from, span.to);
    let frames = span.count + 1;
    let margin = MARGIN + to.received.since(from.received).scaled(MARGIN_FRAMES, frames);
    let bytes = (to.position.as_bits() - from.position.as_bits()) / 8;
    let bytes = (bytes / frames).saturating_mul(MARGIN_FRAMES).max(BYTES);
    let earliest =
        Utc::from_micros(from.received.as_micros().saturating_sub(margin.as_micros() as i64));
    let start = from.position.byte().saturating_sub(bytes);
    let end = to.position.byte().saturating_add(bytes);
    Stretch {
        span: RawSpan { from: Some(earliest), to: Some(to.received + margin), places: None },
        input: start..end,
    }
}

/// The least margin read on both sides of a gap: several of the longest blocks.
const BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use skyhaul_ccsds::id::{Channel, Scid, Vcid};
    use skyhaul_ccsds::mission::Mission;
    use skyhaul_ccsds::quality::{BitPosition, Quality};
    use skyhaul_units::FlowId;

    const MISSION: &str = "name = \"given\"\ntitle = \"Given\"\nscids = [159]\n[frame]\nkind = \
                          \"aos\"\nlength = 64\n\
                           [coding]\nrandomiser = \"none\"\n";
    const CHANNEL: Channel = Channel { scid: Scid::from_bits(159), vcid: Vcid::from_bits(6) };

    fn place(at: u64) -> Place {
        let received = Utc::from_micros(1_000 * at as i64);
        Place { received, position: BitPosition::from_bits(544 * at) }
    }

    fn span(first: u64, count: u64) -> Span {
        Span { channel: CHANNEL, first, count, from: place(first - 1), to: place(first + count) }
    }

    fn frame(at: u64, count: u64, vcid: u8) -> CapturedFrame {
        let mut bytes = vec![0; 64];
        bytes[..2].copy_from_slice(&(1 << 14 | 159 << 6 | u16::from(vcid)).to_be_bytes());
        bytes[2..5].copy_from_slice(&(count as u32).to_be_bytes()[1..]);
        let Place { received, position } = place(at);
        let (quality, bytes) = (Quality::NOT_CHECKED, Bytes::from(bytes));
        CapturedFrame {
            received,
            position,
            quality,
            set_aside: None,
            bytes,
            check_symbols: Bytes::new(),
        }
    }

    fn wanted(spans: &[Span]) -> Wanted {
        Wanted::new(&Ask {
            number: 7,
            contact: FlowId(1),
            channel: "x".to_owned(),
            mission: "given".to_owned(),
            is_damaged: false,
            is_last: false,
            spans: spans.to_vec(),
        })
    }

    #[test]
    fn exactly_the_missing_frames_are_taken_and_each_once() {
        let format = *Mission::from_toml(MISSION).unwrap().frame();
        let mut wanted = wanted(&[span(10, 3), span(20, 2)]);
        let mut taken = Vec::new();
        for at in (5..30).chain(5..30) {
            if wanted.take(&frame(at, at, 6), &format) {
                taken.push(at);
            }
            assert!(!wanted.take(&frame(at, at, 7), &format), "another channel");
            assert!(
                !wanted.take(&frame(at + 100, at, 6), &format),
                "another place with the same count"
            );
        }
        assert_eq!(taken, [10, 11, 12, 20, 21]);
        assert!(wanted.is_complete() && wanted.extent().is_none());
        assert_eq!(
            wanted.answer(7, Some(UnavailableReason::NoRecording)).outcomes,
            [(3, UnavailableReason::Found), (2, UnavailableReason::Found)]
        );
    }

    #[test]
    fn what_is_not_found_says_whether_the_recording_had_its_bits() {
        let mut wanted = wanted(&[span(1_000, 3), span(9_000, 2)]);
        let piece = RawPiece {
            position: 0,
            stamp: skyhaul_store::raw::RawStamp {
                received: place(1_001).received,
                input: 68 * 1_000,
                kind: skyhaul_store::raw::RawKind::Stream,
            },
            bytes: vec![0; 100],
            is_intact: true,
        };
        wanted.covered(&piece);
        assert_eq!(
            wanted.answer(7, None).outcomes,
            [(0, UnavailableReason::NotDecodable), (0, UnavailableReason::NotCovered)]
        );
        assert_eq!(
            wanted.answer(7, Some(UnavailableReason::NoRecording)).outcomes,
            [(0, UnavailableReason::NoRecording); 2]
        );
    }

    #[test]
    fn what_was_sent_before_is_not_looked_for_again() {
        let format = *Mission::from_toml(MISSION).unwrap().frame();
        let mut wanted = wanted(&[span(10, 2), span(20, 1)]);
        for at in [10, 11] {
            assert!(wanted.take_seen(&seen(&frame(at, at, 6), &format).unwrap()));
        }
        assert_eq!(wanted.extent(), Some((place(19).received, place(21).received)));
        assert_eq!(wanted.behind(), Some(place(21).received), "no recording reached it yet");
        assert_eq!(
            wanted.answer(7, None).outcomes,
            [(2, UnavailableReason::Found), (0, UnavailableReason::NotCovered)]
        );
    }

    #[test]
    fn stretches_that_touch_are_read_once() {
        let stretches = wanted(&[span(1_000, 1), span(1_100, 1), span(90_000, 1)]).stretches();
        assert_eq!(stretches.len(), 2);
        assert!(stretches[0].input.start < 68 * 900 && stretches[0].input.end > 68 * 1_200);
        assert!(stretches[0].span.from < Some(place(600).received));
    }
}
