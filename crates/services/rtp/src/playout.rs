//! Frames to packets, at the times that their time stamps say.

use crate::frame::RtpFrame;
use bytes::Bytes;
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;

/// The far end of a stream. The first frame sets the clock: it is played `delay` after it came, and
/// the others as long before or after it as their time stamps say.
#[derive(Debug)]
pub struct RtpPlayout {
    clock_rate: u32,
    delay: Duration,
    /// A time stamp, and when it is played.
    anchor: Option<(u64, Instant)>,
    /// Packets that wait for their time, by the time stamp of their frame and their place in it.
    waiting: BTreeMap<(u64, u64), Bytes>,
    bytes: usize,
    /// Packets taken so far: tells those of one time stamp apart.
    taken: u64,
    counters: PlayoutCounters,
}

/// Packets of the far end so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlayoutCounters {
    /// Packets that were given out.
    pub played: u64,
    /// Of those, packets that came after their time.
    pub late: u64,
    /// Packets that were dropped because too many waited.
    pub dropped: u64,
    /// How often the clock was set anew, because a time stamp was far from the others.
    pub resets: u64,
}

/// What may wait: five seconds of 50 Mbit/s.
const BYTES_MAX: usize = 32 << 20;
/// And as packets: of short ones, which cost more than their bytes.
const PACKETS_MAX: usize = 65_536;
/// A time stamp that is farther from the present is of another stream, or of a clock that was set.
const FAR: Duration = Duration::from_secs(10);

impl RtpPlayout {
    /// A playout that has not begun, of a stream of so many ticks a second.
    pub const fn new(clock_rate: u32, delay: Duration) -> Self {
        Self {
            clock_rate,
            delay,
            anchor: None,
            waiting: BTreeMap::new(),
            bytes: 0,
            taken: 0,
            counters: PlayoutCounters { played: 0, late: 0, dropped: 0, resets: 0 },
        }
    }

    /// Takes a frame.
    pub fn take(&mut self, now: Instant, frame: RtpFrame) {
        let due = self.anchor.and_then(|_| self.due(frame.time));
        let is_far = due.is_some_and(|due| due > now + FAR || due + FAR < now);
        if is_far {
            self.counters.resets += 1;
        }
        if due.is_none() || is_far {
            self.anchor = Some((frame.time, now + self.delay));
        }
        let is_late = self.due(frame.time).is_some_and(|due| due < now);
        for packet in frame.packets {
            let bytes = packet.bytes().clone();
            if self.bytes + bytes.len() > BYTES_MAX || self.waiting.len() == PACKETS_MAX {
                self.counters.dropped += 1;
                continue;
            }
            self.counters.late += u64::from(is_late);
            self.bytes += bytes.len();
            self.waiting.insert((frame.time, self.taken), bytes);
            self.taken += 1;
        }
    }

    /// When the packets of a time stamp are played.
    fn due(&self, time: u64) -> Option<Instant> {
        let (anchor, at) = self.anchor?;
        let ticks = time.abs_diff(anchor);
        let whole = Duration::from_secs(ticks / u64::from(self.clock_rate.max(1)));
        let part = ticks % u64::from(self.clock_rate.max(1)) * 1_000_000_000;
        let span = whole + Duration::from_nanos(part / u64::from(self.clock_rate.max(1)));
        Some(if time >= anchor { at + span } else { at - span })
    }

    /// The next packet whose time has come.
    pub fn poll(&mut self, now: Instant) -> Option<Bytes> {
        self.next_timeout().filter(|due| *due <= now)?;
        let (_, packet) = self.waiting.pop_first()?;
        self.bytes -= packet.len();
        self.counters.played += 1;
        Some(packet)
    }

    /// When [`RtpPlayout::poll`] has the next packet.
    pub fn next_timeout(&self) -> Option<Instant> {
        let ((time, _), _) = self.waiting.first_key_value()?;
        self.due(*time)
    }

    /// The packets so far.
    pub const fn counters(&self) -> PlayoutCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nal::RtpFrameKind;
    use crate::packet::RtpPacket;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn frame(time: u64, numbers: core::ops::Range<u8>) -> RtpFrame {
        let packet = |number| {
            let bytes = [0x80, 96, 0, number, 0, 0, 0, 0, 0, 0, 0, 1];
            RtpPacket::parse(Bytes::copy_from_slice(&bytes)).unwrap()
        };
        let packets = numbers.map(packet).collect();
        RtpFrame { time, packets, missing: 0, kind: RtpFrameKind::Unknown }
    }

    fn numbers(playout: &mut RtpPlayout, now: Instant) -> Vec<u8> {
        core::iter::from_fn(|| playout.poll(now)).map(|packet| packet[3]).collect()
    }

    #[test]
    fn packets_go_out_as_far_apart_as_their_time_stamps_say() {
        let mut playout = RtpPlayout::new(90_000, Duration::from_millis(100));
        playout.take(at(1_000), frame(50_000, 0..2));
        // The next two come in the wrong order, and at once.
        playout.take(at(1_001), frame(57_200, 4..5));
        playout.take(at(1_001), frame(53_600, 2..4));
        assert_eq!(numbers(&mut playout, at(1_099)), []);
        assert_eq!(numbers(&mut playout, at(1_100)), [0, 1]);
        assert_eq!(playout.next_timeout(), Some(at(1_140)));
        assert_eq!(numbers(&mut playout, at(1_140)), [2, 3]);
        assert_eq!(numbers(&mut playout, at(1_180)), [4]);
        playout.take(at(1_400), frame(60_800, 5..6));
        assert_eq!(numbers(&mut playout, at(1_400)), [5]);
        assert_eq!((playout.counters().played, playout.counters().late), (6, 1));
    }

    #[test]
    fn a_time_stamp_far_away_sets_the_clock_anew_and_what_waits_is_bounded() {
        let mut playout = RtpPlayout::new(90_000, Duration::from_millis(100));
        playout.take(at(0), frame(5_000, 0..1));
        assert_eq!(numbers(&mut playout, at(100)), [0]);
        playout.take(at(200), frame(u64::MAX / 2, 1..2));
        assert_eq!(numbers(&mut playout, at(300)), [1]);
        assert_eq!(playout.counters().resets, 1);
        for _ in 0..PACKETS_MAX {
            playout.take(at(300), frame(u64::MAX / 2 + 90_000, 0..2));
        }
        assert_eq!(playout.counters().dropped, PACKETS_MAX as u64);
    }
}
