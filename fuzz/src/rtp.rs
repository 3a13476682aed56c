//! The packets of an RTP stream, and the blocks that carry them.

use bytes::Bytes;
use skyhaul_rtp::{RtpEntrance, RtpFrame, RtpPlayout, RtpRules, VideoCodec};
use skyhaul_units::{Duration, Instant};

/// As a block: one that is read is written the same, and its packets are played. As packets, each
/// with its length and how much later it comes before it: every one that is taken has one fate, and
/// what comes out of the far end are packets that went in.
pub fn rtp(input: &[u8]) {
    let block = Bytes::copy_from_slice(input);
    if let Ok(frame) = RtpFrame::decode(&block) {
        assert_eq!(frame.encode(), block);
        let packets = frame.packets.len() as u64;
        let mut playout = RtpPlayout::new(90_000, Duration::ZERO);
        playout.take(Instant::ZERO, frame);
        while playout.poll(Instant::ZERO).is_some() {}
        assert_eq!(playout.counters().played, packets);
    }
    for codec in [VideoCodec::H264, VideoCodec::H265] {
        passes(input, RtpRules { codec, ..RtpRules::default() });
    }
}

fn passes(mut rest: &[u8], rules: RtpRules) {
    let mut entrance = RtpEntrance::new(rules);
    let mut playout = RtpPlayout::new(rules.clock_rate, Duration::from_millis(100));
    let mut now = Instant::ZERO;
    while let Some((&[later, len], behind)) = rest.split_first_chunk() {
        let (packet, behind) = behind.split_at(behind.len().min(usize::from(len)));
        rest = behind;
        now += Duration::from_millis(u64::from(later));
        let _ = entrance.take(now, Bytes::copy_from_slice(packet));
        while let Some(frame) = entrance.poll() {
            let far = RtpFrame::decode(&frame.encode());
            playout.take(now, far.expect("what was written can be read"));
        }
        while playout.poll(now).is_some() {}
    }
    let first = entrance.counters();
    // What waits is put into frames, then the last frame ends.
    for _ in 0..2 {
        now += Duration::from_secs(1);
        entrance.handle_timeout(now);
    }
    let all = entrance.counters();
    assert_eq!(all.packets, first.packets);
    assert_eq!(all.packets, all.framed + all.late + all.refused);
    assert_eq!(entrance.next_timeout(), None, "nothing waits");
}
