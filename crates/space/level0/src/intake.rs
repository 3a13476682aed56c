//! From the frames of one contact to packets with their place in time.

use crate::clock::{ClockCheck, Placement, Timeline, Urgency};
use crate::files::Error;
use crate::report::{FrameCounts, FrameReport};
use crate::rules::ProductRuleSet;
use crate::set_aside::SetAsideReason;
use skyhaul_ccsds::extract::{ExtractedPacket, Extractor};
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::{Header, SpaceHeader};
use skyhaul_ccsds::quality::{CapturedFrame, FrameVerdict};
use skyhaul_units::Duration;

/// Takes one contact's frames.
pub(crate) struct Intake {
    mission: Mission,
    scid: Scid,
    extractor: Extractor,
    timeline: Timeline,
    /// Packets that wait until the contact's time is known.
    waiting: Vec<ExtractedPacket>,
    waiting_bytes: usize,
    /// How much reception time they wait at most, once a few times are known.
    patience: Option<Duration>,
    frames: FrameCounts,
}

/// What a packet is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Nature {
    /// A space packet, and where it goes.
    Space(SpaceHeader, Placement),
    /// One that no product can hold.
    Refused(Option<SpaceHeader>, SetAsideReason),
}

impl Intake {
    /// For a contact with the spacecraft `scid`.
    pub fn new(mission: &Mission, scid: Scid, clock: ClockCheck) -> Self {
        Self {
            mission: mission.clone(),
            scid,
            extractor: Extractor::new(mission.clone()),
            timeline: Timeline::new(clock),
            waiting: Vec::new(),
            waiting_bytes: 0,
            patience: None,
            frames: FrameCounts::default(),
        }
    }

    /// The same, but packets that a missing frame cut are filled up if `rules` ask for it.
    pub fn with_rules(mut self, rules: &ProductRuleSet) -> Self {
        if rules.pads() {
            self.extractor = Extractor::new(self.mission.clone()).filling();
        }
        self
    }

    /// The same, but the contact's time is decided as soon as a few packet times are known and
    /// packets have waited for this reception time: for data sets that are published during the
    /// contact.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Takes the next frame, good or set aside, and passes on the packets that it completes.
    pub fn frame(
        &mut self,
        frame: &CapturedFrame,
        sink: &mut impl FnMut(&ExtractedPacket, Nature) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.frames.received += 1;
        if let Some(reason) = frame.set_aside {
            self.frames.set_aside += 1;
            self.frames.list(frame.position, frame.received, reason.text().to_owned());
            return Ok(());
        }
        self.frames.good += 1;
        self.frames.corrected += u64::from(frame.quality.verdict == FrameVerdict::Corrected);
        self.frames.corrected_symbols += u64::from(frame.quality.corrected_symbols());
        let mut packets = Vec::new();
        if let Err(error) = self.extractor.push(frame, |packet| packets.push(packet)) {
            self.frames.unreadable += 1;
            self.frames.list(frame.position, frame.received, error.to_string());
        }
        packets.into_iter().try_for_each(|packet| self.packet(packet, sink))
    }

    /// Takes a packet that was extracted elsewhere.
    pub fn packet(
        &mut self,
        packet: ExtractedPacket,
        sink: &mut impl FnMut(&ExtractedPacket, Nature) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if packet.header.is_idle() {
            self.frames.idle_packets += 1;
            return Ok(());
        }
        if packet.fill > 0 && !self.timeline.has_place(&self.mission, &packet) {
            return Ok(());
        }
        if self.timeline.is_set() {
            let nature = self.nature(&packet);
            return sink(&packet, nature);
        }
        let waited = self.waiting.first().map(|first| packet.received.since(first.received));
        let urgency = match self.patience {
            Some(patience) if waited >= Some(patience) => Urgency::Late,
            _ => Urgency::Normal,
        };
        let is_enough = self.timeline.sample(&self.mission, &packet, urgency);
        self.waiting_bytes += packet.bytes.len() + WAITING_OVERHEAD;
        // One packet would keep the memory of the frames beside it from being freed.
        self.waiting.push(ExtractedPacket { bytes: packet.bytes.to_vec().into(), ..packet });
        if is_enough || self.waiting_bytes > MOST_WAITING { self.begin(sink) } else { Ok(()) }
    }

    /// The counts of the frames so far, without the list of those set aside.
    pub fn so_far(&self) -> FrameReport {
        self.frames.clone().without_list().report(&self.extractor)
    }

    /// Passes on the packets that waited. Returns the counts of the frames.
    pub fn finish(
        &mut self,
        sink: &mut impl FnMut(&ExtractedPacket, Nature) -> Result<(), Error>,
    ) -> Result<FrameReport, Error> {
        self.begin(sink)?;
        Ok(core::mem::take(&mut self.frames).report(&self.extractor))
    }

    /// Decides the contact's time and places the packets that waited for it.
    fn begin(
        &mut self,
        sink: &mut impl FnMut(&ExtractedPacket, Nature) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.timeline.is_set() {
            self.timeline.set();
        }
        self.waiting_bytes = 0;
        for packet in core::mem::take(&mut self.waiting) {
            let nature = self.nature(&packet);
            sink(&packet, nature)?;
        }
        Ok(())
    }

    fn nature(&mut self, packet: &ExtractedPacket) -> Nature {
        let Header::Space(header) = packet.header else {
            return Nature::Refused(None, SetAsideReason::NotASpacePacket);
        };
        let scid = packet.channel.scid;
        if scid != self.scid && !self.mission.scids().contains(&scid) {
            return Nature::Refused(Some(header), SetAsideReason::OtherSpacecraft);
        }
        Nature::Space(header, self.timeline.place(&self.mission, packet, &header))
    }
}

/// Packets that wait for the contact's time, with this much around each: 2 MiB at most.
const MOST_WAITING: usize = 2 << 20;
const WAITING_OVERHEAD: usize = 160;
