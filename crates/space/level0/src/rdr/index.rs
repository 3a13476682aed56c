//! Packets of any number of files, sorted into the granules that they make.
//!
//! The index holds where packets lie, not the packets. Its result does not depend on the order in
//! which files and packets came: duplicates are found by time, application and count.

use super::granule::GranuleSpan;
use super::iet::Iet;
use super::plan::RdrPlan;
use core::ops::Range;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::{Grouping, Header, SpaceHeader};
use std::collections::BTreeMap;

/// Finds out which granule each packet belongs to.
#[derive(Debug)]
pub struct PacketIndex<'a> {
    mission: &'a Mission,
    plan: &'a RdrPlan,
    wanted: Vec<bool>,
    packets: Vec<IndexedPacket>,
    /// For each application of a file, the packet that others may follow.
    leaders: BTreeMap<(u32, Apid), Leader>,
    /// Packets without a time: application, count and hash.
    untimed: Vec<(Apid, u16, u64)>,
    account: IndexAccount,
}

#[derive(Debug, Clone, Copy)]
struct Leader {
    count: u16,
    time: Option<Iet>,
}

/// Where a packet lies, and where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexedPacket {
    /// Place of its collection in the plan.
    collection: u16,
    /// Its time, or that of its group.
    pub time: Iet,
    /// Application process id.
    apid: Apid,
    /// Count of the packet that began its group.
    group: u16,
    /// Counts from there to this one.
    place: u16,
    /// Of its bytes, to tell copies from packets that differ.
    hash: u64,
    /// Which file it is in.
    pub source: u32,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
}

/// What became of the packets: `read` is the sum of all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct IndexAccount {
    /// Packets read.
    pub read: u64,
    /// Those in granules.
    pub placed: u64,
    /// Copies of packets that are there.
    pub duplicates: u64,
    /// Packets with time, application and count of another, but other bytes.
    pub differing: u64,
    /// Packets of applications that are not asked for, idle ones among them.
    pub other_applications: u64,
    /// Packets without a time, because the one that began their group is missing, and of which
    /// there is no copy with one.
    pub untimed: u64,
    /// Packets with times before granules begin.
    pub before_base: u64,
}

/// Why packets cannot be sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// Too many packets.
    #[error(
        "there are more than {} packets; make Raw Data Records of fewer contacts at a time",
        MOST_PACKETS
    )]
    Packets,
    /// Too many granules.
    #[error(
        "the packets lie in more than {} granules; see whether their times are damaged, or take \
        fewer files at a time",
        MOST_GRANULES
    )]
    Granules,
}

/// The packets of one granule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GranulePlan {
    /// Place of its collection in the plan.
    pub collection: usize,
    /// When it is.
    pub span: GranuleSpan,
    /// Its packets, in the order in which they are packed.
    packets: Range<usize>,
}

/// All packets in their granules.
#[derive(Debug, Clone)]
pub struct Sorted {
    packets: Vec<IndexedPacket>,
    granules: Vec<GranulePlan>,
    /// What became of the packets.
    pub account: IndexAccount,
}

impl<'a> PacketIndex<'a> {
    /// An index of the packets of `collections` (by name) and of what is packed with these.
    pub fn new(mission: &'a Mission, plan: &'a RdrPlan, collections: &[&str]) -> Self {
        let wants = |name: &str| {
            let packs = |other: &&str| {
                plan.collection(other)
                    .is_some_and(|other| other.packed_with.iter().any(|packed| packed == name))
            };
            collections.contains(&name) || collections.iter().any(packs)
        };
        let wanted = plan.collections.iter().map(|collection| wants(&collection.name)).collect();
        let account = IndexAccount::default();
        Self {
            mission,
            plan,
            wanted,
            packets: Vec::new(),
            leaders: BTreeMap::new(),
            untimed: Vec::new(),
            account,
        }
    }

    /// Takes the next packet of the file `source`, which begins there at `offset`. Within a file,
    /// the packet that begins a group is to come before those that continue it.
    ///
    /// # Errors
    /// [`IndexError::Packets`] where there is no room for more.
    pub fn push(&mut self, source: u32, offset: u64, packet: &[u8]) -> Result<(), IndexError> {
        self.account.read += 1;
        let Ok(Header::Space(header)) = Header::parse(packet) else {
            self.account.other_applications += 1;
            return Ok(());
        };
        let collection = self.plan.of_apid(header.apid).filter(|place| self.wanted[*place]);
        let Some(collection) = collection else {
            self.account.other_applications += 1;
            return Ok(());
        };
        let Some((time, group)) = self.time(source, &header, packet) else {
            self.untimed.push((header.apid, header.count, hash(packet)));
            return self.bounded();
        };
        if time < self.plan.satellite.base {
            self.account.before_base += 1;
            return Ok(());
        }
        self.packets.push(IndexedPacket {
            collection: u16::try_from(collection).expect("a plan has 256 collections at most"),
            time,
            apid: header.apid,
            group,
            place: header.count.wrapping_sub(group) & COUNTS,
            hash: hash(packet),
            source,
            offset,
            len: u32::try_from(packet.len()).expect("a packet has 64 KiB at most"),
        });
        self.bounded()
    }

    const fn bounded(&self) -> Result<(), IndexError> {
        if self.packets.len() + self.untimed.len() > MOST_PACKETS {
            Err(IndexError::Packets)
        } else {
            Ok(())
        }
    }

    /// When the packet was made, or its group began, and the count of the packet that began it.
    fn time(&mut self, source: u32, header: &SpaceHeader, packet: &[u8]) -> Option<(Iet, u16)> {
        let key = (source, header.apid);
        let time = self.mission.packet_time(packet).and_then(Iet::from_utc);
        if time.is_some() || matches!(header.grouping, Grouping::First | Grouping::Standalone) {
            // What continues a group without a time must not be taken for a part of the one before.
            self.leaders.insert(key, Leader { count: header.count, time });
            return Some((time?, header.count));
        }
        let leader = self.leaders.get(&key)?;
        let place = header.count.wrapping_sub(leader.count) & COUNTS;
        Some((leader.time?, leader.count)).filter(|_| (1..LONGEST_GROUP).contains(&place))
    }

    /// Sorts the packets into their granules.
    ///
    /// # Errors
    /// [`IndexError::Granules`] where there are too many.
    pub fn finish(mut self) -> Result<Sorted, IndexError> {
        self.packets.sort_unstable();
        let (mut duplicates, mut differing) = (0, 0);
        self.packets.dedup_by(|next, kept| {
            let key = |packet: &IndexedPacket| {
                (packet.collection, packet.time, packet.apid, packet.group, packet.place)
            };
            let is_again = key(next) == key(kept);
            if is_again && next.hash == kept.hash {
                duplicates += 1;
            } else if is_again {
                differing += 1;
            }
            is_again
        });
        let untimed = self.untimed.len() as u64;
        // A file may begin inside a group that another has whole.
        self.untimed.sort_unstable();
        let copied = self.copied();
        self.account.untimed = untimed - copied;
        self.account.duplicates = duplicates + copied;
        self.account.differing = differing;
        self.account.placed = self.packets.len() as u64;
        let mut granules: Vec<GranulePlan> = Vec::new();
        for (at, packet) in self.packets.iter().enumerate() {
            let place = usize::from(packet.collection);
            if let Some(granule) = granules.last_mut()
                && granule.collection == place
                && packet.time < granule.span.end
            {
                granule.packets.end = at + 1;
                continue;
            }
            if granules.len() >= MOST_GRANULES {
                return Err(IndexError::Granules);
            }
            let collection = &self.plan.collections[place];
            let span = self
                .plan
                .granule(collection, packet.time)
                .expect("packets before the base are left out");
            granules.push(GranulePlan { collection: place, span, packets: at..at + 1 });
        }
        Ok(Sorted { packets: self.packets, granules, account: self.account })
    }
}

impl PacketIndex<'_> {
    /// How many of the packets without a time are copies of packets that have one.
    fn copied(&self) -> u64 {
        let mut found = vec![false; self.untimed.len()];
        for packet in &self.packets {
            let count = packet.group.wrapping_add(packet.place) & COUNTS;
            let key = (packet.apid, count, packet.hash);
            let first = self.untimed.partition_point(|known| *known < key);
            if found.get(first).is_some_and(|is_found| !is_found) {
                let same = self.untimed[first..].iter().take_while(|known| **known == key).count();
                found[first..first + same].fill(true);
            }
        }
        found.into_iter().filter(|is_copy| *is_copy).count() as u64
    }
}

impl Sorted {
    /// The packets of a granule, in the order in which they are packed: by time, application and
    /// count.
    pub fn packets(&self, granule: &GranulePlan) -> &[IndexedPacket] {
        &self.packets[granule.packets.clone()]
    }

    /// The granules of a collection, by time.
    pub fn granules(&self, collection: usize) -> impl Iterator<Item = &GranulePlan> {
        self.granules.iter().filter(move |granule| granule.collection == collection)
    }

    /// The granules of a collection, only those that overlap `within` where that is given.
    pub fn file_alone(&self, collection: usize, within: Option<GranuleSpan>) -> Vec<&GranulePlan> {
        let is_within =
            |granule: &&GranulePlan| within.is_none_or(|span| granule.span.overlaps(&span));
        self.granules(collection).filter(is_within).collect()
    }

    /// The granules that go into the packed file of a collection: those of [`Self::file_alone`],
    /// and those of the collections packed with it that overlap the time from its first granule's
    /// start to its last one's end.
    pub fn packed_file(
        &self,
        plan: &RdrPlan,
        collection: usize,
        within: Option<GranuleSpan>,
    ) -> Vec<&GranulePlan> {
        let mut file = self.file_alone(collection, within);
        let (Some(first), Some(last)) = (file.first(), file.last()) else {
            return file;
        };
        let span = GranuleSpan { start: first.span.start, end: last.span.end };
        let names = &plan.collections[collection].packed_with;
        for (place, other) in plan.collections.iter().enumerate() {
            if names.contains(&other.name) {
                file.extend(self.granules(place).filter(|granule| granule.span.overlaps(&span)));
            }
        }
        file
    }
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Eight million packets: six contacts of the sensor with the most, in 340 MB of memory.
const MOST_PACKETS: usize = 8 << 20;
/// Four days of the shortest granules.
const MOST_GRANULES: usize = 16_384;
/// Sequence counts have 14 bits.
const COUNTS: u16 = 0x3FFF;
/// Counts within one group; the largest, of a calibration view, has some tens of packets.
const LONGEST_GROUP: u16 = 1_024;
