//! Notes about a capture that was decoded but has something unusual: one sentence each, with the
//! remedy.

use skyhaul_ccsds::account::FileReport;
use skyhaul_ccsds::capture::CaptureStats;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Channel, Scid, Vcid};
use skyhaul_ccsds::mission::{Content, Mission};
use skyhaul_ccsds::packet::Header;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// Follows the packet times of one capture.
#[derive(Debug)]
pub struct PacketClocks {
    mission: Mission,
    /// The newest time in each channel: a playback of stored data has its own.
    last: BTreeMap<Channel, Utc>,
    jumps: u64,
    greatest: Option<Jump>,
}

#[derive(Debug, Clone, Copy)]
struct Jump {
    apid: Apid,
    days: u64,
}

impl PacketClocks {
    /// For packets of `mission`; those of other spacecraft in the stream are not looked at.
    pub const fn new(mission: Mission) -> Self {
        Self { mission, last: BTreeMap::new(), jumps: 0, greatest: None }
    }

    /// The next packet that came out.
    pub fn packet(&mut self, packet: &ExtractedPacket) {
        let Header::Space(header) = packet.header else { return };
        if !self.mission.covers(packet.channel.scid) {
            return;
        }
        let Some(time) = self.mission.packet_time(&packet.bytes) else { return };
        let Some(last) = self.last.insert(packet.channel, time) else { return };
        let days = time.as_micros().abs_diff(last.as_micros()) / DAY_US;
        if days >= 1 {
            self.jumps += 1;
            if self.greatest.is_none_or(|greatest| days > greatest.days) {
                self.greatest = Some(Jump { apid: header.apid, days });
            }
        }
    }

    fn note(&self) -> Option<String> {
        let Jump { apid, days } = self.greatest?;
        Some(format!(
            "packet times jump by a day or more {} times; the largest jump is {days} days, in \
            application {}; Level-0 sets such packets aside: check the spacecraft's clock and the \
            mission's time \
             code",
            self.jumps,
            apid.value()
        ))
    }
}

/// The notes about a capture.
pub fn notes(
    report: &FileReport,
    mission: &Mission,
    stats: &CaptureStats,
    clocks: &PacketClocks,
) -> Vec<String> {
    let mut notes = Vec::new();
    let is_opaque =
        |vcid: &u8| Vcid::new(*vcid).is_some_and(|vcid| mission.content(vcid) == Content::Opaque);
    if !report.vcids.is_empty() && report.vcids.keys().all(is_opaque) {
        notes.push(format!(
            "packets were not extracted: mission {} does not describe the content of its frames; \
            describe the mission in a file, with \
             `content` and the zones of its frames, and name that with --mission",
            report.mission
        ));
    }
    if report.stray_frames > 0 {
        notes.push(format!(
            "{} good frames name a spacecraft that no other frame names: their headers probably \
            have undetected damage; they count in the totals, but in no channel",
            report.stray_frames
        ));
    }
    if !report.also_fits.is_empty() {
        notes.push(format!(
            "the downlink also fits mission {}; {} matches better, or comes first: name the \
            --mission if that is wrong",
            report.also_fits.join(", "),
            report.mission
        ));
    }
    notes.extend(outside(stats));
    if let Some(scid) = report.scid
        && !report.other_spacecraft.is_empty()
    {
        let others = report.other_spacecraft.iter().map(|other| other.scid);
        let all: Vec<String> = [scid].into_iter().chain(others).map(shown).collect();
        notes.push(format!(
            "spacecraft {} are in one stream; each has its own account: check the receiver if only \
            one was expected",
            all.join(" and ")
        ));
    }
    let channels =
        report.vcids.iter().chain(report.other_spacecraft.iter().flat_map(|other| &other.vcids));
    for (vcid, channel) in channels.filter(|(_, channel)| channel.impossible_packets > 0) {
        notes.push(format!(
            "{} packet headers or lengths in virtual channel {vcid} are invalid; the packets were \
            dropped up to the next \
             known start: name the --mission if there are many",
            channel.impossible_packets
        ));
    }
    notes.extend(clocks.note());
    notes
}

/// Whether there is something beside frames.
pub fn outside(stats: &CaptureStats) -> Option<String> {
    let outside = stats.sync.skipped_bits + stats.sync.dropped_bits;
    (outside > 0).then(|| {
        format!(
            "{outside} bits are in no frame; the capture begins or ends inside one, or holds \
            noise: record from before \
             the pass until after it"
        )
    })
}

fn shown(scid: Scid) -> String {
    scid.value().to_string()
}

const DAY_US: u64 = 86_400_000_000;
