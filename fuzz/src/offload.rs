//! Packets that a device with offload hands over, cut and joined.

use skyhaul_emulator::offload::OFFLOAD_LEN;
use skyhaul_emulator::packet::{Segment, join, next_run, segments};

/// Any bytes as a device gives them. What is cut and joined whole is, cut and joined again, the
/// same bytes, with the payload that came; each packet alone has the size that the link counts.
pub fn offload_packets(input: &[u8]) {
    let Ok(all) = segments(input) else { return };
    let all: Vec<Segment> = all.collect();
    assert_eq!(next_run(&all), all.len(), "packets of one origin are handed over at once");
    let (mut joined, mut alone) = (Vec::new(), Vec::new());
    join(&all, &mut joined);
    assert_eq!(joined.len(), input.len());
    for segment in all.iter().take(ALONE) {
        join(std::slice::from_ref(segment), &mut alone);
        assert_eq!((alone.len() - OFFLOAD_LEN) as u64, segment.size().as_u64());
    }
    let again = segments(&joined).expect("what was joined can be cut");
    join(&again.collect::<Vec<_>>(), &mut alone);
    assert!(joined == alone, "cutting and joining changes what was joined");
}

/// Packets that are joined alone: a segment size of one byte makes tens of thousands.
const ALONE: usize = 64;
