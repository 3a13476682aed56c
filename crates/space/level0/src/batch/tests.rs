use super::*;
use core::convert::Infallible;
use proptest::prelude::*;
use skyhaul_ccsds::id::{Apid, Vcid};
use std::collections::BTreeMap;

fn held(count: u16, bytes: &[u8], quality: u8) -> Held<'_> {
    let received = Utc::from_nanos(0);
    let quality = PacketQuality::from_bits(quality);
    Held { apid: Apid::MAX, count, vcid: Vcid::MAX, quality, received, fill: 0, bytes }
}

fn slot(time: i64) -> Slot {
    Slot { time: Utc::from_nanos(time), rank: 0 }
}

/// What comes out of a batch: packets by slot's time, count and bytes; duplicates; those that
/// differ.
#[derive(Debug, Default, PartialEq, Eq)]
struct Out {
    packets: Vec<(i64, u16, Vec<u8>)>,
    duplicates: usize,
    differ: Vec<Vec<u8>>,
}

impl Out {
    fn take(&mut self, settled: Settled<'_>) -> Result<(), Infallible> {
        match settled {
            Settled::Packet(slot, held) => {
                self.packets.push((slot.time.as_nanos(), held.count, held.bytes.to_vec()));
            }
            Settled::Duplicate => self.duplicates += 1,
            Settled::Differs(_, held) => self.differ.push(held.bytes.to_vec()),
        }
        Ok(())
    }

    fn all(mut batch: Batch) -> Self {
        let mut out = Self::default();
        batch.drain(Part::All, &mut |settled| out.take(settled)).unwrap();
        assert_eq!((batch.cost(), batch.len()), (0, 0));
        out
    }
}

fn sequence(counts: &[u16]) -> Vec<u16> {
    let mut batch = Batch::default();
    for count in counts {
        batch.push(slot(5), held(*count, &[], 0));
    }
    Out::all(batch).packets.into_iter().map(|(_, count, _)| count).collect()
}

#[test]
fn a_run_is_in_sequence_over_the_wrap_of_the_count() {
    assert_eq!(sequence(&[2, 0, 1]), [0, 1, 2]);
    assert_eq!(sequence(&[0, 16_383, 1, 16_382]), [16_382, 16_383, 0, 1]);
    assert_eq!(sequence(&[9_000, 8_190]), [8_190, 9_000]);
    assert_eq!(sequence(&[7]), [7]);
    assert_eq!(sequence(&[]), [0u16; 0]);
}

#[test]
fn the_better_copy_stays_whichever_came_first() {
    for swap in [false, true] {
        let mut copies = [held(5, b"clean", 0), held(5, b"badly", 2)];
        if swap {
            copies.reverse();
        }
        let mut batch = Batch::default();
        for copy in copies {
            batch.push(slot(1), copy);
        }
        batch.push(slot(1), held(5, b"clean", 1));
        let expected = Out {
            packets: vec![(1, 5, b"clean".to_vec())],
            duplicates: 1,
            differ: vec![b"badly".to_vec()],
        };
        assert_eq!(Out::all(batch), expected);
    }
}

#[test]
fn a_packet_costs_its_length_and_what_lies_beside_it_until_it_is_handed_out() {
    let mut batch = Batch::default();
    for time in [3, 1, 2] {
        batch.push(slot(time), held(0, &[0; 100], 0));
    }
    assert_eq!(batch.cost(), 3 * (100 + OVERHEAD));
    let mut out = Out::default();
    assert_eq!(
        batch.drain(Part::Before(slot(3)), &mut |settled| out.take(settled)),
        Ok(Some(slot(2)))
    );
    assert_eq!((batch.cost(), batch.len()), (100 + OVERHEAD, 1));
    assert_eq!(batch.drain(Part::Before(slot(3)), &mut |settled| out.take(settled)), Ok(None));
    assert_eq!(batch.drain(Part::Half, &mut |settled| out.take(settled)), Ok(Some(slot(3))));
    assert_eq!(out.packets.iter().map(|packet| packet.0).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_run_is_never_parted() {
    let mut batch = Batch::default();
    for count in 0..100 {
        batch.push(slot(1), held(count, &[0; 10], 0));
    }
    batch.push(slot(2), held(0, &[0; 10], 0));
    let mut out = Out::default();
    assert_eq!(batch.drain(Part::Half, &mut |settled| out.take(settled)), Ok(Some(slot(1))));
    assert_eq!((out.packets.len(), batch.len()), (100, 1));
}

proptest! {
    /// Beside a map by time and count, with the packets handed out in several steps.
    #[test]
    fn packets_come_out_as_from_a_map(
        packets in proptest::collection::vec((-4i64..4, 0u16..6, 0u8..3, 0u8..3), 0..80),
        parts in proptest::collection::vec(0usize..80, 0..4),
    ) {
        let mut naive: BTreeMap<(i64, u16), Vec<(u8, u8)>> = BTreeMap::new();
        let mut batch = Batch::default();
        let mut out = Out::default();
        for (time, count, quality, byte) in &packets {
            naive.entry((*time, *count)).or_default().push((*quality, *byte));
            batch.push(slot(*time), held(*count, core::slice::from_ref(byte), *quality));
        }
        for part in parts {
            if part % 2 == 0 {
                batch.drain(Part::Half, &mut |settled| out.take(settled)).unwrap();
            } else {
                batch.drain(Part::Before(slot(part as i64 % 9 - 4)),
                    &mut |settled| out.take(settled)).unwrap();
            }
        }
        batch.drain(Part::All, &mut |settled| out.take(settled)).unwrap();
        let (mut duplicates, mut differ) = (0, 0);
        let mut expected = Vec::new();
        for ((time, count), mut claims) in naive {
            claims.sort_unstable();
            let best = claims[0].1;
            duplicates += claims[1..].iter().filter(|(_, byte)| *byte == best).count();
            differ += claims[1..].iter().filter(|(_, byte)| *byte != best).count();
            expected.push((time, count, vec![best]));
        }
        prop_assert_eq!(out.packets, expected);
        prop_assert_eq!((out.duplicates, out.differ.len()), (duplicates, differ));
    }
}
