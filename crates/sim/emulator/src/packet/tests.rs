use super::*;
use proptest::prelude::*;

/// A packet that stands for several, as a kernel builds it.
#[derive(Debug, Clone)]
struct Given {
    is_ipv6: bool,
    is_tcp: bool,
    options: usize,
    segment: usize,
    payload: Vec<u8>,
    identification: u16,
    sequence: u32,
    flags: u8,
}

impl Given {
    fn bytes(&self) -> Vec<u8> {
        let transport = if self.is_ipv6 { 40 } else { 20 };
        let own = if self.is_tcp { 20 + self.options * 4 } else { 8 };
        let length = transport + own + self.payload.len();
        let mut packet = vec![0_u8; transport + own];
        if self.is_ipv6 {
            packet[0] = 0x60;
            put(&mut packet, 4, (length - 40) as u16);
            packet[6] = if self.is_tcp { 6 } else { 17 };
            packet[8..40].copy_from_slice(&std::array::from_fn::<u8, 32, _>(|at| at as u8 * 7));
        } else {
            packet[0] = 0x45;
            put(&mut packet, 2, length as u16);
            put(&mut packet, 4, self.identification);
            packet[8] = 64;
            packet[9] = if self.is_tcp { 6 } else { 17 };
            packet[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
        }
        if self.is_tcp {
            packet[transport + 4..transport + 8].copy_from_slice(&self.sequence.to_be_bytes());
            packet[transport + 12] = ((own / 4) as u8) << 4;
            packet[transport + 13] = self.flags;
        } else {
            put(&mut packet, transport + 4, (8 + self.payload.len()) as u16);
        }
        packet.extend_from_slice(&self.payload);
        let kind = match (self.is_tcp, self.is_ipv6) {
            (false, _) => UDP,
            (true, false) => TCP_V4,
            (true, true) => TCP_V6,
        };
        let offload = Offload {
            flags: NEEDS_CHECKSUM,
            kind,
            headers: (transport + own) as u16,
            segment: self.segment as u16,
            checksum_start: transport as u16,
            checksum_offset: if self.is_tcp { 16 } else { 6 },
        };
        [offload.to_bytes().as_slice(), &packet].concat()
    }
}

fn given() -> impl Strategy<Value = Given> {
    let shape = (any::<bool>(), any::<bool>(), 0_usize..=10, 1_usize..200);
    let content =
        (prop::collection::vec(any::<u8>(), 1..2000), any::<u16>(), any::<u32>(), any::<u8>());
    (shape, content).prop_map(
        |((is_ipv6, is_tcp, options, segment), (payload, identification, sequence, flags))| Given {
            is_ipv6,
            is_tcp,
            options,
            segment,
            payload,
            identification,
            sequence,
            flags,
        },
    )
}

/// The transport's checksum, completed as a card would, must be one that its receiver takes (RFC
/// 1071).
fn is_checksum_right(packet: &[u8], transport: usize, is_tcp: bool) -> bool {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    let mut padded = packet[transport..].to_vec();
    let length = padded.len();
    padded.resize(length.next_multiple_of(2), 0);
    let at = if is_tcp { 16 } else { 6 };
    let completed = !sum(&padded, 0);
    put(&mut padded, at, completed);
    let protocol = if is_tcp { 6 } else { 17 };
    sum(&padded, u32::from(sum(addresses, protocol + length as u32))) == 0xFFFF
}

proptest! {
    #[test]
    fn each_segment_is_a_packet_of_its_own(given in given(), from in any::<prop::sample::Index>(),
        count in 1_usize..5) {
        let all: Vec<Segment> = segments(&given.bytes()).unwrap().collect();
        prop_assert_eq!(all.len(), given.payload.len().div_ceil(given.segment));
        prop_assert_eq!(next_run(&all), all.len());
        let transport = if given.is_ipv6 { 40 } else { 20 };
        let own = if given.is_tcp { 20 + given.options * 4 } else { 8 };
        let (from, mut out) = (from.index(all.len()), Vec::new());
        let run = &all[from..(from + count).min(all.len())];
        join(run, &mut out);
        let (header, packet) = out.split_first_chunk::<OFFLOAD_LEN>().unwrap();
        let start = from * given.segment;
        let end = (start + run.len() * given.segment).min(given.payload.len());
        prop_assert_eq!(&packet[transport + own..], &given.payload[start..end]);
        let size: u64 = run.iter().map(|segment| segment.size().as_u64()).sum();
        prop_assert_eq!(size as usize, run.len() * (transport + own) + end - start);
        let said = Offload::read(header);
        prop_assert_eq!(said.kind == SINGLE, run.len() == 1);
        if given.is_ipv6 {
            prop_assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])),
                packet.len() - 40);
        } else {
            prop_assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
            prop_assert_eq!(sum(&packet[..20], 0), 0xFFFF);
            let identification = u16::from_be_bytes([packet[4], packet[5]]);
            prop_assert_eq!(identification, given.identification.wrapping_add(from as u16));
        }
        prop_assert!(is_checksum_right(packet, transport, given.is_tcp));
        if given.is_tcp {
            let header = &packet[transport..];
            let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            prop_assert_eq!(sequence, given.sequence.wrapping_add(start as u32));
            let (first, last) = (from == 0, end == given.payload.len());
            let kept = given.flags & if last { 0xFF } else { !(FIN | PSH) } & if first {
                0xFF } else { !CWR };
            prop_assert_eq!(header[13], kept);
        } else {
            let length = u16::from_be_bytes([packet[transport + 4], packet[transport + 5]]);
            prop_assert_eq!(usize::from(length), packet.len() - transport);
        }
    }

    #[test]
    fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0_u8..6) {
        let mut bytes = bytes;
        if let Some(byte) = bytes.get_mut(1) {
            *byte = kind;
        }
        if let Ok(all) = segments(&bytes) {
            let all: Vec<Segment> = all.collect();
            let mut out = Vec::new();
            join(&all[..next_run(&all)], &mut out);
            prop_assert!(!out.is_empty());
        }
    }
}

#[test]
fn one_packet_goes_through_as_it_is() {
    let given = [
        Offload { flags: NEEDS_CHECKSUM, ..Offload::default() }.to_bytes().as_slice(),
        &[0x45, 1, 2, 3],
    ]
    .concat();
    let all: Vec<Segment> = segments(&given).unwrap().collect();
    let mut out = Vec::new();
    join(&all, &mut out);
    assert_eq!((out, all[0].size()), (given, ByteCount::new(4)));
}

#[test]
fn packets_of_different_origin_are_not_joined() {
    let given = Given {
        is_ipv6: false,
        is_tcp: true,
        options: 0,
        segment: 100,
        payload: vec![1; 250],
        identification: 0,
        sequence: 0,
        flags: 0,
    };
    let mut all: Vec<Segment> = segments(&given.bytes()).unwrap().collect();
    all.extend(segments(&given.bytes()).unwrap());
    assert_eq!(next_run(&all), 3);
    all.remove(1);
    assert_eq!((next_run(&all), next_run(&[])), (1, 0));
}
