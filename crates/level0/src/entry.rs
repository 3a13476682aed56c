//! Packets in working files: a fixed head, then (in a run file) the packet.
//!
//! Head, 24 bytes, big-endian: time of the slot i64 and reception i64 (ns since 1970), packet length u32, rank of
//! the APID u16, quality u8, virtual channel u8. A run file has its runs in the order of their slots; an index
//! file has the heads of the packets in the packet file beside it.

use crate::files::Error;
use crate::order::{Held, PacketQuality, Run, Runs, Slot};
use skyhaul_ccsds::id::Vcid;
use skyhaul_ccsds::packet::SpaceHeader;
use skyhaul_units::Utc;
use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};

/// A packet and where it goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub slot: Slot,
    pub held: Held,
}

/// The head of a packet of `slot`.
pub(crate) fn head(slot: Slot, held: &Held) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&slot.time.as_nanos().to_be_bytes());
    head[8..16].copy_from_slice(&held.received.as_nanos().to_be_bytes());
    let len = u32::try_from(held.bytes.len()).expect("a space packet has at most 65542 bytes");
    head[16..20].copy_from_slice(&len.to_be_bytes());
    head[20..22].copy_from_slice(&slot.rank.to_be_bytes());
    head[22] = held.quality.bits();
    head[23] = held.vcid.value();
    head
}

/// Writes a run's packets in sequence, for a [`Source`].
pub(crate) fn write_run(out: &mut impl Write, slot: Slot, run: Run) -> io::Result<()> {
    for held in run.into_sequence() {
        out.write_all(&head(slot, &held))?;
        out.write_all(&held.bytes)?;
    }
    Ok(())
}

/// Entries in the order of their slots, read back.
pub(crate) enum Source<R> {
    /// From memory.
    Memory(Box<Runs>, VecDeque<Entry>),
    /// From a run file, or an index file and its packet file.
    File(Reader<R>),
}

/// Reads entries of which the heads lie in one file, the packets in the same or in another.
pub(crate) struct Reader<R> {
    name: String,
    heads: BufReader<R>,
    packets: Option<BufReader<R>>,
}

impl<R: Read> Source<R> {
    pub fn memory(runs: Runs) -> Self {
        Self::Memory(Box::new(runs), VecDeque::new())
    }

    /// `name` is for messages. `packets` is `None` where heads and packets are in one file.
    pub fn file(name: &str, heads: R, packets: Option<R>) -> Self {
        let buffered = |file| BufReader::with_capacity(READ_BUFFER, file);
        Self::File(Reader { name: name.to_owned(), heads: buffered(heads), packets: packets.map(buffered) })
    }

    /// The next entry; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Entry>, Error> {
        match self {
            Self::Memory(runs, sequence) => {
                if sequence.is_empty()
                    && let Some((slot, run)) = runs.pop_first()
                {
                    sequence.extend(run.into_sequence().map(|held| Entry { slot, held }));
                }
                Ok(sequence.pop_front())
            }
            Self::File(reader) => reader.next().map_err(Error::on("read", &reader.name)),
        }
    }
}

impl<R: Read> Reader<R> {
    fn next(&mut self) -> io::Result<Option<Entry>> {
        if io::BufRead::fill_buf(&mut self.heads)?.is_empty() {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        self.heads.read_exact(&mut head)?;
        let field = |at: usize| -> [u8; 8] { head[at..at + 8].try_into().expect("8 bytes were asked for") };
        let time = |at: usize| Utc::from_nanos(i64::from_be_bytes(field(at)));
        let [l0, l1, l2, l3, r0, r1, quality, vcid] = field(16);
        let len = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        if !(SpaceHeader::LEN..=SpaceHeader::LONGEST_PACKET).contains(&len) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it was changed after it was written"));
        }
        let mut bytes = vec![0; len];
        self.packets.as_mut().unwrap_or(&mut self.heads).read_exact(&mut bytes)?;
        let header = SpaceHeader::parse(&bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it was changed after it was written"))?;
        let held = Held {
            apid: header.apid,
            count: header.count,
            vcid: Vcid::from_bits(vcid),
            quality: PacketQuality::from_bits(quality),
            received: time(8),
            bytes: bytes.into(),
        };
        Ok(Some(Entry { slot: Slot { time: time(0), rank: u16::from_be_bytes([r0, r1]) }, held }))
    }
}

const HEAD: usize = 24;
/// 64 KiB: with the most run files that are open at once, 2 MiB.
const READ_BUFFER: usize = 64 << 10;
