//! Packets of one stream, as they come from a socket, to frames in order.

use crate::frame::{BEFORE_PACKET, FRAME_BYTES_MAX, FRAME_PACKETS_MAX, RtpFrame};
use crate::nal::{RtpFrameKind, VideoCodec};
use crate::packet::{RtpPacket, RtpPacketError};
use crate::timestamp::extend;
use bytes::Bytes;
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// How a stream is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtpRules {
    /// Ticks of its time stamp in a second.
    pub clock_rate: u32,
    /// What it carries.
    pub codec: VideoCodec,
    /// How long a packet that was overtaken is waited for.
    pub reorder: Duration,
}

/// Packets of a stream so far. Each that was taken is in one of the others, or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RtpCounters {
    /// Packets that came.
    pub packets: u64,
    /// Of those, packets in frames.
    pub framed: u64,
    /// Packets that came after their place had been left, or twice.
    pub late: u64,
    /// Packets of another source, of RTCP, far from the others, or that are none.
    pub refused: u64,
    /// Packets that never came.
    pub missing: u64,
    /// Frames.
    pub frames: u64,
    /// Packets of frames that nobody took in time.
    pub dropped: u64,
    /// Frames that ended because they had become too large.
    pub cut: u64,
    /// How often the stream began anew, under another source or far from where it was.
    pub restarts: u64,
}

/// The entrance of one stream.
#[derive(Debug)]
pub struct RtpEntrance {
    rules: RtpRules,
    source: Option<Source>,
    /// Packets that wait for earlier ones, by their extended number; none is before `next`.
    waiting: BTreeMap<u64, (Instant, RtpPacket)>,
    frame: Option<OpenFrame>,
    done: VecDeque<RtpFrame>,
    counters: RtpCounters,
}

/// Where the stream is.
#[derive(Debug, Clone, Copy)]
struct Source {
    ssrc: u32,
    /// When its last packet came.
    last: Instant,
    /// The number that follows the last packet far from the others, if it came just now.
    far: Option<u16>,
    /// The extended number of the packet that comes next.
    next: u64,
    /// The extended time stamp of the packet before it.
    time: u64,
    /// Packets missing since the last frame.
    missing: u64,
}

#[derive(Debug)]
struct OpenFrame {
    frame: RtpFrame,
    bytes: usize,
    since: Instant,
}

/// Packets that wait for earlier ones: 128 ms of 1,000 packets a second.
const WAITING_MAX: usize = 128;
/// Frames that wait to be taken: two seconds of 60 a second.
const DONE_MAX: usize = 128;
/// RFC 3550 A.1: a jump by more is a new beginning of the stream.
const JUMP: u64 = 3_000;
/// Another source is refused until the one that is there was silent for this long: a camera that
/// begins anew has another source identifier (RFC 3550 8.1).
const SILENCE: Duration = Duration::from_secs(1);
/// A frame whose end does not come is complete after this: a frame of 10 a second.
const FRAME_WAIT: Duration = Duration::from_millis(100);

impl Default for RtpRules {
    /// Video, whose clock has 90,000 ticks a second (RFC 6184 8.2.1), of any codec.
    fn default() -> Self {
        let reorder = Duration::from_millis(20);
        Self { clock_rate: 90_000, codec: VideoCodec::Any, reorder }
    }
}

impl RtpEntrance {
    /// The entrance of a stream that has not begun.
    pub fn new(rules: RtpRules) -> Self {
        Self {
            rules,
            source: None,
            waiting: BTreeMap::new(),
            frame: None,
            done: VecDeque::new(),
            counters: RtpCounters::default(),
        }
    }

    /// Takes a packet as it came from the network.
    ///
    /// # Errors
    /// It is no RTP packet; it is counted.
    pub fn take(&mut self, now: Instant, bytes: Bytes) -> Result<(), RtpPacketError> {
        self.handle_timeout(now);
        self.counters.packets += 1;
        let packet = RtpPacket::parse(bytes).inspect_err(|_| self.counters.refused += 1)?;
        if packet.bytes().len() > usize::from(u16::MAX) {
            self.counters.refused += 1;
            return Err(RtpPacketError::Short);
        }
        let Some(number) = self.number(now, &packet) else {
            self.counters.refused += 1;
            return Ok(());
        };
        let next = self.source.map_or(0, |source| source.next);
        if number < next || self.waiting.contains_key(&number) {
            self.counters.late += 1;
            return Ok(());
        }
        self.waiting.insert(number, (now, packet));
        self.advance(now);
        while self.waiting.len() > WAITING_MAX {
            self.skip(now);
        }
        Ok(())
    }

    /// The extended number of a packet; `None` where it is not of the stream. The stream begins
    /// anew under another source when this one is silent, and at two packets in a row that are far
    /// away (RFC 3550 A.1).
    fn number(&mut self, now: Instant, packet: &RtpPacket) -> Option<u64> {
        if let Some(source) = &mut self.source {
            if source.ssrc != packet.ssrc() {
                if now.since(source.last) < SILENCE {
                    return None;
                }
            } else {
                let number = extend(source.next, u64::from(packet.sequence()), 16);
                if number.abs_diff(source.next) <= JUMP {
                    (source.last, source.far) = (now, None);
                    return Some(number);
                }
                if source.far.replace(packet.sequence().wrapping_add(1)) != Some(packet.sequence())
                {
                    return None;
                }
            }
            self.counters.restarts += 1;
            self.flush();
        }
        // Room for a time before the first one.
        let time = self.source.map_or(1 << 32, |source| source.time);
        let time = extend(time, u64::from(packet.timestamp()), 32);
        let first = (1 << 16) + u64::from(packet.sequence());
        let ssrc = packet.ssrc();
        self.source = Some(Source { ssrc, last: now, far: None, next: first, time, missing: 0 });
        Some(first)
    }

    /// Puts what is in order into frames.
    fn advance(&mut self, now: Instant) {
        while let Some(source) = &mut self.source
            && let Some((_, packet)) = self.waiting.remove(&source.next)
        {
            source.next += 1;
            source.time = extend(source.time, u64::from(packet.timestamp()), 32);
            let (time, missing) = (source.time, core::mem::take(&mut source.missing));
            self.frame(now, time, missing, packet);
        }
    }

    /// A packet in its order.
    fn frame(&mut self, now: Instant, time: u64, missing: u64, packet: RtpPacket) {
        let len = packet.bytes().len() + BEFORE_PACKET;
        if let Some(open) = &self.frame {
            let is_full = open.bytes + len > FRAME_BYTES_MAX - 64
                || open.frame.packets.len() == FRAME_PACKETS_MAX;
            self.counters.cut += u64::from(is_full && open.frame.time == time);
            if open.frame.time != time || is_full {
                self.close();
            }
        }
        let ends = packet.has_marker();
        let kind = self.rules.codec.kind_of(packet.payload());
        let open = self.frame.get_or_insert_with(|| OpenFrame {
            frame: RtpFrame { time, packets: Vec::new(), missing: 0, kind: RtpFrameKind::Unknown },
            bytes: 0,
            since: now,
        });
        open.frame.missing += missing;
        open.frame.kind = open.frame.kind.max(kind);
        open.frame.packets.push(packet);
        open.bytes += len;
        self.counters.framed += 1;
        if ends {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.frame.take() {
            self.counters.frames += 1;
            if self.done.len() == DONE_MAX {
                let oldest = self.done.pop_front().map_or(0, |frame| frame.packets.len());
                self.counters.dropped += oldest as u64;
            }
            self.done.push_back(open.frame);
        }
    }

    /// Leaves the missing packets before the first that waits.
    fn skip(&mut self, now: Instant) {
        if let (Some(source), Some((first, _))) = (&mut self.source, self.waiting.first_key_value())
        {
            let missing = first - source.next;
            source.next = *first;
            source.missing += missing;
            self.counters.missing += missing;
        }
        self.advance(now);
    }

    /// All that waits goes into frames, whatever is missing between.
    fn flush(&mut self) {
        while let Some((_, (at, _))) = self.waiting.first_key_value() {
            let at = *at;
            self.skip(at);
        }
        self.close();
    }

    /// Gives up packets that were waited for long enough, and closes a frame whose end did not
    /// come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.next_reorder().is_some_and(|due| due <= now) {
            self.skip(now);
        }
        if self.frame.as_ref().is_some_and(|open| open.since + FRAME_WAIT <= now) {
            self.close();
        }
    }

    fn next_reorder(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(_, (at, _))| *at + self.rules.reorder)
    }

    /// When [`RtpEntrance::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let frame = self.frame.as_ref().map(|open| open.since + FRAME_WAIT);
        [self.next_reorder(), frame].into_iter().flatten().min()
    }

    /// The next frame. Of more than 128 that nobody takes, the oldest are dropped.
    pub fn poll(&mut self) -> Option<RtpFrame> {
        self.done.pop_front()
    }

    /// The packets so far.
    pub const fn counters(&self) -> RtpCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
