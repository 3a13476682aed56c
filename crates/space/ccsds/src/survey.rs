//! Statistics of a series of packets by application: packets, bytes, lengths, times, breaks in the
//! sequence count.
//!
//! Left out: order and duplicates, which Level-0 handles. A break counts where it is in the series.

use crate::count::{CountStep, Modulus};
use crate::id::Apid;
use crate::mission::{Counters, Mission};
use crate::packet::{Grouping, Header, SpaceHeader};
use crate::time::TimeCode;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// Reads the times of a mission's packets: looked up once for each application.
#[derive(Debug, Clone)]
pub struct PacketTimes {
    /// By APID: code and its offset in the packet.
    rules: Box<[Option<(TimeCode, usize)>]>,
    /// By APID: the time of the first packet of its last group.
    group: Box<[Option<Utc>]>,
}

/// The times of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketTime {
    /// That in the packet itself.
    pub own: Option<Utc>,
    /// The time of the first packet of its group, or else its own.
    pub group: Option<Utc>,
}

impl PacketTimes {
    /// With the time rules of a mission; without a mission no packet has a time.
    pub fn new(mission: Option<&Mission>) -> Self {
        let apids = (0..=Apid::MAX.value()).map(Apid::from_bits);
        let rules: Box<_> =
            apids.map(|apid| mission.and_then(|mission| mission.time_rule(apid))).collect();
        Self { group: vec![None; rules.len()].into(), rules }
    }

    /// The times of the next packet.
    pub fn next(&mut self, header: &Header, packet: &[u8]) -> PacketTime {
        let Header::Space(header) = header else { return PacketTime::default() };
        let place = usize::from(header.apid.value());
        let own = self.rules[place]
            .filter(|_| header.has_secondary)
            .and_then(|(code, offset)| code.parse(packet.get(offset..)?));
        let begins = matches!(header.grouping, Grouping::First | Grouping::Standalone);
        if begins || own.is_some() {
            self.group[place] = own;
        }
        PacketTime { own, group: self.group[place] }
    }
}

/// The statistics of a series of packets.
#[derive(Debug, Clone)]
pub struct PacketSurvey {
    counters: Counters,
    whole: SurveyTotals,
    /// By APID, its index in `apids` plus one; 0 if it is not there.
    places: Box<[u16]>,
    apids: Vec<(Apid, ApidSurvey)>,
    /// By the APID that identifies a counter.
    counts: Box<[Option<u16>]>,
}

/// What all packets amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct SurveyTotals {
    /// Packets of both kinds.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Idle space packets (APID 2047): counted here, and as an application.
    pub idle_packets: u64,
    /// Encapsulation packets.
    pub encapsulation_packets: u64,
    /// Their bytes.
    pub encapsulation_bytes: u64,
    /// Breaks in the sequence counts.
    pub gaps: u64,
    /// Packets missing in those.
    pub missing: u64,
    /// Counts that repeated or went back.
    pub resets: u64,
    /// The earliest time of a packet.
    pub first: Option<Utc>,
    /// The latest time of a packet.
    pub last: Option<Utc>,
}

/// The statistics of one application's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ApidSurvey {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the shortest.
    pub shortest: u32,
    /// Bytes of the longest.
    pub longest: u32,
    /// The earliest time; none if no packet has one.
    pub first: Option<Utc>,
    /// The latest time.
    pub last: Option<Utc>,
    /// Breaks in the sequence count. If applications share a counter, the break counts for the
    /// application of the packet after it.
    pub gaps: u64,
    /// Packets missing in the breaks, up to half the range of the count for each.
    pub missing: u64,
    /// Counts that repeated or went back: a replay, a duplicate or a reset.
    pub resets: u64,
}

impl PacketSurvey {
    /// No packets yet. The mission defines which applications share a counter.
    pub fn new(mission: Option<&Mission>) -> Self {
        let all = usize::from(Apid::MAX.value()) + 1;
        Self {
            counters: mission.map(|mission| mission.counters().clone()).unwrap_or_default(),
            whole: SurveyTotals::default(),
            places: vec![0; all].into(),
            apids: Vec::new(),
            counts: vec![None; all].into(),
        }
    }

    /// Counts a packet with this header and time.
    pub fn add(&mut self, header: &Header, time: Option<Utc>) {
        let bytes = header.total_len() as u64;
        self.whole.packets += 1;
        self.whole.bytes += bytes;
        match header {
            Header::Space(header) => self.add_space(header, time),
            Header::Encapsulation(_) => {
                self.whole.encapsulation_packets += 1;
                self.whole.encapsulation_bytes += bytes;
            }
        }
    }

    fn add_space(&mut self, header: &SpaceHeader, time: Option<Utc>) {
        let len = header.total_len as u32;
        let place = usize::from(header.apid.value());
        if self.places[place] == 0 {
            self.apids.push((header.apid, ApidSurvey::of_length(len)));
            self.places[place] = self.apids.len() as u16;
        }
        let (_, apid) = &mut self.apids[usize::from(self.places[place]) - 1];
        apid.packets += 1;
        apid.bytes += u64::from(len);
        apid.shortest = apid.shortest.min(len);
        apid.longest = apid.longest.max(len);
        if let Some(time) = time {
            for (first, last) in
                [(&mut apid.first, &mut apid.last), (&mut self.whole.first, &mut self.whole.last)]
            {
                *first = Some(first.map_or(time, |first| first.min(time)));
                *last = Some(last.map_or(time, |last| last.max(time)));
            }
        }
        if header.apid == Apid::IDLE {
            // The count of idle packets need not go on (CCSDS 133.0-B-2 4.1.3.4.3.4).
            self.whole.idle_packets += 1;
            return;
        }
        let counter = usize::from(self.counters.of(header.apid).value());
        let Some(before) = self.counts[counter].replace(header.count) else { return };
        match Modulus::PACKET.step(u64::from(before), u64::from(header.count)) {
            CountStep::Next => {}
            CountStep::Same | CountStep::Back => {
                apid.resets += 1;
                self.whole.resets += 1;
            }
            CountStep::Gap { missing } => {
                apid.gaps += 1;
                apid.missing += missing;
                self.whole.gaps += 1;
                self.whole.missing += missing;
            }
        }
    }

    /// What all packets amount to.
    pub const fn totals(&self) -> SurveyTotals {
        self.whole
    }

    /// What each application's packets amount to.
    pub fn apids(&self) -> BTreeMap<Apid, ApidSurvey> {
        self.apids.iter().copied().collect()
    }
}

impl ApidSurvey {
    const fn of_length(len: u32) -> Self {
        Self {
            packets: 0,
            bytes: 0,
            shortest: len,
            longest: len,
            first: None,
            last: None,
            gaps: 0,
            missing: 0,
            resets: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::MissionSet;
    use crate::packet::EncapsulationHeader;
    use skyhaul_units::Duration;

    fn header(apid: u16, count: u16, grouping: Grouping) -> SpaceHeader {
        let apid = Apid::new(apid).unwrap();
        let has_secondary = matches!(grouping, Grouping::First | Grouping::Standalone);
        SpaceHeader { is_telecommand: false, has_secondary, apid, grouping, count, total_len: 20 }
    }

    #[test]
    fn breaks_are_counted_by_application_and_in_all() {
        let mut survey = PacketSurvey::new(None);
        for (apid, count) in
            [(1, 16_383), (2, 7), (1, 0), (1, 3), (2, 7), (2, 6), (2047, 0), (2047, 9)]
        {
            survey.add(&Header::Space(header(apid, count, Grouping::Standalone)), None);
        }
        let encapsulation = EncapsulationHeader { protocol: 2, header_len: 2, total_len: 9 };
        survey.add(&Header::Encapsulation(encapsulation), None);
        let apids = survey.apids();
        let breaks = |apid: u16| {
            let apid = apids[&Apid::new(apid).unwrap()];
            (apid.packets, apid.gaps, apid.missing, apid.resets)
        };
        assert_eq!(
            (breaks(1), breaks(2), breaks(2047)),
            ((3, 1, 2, 0), (3, 0, 0, 2), (2, 0, 0, 0))
        );
        let totals = survey.totals();
        assert_eq!((totals.packets, totals.bytes, totals.idle_packets), (9, 169, 2));
        assert_eq!((totals.encapsulation_packets, totals.encapsulation_bytes), (1, 9));
        assert_eq!((totals.gaps, totals.missing, totals.resets), (1, 2, 2));
    }

    #[test]
    fn what_continues_a_group_has_the_time_of_its_beginning() {
        let missions = MissionSet::built_in();
        let mut times = PacketTimes::new(missions.by_name("suomi-npp"));
        let begun = Utc::from_day(20_063, Duration::from_secs(1));
        let mut packet = [0; 20];
        assert!(TimeCode::Cds8.write(begun, &mut packet[6..]));
        let mut next =
            |count, grouping| times.next(&Header::Space(header(800, count, grouping)), &packet);
        assert_eq!(next(0, Grouping::Continuation), PacketTime { own: None, group: None });
        assert_eq!(next(1, Grouping::First), PacketTime { own: Some(begun), group: Some(begun) });
        assert_eq!(next(2, Grouping::Last), PacketTime { own: None, group: Some(begun) });
        let none =
            Header::Space(SpaceHeader { has_secondary: false, ..header(800, 3, Grouping::First) });
        assert_eq!(times.next(&none, &packet), PacketTime::default());
    }
}
