//! Packets as a device with offload hands them over, cut into those that a wire would carry, and
//! joined again.
//!
//! A kernel that may leave segmentation to the device gives up to 64 KiB of one flow as one packet.
//! The link treats each of the packets in it alone: each takes its time on the line and may be
//! lost. Packets of one flow that arrive together go back to the kernel as one, which keeps the
//! cost per byte low at both ends.

use crate::offload::{ECN, NEEDS_CHECKSUM, OFFLOAD_LEN, Offload, SINGLE, TCP_V4, TCP_V6, UDP};
use skyhaul_units::ByteCount;
use std::ops::Range;
use std::sync::Arc;

/// What a device gave: an IP packet, or one that stands for several.
#[derive(Debug)]
struct Packet {
    offload: Offload,
    bytes: Box<[u8]>,
    /// Where it can be cut; `None` for one packet.
    cut: Option<Cut>,
}

/// How a packet that stands for several is built.
#[derive(Debug, Clone, Copy)]
struct Cut {
    is_tcp: bool,
    /// Start of the transport's header.
    transport: usize,
    /// Start of the payload.
    payload: usize,
    /// Payload of each but the last.
    segment: usize,
}

/// One packet of a wire: all of what a device gave, or one segment of it.
#[derive(Debug, Clone)]
pub struct Segment {
    packet: Arc<Packet>,
    index: usize,
}

/// Why what a device gave cannot be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedPacket {
    /// It ends before the headers do.
    #[error("a packet of {0} bytes ends within its headers")]
    Short(usize),
    /// Many in one, in a form that is not known.
    #[error("a packet that stands for several is of the unknown kind {0}")]
    Kind(u8),
    /// Many in one, whose headers contradict what is said of them.
    #[error("a packet that stands for several has headers that contradict its description")]
    Headers,
}

/// Reads what a device gave: the packets of a wire that it stands for, in their order.
///
/// # Errors
/// What was given is not a packet, or cannot be cut.
pub fn segments(
    given: &[u8],
) -> Result<impl ExactSizeIterator<Item = Segment> + use<>, MalformedPacket> {
    let (header, bytes) =
        given.split_first_chunk::<OFFLOAD_LEN>().ok_or(MalformedPacket::Short(given.len()))?;
    if bytes.is_empty() {
        return Err(MalformedPacket::Short(0));
    }
    let offload = Offload::read(header);
    let cut = Cut::of(&offload, bytes)?;
    let count = cut.map_or(1, |cut| (bytes.len() - cut.payload).div_ceil(cut.segment));
    let packet = Arc::new(Packet { offload, bytes: bytes.into(), cut });
    Ok((0..count).map(move |index| Segment { packet: Arc::clone(&packet), index }))
}

/// How many from the start of `segments` one call can hand to a device: consecutive ones of one
/// packet.
pub fn next_run(segments: &[Segment]) -> usize {
    let joins = |pair: &[Segment]| {
        Arc::ptr_eq(&pair[0].packet, &pair[1].packet) && pair[0].index + 1 == pair[1].index
    };
    segments.windows(2).take_while(|pair| joins(pair)).count() + usize::from(!segments.is_empty())
}

/// Writes a run, as [`next_run`] found it, as a device takes it.
pub fn join(run: &[Segment], out: &mut Vec<u8>) {
    out.clear();
    let Some(first) = run.first() else { return };
    let packet = &*first.packet;
    let Some(cut) = packet.cut else {
        out.extend_from_slice(&packet.offload.to_bytes());
        out.extend_from_slice(&packet.bytes);
        return;
    };
    let kind = if run.len() == 1 { SINGLE } else { packet.offload.kind };
    let segment = if run.len() == 1 { 0 } else { packet.offload.segment };
    out.extend_from_slice(&Offload { kind, segment, ..packet.offload }.to_bytes());
    out.extend_from_slice(&packet.bytes[..cut.payload]);
    let range = first.payload(&cut).start..run[run.len() - 1].payload(&cut).end;
    let position = if range.end == packet.bytes.len() { Position::Last } else { Position::Before };
    out.extend_from_slice(&packet.bytes[range]);
    cut.mend(&mut out[OFFLOAD_LEN..], first.index, position);
}

/// Where a payload stands in the packet that it was cut from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// More of the packet follows.
    Before,
    /// It ends the packet.
    Last,
}

impl Segment {
    /// Size of the IP packet on a wire.
    pub fn size(&self) -> ByteCount {
        let length = match &self.packet.cut {
            None => self.packet.bytes.len(),
            Some(cut) => cut.payload + self.payload(cut).len(),
        };
        ByteCount::new(length as u64)
    }

    fn payload(&self, cut: &Cut) -> Range<usize> {
        let from = cut.payload + self.index * cut.segment;
        from..(from + cut.segment).min(self.packet.bytes.len())
    }
}

impl Cut {
    /// Where a packet can be cut, `None` where it is one, if what is said of it and its headers
    /// agree.
    fn of(offload: &Offload, bytes: &[u8]) -> Result<Option<Self>, MalformedPacket> {
        let kind = offload.kind & !ECN;
        if kind == SINGLE {
            return Ok(None);
        }
        if ![TCP_V4, TCP_V6, UDP].contains(&kind) {
            return Err(MalformedPacket::Kind(kind));
        }
        let transport = usize::from(offload.checksum_start);
        let (network, is_right_version) = match bytes[0] >> 4 {
            4 => (usize::from(bytes[0] & 0xF) * 4, kind != TCP_V6),
            6 => (IPV6_HEADER, kind != TCP_V4),
            _ => return Err(MalformedPacket::Headers),
        };
        let is_tcp = kind != UDP;
        let (fixed, checksum) = if is_tcp { (TCP_HEADER, 16) } else { (UDP_HEADER, 6) };
        if bytes.len() < transport + fixed {
            return Err(MalformedPacket::Short(bytes.len()));
        }
        let options = if is_tcp { usize::from(bytes[transport + 12] >> 4) * 4 } else { fixed };
        let cut = Self {
            is_tcp,
            transport,
            payload: transport + options,
            segment: usize::from(offload.segment),
        };
        let agrees = is_right_version
            && network >= IPV4_HEADER
            && network <= transport
            && options >= fixed
            && usize::from(offload.checksum_offset) == checksum
            && offload.flags & NEEDS_CHECKSUM != 0
            && cut.segment > 0
            && cut.payload < bytes.len();
        if agrees { Ok(Some(cut)) } else { Err(MalformedPacket::Headers) }
    }

    /// Rewrites the headers for the payload that now follows them, which begins with segment
    /// `index`.
    fn mend(&self, packet: &mut [u8], index: usize, position: Position) {
        let length = packet.len();
        let transport_length = length - self.transport;
        let protocol = if self.is_tcp { TCP } else { UDP_PROTOCOL };
        let addresses = if packet[0] >> 4 == 4 {
            put(packet, 2, length as u16);
            let identification =
                u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(index as u16);
            put(packet, 4, identification);
            put(packet, 10, 0);
            let header = usize::from(packet[0] & 0xF) * 4;
            let sum = !sum(&packet[..header], 0);
            put(packet, 10, sum);
            12..20
        } else {
            put(packet, 4, (length - IPV6_HEADER) as u16);
            8..40
        };
        let pseudo = sum(&packet[addresses], u32::from(protocol) + transport_length as u32);
        let header = &mut packet[self.transport..];
        if self.is_tcp {
            let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            let from = sequence.wrapping_add((index * self.segment) as u32);
            header[4..8].copy_from_slice(&from.to_be_bytes());
            header[13] &= if position == Position::Last { 0xFF } else { !(FIN | PSH) };
            header[13] &= if index == 0 { 0xFF } else { !CWR };
            put(header, 16, pseudo);
        } else {
            put(header, 4, transport_length as u16);
            put(header, 6, pseudo);
        }
    }
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// The ones' complement sum of 16-bit words (RFC 1071), not inverted. `bytes` are an even number.
fn sum(bytes: &[u8], initial: u32) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum::<u32>() + initial;
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const TCP: u8 = 6;
const UDP_PROTOCOL: u8 = 17;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

#[cfg(test)]
mod tests;
