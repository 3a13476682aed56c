//! One cycle of a synthetic downlink: the schedule of its packets and frames.

use super::description::{
    DEFAULT_VCID, Description, DescriptionError, MAX_APPLICATIONS, PacketPlan, carries_packets,
};
use super::random::Random;
use super::source::{ChannelSource, Source};
use crate::count::Modulus;
use crate::frame::{self, ConstructionRule, FirstHeader, Frame, FrameFields, UslpFields, VcCount};
use crate::id::{Apid, Channel, MapId, Scid, Vcid};
use crate::mission::{ApidRange, FrameFormat, FrameKind, FrameLengths, Mission};
use crate::packet::{Grouping, SpaceHeader};
use skyhaul_units::{ByteCount, Duration, Utc};
use std::collections::BTreeMap;

/// Frames of a cycle, if no packets are rarer than once in that many.
const CYCLE_FRAMES: u64 = 1_024;
/// Most frames of a cycle: its packets are held in memory, some 10 MB.
const LONGEST_CYCLE: u64 = 8_192;
/// One frame in this many is idle, if the number of packets is not given.
const IDLE_SHARE: u64 = 16;
/// USLP protocol identifier of idle data (CCSDS 732.1-B-3 4.1.4.2.3).
const IDLE_PROTOCOL: u8 = 31;

/// A packet, or a group of them, that is to be sent.
struct Planned {
    /// From the beginning of the cycle.
    at: Duration,
    apid: Apid,
    sizes: Vec<usize>,
}

/// What is sent on one virtual channel.
struct Lane {
    /// Applications with their plans: those sent at given intervals, and those that fill the room
    /// left.
    timed: Vec<(Apid, PacketPlan, Duration)>,
    filling: Vec<(Apid, PacketPlan)>,
    map: MapId,
}

impl Source {
    /// Makes packets by a description, for frames of the mission. The same seed gives the same
    /// packets.
    ///
    /// # Errors
    /// [`DescriptionError`] where the description does not fit the mission, or asks for more than
    /// the downlink carries.
    pub fn described(
        mission: &Mission,
        description: &Description,
        seed: u64,
    ) -> Result<Self, DescriptionError> {
        Maker { mission, description, random: Random::new(seed ^ CONTENT) }.source()
    }
}

/// The contents are independent of the errors of the same seed.
const CONTENT: u64 = 0xC0_57E5_7A7E_0001;

struct Maker<'a> {
    mission: &'a Mission,
    description: &'a Description,
    random: Random,
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, DescriptionError> {
    Err(DescriptionError(reason.into()))
}

impl Maker<'_> {
    fn source(mut self) -> Result<Source, DescriptionError> {
        let scid = self.scid()?;
        let start = self.description.first_time()?;
        if self.description.vc_count_octets > 7 {
            return refuse(
                "`vc_count_octets` is 0 to 7; without a count nobody can tell lost frames",
            );
        }
        let lanes = self.lanes()?;
        let (frames, frame_time) = self.frames(&lanes)?;
        let cycle = frame_time * frames;
        let mut channels: BTreeMap<Channel, (ChannelSource, u64)> = BTreeMap::new();
        let mut left = frames;
        let mut planned: Vec<(Vcid, Vec<Planned>, u64)> = Vec::new();
        for (vcid, lane) in &lanes {
            let timed = self.timed(lane, cycle);
            let bytes: usize = timed.iter().flat_map(|planned| &planned.sizes).sum();
            let needed = if timed.is_empty() {
                0
            } else {
                bytes.div_ceil(self.zone(scid, *vcid, lane)?) as u64 + 1
            };
            left = left.checked_sub(needed).filter(|left| *left > 0).ok_or_else(|| {
                DescriptionError(format!(
                    "the packets need more than the {} of the downlink; lower their sizes or send \
                    them less often",
                    self.description.rate
                ))
            })?;
            planned.push((*vcid, timed, needed));
        }
        let filling =
            lanes.values().filter(|lane| !lane.filling.is_empty() || lane.timed.is_empty()).count()
                as u64;
        let idle = self.idle_channel(scid, &lanes);
        let share = match (filling, idle.is_some()) {
            (0, _) => 0,
            (lanes, true) => (left - left.div_ceil(IDLE_SHARE)) / lanes,
            (lanes, false) => left / lanes,
        };
        for (vcid, mut list, needed) in planned {
            let lane = &lanes[&vcid];
            let is_filling = !lane.filling.is_empty() || lane.timed.is_empty();
            let own = needed + if is_filling { share } else { 0 };
            left -= own - needed;
            let channel = Channel { scid, vcid };
            let template = self.template(channel, lane.map)?;
            let room = own as usize * self.zone(scid, vcid, lane)?;
            self.fill(lane, room, cycle, &mut list);
            list.sort_by_key(|planned| planned.at);
            let packets = list.iter().flat_map(|planned| self.packets(planned, start)).collect();
            channels.insert(channel, (ChannelSource { template, first_count: 0, packets }, own));
        }
        match idle {
            Some((channel, template)) => {
                let idle = ChannelSource { template, first_count: 0, packets: Vec::new() };
                channels.insert(channel, (idle, left));
            }
            None => channels.values_mut().next().into_iter().for_each(|(_, own)| *own += left),
        }
        let order = spread(
            &channels.iter().map(|(channel, (_, own))| (*channel, *own)).collect::<Vec<_>>(),
        );
        let channels =
            channels.into_iter().map(|(channel, (source, _))| (channel, source)).collect();
        Ok(Source { mission: self.mission.clone(), order, channels, cycle })
    }

    /// Frames of a cycle, and how long one takes.
    fn frames(&self, lanes: &BTreeMap<Vcid, Lane>) -> Result<(u64, Duration), DescriptionError> {
        let frame_time = self.description.rate.time_for(ByteCount::of(self.mission.cadu_len()));
        if frame_time == Duration::ZERO || frame_time == Duration::MAX {
            return refuse(format!(
                "a rate of {} does not carry frames; write one like \"15 Mbit/s\"",
                self.description.rate
            ));
        }
        let rarest =
            lanes.values().flat_map(|lane| lane.timed.iter().map(|(.., every)| *every)).max();
        let frames = rarest
            .map_or(0, |every| every.as_nanos().div_ceil(frame_time.as_nanos()))
            .max(CYCLE_FRAMES);
        if frames > LONGEST_CYCLE {
            return refuse(format!(
                "packets every {} are too rare for a downlink of {}; the longest is {}",
                rarest.unwrap_or_default(),
                self.description.rate,
                frame_time * LONGEST_CYCLE
            ));
        }
        Ok((frames, frame_time))
    }

    fn scid(&self) -> Result<Scid, DescriptionError> {
        let known = self.mission.scids();
        match self.description.scid {
            None => Ok(known.first().copied().unwrap_or(Scid::from_bits(1))),
            Some(value) => match Scid::new(value).filter(|scid| self.mission.covers(*scid)) {
                Some(scid) => Ok(scid),
                None => {
                    refuse(format!("spacecraft {value} is not of mission {}", self.mission.name()))
                }
            },
        }
    }

    /// The plans of each channel, checked against the mission.
    fn lanes(&self) -> Result<BTreeMap<Vcid, Lane>, DescriptionError> {
        let mut lanes: BTreeMap<Vcid, Lane> = BTreeMap::new();
        let mut applications = 0;
        for plan in self.description.plans(self.mission) {
            let Some(vcid) =
                Vcid::new(plan.vcid).filter(|vcid| carries_packets(self.mission, *vcid))
            else {
                return refuse(format!(
                    "virtual channel {} of mission {} does not carry packets",
                    plan.vcid,
                    self.mission.name()
                ));
            };
            let Some(map) = MapId::new(plan.map) else {
                return refuse(format!(
                    "access point {} does not exist: there are 0 to {}",
                    plan.map,
                    MapId::MAX
                ));
            };
            self.check_sizes(&plan, vcid)?;
            let lane = lanes.entry(vcid).or_insert_with(|| Lane {
                timed: Vec::new(),
                filling: Vec::new(),
                map,
            });
            if lane.map != map {
                return refuse(format!(
                    "virtual channel {vcid} has two access points; give it one"
                ));
            }
            for text in &plan.apids {
                let range: ApidRange = text.parse().map_err(DescriptionError)?;
                for value in range.first.value()..=range.last.value() {
                    let apid = Apid::from_bits(value);
                    applications += 1;
                    if applications > MAX_APPLICATIONS || apid == Apid::IDLE {
                        return refuse(format!(
                            "there are at most {MAX_APPLICATIONS} applications, 0 to 2046; \
                            describe fewer"
                        ));
                    }
                    if plan.shortest < self.head_len(apid) + 1 {
                        return refuse(format!(
                            "packets of application {apid} have {} bytes before their data; make \
                            `shortest` more than that",
                            self.head_len(apid)
                        ));
                    }
                    match plan.every {
                        Some(every) => lane.timed.push((apid, plan.clone(), every)),
                        None => lane.filling.push((apid, plan.clone())),
                    }
                }
            }
        }
        if lanes.is_empty() {
            // A mission whose frames are opaque: frames alone.
            let lane = Lane { timed: Vec::new(), filling: Vec::new(), map: MapId::from_bits(0) };
            lanes.insert(DEFAULT_VCID, lane);
        }
        Ok(lanes)
    }

    /// The lengths, groups and times of a plan.
    fn check_sizes(&self, plan: &PacketPlan, vcid: Vcid) -> Result<(), DescriptionError> {
        let most = self.mission.longest_packet();
        if plan.shortest > plan.longest
            || plan.longest > most
            || plan.group == 0
            || plan.every == Some(Duration::ZERO)
        {
            return refuse(format!(
                "packets of {} to {} bytes in groups of {} on virtual channel {vcid} cannot \
                be: `shortest` is at most \
                 `longest`, that is at most {most}, and `group` and `every` are more than zero",
                plan.shortest, plan.longest, plan.group
            ));
        }
        Ok(())
    }

    /// Bytes of an application's headers, with the time if the mission defines it.
    fn head_len(&self, apid: Apid) -> usize {
        self.mission.time_rule(apid).map_or(SpaceHeader::LEN, |(code, offset)| offset + code.len())
    }

    fn sizes(&mut self, plan: &PacketPlan) -> Vec<usize> {
        let span = (plan.longest - plan.shortest + 1) as u64;
        (0..plan.group).map(|_| plan.shortest + self.random.below(span) as usize).collect()
    }

    /// What is sent at times given.
    fn timed(&mut self, lane: &Lane, cycle: Duration) -> Vec<Planned> {
        let mut planned = Vec::new();
        for (apid, plan, every) in &lane.timed {
            for number in 0..(cycle.as_nanos() / every.as_nanos()).max(1) {
                planned.push(Planned { at: *every * number, apid: *apid, sizes: self.sizes(plan) });
            }
        }
        planned
    }

    /// Fills the room left in the channel with packets of its other applications in turn, at equal
    /// intervals.
    fn fill(&mut self, lane: &Lane, room: usize, cycle: Duration, list: &mut Vec<Planned>) {
        let mut left = room.saturating_sub(list.iter().flat_map(|planned| &planned.sizes).sum());
        let mut more = Vec::new();
        for (apid, plan) in lane.filling.iter().cycle() {
            let sizes = self.sizes(plan);
            let Some(after) = left.checked_sub(sizes.iter().sum()) else { break };
            left = after;
            more.push(Planned { at: Duration::ZERO, apid: *apid, sizes });
        }
        let step = cycle / (more.len() as u64).max(1);
        list.extend(
            more.into_iter()
                .enumerate()
                .map(|(number, planned)| Planned { at: step * number as u64, ..planned }),
        );
    }

    /// The packets of a group, with the time in the first.
    fn packets(&mut self, planned: &Planned, start: Utc) -> Vec<Vec<u8>> {
        let last = planned.sizes.len() - 1;
        let rule = self.mission.time_rule(planned.apid);
        let mut packets = Vec::with_capacity(planned.sizes.len());
        for (number, size) in planned.sizes.iter().enumerate() {
            let grouping = match number {
                _ if last == 0 => Grouping::Standalone,
                0 => Grouping::First,
                _ if number == last => Grouping::Last,
                _ => Grouping::Continuation,
            };
            let has_secondary = rule.is_some() && number == 0;
            let header = SpaceHeader {
                is_telecommand: false,
                has_secondary,
                apid: planned.apid,
                grouping,
                count: 0,
                total_len: *size,
            };
            let mut packet = header.to_bytes().to_vec();
            while packet.len() < *size {
                packet.extend(self.random.next().to_be_bytes());
            }
            packet.truncate(*size);
            if let Some((code, offset)) = rule.filter(|_| has_secondary) {
                code.write(start + planned.at, &mut packet[offset..]);
            }
            packets.push(packet);
        }
        packets
    }

    /// Bytes of the packet zone of a channel's frames; at least one, for channels without packets.
    fn zone(&self, scid: Scid, vcid: Vcid, lane: &Lane) -> Result<usize, DescriptionError> {
        let template = self.template(Channel { scid, vcid }, lane.map)?;
        let frame = Frame::parse(&template, self.mission.frame());
        let zone = frame
            .ok()
            .and_then(|frame| frame.m_pdu(self.mission.frame().kind))
            .map(|packets| packets.zone.len());
        zone.filter(|len| *len > 0)
            .map_or_else(|| refuse("the mission's frames have no room for packets"), Ok)
    }

    fn template(&self, channel: Channel, map: MapId) -> Result<Vec<u8>, DescriptionError> {
        let (rule, pointer) = (ConstructionRule::SpanningPackets, Some(u16::MAX));
        self.frame_of(channel, FirstHeader::Continuation, uslp(map, rule, pointer, 0))
    }

    /// A channel of idle frames, and such a frame; `None` where packets use it.
    fn idle_channel(&self, scid: Scid, lanes: &BTreeMap<Vcid, Lane>) -> Option<(Channel, Vec<u8>)> {
        let vcid =
            Some(self.mission.frame().kind.last_vcid()).filter(|vcid| !lanes.contains_key(vcid))?;
        let fields = uslp(MapId::from_bits(0), ConstructionRule::Unsegmented, None, IDLE_PROTOCOL);
        let channel = Channel { scid, vcid };
        Some((channel, self.frame_of(channel, FirstHeader::Idle, fields).ok()?))
    }

    fn frame_of(
        &self,
        channel: Channel,
        first: FirstHeader,
        fields: UslpFields,
    ) -> Result<Vec<u8>, DescriptionError> {
        let format = self.mission.frame();
        let modulus = match format.kind {
            FrameKind::Tm => Modulus::TM_FRAME,
            FrameKind::Aos => Modulus::AOS_FRAME,
            FrameKind::Uslp => Modulus::of_octets(self.description.vc_count_octets),
        };
        let fields = FrameFields {
            channel,
            count: VcCount { value: 0, modulus },
            is_replay: false,
            first_header: Some(first),
            insert_zone: &[],
            data: &[],
            ocf: format.ocf.then_some([0; 4]),
            uslp: (format.kind == FrameKind::Uslp).then_some(fields),
        };
        // As long as frames can be.
        let longest = FrameFormat { lengths: FrameLengths::Fixed, ..*format };
        let frame = frame::write(&fields, &longest);
        frame.map_or_else(|| refuse(format!("the mission's frames have no room for {channel}")), Ok)
    }
}

const fn uslp(
    map: MapId,
    rule: ConstructionRule,
    pointer: Option<u16>,
    protocol: u8,
) -> UslpFields {
    UslpFields {
        is_destination: false,
        map,
        is_truncated: false,
        is_expedited: false,
        is_control: false,
        rule,
        protocol,
        pointer,
    }
}

/// The channels of a cycle's frames in order, each spread over the cycle.
fn spread(shares: &[(Channel, u64)]) -> Vec<Channel> {
    let total: u64 = shares.iter().map(|(_, share)| share).sum();
    let mut sent = vec![0u64; shares.len()];
    let mut order = Vec::with_capacity(total as usize);
    for slot in 1..=total {
        // The channel that is farthest behind its share of the slots so far.
        let behind =
            |index: usize| i128::from(shares[index].1 * slot) - i128::from(sent[index] * total);
        let Some(next) = (0..shares.len())
            .filter(|index| sent[*index] < shares[*index].1)
            .max_by_key(|index| (behind(*index), usize::MAX - index))
        else {
            break;
        };
        sent[next] += 1;
        order.push(shares[next].0);
    }
    order
}
