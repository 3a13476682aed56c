//! Packets in working files: a fixed head, then (in a run file) the packet.
//!
//! Head, 24 bytes, big-endian: time of the slot i64 and reception i64 (ns since 1970), then 64
//! bits: packet length 17, octets of fill 17, rank of the APID 16, quality 8, virtual channel 6. A
//! run file has its runs in the order of their slots; an index file has the heads of the packets in
//! the packet file beside it.

use crate::batch::{Batch, Settled};
use crate::files::Error;
use crate::order::{Held, PacketQuality, Slot};
use skyhaul_ccsds::id::Vcid;
use skyhaul_ccsds::packet::SpaceHeader;
use skyhaul_units::Utc;
use std::io::{self, Read};

/// The head of a packet of `slot`.
pub(crate) fn head(slot: Slot, held: &Held<'_>) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&slot.time.as_nanos().to_be_bytes());
    head[8..16].copy_from_slice(&held.received.as_nanos().to_be_bytes());
    let facts = (held.bytes.len() as u64) << 47
        | u64::from(held.fill) << 30
        | u64::from(slot.rank) << 14
        | u64::from(held.quality.bits()) << 6
        | u64::from(held.vcid.value());
    head[16..].copy_from_slice(&facts.to_be_bytes());
    head
}

/// Packets in the order of their slots, accessible one at a time.
pub(crate) enum Source<R> {
    /// From memory: the packet of this place in order.
    Memory(Batch, usize),
    /// From a run file, or an index file and its packet file.
    File(Box<Reader<R>>),
}

/// Reads packets whose heads are in one file, and the packets in the same or in another.
pub(crate) struct Reader<R> {
    /// For messages.
    name: String,
    heads: Buffered<R>,
    packets: Option<Buffered<R>>,
    next: Option<Entry>,
}

/// The head of the next packet; the packet is at the start of its buffer.
struct Entry {
    slot: Slot,
    received: Utc,
    quality: PacketQuality,
    vcid: Vcid,
    fill: u32,
    len: usize,
}

impl<R: Read> Source<R> {
    pub fn memory(mut packets: Batch) -> Self {
        packets.sort();
        Self::Memory(packets, 0)
    }

    /// `name` is for messages. `packets` is `None` where heads and packets are in one file.
    pub fn file(name: &str, heads: R, packets: Option<R>) -> Result<Self, Error> {
        let (heads, packets) = (Buffered::new(heads), packets.map(Buffered::new));
        let mut reader = Reader { name: name.to_owned(), heads, packets, next: None };
        reader.read_head()?;
        Ok(Self::File(Box::new(reader)))
    }

    /// The slot of the next packet; `None` at the end.
    pub fn slot(&self) -> Option<Slot> {
        match self {
            Self::Memory(packets, at) => packets.in_order(*at).map(|(slot, _)| slot),
            Self::File(reader) => reader.next.as_ref().map(|entry| entry.slot),
        }
    }

    /// Passes on the packets of a file before `limit`, which are already in order and without
    /// duplicates; none if the source is in memory.
    pub fn pass(
        &mut self,
        limit: Option<Slot>,
        sink: &mut impl FnMut(Settled<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::Memory(..) => Ok(()),
            Self::File(reader) => reader.pass(limit, sink),
        }
    }

    /// Moves the next packet to `run`.
    pub fn take(&mut self, run: &mut Batch) -> Result<(), Error> {
        match self {
            Self::Memory(packets, at) => {
                if let Some((slot, held)) = packets.in_order(*at) {
                    run.push(slot, held);
                    *at += 1;
                }
                Ok(())
            }
            Self::File(reader) => reader.take(run),
        }
    }
}

impl<R: Read> Reader<R> {
    fn pass(
        &mut self,
        limit: Option<Slot>,
        sink: &mut impl FnMut(Settled<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while let Some(entry) =
            self.next.take_if(|next| limit.is_none_or(|limit| next.slot < limit))
        {
            sink(Settled::Packet(entry.slot, self.held(&entry)?))?;
            self.read_head()?;
        }
        Ok(())
    }

    fn take(&mut self, run: &mut Batch) -> Result<(), Error> {
        let Some(entry) = self.next.take() else { return Ok(()) };
        run.push(entry.slot, self.held(&entry)?);
        self.read_head()
    }

    /// The packet of the last head read.
    fn held(&mut self, entry: &Entry) -> Result<Held<'_>, Error> {
        let packets = self.packets.as_mut().unwrap_or(&mut self.heads);
        let bytes = packets.take(entry.len).map_err(Error::on("read", &self.name))?;
        let header = SpaceHeader::parse(bytes)
            .map_err(|_| changed())
            .map_err(Error::on("read", &self.name))?;
        Ok(Held {
            apid: header.apid,
            count: header.count,
            vcid: entry.vcid,
            quality: entry.quality,
            received: entry.received,
            fill: entry.fill,
            bytes,
        })
    }

    fn read_head(&mut self) -> Result<(), Error> {
        self.next = self.heads.next_head().map_err(Error::on("read", &self.name))?;
        Ok(())
    }
}

/// A file read through a buffer, in which any stretch up to the longest packet is contiguous.
struct Buffered<R> {
    file: R,
    buffer: Box<[u8]>,
    /// The bytes of the buffer that are not taken yet.
    start: usize,
    end: usize,
}

impl<R: Read> Buffered<R> {
    fn new(file: R) -> Self {
        Self { file, buffer: vec![0; READ_BUFFER].into(), start: 0, end: 0 }
    }

    fn next_head(&mut self) -> io::Result<Option<Entry>> {
        if self.start == self.end {
            match self.fill(1) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                other => other?,
            }
        }
        let head: [u8; HEAD] = self.take(HEAD)?.try_into().expect("as many bytes were asked for");
        let field =
            |at: usize| -> [u8; 8] { head[at..at + 8].try_into().expect("8 bytes were asked for") };
        let time = |at: usize| Utc::from_nanos(i64::from_be_bytes(field(at)));
        let facts = u64::from_be_bytes(field(16));
        let (len, fill) = ((facts >> 47) as usize, (facts >> 30) as u32 & LENGTH_MASK);
        if !(SpaceHeader::LEN..=SpaceHeader::LONGEST_PACKET).contains(&len) || fill as usize > len {
            return Err(changed());
        }
        Ok(Some(Entry {
            slot: Slot { time: time(0), rank: (facts >> 14) as u16 },
            received: time(8),
            quality: PacketQuality::from_bits((facts >> 6) as u8),
            vcid: Vcid::from_bits(facts as u8 & Vcid::MAX.value()),
            fill,
            len,
        }))
    }

    /// The next `len` bytes, at most the longest packet.
    fn take(&mut self, len: usize) -> io::Result<&[u8]> {
        if self.end - self.start < len {
            self.fill(len)?;
        }
        let taken = self.start..self.start + len;
        self.start += len;
        Ok(&self.buffer[taken])
    }

    /// Reads until there are `len` bytes.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < len {
            match self.file.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it was changed after it was written")
}

const HEAD: usize = 24;
/// A space packet has at most 65,542 bytes: 17 bits.
const LENGTH_MASK: u32 = (1 << 17) - 1;
/// 128 KiB, twice the longest packet: with the most run files that are open at once, 8 MiB.
const READ_BUFFER: usize = 128 << 10;
