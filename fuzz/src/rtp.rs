//! The packets of an RTP stream, and the blocks that carry them.

use bytes::Bytes;
use skyhaul_rtp::{RtpEntrance, RtpFrame, RtpFrameKind, RtpPacket, RtpRules, VideoCodec};
use skyhaul_streams::wire::Message;
use skyhaul_streams::{
    Departure, FrameGrouping, FrameRole, MediaClock, StreamFormat, StreamReceiver,
};
use skyhaul_units::{Duration, Instant};

/// As a block: one that is read is written the same. As packets, each with its length and how much
/// later it comes before it: every one that is taken has one fate, and what comes out of the far
/// end are the packets that went into it, in order and once.
pub fn rtp(input: &[u8]) {
    let block = Bytes::copy_from_slice(input);
    if let Ok(packets) = RtpFrame::packets_in(&block) {
        let frame = RtpFrame { time: 0, packets, missing: 0, kind: RtpFrameKind::Unknown };
        assert_eq!(frame.encode(), block);
    }
    for codec in [VideoCodec::H264, VideoCodec::H265] {
        passes(input, RtpRules { codec, ..RtpRules::default() });
    }
}

/// Both ends of a stream.
struct Ends {
    clock: MediaClock,
    departure: Departure,
    far: StreamReceiver,
    sent: Vec<RtpPacket>,
    came: Vec<RtpPacket>,
}

impl Ends {
    fn carry(&mut self, now: Instant, frame: RtpFrame) {
        let time = self.clock.see(now, frame.time);
        assert!(time.since <= now, "no frame is due before it came");
        let parcel = self.departure.single(time, FrameRole::default(), &frame.encode());
        let message = Message::decode(&parcel.bytes, StreamFormat::Rtp);
        let Ok(Message::Group(group)) = message else { panic!("what was written can be read") };
        self.far.group(now, group).expect("each comes once");
        self.sent.extend(frame.packets);
    }

    fn play(&mut self, now: Instant) {
        while let Some(given) = self.far.poll(now) {
            let packets = RtpFrame::packets_in(&given.bytes);
            self.came.extend(packets.expect("what was written can be read"));
        }
    }
}

fn passes(mut rest: &[u8], rules: RtpRules) {
    let mut entrance = RtpEntrance::new(rules);
    let mut now = Instant::ZERO;
    let mut ends = Ends {
        clock: MediaClock::new(now, rules.clock_rate, LATENESS),
        departure: Departure::new(now, FrameGrouping::default(), None),
        far: StreamReceiver::new(StreamFormat::Rtp, LATENESS, None),
        sent: Vec::new(),
        came: Vec::new(),
    };
    while let Some((&[later, len], behind)) = rest.split_first_chunk() {
        let (packet, behind) = behind.split_at(behind.len().min(usize::from(len)));
        rest = behind;
        now += Duration::from_millis(u64::from(later));
        let _ = entrance.take(now, Bytes::copy_from_slice(packet));
        while let Some(frame) = entrance.poll() {
            ends.carry(now, frame);
        }
        ends.play(now);
    }
    let first = entrance.counters();
    // What waits is put into frames, then the last frame ends.
    for _ in 0..2 {
        now += Duration::from_secs(1);
        entrance.handle_timeout(now);
        while let Some(frame) = entrance.poll() {
            ends.carry(now, frame);
        }
    }
    ends.play(now + LATENESS + LATENESS);
    assert_eq!(ends.came, ends.sent);
    assert!(ends.far.next_timeout().is_none(), "everything went out");
    let all = entrance.counters();
    assert_eq!(all.packets, first.packets);
    assert_eq!(all.packets, all.framed + all.late + all.refused);
    assert_eq!(entrance.next_timeout(), None, "nothing waits");
}

const LATENESS: Duration = Duration::from_millis(100);
