use super::super::{FrameFields, HEADER_LEN, seal, set_count, set_first_header, write};
use super::*;
use crate::mission::{FrameCheck, FrameLengths};
use proptest::prelude::*;

const FORMAT: FrameFormat = FrameFormat {
    kind: FrameKind::Uslp,
    length: 40,
    lengths: FrameLengths::Fixed,
    wide_scid: true,
    fhec: false,
    insert_zone: 0,
    ocf: false,
    fecf: FrameCheck::None,
};

#[test]
fn all_header_fields_are_read() {
    // Version 1100, SCID 0x1234, source, VCID 5, MAP 9, not truncated; length 40; expedited, OCF, 2
    // octets of count.
    let mut bytes = vec![0xC1, 0x23, 0x40, 0xB2, 0, 39, 0x8A, 0x01, 0x02];
    // Insert zone; rule 000, packets, first header at 3.
    bytes.extend([0xAA, 0xBB, 0x00, 0, 3]);
    bytes.resize(36, 0x55);
    bytes.extend([1, 2, 3, 4]);
    let frame = Frame::parse(&bytes, &FrameFormat { insert_zone: 2, ..FORMAT }).unwrap();
    assert_eq!((frame.channel.scid.value(), frame.channel.vcid.value()), (0x1234, 5));
    assert_eq!(frame.count, VcCount { value: 0x0102, modulus: Modulus::of_octets(2) });
    assert_eq!((frame.insert_zone, frame.ocf), ([0xAA, 0xBB].as_slice(), Some([1, 2, 3, 4])));
    let fields = frame.uslp.unwrap();
    assert_eq!((fields.map.value(), fields.is_expedited, fields.is_destination), (9, true, false));
    let packets = frame.m_pdu(FrameKind::Uslp).unwrap();
    assert_eq!((packets.first_header, packets.zone), (FirstHeader::At(3), [0x55; 22].as_slice()));
}

#[test]
fn a_truncated_frame_has_four_bytes_of_header_and_no_zones() {
    // Destination, VCID 63 would be idle: VCID 1, MAP 15, truncated; rule 111, packets.
    let mut bytes = vec![0xC0, 0x02, 0x28, 0x3F, 0xE0];
    bytes.resize(40, 7);
    let frame = Frame::parse(&bytes, &FrameFormat { insert_zone: 30, ..FORMAT }).unwrap();
    let fields = frame.uslp.unwrap();
    assert!(fields.is_truncated && fields.is_destination && frame.insert_zone.is_empty());
    assert_eq!((frame.channel.scid.value(), fields.map.value()), (0x22, 15));
    assert_eq!(frame.count.modulus, Modulus::NONE);
    assert_eq!(frame.m_pdu(FrameKind::Uslp).unwrap().first_header, FirstHeader::At(0));
    assert_eq!(frame.data.len(), 35);
}

#[test]
fn a_frame_that_says_another_length_is_refused() {
    let mut bytes = vec![0xC0, 0x00, 0x10, 0x20, 0, 40, 0, 0, 0, 0];
    bytes.resize(40, 0);
    assert_eq!(Frame::parse(&bytes, &FORMAT), Err(FrameError::Length { found: 41, expected: 40 }));
}

#[test]
fn only_packets_of_the_packet_protocol_are_looked_for() {
    let parsed = |head: u8, flags: u8| {
        let mut bytes = vec![0xC0, 0x00, 0x10, 0x20, 0, 39, flags, head, 0xFF, 0xFF];
        bytes.resize(40, 0);
        Frame::parse(&bytes, &FORMAT)
            .unwrap()
            .m_pdu(FrameKind::Uslp)
            .map(|packets| packets.first_header)
    };
    assert_eq!(parsed(0x00, 0), Some(FirstHeader::Continuation));
    assert_eq!(parsed(0x1F, 0), Some(FirstHeader::Idle));
    assert_eq!(parsed(0x20, 0), None, "a service data unit that begins");
    assert_eq!(parsed(0x60, 0), None, "an octet stream");
    assert_eq!(parsed(0x05, 0), None, "service data units of the access point");
    assert_eq!(parsed(0x80, 0), Some(FirstHeader::At(0)));
    assert_eq!(parsed(0xA0, 0), Some(FirstHeader::Continuation));
    assert_eq!(parsed(0xC0, 0), Some(FirstHeader::Continuation));
    assert_eq!(parsed(0xE0, 0x40), None, "protocol control commands");
}

#[test]
fn both_widths_of_frame_error_control_are_checked() {
    for (fecf, len) in [(FrameCheck::Crc16, 2), (FrameCheck::Crc32, 4)] {
        let format = FrameFormat { fecf, ..FORMAT };
        let mut bytes = vec![0xC0, 0x00, 0x10, 0x20, 0, 39, 0, 0xE0];
        bytes.resize(40, 0x11);
        seal(&mut bytes, &format);
        let frame = Frame::parse(&bytes, &format).unwrap();
        assert_eq!((frame.fecf, frame.data.len()), (Check::Good, 32 - len));
        bytes[20] ^= 1;
        assert_eq!(Frame::parse(&bytes, &format).unwrap().fecf, Check::Bad);
    }
}

const VARIABLE: FrameFormat =
    FrameFormat { length: 300, lengths: FrameLengths::Variable { truncated: Some(12) }, ..FORMAT };

#[test]
fn frames_say_how_far_they_reach() {
    // Spacecraft 1, virtual channel 1; 21 bytes; one octet of count, no flags.
    let header = [0xC0, 0x00, 0x10, 0x20, 0, 20, 1];
    assert_eq!(extent(&header, &VARIABLE), Extent::Of(21));
    for len in 0..header.len() {
        assert_eq!(extent(&header[..len], &VARIABLE), Extent::Incomplete, "{len}");
    }
    assert_eq!(extent(&[0xC0, 0x00, 0x10, 0x21], &VARIABLE), Extent::Of(12), "truncated");
    let without = FrameFormat { lengths: FrameLengths::Variable { truncated: None }, ..VARIABLE };
    assert_eq!(extent(&[0xC0, 0x00, 0x10, 0x21], &without), Extent::NoFrame);
    let with = |place: usize, value: u8| {
        let mut bytes = header;
        bytes[place] = value;
        extent(&bytes, &VARIABLE)
    };
    assert_eq!(with(0, 0x40), Extent::NoFrame, "another version");
    assert_eq!(with(4, 2), Extent::NoFrame, "longer than the longest");
    assert_eq!(
        (with(5, 8), with(5, 7)),
        (Extent::Of(9), Extent::NoFrame),
        "shorter than its fields"
    );
    assert_eq!(with(6, 0x11), Extent::NoFrame, "a spare bit");
    assert_eq!(with(6, 0x0F), Extent::Of(21), "seven octets of count and operational control");
    let zoned = FrameFormat { insert_zone: 12, fecf: FrameCheck::Crc32, ..VARIABLE };
    assert_eq!(extent(&header, &zoned), Extent::NoFrame);
}

#[test]
fn a_truncated_frame_of_another_length_than_the_managed_one_is_refused() {
    let mut bytes = vec![0xC0, 0x02, 0x28, 0x3F, 0xE0];
    bytes.resize(12, 7);
    assert_eq!(Frame::parse(&bytes, &VARIABLE).unwrap().data.len(), 7);
    bytes.push(7);
    assert_eq!(
        Frame::parse(&bytes, &VARIABLE),
        Err(FrameError::Length { found: 13, expected: 12 })
    );
}

fn any_fields() -> impl Strategy<Value = UslpFields> {
    (any::<[bool; 4]>(), 0u8..16, 0u8..8, 0u8..32, any::<u16>()).prop_map(
        |(
            [is_destination, is_truncated, is_expedited, is_control],
            map,
            rule,
            protocol,
            pointer,
        )| {
            let rule = ConstructionRule::from_bits(rule);
            UslpFields {
                is_destination,
                map: MapId::from_bits(map),
                is_truncated,
                is_expedited: is_expedited && !is_truncated,
                is_control: is_control && !is_truncated,
                rule,
                protocol,
                pointer: rule.has_pointer().then_some(pointer),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        uslp in any_fields(),
        scid: u16, vcid in 0u8..64, octets in 0u8..8, count: u64,
        insert_zone in 0usize..20, ocf: Option<[u8; 4]>, fecf in 0usize..3, length in 64usize..200,
            is_variable: bool,
    ) {
        let fecf = [FrameCheck::None, FrameCheck::Crc16, FrameCheck::Crc32][fecf];
        let lengths = match is_variable {
            true => FrameLengths::Variable { truncated: Some(30) },
            false => FrameLengths::Fixed,
        };
        let format = FrameFormat { length, lengths, insert_zone, fecf, ..FORMAT };
        let modulus = if uslp.is_truncated { Modulus::NONE } else { Modulus::of_octets(octets) };
        let count = VcCount { value: count % modulus.values(), modulus };
        let channel = Channel { scid: Scid::from_bits(scid), vcid: Vcid::from_bits(vcid) };
        let fields = FrameFields {
            channel, count, is_replay: false, first_header: None, insert_zone: &[],
                data: &[0xC3; 9],
            ocf, uslp: Some(uslp),
        };
        let mut bytes = write(&fields, &format).unwrap();
        prop_assert!((bytes.len() == length || is_variable) && bytes.len() > HEADER_LEN);
        prop_assert!(bytes.len() == 30 || !(is_variable && uslp.is_truncated));
        prop_assert_eq!(extent(&bytes, &format), Extent::Of(bytes.len()));
        let frame = Frame::parse(&bytes, &format).unwrap();
        prop_assert_eq!((frame.channel, frame.count, frame.uslp), (channel, count, Some(uslp)));
        prop_assert_eq!(frame.ocf, ocf.filter(|_| !uslp.is_truncated));
        prop_assert!(frame.fecf != Check::Bad);
        prop_assert_eq!(frame.insert_zone.len(), if uslp.is_truncated { 0 } else { insert_zone });
        prop_assert_eq!(&frame.data[..9], &[0xC3; 9]);
        prop_assert_eq!(glimpse(&bytes), Some((FrameKind::Uslp, channel, count)));
        let later = VcCount { value: modulus.after(count.value), modulus };
        set_count(&mut bytes, &format, later);
        set_first_header(&mut bytes, &format, FirstHeader::At(7));
        seal(&mut bytes, &format);
        let frame = Frame::parse(&bytes, &format).unwrap();
        prop_assert_eq!(frame.count, later);
        prop_assert_eq!(frame.uslp.unwrap().pointer, uslp.pointer.map(|_| 7));
        prop_assert!(frame.fecf != Check::Bad);
    }

    #[test]
    fn other_frames_are_read_back_as_written(
        is_tm: bool, scid in 0u16..1024, vcid in 0u8..64, value: u32, has_cycle: bool,
            is_replay: bool,
        offset in 0usize..20, fhec: bool, ocf: bool, check: bool, insert_zone in 0usize..9,
    ) {
        let kind = if is_tm { FrameKind::Tm } else { FrameKind::Aos };
        let fecf = if check { FrameCheck::Crc16 } else { FrameCheck::None };
        let format = FrameFormat { kind, length: 64, lengths: FrameLengths::Fixed, wide_scid: true,
            fhec: fhec && !is_tm, insert_zone, ocf, fecf };
        let modulus = match (is_tm, has_cycle) {
            (true, _) => Modulus::TM_FRAME,
            (false, false) => Modulus::AOS_FRAME,
            (false, true) => Modulus::AOS_FRAME_CYCLE,
        };
        let count = VcCount { value: u64::from(value) % modulus.values(), modulus };
        let vcid = Vcid::from_bits(if is_tm { vcid & 7 } else { vcid });
        let channel = Channel { scid: Scid::from_bits(scid), vcid };
        let fields = FrameFields {
            channel, count, is_replay: is_replay && !is_tm,
                first_header: Some(FirstHeader::At(offset)),
            insert_zone: &[7; 9][..insert_zone], data: &[1, 2, 3], ocf: ocf.then_some([9; 4]),
                uslp: None,
        };
        let bytes = write(&fields, &format).unwrap();
        let frame = Frame::parse(&bytes, &format).unwrap();
        prop_assert_eq!((frame.channel, frame.count), (channel, count));
        prop_assert_eq!((frame.is_replay, frame.ocf), (fields.is_replay, fields.ocf));
        prop_assert!(frame.fecf != Check::Bad && frame.fhec != Check::Corrected);
        let packets = frame.m_pdu(kind).unwrap();
        prop_assert_eq!(packets.first_header, FirstHeader::At(offset));
        prop_assert_eq!(&packets.zone[..3], &[1, 2, 3]);
        prop_assert_eq!(frame.insert_zone, fields.insert_zone);
    }
}
