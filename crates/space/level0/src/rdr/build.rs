//! Packs the packets of one granule to a Common RDR, and counts the missing ones.

use super::blob::{APID_LEN, ApidEntry, BlobHeader, HEADER_LEN, Places, TRACKER_LEN, Tracker};
use super::granule::{GranuleId, GranuleSpan};
use super::iet::Iet;
use super::plan::{Collection, PacketType, RdrPlan};
use skyhaul_ccsds::count::{CountStep, Modulus};
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::packet::SpaceHeader;

/// Takes the packets of one granule.
#[derive(Debug)]
pub struct GranuleBuilder<'a> {
    plan: &'a RdrPlan,
    collection: &'a Collection,
    span: GranuleSpan,
    /// As the collection lists them.
    types: Vec<Received>,
    storage: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
struct Received {
    trackers: Vec<Tracker>,
    last: Option<u16>,
    /// Packets that the sequence counts say are missing between those received.
    skipped: u64,
}

/// A granule, packed.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedGranule {
    /// Its name.
    pub id: GranuleId,
    /// When it is.
    pub span: GranuleSpan,
    /// The Common RDR.
    pub blob: Vec<u8>,
    /// What there is of each kind of packets, in the order of the Common RDR.
    pub types: Vec<TypeAccount>,
}

/// What there is of one kind of packets in a granule.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TypeAccount {
    /// Its name.
    pub name: String,
    /// Application process id.
    pub apid: Apid,
    /// Packets received.
    pub received: u64,
    /// Packets known to be missing: gaps in the sequence count, or what a whole granule has more,
    /// whichever is more. Of kinds that are not always sent nothing is missing where nothing was
    /// received.
    pub missing: u64,
}

/// Why a packet does not go into a granule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GranuleError {
    /// It is no space packet, or longer or shorter than it says.
    #[error("not a space packet, or its length differs from its header")]
    NotAPacket,
    /// The collection has no packets of its application.
    #[error("application {0} is not of this collection")]
    OtherApplication(Apid),
    /// It lies in another granule.
    #[error("a packet at {0} lies outside the granule")]
    Outside(skyhaul_units::Utc),
    /// The granule has no room for it: offsets have 31 bits, and memory is held for the whole.
    #[error("a granule of more than {} MiB is not packed; see whether its packets' times are \
            damaged", MOST_STORAGE >> 20)]
    TooLarge,
}

impl<'a> GranuleBuilder<'a> {
    /// An empty granule of a collection.
    pub fn new(plan: &'a RdrPlan, collection: &'a Collection, span: GranuleSpan) -> Self {
        let types = vec![Received::default(); collection.packets.len()];
        Self { plan, collection, span, types, storage: Vec::new() }
    }

    /// Takes a packet whose time, or that of its group, is `time`. Packets of an application are to
    /// come in the order of their counts.
    ///
    /// # Errors
    /// [`GranuleError`]; the granule is then as it was.
    pub fn add(&mut self, time: Iet, packet: &[u8]) -> Result<(), GranuleError> {
        let header =
            SpaceHeader::parse(packet).ok().filter(|header| header.total_len == packet.len());
        let header = header.ok_or(GranuleError::NotAPacket)?;
        let place = self.collection.packets.iter().position(|kind| kind.apid == header.apid);
        let received = place.and_then(|place| self.types.get_mut(place));
        let received = received.ok_or(GranuleError::OtherApplication(header.apid))?;
        if time < self.span.start || time >= self.span.end {
            return Err(GranuleError::Outside(time.utc()));
        }
        if self.storage.len() + packet.len() > MOST_STORAGE {
            return Err(GranuleError::TooLarge);
        }
        if let Some(last) = received.last
            && let CountStep::Gap { missing } =
                Modulus::PACKET.step(last.into(), header.count.into())
        {
            received.skipped += missing;
        }
        received.last = Some(header.count);
        received.trackers.push(Tracker {
            time: i64::try_from(time.as_micros()).unwrap_or(i64::MAX),
            count: header.count.into(),
            size: i32::try_from(packet.len()).expect("a packet has 64 KiB at most"),
            offset: i32::try_from(self.storage.len()).expect("the storage is held below 1 GiB"),
            fill_percent: 0,
        });
        self.storage.extend_from_slice(packet);
        Ok(())
    }

    /// Packs the granule. Trackers of an application begin with the packets received; those that a
    /// whole granule has more follow with offset -1.
    pub fn finish(mut self) -> PackedGranule {
        let kinds = || self.collection.packets.iter().zip(&self.types);
        let types: Vec<_> = kinds().map(|(kind, received)| received.account(kind)).collect();
        let reserved: Vec<usize> = kinds()
            .map(|(kind, received)| {
                received.trackers.len().max(kind.expected.unwrap_or(0) as usize)
            })
            .collect();
        let list = HEADER_LEN;
        let trackers = list + types.len() * APID_LEN;
        let storage = trackers + reserved.iter().sum::<usize>() * TRACKER_LEN;
        let places = Places {
            apids: narrow(types.len()),
            list: narrow(list),
            trackers: narrow(trackers),
            storage: narrow(storage),
            used: narrow(self.storage.len()),
        };
        let mut head = Vec::with_capacity(storage);
        self.header().write(places, &mut head);
        let mut first = 0;
        for (account, reserved) in types.iter().zip(&reserved) {
            let entry = ApidEntry {
                name: account.name.clone(),
                apid: account.apid.value().into(),
                first_tracker: narrow(first),
                reserved: narrow(*reserved),
                received: u32::try_from(account.received).unwrap_or(u32::MAX),
            };
            entry.write(&mut head);
            first += reserved;
        }
        for (received, reserved) in self.types.iter().zip(&reserved) {
            let missing =
                core::iter::repeat_n(&Tracker::MISSING, reserved - received.trackers.len());
            received.trackers.iter().chain(missing).for_each(|tracker| tracker.write(&mut head));
        }
        debug_assert_eq!(head.len(), storage);
        self.storage.splice(..0, head);
        PackedGranule {
            id: self.plan.granule_id(self.span.start),
            span: self.span,
            blob: self.storage,
            types,
        }
    }

    fn header(&self) -> BlobHeader {
        BlobHeader {
            satellite: self.plan.satellite.short_name.clone(),
            sensor: self.collection.sensor.clone(),
            kind: self.collection.kind.clone(),
            start: self.span.start,
            end: self.span.end,
        }
    }
}

impl Received {
    fn account(&self, kind: &PacketType) -> TypeAccount {
        let received = self.trackers.len() as u64;
        // A whole granule may have up to `slack` packets less than the expected number: only those
        // beyond count as missing.
        let whole = u64::from(kind.expected.unwrap_or(0).saturating_sub(kind.slack));
        // An instrument does not send every type in every mode. Where nothing came of a type that
        // is not always sent, it was most likely not sent, and nothing is missing.
        let is_due = received > 0 || kind.always;
        // Breaks in the sequence count show missing packets between those received; the expected
        // number also shows those missing at the granule's ends.
        let missing = if is_due { self.skipped.max(whole.saturating_sub(received)) } else { 0 };
        TypeAccount { name: kind.name.clone(), apid: kind.apid, received, missing }
    }
}

impl PackedGranule {
    /// Packets known to be missing, in percent of these and those received.
    pub fn percent_missing(&self) -> f32 {
        let sum = |of: fn(&TypeAccount) -> u64| self.types.iter().map(of).sum::<u64>();
        let (received, missing) = (sum(|kind| kind.received), sum(|kind| kind.missing));
        if missing == 0 {
            0.0
        } else {
            (100.0 * missing as f64 / (received + missing) as f64) as f32
        }
    }
}

/// Places of a granule are below 1 GiB of storage and 256 kinds of a million trackers at most.
fn narrow(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Packets of a granule in bytes. VIIRS, with the most, has 110 MB.
const MOST_STORAGE: usize = 1 << 30;
