//! The bytes of packets in memory, in the order of arrival, in chunks that are freed as soon as
//! none of their packets is held any more.
//!
//! Packets are returned nearly in the order of arrival, so that most chunks become empty by
//! themselves. If a few packets keep many chunks, the packets are moved together.

use crate::order::{Held, PacketQuality};
use skyhaul_ccsds::id::{Apid, Vcid};
use skyhaul_units::Utc;
use std::collections::VecDeque;

/// The place of a packet: greater for a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(pub u32);

/// The bytes of packets.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: VecDeque<Chunk>,
    /// The number of the first chunk.
    first: u32,
    /// Chunks without packets, kept for their memory.
    spare: Vec<Box<[u8]>>,
}

#[derive(Debug, Default)]
struct Chunk {
    /// Records, each at a multiple of [`ALIGN`]: a head of [`HEAD`] bytes (reception, then from the
    /// lowest bit on length 17, fill 17, quality 8, channel 6, application 16), then the packet.
    /// [`CHUNK`] bytes, or none where the memory was given back.
    bytes: Box<[u8]>,
    /// Bytes with records.
    used: usize,
    /// How many of its packets are held.
    held: u32,
}

/// Bytes that lie beside each packet.
pub(super) const HEAD: usize = 16;

impl Arena {
    /// Takes a packet; `None` if all places are used up, and the packets must move to another
    /// arena.
    pub fn push(&mut self, held: &Held<'_>) -> Option<Place> {
        let len = HEAD + held.bytes.len();
        if self.chunks.back().is_none_or(|chunk| chunk.used + len > chunk.bytes.len()) {
            if self.first as usize + self.chunks.len() >= MOST_CHUNKS {
                return None;
            }
            let bytes = self.spare.pop().unwrap_or_else(|| vec![0; CHUNK].into());
            self.chunks.push_back(Chunk { bytes, used: 0, held: 0 });
        }
        let number = self.first + self.chunks.len() as u32 - 1;
        let chunk = self.chunks.back_mut().expect("one was put there where there was none");
        let at = chunk.used;
        let (place, packet) = chunk.bytes[at..at + len].split_at_mut(HEAD);
        place.copy_from_slice(&head(held));
        packet.copy_from_slice(held.bytes);
        chunk.used = (at + len).next_multiple_of(ALIGN);
        chunk.held += 1;
        Some(Place(number << PLACE_BITS | (at / ALIGN) as u32))
    }

    /// The packet that lies there.
    pub fn held(&self, place: Place, count: u16) -> Held<'_> {
        let chunk = &self.chunks[((place.0 >> PLACE_BITS) - self.first) as usize];
        let record = &chunk.bytes[(place.0 & PLACE_MASK) as usize * ALIGN..];
        let (head, rest) = record.split_first_chunk::<HEAD>().expect("each record has a head");
        let [r0, r1, r2, r3, r4, r5, r6, r7, facts @ ..] = *head;
        let facts = u64::from_ne_bytes(facts);
        Held {
            apid: Apid::from_bits((facts >> 48) as u16),
            count,
            vcid: Vcid::from_bits((facts >> 42) as u8 & Vcid::MAX.value()),
            quality: PacketQuality::from_bits((facts >> 34) as u8),
            received: Utc::from_nanos(i64::from_ne_bytes([r0, r1, r2, r3, r4, r5, r6, r7])),
            fill: (facts >> 17) as u32 & LENGTH_MASK,
            bytes: &rest[..(facts as u32 & LENGTH_MASK) as usize],
        }
    }

    /// Releases the packet at this place.
    pub fn release(&mut self, place: Place) {
        self.chunks[((place.0 >> PLACE_BITS) - self.first) as usize].held -= 1;
    }

    /// Frees chunks of which no packet is held.
    pub fn reclaim(&mut self) {
        while let Some(chunk) = self.chunks.pop_front_if(|chunk| chunk.held == 0) {
            self.first += 1;
            self.spare.push(chunk.bytes);
        }
        if self.chunks.is_empty() {
            self.first = 0;
        }
        // A chunk in the middle keeps its place, but not its memory.
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.held == 0) {
            chunk.used = 0;
            self.spare.push(core::mem::take(&mut chunk.bytes));
        }
        self.spare.retain(|bytes| !bytes.is_empty());
        self.spare.truncate(SPARE);
    }

    /// Bytes of the chunks with packets that are held.
    pub fn occupied(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.used).sum()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.chunks.iter_mut().for_each(|chunk| chunk.held = 0);
        self.reclaim();
    }
}

fn head(held: &Held<'_>) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&held.received.as_nanos().to_ne_bytes());
    let facts = held.bytes.len() as u64
        | u64::from(held.fill) << 17
        | u64::from(held.quality.bits()) << 34
        | u64::from(held.vcid.value()) << 42
        | u64::from(held.apid.value()) << 48;
    head[8..].copy_from_slice(&facts.to_ne_bytes());
    head
}

/// A space packet has at most 65,542 bytes: 17 bits.
const LENGTH_MASK: u32 = (1 << 17) - 1;

/// 512 KiB: eight of the longest packets.
pub(super) const CHUNK: usize = 512 << 10;
/// Records begin at multiples of this many bytes, so that a place has 32 bits.
const ALIGN: usize = 8;
/// The low bits of a place are the position in the chunk, the others the number of the chunk.
const PLACE_BITS: u32 = (CHUNK / ALIGN).ilog2();
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;
/// Chunks in a row: 32 GiB, after which what is held moves.
const MOST_CHUNKS: usize = 1 << (u32::BITS - PLACE_BITS);
/// Empty chunks that are kept: 16 MiB, more than half of the window that they are filled from.
const SPARE: usize = 32;
