//! The Common RDR: one granule's packets and where each lies, as one run of bytes. Big-endian
//! throughout.
//!
//! | part | bytes | content |
//! |---|---|---|
//! | header | 72 | satellite, sensor, kind, places of the parts, time span |
//! | applications | 32 each | name, APID, place and number of trackers, packets received |
//! | trackers | 24 each | time, sequence count, size, offset in the storage (-1: not received), fill |
//! | storage | | the packets |
//!
//! A value of [`CommonRdr`] has every part within the bytes; what a tracker points at is looked up
//! by
//! [`CommonRdr::packet`], which is `None` where it points elsewhere. Source: CDFCB volume II,
//! Common RDR.

use super::iet::Iet;
use skyhaul_ccsds::packet::SpaceHeader;
use skyhaul_units::wire::ByteReader;

/// The header of a Common RDR.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BlobHeader {
    /// The spacecraft's short name: `NPP`.
    pub satellite: String,
    /// The instrument.
    pub sensor: String,
    /// Kind of data.
    pub kind: String,
    /// First microsecond of the granule.
    pub start: Iet,
    /// First microsecond after it.
    pub end: Iet,
}

/// The packets of one application in a Common RDR.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ApidEntry {
    /// Name of the application's packets.
    pub name: String,
    /// Application process id.
    pub apid: u32,
    /// Place of its first tracker.
    pub first_tracker: u32,
    /// Trackers that it has.
    pub reserved: u32,
    /// Packets that were received.
    pub received: u32,
}

/// Where a packet lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Tracker {
    /// The packet's time, microseconds IET.
    pub time: i64,
    /// Its sequence count.
    pub count: i32,
    /// Its length in bytes.
    pub size: i32,
    /// Bytes from the start of the storage; -1 for a packet that was not received.
    pub offset: i32,
    /// How much of it is fill, in percent.
    pub fill_percent: i32,
}

/// A packet in a Common RDR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RdrPacket<'a> {
    /// Application process id of its list entry.
    pub apid: u32,
    /// Where it lies.
    pub tracker: Tracker,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// A Common RDR that was taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonRdr<'a> {
    /// The header.
    pub header: BlobHeader,
    /// The applications.
    pub apids: Vec<ApidEntry>,
    /// All trackers; those of an application lie together.
    pub trackers: Vec<Tracker>,
    storage: &'a [u8],
}

/// Why bytes are no Common RDR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// They end before the header does.
    #[error("{len} bytes are fewer than the header's {}", HEADER_LEN)]
    TooShort {
        /// Bytes there are.
        len: usize,
    },
    /// A part lies outside, or before the part that it should follow.
    #[error(
        "the {part} would lie at {offset}, which is outside the {len} bytes or inside another part"
    )]
    Misplaced {
        /// Which part.
        part: &'static str,
        /// Where the header says that it lies.
        offset: u32,
        /// Bytes there are.
        len: usize,
    },
    /// An application's trackers are not in the list.
    #[error("application {apid} has more trackers than are left of {trackers}")]
    Trackers {
        /// Application process id.
        apid: u32,
        /// Trackers in the list.
        trackers: usize,
    },
}

impl<'a> CommonRdr<'a> {
    /// Takes a Common RDR apart.
    ///
    /// # Errors
    /// [`BlobError`] where the parts are not within `bytes`, in their order.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BlobError> {
        let head = BlobHeader::read(bytes).ok_or(BlobError::TooShort { len: bytes.len() })?;
        let (header, places) = head;
        let misplaced = |part, offset| BlobError::Misplaced { part, offset, len: bytes.len() };
        let part = |part, from: u32, to: usize| {
            bytes
                .get(from as usize..to)
                .filter(|_| from as usize >= HEADER_LEN)
                .ok_or(misplaced(part, from))
        };
        let count = places.apids as usize;
        let apids = part("application list", places.list, places.trackers as usize)?;
        let apids = count.checked_mul(APID_LEN).and_then(|len| apids.get(..len));
        let apids = apids.ok_or(misplaced("application list", places.list))?;
        let trackers = part("tracker list", places.trackers, places.storage as usize)?;
        let end = (places.storage as usize).saturating_add(places.used as usize);
        let storage = part("packet storage", places.storage, end)?;
        let read = Self {
            header,
            apids: apids.chunks_exact(APID_LEN).filter_map(ApidEntry::read).collect(),
            trackers: trackers.chunks_exact(TRACKER_LEN).filter_map(Tracker::read).collect(),
            storage,
        };
        // No two lists share trackers, so that there are no more packets than trackers.
        let mut free = read.trackers.len();
        for entry in &read.apids {
            let is_within = entry.reserved == 0 || !read.trackers_of(entry).is_empty();
            let left = free.checked_sub(entry.reserved as usize).filter(|_| is_within);
            free = left
                .ok_or(BlobError::Trackers { apid: entry.apid, trackers: read.trackers.len() })?;
        }
        Ok(read)
    }

    /// The trackers of an application: those received and, with offset -1, those that were not.
    pub fn trackers_of(&self, entry: &ApidEntry) -> &[Tracker] {
        let first = entry.first_tracker as usize;
        self.trackers.get(first..first.saturating_add(entry.reserved as usize)).unwrap_or_default()
    }

    /// The packet that a tracker points at; `None` where none was received or it would lie outside
    /// the storage.
    pub fn packet(&self, tracker: &Tracker) -> Option<&'a [u8]> {
        let (offset, size) =
            (usize::try_from(tracker.offset).ok()?, usize::try_from(tracker.size).ok()?);
        self.storage.get(offset..offset.checked_add(size)?)
    }

    /// The packets that were received, in the order of the storage.
    pub fn packets(&self) -> Vec<RdrPacket<'a>> {
        let of = |entry: &ApidEntry| {
            let apid = entry.apid;
            let packet = move |tracker: &Tracker| {
                Some(RdrPacket { apid, tracker: *tracker, bytes: self.packet(tracker)? })
            };
            self.trackers_of(entry).iter().filter_map(packet).collect::<Vec<_>>()
        };
        let mut packets: Vec<_> = self.apids.iter().flat_map(of).collect();
        packets.sort_by_key(|packet| packet.tracker.offset);
        packets
    }

    /// Trackers that point outside the storage or at something else than a packet of their
    /// application.
    pub fn damaged(&self) -> u64 {
        let mut damaged = 0;
        for entry in &self.apids {
            for tracker in self.trackers_of(entry).iter().filter(|tracker| tracker.offset >= 0) {
                let header = self.packet(tracker).and_then(|bytes| {
                    SpaceHeader::parse(bytes).ok().filter(|header| header.total_len == bytes.len())
                });
                damaged += u64::from(
                    header.is_none_or(|header| u32::from(header.apid.value()) != entry.apid),
                );
            }
        }
        damaged
    }

    /// Bytes of all packets.
    pub const fn storage(&self) -> &'a [u8] {
        self.storage
    }
}

/// Where the parts of a Common RDR lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub apids: u32,
    pub list: u32,
    pub trackers: u32,
    pub storage: u32,
    /// Bytes of the storage in use.
    pub used: u32,
}

impl Places {
    fn read(fields: &mut ByteReader<'_>) -> Option<Self> {
        Some(Self {
            apids: fields.u32()?,
            list: fields.u32()?,
            trackers: fields.u32()?,
            storage: fields.u32()?,
            used: fields.u32()?,
        })
    }
}

impl BlobHeader {
    /// The header at the front of `bytes`; `None` where they end before it.
    fn read(bytes: &[u8]) -> Option<(Self, Places)> {
        let mut fields = ByteReader::new(bytes);
        let (satellite, sensor) = (text(fields.take(4)?), text(fields.take(16)?));
        let kind = text(fields.take(16)?);
        let places = Places::read(&mut fields)?;
        let (start, end) = (Iet::from_micros(fields.u64()?), Iet::from_micros(fields.u64()?));
        Some((Self { satellite, sensor, kind, start, end }, places))
    }

    pub(super) fn write(&self, places: Places, out: &mut Vec<u8>) {
        put_text(&self.satellite, 4, out);
        put_text(&self.sensor, 16, out);
        put_text(&self.kind, 16, out);
        for value in [places.apids, places.list, places.trackers, places.storage, places.used] {
            out.extend(value.to_be_bytes());
        }
        out.extend(self.start.as_micros().to_be_bytes());
        out.extend(self.end.as_micros().to_be_bytes());
    }
}

impl ApidEntry {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = ByteReader::new(bytes);
        Some(Self {
            name: text(fields.take(16)?),
            apid: fields.u32()?,
            first_tracker: fields.u32()?,
            reserved: fields.u32()?,
            received: fields.u32()?,
        })
    }
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_text(&self.name, 16, out);
        for value in [self.apid, self.first_tracker, self.reserved, self.received] {
            out.extend(value.to_be_bytes());
        }
    }
}

impl Tracker {
    /// Of a packet that was not received.
    pub const MISSING: Self = Self { time: 0, count: -1, size: 0, offset: -1, fill_percent: 0 };

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = ByteReader::new(bytes);
        Some(Self {
            time: fields.i64()?,
            count: fields.u32()?.cast_signed(),
            size: fields.u32()?.cast_signed(),
            offset: fields.u32()?.cast_signed(),
            fill_percent: fields.u32()?.cast_signed(),
        })
    }
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.time.to_be_bytes());
        for value in [self.count, self.size, self.offset, self.fill_percent] {
            out.extend(value.to_be_bytes());
        }
    }
}

pub(super) const HEADER_LEN: usize = 72;
pub(super) const APID_LEN: usize = 32;
pub(super) const TRACKER_LEN: usize = 24;

/// Up to the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn put_text(text: &str, width: usize, out: &mut Vec<u8>) {
    let end = out.len() + width;
    out.extend(text.bytes().take(width));
    out.resize(end, 0);
}
