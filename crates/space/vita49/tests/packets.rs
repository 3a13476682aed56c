//! Packets laid out by hand from the standard's fields, and streams of them with everything that
//! goes wrong on a network.

#![allow(clippy::unwrap_used, reason = "a test stops at whatever it does not expect")]

use proptest::prelude::*;
use skyhaul_units::{Duration, Rate, Utc};
use skyhaul_vita49::{
    Contents, Depacketiser, FractionalTime, IntegerTime, ItemFormat, PacketError, PacketKind,
    Refused, SampleKind, SymbolForm, Vita49Packet,
};

const SECOND: u32 = 1_730_419_200;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Signal data of stream 7 with class, UTC and picoseconds; `pad` bits at its end mean nothing.
fn data(count: u32, picos: u64, payload: &[u8], pad: u32) -> Vec<u8> {
    assert!(payload.len().is_multiple_of(4));
    let length = 7 + payload.len() as u32 / 4;
    let head = [
        0x1860_0000 | (count & 0xF) << 16 | length,
        7,
        pad << 27 | 0x6A_621E,
        0,
        SECOND,
        (picos >> 32) as u32,
        picos as u32,
    ];
    [words(&head), payload.to_vec()].concat()
}

/// A context packet of stream 7 with a sample rate and a payload format.
fn context(rate: u64, format: u64) -> Vec<u8> {
    let rate = rate << 20;
    words(&[
        0x4060_000B,
        7,
        SECOND,
        0,
        0,
        1 << 21 | 1 << 15,
        (rate >> 32) as u32,
        rate as u32,
        (format >> 32) as u32,
        format as u32,
        0, // of an indicator field that is not read
    ])
}

/// A payload format: kind, format, bits of the field and of the item.
const fn format(kind: u64, format: u64, field: u64, item: u64) -> u64 {
    kind << 61 | format << 56 | (field - 1) << 38 | (item - 1) << 32
}

const HARD: u64 = format(0, 0x10, 1, 1);
const SOFT: u64 = format(0, 0, 8, 8);
const OFFSET: u64 = format(0, 0x10, 8, 8);
/// As DIFI's standard flow has it: in-phase and quadrature, signed, eight bits each.
const DIFI: u64 = 1 << 63 | format(1, 0, 8, 8);

#[test]
fn a_data_packet_has_its_class_stream_time_payload_and_trailer() {
    // Stream 0x1234, DIFI, GPS seconds, a count of samples, count 5, a trailer: valid, over-range
    // not, samples missing.
    let trailer = 1 << 30 | 1 << 25 | 1 << 24 | 1 << 18 | 1 << 12;
    let bytes =
        words(&[0x1C95_0009, 0x1234, 0x6A_621E, 0, 1_400_000_000, 0, 500, 0xDEAD_BEEF, trailer]);
    let (packet, after) = Vita49Packet::parse(&bytes).unwrap();
    assert!(after.is_empty());
    assert_eq!(
        (packet.kind, packet.stream, packet.count),
        (PacketKind::SignalData, Some(0x1234), 5)
    );
    assert_eq!(packet.class.unwrap().oui, 0x6A_621E);
    assert_eq!(packet.time.integer, IntegerTime::Gps(1_400_000_000));
    assert_eq!(packet.time.fractional, FractionalTime::Samples(500));
    let Contents::Data { payload, pad_bits, trailer } = packet.contents else { panic!("data") };
    assert_eq!((payload, pad_bits), (&[0xDE, 0xAD, 0xBE, 0xEF][..], 0));
    let trailer = trailer.unwrap();
    assert_eq!(
        (trailer.is_valid, trailer.is_over_range, trailer.is_lossy),
        (Some(true), Some(false), Some(true))
    );
    assert_eq!(trailer.is_locked, None);
}

#[test]
fn a_context_packet_has_its_fields_in_the_order_of_their_bits() {
    // Reference point, bandwidth, IF, RF frequency, level, gain, sample rate, state, payload
    // format; changed.
    let indicators = 0b1111_1001_1010_0001 << 16 | 1 << 15;
    let fixed = |hertz: i64| [(hertz >> 12) as u32, (hertz << 20) as u32];
    let (bandwidth, none, rf, rate) =
        (fixed(30_000_000), fixed(0), fixed(7_812_000_000), fixed(15_000_000));
    let fields = [
        &[indicators, 99][..],
        &bandwidth,
        &none,
        &rf,
        &[0xFFFF_F380, 0], // -25 dBm in the low half; gain
        &rate,
        &[0x0005_0000], // state
        &[(SOFT >> 32) as u32, SOFT as u32],
    ]
    .concat();
    let head = [0x4000_0002 + fields.len() as u32, 7];
    let bytes = words(&[&head[..], &fields].concat());
    let Contents::Context(context) = Vita49Packet::parse(&bytes).unwrap().0.contents else {
        panic!("context")
    };
    assert!(context.is_changed && context.unread == 0, "{context:?}");
    assert_eq!(context.bandwidth_hz, Some(30_000_000));
    assert_eq!(context.rf_frequency_hz, Some(7_812_000_000));
    assert_eq!(context.reference_level_128th_dbm, Some(-25 * 128));
    assert_eq!(context.sample_rate, Some(Rate::from_mbps(15)));
    let format = context.payload_format.unwrap();
    assert_eq!((format.kind, format.format), (SampleKind::Real, ItemFormat::Signed));
    assert_eq!((format.field_bits, format.item_bits), (8, 8));
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = data(0, 0, &[0; 8], 0);
    for (bytes, error) in [
        (vec![0x18, 0x60, 0], PacketError::Short(3)),
        (good[..20].to_vec(), PacketError::Length { said: 36, there: 20 }),
        (words(&[0x1860_0000]), PacketError::Length { said: 0, there: 4 }),
        (words(&[0x1860_0003, 7, 0]), PacketError::Fields(12)),
        (words(&[0xF000_0001]), PacketError::Kind(15)),
        (data(0, 1_000_000_000_000, &[0; 4], 0), PacketError::Picoseconds(1_000_000_000_000)),
        (data(0, 0, &[], 5), PacketError::Padding { payload: 0, pad_bits: 5 }),
        (words(&[0x4000_0003, 7, 1 << 7]), PacketError::Attributes),
        (words(&[0x4000_0003, 7, 1 << 9]), PacketError::Fields(4)),
        (words(&[0x4000_0005, 7, 1 << 9, 0, u32::MAX]), PacketError::Fields(12)),
        (context(1, format(0, 0, 4, 8)), PacketError::Items { item: 8, field: 4 }),
    ] {
        assert_eq!(Vita49Packet::parse(&bytes).map(|_| ()), Err(error), "{bytes:02x?}");
    }
}

#[test]
fn symbols_are_stamped_with_the_reception_of_their_last_one() {
    let arrived = Utc::from_micros(5);
    let mut stream = Depacketiser::new();
    let second = Utc::from_micros(i64::from(SECOND) * 1_000_000);
    let first = stream.push(arrived, &data(3, 250_000_000_000, &[1; 8], 0)).unwrap().unwrap();
    let quarter = second + Duration::from_millis(250);
    assert_eq!((first.received, first.is_stamped, first.form), (quarter, true, SymbolForm::Hard));
    assert_eq!(stream.push(arrived, &context(1_000, SOFT)).unwrap(), None);
    let soft = stream.push(arrived, &data(4, 250_000_000_000, &[1; 8], 8)).unwrap().unwrap();
    assert_eq!((soft.form, soft.bytes.len()), (SymbolForm::Signed, 7), "one is padding");
    assert_eq!(soft.received, quarter + Duration::from_millis(7));
    stream.push(arrived, &context(1_000, OFFSET)).unwrap();
    let offset = stream.push(arrived, &data(5, 0, &[1; 8], 0)).unwrap().unwrap();
    assert_eq!(offset.form, SymbolForm::Offset);
    let unstamped = words(&[0x1006_0003, 7, 0xFFFF_FFFF]);
    let unstamped = stream.push(arrived, &unstamped).unwrap().unwrap();
    assert_eq!((unstamped.received, unstamped.is_stamped), (arrived, false));
}

#[test]
fn samples_are_refused_with_what_to_do() {
    let mut stream = Depacketiser::new();
    stream.push(Utc::from_micros(0), &context(1_000, DIFI)).unwrap();
    let refused = stream.push(Utc::from_micros(0), &data(0, 0, &[1; 8], 0)).unwrap_err();
    assert_eq!(refused, Refused::Samples("in-phase and quadrature"));
    assert!(refused.to_string().contains("put a demodulator in front"), "{refused}");
    stream.push(Utc::from_micros(0), &context(1_000, format(0, 0, 16, 12))).unwrap();
    let refused = stream.push(Utc::from_micros(0), &data(0, 0, &[1; 8], 0)).unwrap_err();
    assert_eq!(refused, Refused::Items { item: 12, field: 16 });
    assert_eq!(stream.counters().samples, 2);
}

#[test]
fn gaps_late_packets_and_other_streams_are_counted_and_left_out() {
    let mut stream = Depacketiser::new();
    let at = Utc::from_micros(0);
    let mut taken =
        |count: u32| stream.push(at, &data(count, 0, &count.to_be_bytes(), 0)).unwrap().is_some();
    let order = [14, 15, 0, 3, 2, 3, 4, 4, 9];
    let is_taken = order.map(&mut taken);
    assert_eq!(is_taken, [true, true, true, true, false, false, true, false, true]);
    let mut other = data(10, 0, &[0; 4], 0);
    other[7] = 8;
    assert_eq!(stream.push(at, &other), Ok(None));
    assert_eq!(stream.push(at, &words(&[0x6000_0002, 7])), Ok(None));
    let counters = stream.counters();
    assert_eq!((counters.data, counters.lost, counters.reordered, counters.other), (6, 6, 3, 2));
    assert!(stream.push(at, &[1, 2, 3]).is_err());
    assert_eq!(stream.counters().damaged, 1);
}

#[test]
fn what_another_streams_context_says_is_not_meant_for_ours() {
    let mut stream = Depacketiser::new();
    let mut other = context(1_000, DIFI);
    other[7] = 8;
    stream.push(Utc::from_micros(0), &other).unwrap();
    assert!(stream.push(Utc::from_micros(0), &data(0, 0, &[1; 4], 0)).unwrap().is_some());
    stream.push(Utc::from_micros(0), &other).unwrap();
    assert!(stream.push(Utc::from_micros(0), &data(1, 0, &[1; 4], 0)).unwrap().is_some());
    assert_eq!(stream.counters().other, 1);
}

proptest! {
    /// However bits are cut into packets, also inside bytes, they come out as they went in.
    #[test]
    fn bits_are_joined_across_packets(cuts in prop::collection::vec(1usize..200, 1..30),
        seed in any::<u64>()) {
        let total: usize = cuts.iter().sum();
        let bit = |place: usize| (seed.rotate_left(place as u32) ^ place as u64 >> 3) & 1;
        let mut stream = Depacketiser::new();
        stream.push(Utc::from_micros(0), &context(1_000, HARD)).unwrap();
        let (mut from, mut joined) = (0, Vec::new());
        for (count, bits) in cuts.iter().enumerate() {
            let mut payload = vec![0u8; bits.div_ceil(32) * 4];
            for place in 0..*bits {
                payload[place / 8] |= (bit(from + place) as u8) << (7 - place % 8);
            }
            let pad = (8 * payload.len() - bits) as u32;
            let symbols = stream.push(Utc::from_micros(0),
                &data(count as u32, 0, &payload, pad)).unwrap();
            joined.extend(symbols.unwrap().bytes);
            from += bits;
        }
        prop_assert_eq!(joined.len(), total / 8);
        for place in 0..8 * joined.len() {
            let found = u64::from(joined[place / 8] >> (7 - place % 8) & 1);
            prop_assert_eq!(found, bit(place), "bit {}", place);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut stream = Depacketiser::new();
        let _ = stream.push(Utc::from_micros(0), &bytes);
        let mut framed = bytes;
        let words = framed.len() / 4;
        if framed.len() >= 4 {
            framed[2..4].copy_from_slice(&(words as u16).to_be_bytes());
            framed[0] &= 0x7F;
            let _ = stream.push(Utc::from_micros(0), &framed);
            let _ = stream.push(Utc::from_micros(0), &framed);
        }
    }
}
