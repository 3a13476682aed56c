//! The packets of each application, and their times.

use skyhaul_ccsds::count::{CountStep, Modulus};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Channel};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::Header;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// The applications of one capture.
#[derive(Debug)]
pub struct Applications {
    mission: Mission,
    counts: BTreeMap<(Channel, Apid), ApplicationCounts>,
    /// The newest sequence count of each counter.
    sequences: BTreeMap<(Channel, Apid), u64>,
    /// The earliest and latest packet time of each day, and its number of packets.
    days: BTreeMap<i64, (Utc, Utc, u64)>,
    /// Bytes of idle packets.
    pub idle_bytes: u64,
}

/// The packets of one application in one virtual channel.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApplicationCounts {
    /// Packets.
    pub packets: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Packets missing by their sequence count.
    pub missing: u64,
}

/// Most applications kept apart. The largest missions have some 300; packets of damaged headers
/// invent more.
const MOST_APPLICATIONS: usize = 4_096;
/// Most days kept apart: a capture holds one or two, and a few of clocks that are wrong.
const MOST_DAYS: usize = 64;
/// A day with less than one in this many packets counts as a wrong clock.
const LEAST_SHARE: u64 = 100;

impl Applications {
    /// For packets of `mission`; of other spacecraft only the counts are kept.
    pub const fn new(mission: Mission) -> Self {
        Self {
            mission,
            counts: BTreeMap::new(),
            sequences: BTreeMap::new(),
            days: BTreeMap::new(),
            idle_bytes: 0,
        }
    }

    /// The next packet.
    pub fn packet(&mut self, packet: &ExtractedPacket) {
        let len = packet.bytes.len() as u64;
        if packet.header.is_idle() {
            self.idle_bytes += len;
        }
        let Header::Space(header) = packet.header else { return };
        let key = (packet.channel, header.apid);
        if !self.counts.contains_key(&key) && self.counts.len() >= MOST_APPLICATIONS {
            return;
        }
        let counts = self.counts.entry(key).or_default();
        counts.packets += 1;
        counts.bytes += len;
        let is_ours = self.mission.covers(packet.channel.scid);
        // CCSDS 133.0-B-2 4.1.3.4.3: the count of an idle packet means nothing.
        if header.apid != Apid::IDLE {
            let counter =
                if is_ours { self.mission.counters().of(header.apid) } else { header.apid };
            let count = u64::from(header.count);
            let last = self.sequences.insert((packet.channel, counter), count);
            if let Some(CountStep::Gap { missing }) =
                last.map(|last| Modulus::PACKET.step(last, count))
            {
                counts.missing += missing;
            }
        }
        if is_ours && let Some(time) = self.mission.packet_time(&packet.bytes) {
            self.time(time);
        }
    }

    /// By virtual channel and application.
    pub fn counts(&self) -> impl Iterator<Item = (Channel, Apid, &ApplicationCounts)> {
        self.counts.iter().map(|((channel, apid), counts)| (*channel, *apid, counts))
    }

    /// The mission's name for the product that a packet goes to.
    pub fn product(&self, channel: Channel, apid: Apid) -> Option<&str> {
        let ours = self.mission.covers(channel.scid).then_some(&self.mission)?;
        ours.product(channel.vcid, apid).map(|product| product.name.as_str())
    }

    /// The earliest and latest packet time, without days of wrong clocks.
    pub fn span(&self) -> Option<(Utc, Utc)> {
        let timed: u64 = self.days.values().map(|(_, _, packets)| packets).sum();
        let right = self.days.values().filter(|(_, _, packets)| packets * LEAST_SHARE >= timed);
        right.fold(None, |span, (first, last, _)| match span {
            Some((earliest, _)) => Some((earliest, *last)),
            None => Some((*first, *last)),
        })
    }

    fn time(&mut self, time: Utc) {
        if !self.days.contains_key(&time.day()) && self.days.len() >= MOST_DAYS {
            return;
        }
        let (first, last, packets) = self.days.entry(time.day()).or_insert((time, time, 0));
        (*first, *last) = ((*first).min(time), (*last).max(time));
        *packets += 1;
    }
}
