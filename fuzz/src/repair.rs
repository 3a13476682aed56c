//! Repair symbols from the line, in any order and with any content.

use bytes::Bytes;
use skyhaul_transport::repair::{RepairDecoder, RepairSymbol, Sid};

/// A decoder takes anything: what waits in it is bounded, every repair symbol is counted in one
/// place, and nothing is recovered that had arrived. The input is a series of records: a head of
/// eight bytes (bits of the kind, number, count, stride, index, length), then the content.
pub fn repair_symbols(input: &[u8]) {
    let mut decoder = RepairDecoder::new();
    let mut rest = input;
    while let Some((head, behind)) = rest.split_first_chunk::<8>() {
        let [kind, a, b, c, count, stride, index, len] = *head;
        let (content, behind) = behind.split_at(usize::from(len).min(behind.len()));
        rest = behind;
        let sid = Sid::from_wire(u32::from_be_bytes([0, a, b, c]));
        let bytes = Bytes::copy_from_slice(content);
        if kind & 1 == 0 {
            decoder.source(sid, bytes);
        } else {
            decoder.repair(RepairSymbol { first: sid, count, stride, index, bytes });
        }
        let counted = *decoder.counters();
        let settled = counted.used + counted.wasted + counted.rejected;
        assert_eq!(counted.repairs, settled + decoder.held() as u64);
        assert!(decoder.held() <= HELD_MAX, "{} symbols wait", decoder.held());
        let mut recovered = 0;
        while let Some((_, content)) = decoder.poll() {
            recovered += 1;
            assert!(content.len() <= usize::from(u8::MAX));
        }
        assert!(recovered <= counted.recovered && counted.recovered <= counted.used);
    }
}

/// What the decoder promises: its 2,048, before the newest group is counted.
const HELD_MAX: usize = 2_048;
