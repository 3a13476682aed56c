//! The full account of a capture: frames and packets by spacecraft, channel and application, with
//! digests.

use crate::extract::{ChannelCounts, ExtractedPacket, Extractor};
use crate::frame::{self, VcCount};
use crate::id::{Channel, Scid};
use crate::mission::{Mission, MissionSet};
use crate::packet::Header;
use crate::quality::{CapturedFrame, FrameVerdict};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What one capture file held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// The file, as the caller names it.
    pub file: String,
    /// Name of the mission by which it was decoded.
    pub mission: String,
    /// Names of other missions that fit the input equally well; the caller fills it in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_fits: Vec<String>,
    /// The spacecraft of most good frames; `None` without good frames.
    pub scid: Option<Scid>,
    /// Frames found, good or not.
    pub cadus: u64,
    /// Good frames without errors, and frames without any check.
    pub clean_frames: u64,
    /// Good frames with symbols corrected.
    pub corrected_frames: u64,
    /// Frames set aside.
    pub uncorrectable_frames: u64,
    /// Symbols corrected in good frames.
    pub corrected_symbols: u64,
    /// The decoder's effort, if the frames have a low-density parity-check code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ldpc: Option<LdpcReport>,
    /// Good frames.
    pub good_frames: u64,
    /// Digest of all good frames, one after the other, fill frames included.
    pub good_frames_sha256: String,
    /// The spacecraft's virtual channels.
    pub vcids: BTreeMap<u8, ChannelReport>,
    /// Good frames of spacecraft with one frame only: a header with undetected damage, or a stray
    /// frame. They count in the totals, but in no channel.
    #[serde(skip_serializing_if = "is_zero")]
    pub stray_frames: u64,
    /// Other spacecraft in the same stream, each with its own channels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_spacecraft: Vec<SpacecraftReport>,
}

/// The effort of decoding a low-density parity-check code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct LdpcReport {
    /// Codewords.
    pub codewords: u64,
    /// Iterations over all checks, for all codewords.
    pub iterations: u64,
    /// The most iterations of a codeword that was decoded.
    pub most_iterations: u16,
    /// Codewords whose checks were not met.
    pub not_converged: u64,
}

/// The frames of a further spacecraft in a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpacecraftReport {
    /// Spacecraft id.
    pub scid: Scid,
    /// Name of its mission, where known.
    pub mission: Option<String>,
    /// Its good frames.
    pub good_frames: u64,
    /// Its virtual channels.
    pub vcids: BTreeMap<u8, ChannelReport>,
}

/// What one virtual channel held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ChannelReport {
    /// Good frames.
    pub good_frames: u64,
    /// Frames that the frame count shows to be missing.
    pub missing_frames: u64,
    /// Frames whose count went back without sign of missing frames: resets of the counter and
    /// replays.
    #[serde(skip_serializing_if = "is_zero")]
    pub resets: u64,
    /// Packets of which all frames were received, idle packets included.
    pub packets: u64,
    /// Packet headers and lengths that are invalid or contradict the next frame's first header
    /// pointer; these packets are dropped.
    pub impossible_packets: u64,
    /// Bytes of the packets that came.
    pub bytes: u64,
    /// Digest of those, one after the other in the order of their completion.
    pub packets_sha256: String,
    /// Packets by application process id.
    pub apids: BTreeMap<u16, u64>,
    /// Packets by multiplexer access point, where frames have them (USLP).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub maps: BTreeMap<u8, u64>,
}

/// Keeps the account of one capture.
#[derive(Debug)]
pub struct Account {
    frames: FrameDigest,
    packets: PacketAccount,
}

/// The digest of all good frames of a capture. It is half of the work of an account, and can run in
/// another thread.
#[derive(Debug, Clone, Default)]
pub struct FrameDigest(Sha256);

/// An account without the digest of frames.
#[derive(Debug)]
pub struct PacketAccount {
    mission: Mission,
    /// The mission's extractor, then those of other spacecraft in the stream.
    extractors: Vec<Extractor>,
    known: MissionSet,
    spacecraft: BTreeMap<Scid, u64>,
    packets: BTreeMap<Channel, PacketCounts>,
    verdicts: VerdictCounts,
}

#[derive(Debug, Default)]
struct VerdictCounts {
    clean: u64,
    corrected: u64,
    set_aside: u64,
    corrected_symbols: u64,
    ldpc: Option<LdpcReport>,
}

#[derive(Debug, Default)]
struct PacketCounts {
    digest: Sha256,
    apids: BTreeMap<u16, u64>,
    maps: BTreeMap<u8, u64>,
}

/// Most spacecraft kept apart; frames of further ones count in the totals only.
const MAX_SPACECRAFT: usize = 64;
/// A spacecraft with fewer frames is not reported: undetected damage of headers produces such.
const FEWEST_FRAMES: u64 = 2;

impl Account {
    /// For a capture that is read by `mission`; `known` are the missions that other spacecraft in
    /// the stream may be.
    pub fn new(mission: &Mission, known: &MissionSet) -> Self {
        Self { frames: FrameDigest::default(), packets: PacketAccount::new(mission, known) }
    }

    /// Takes the next frame of the capture.
    pub fn feed(&mut self, captured: &CapturedFrame) {
        self.feed_with(captured, |_| {});
    }

    /// Takes the next frame and shows every packet that it completes to `sink`.
    pub fn feed_with(&mut self, captured: &CapturedFrame, sink: impl FnMut(&ExtractedPacket)) {
        self.frames.feed(captured);
        self.packets.feed(captured, sink);
    }

    /// The account of `file`.
    pub fn finish(self, file: &str) -> FileReport {
        self.packets.finish(file, self.frames)
    }
}

impl FrameDigest {
    /// Takes the next frame of the capture.
    pub fn feed(&mut self, captured: &CapturedFrame) {
        if captured.is_good() {
            self.0.update(&captured.bytes);
        }
    }
}

impl PacketAccount {
    /// For a capture that is read by `mission`; `known` are the missions that other spacecraft in
    /// the stream may be.
    pub fn new(mission: &Mission, known: &MissionSet) -> Self {
        Self {
            mission: mission.clone(),
            extractors: vec![Extractor::new(mission.clone())],
            known: known.clone(),
            spacecraft: BTreeMap::new(),
            packets: BTreeMap::new(),
            verdicts: VerdictCounts::default(),
        }
    }

    /// Takes the next frame and shows every packet that it completes to `sink`. Returns the frame's
    /// channel and count; `None` for a frame set aside, or not of the mission's kind.
    pub fn feed(
        &mut self,
        captured: &CapturedFrame,
        mut sink: impl FnMut(&ExtractedPacket),
    ) -> Option<(Channel, VcCount)> {
        self.verdicts.count_iterations(captured);
        if !captured.is_good() {
            self.verdicts.set_aside += 1;
            return None;
        }
        match captured.quality.verdict {
            FrameVerdict::Corrected => self.verdicts.corrected += 1,
            FrameVerdict::Clean | FrameVerdict::NotChecked | FrameVerdict::Uncorrectable => {
                self.verdicts.clean += 1;
            }
        }
        self.verdicts.corrected_symbols += u64::from(captured.quality.corrected_symbols());
        let index = self.extractor_for(&captured.bytes);
        let packets = &mut self.packets;
        let pushed = self.extractors[index].push(captured, |packet| {
            let counts = packets.entry(packet.channel).or_default();
            counts.digest.update(&packet.bytes);
            if let Header::Space(header) = packet.header {
                *counts.apids.entry(header.apid.value()).or_default() += 1;
            }
            if let Some(map) = packet.map {
                *counts.maps.entry(map.value()).or_default() += 1;
            }
            sink(&packet);
        });
        let (channel, count) = pushed.ok()?;
        if let Some(frames) = self.spacecraft.get_mut(&channel.scid) {
            *frames += 1;
        } else if self.spacecraft.len() < MAX_SPACECRAFT {
            self.spacecraft.insert(channel.scid, 1);
        }
        Some((channel, count))
    }

    /// The account of `file`, with the digest of its frames.
    pub fn finish(self, file: &str, frames: FrameDigest) -> FileReport {
        let main = self.spacecraft.iter().max_by_key(|(scid, frames)| {
            (self.mission.covers(**scid) && !self.mission.scids().is_empty(), **frames)
        });
        let main = main.map(|(scid, _)| *scid);
        let others = || self.spacecraft.iter().filter(|(scid, _)| Some(**scid) != main);
        let stray_frames =
            others().map(|(_, frames)| *frames).filter(|frames| *frames < FEWEST_FRAMES).sum();
        let other_spacecraft = others()
            .filter(|(_, frames)| **frames >= FEWEST_FRAMES)
            .map(|(scid, frames)| SpacecraftReport {
                scid: *scid,
                mission: self.mission_of(*scid).map(|mission| mission.name().to_owned()),
                good_frames: *frames,
                vcids: self.channels_of(*scid),
            })
            .collect();
        let VerdictCounts { clean, corrected, set_aside, corrected_symbols, ldpc } = self.verdicts;
        FileReport {
            file: file.to_owned(),
            mission: self.mission.name().to_owned(),
            also_fits: Vec::new(),
            scid: main,
            cadus: clean + corrected + set_aside,
            clean_frames: clean,
            corrected_frames: corrected,
            uncorrectable_frames: set_aside,
            corrected_symbols,
            ldpc,
            good_frames: clean + corrected,
            good_frames_sha256: hex(frames.0),
            vcids: main.map(|scid| self.channels_of(scid)).unwrap_or_default(),
            stray_frames,
            other_spacecraft,
        }
    }

    /// The extractor for a frame's spacecraft; one is added for a known mission of the same frame
    /// format.
    fn extractor_for(&mut self, bytes: &[u8]) -> usize {
        let Some((_, channel, _)) = frame::glimpse_as(bytes, self.mission.frame()) else {
            return 0;
        };
        let covering = |extractor: &Extractor| extractor.mission().covers(channel.scid);
        if let Some(index) = self.extractors.iter().position(covering) {
            return index;
        }
        match self.mission_of(channel.scid).cloned() {
            Some(mission) if self.extractors.len() < MAX_SPACECRAFT => {
                self.extractors.push(Extractor::new(mission));
                self.extractors.len() - 1
            }
            _ => 0,
        }
    }

    fn mission_of(&self, scid: Scid) -> Option<&Mission> {
        let length = self.mission.frame().length;
        let fits = |mission: &&Mission| {
            mission.scids().contains(&scid) && mission.frame().length == length
        };
        Some(&self.mission).filter(fits).or_else(|| self.known.iter().find(fits))
    }

    fn channels_of(&self, scid: Scid) -> BTreeMap<u8, ChannelReport> {
        let all = self.extractors.iter().flat_map(Extractor::channels);
        all.filter(|(channel, _)| channel.scid == scid)
            .map(|(channel, counts)| (channel.vcid.value(), self.channel(channel, &counts)))
            .collect()
    }

    fn channel(&self, channel: Channel, counts: &ChannelCounts) -> ChannelReport {
        let packets = self.packets.get(&channel);
        ChannelReport {
            good_frames: counts.frames,
            missing_frames: counts.missing_frames,
            resets: counts.resets,
            packets: counts.packets,
            impossible_packets: counts.bad_headers + counts.bad_first_headers,
            bytes: counts.packet_bytes,
            packets_sha256: hex(packets.map(|packets| packets.digest.clone()).unwrap_or_default()),
            apids: packets.map(|packets| packets.apids.clone()).unwrap_or_default(),
            maps: packets.map(|packets| packets.maps.clone()).unwrap_or_default(),
        }
    }
}

impl VerdictCounts {
    fn count_iterations(&mut self, captured: &CapturedFrame) {
        let Some(iterations) = captured.quality.iterations else { return };
        let ldpc = self.ldpc.get_or_insert_default();
        ldpc.codewords += 1;
        ldpc.iterations += u64::from(iterations.count);
        match captured.quality.verdict {
            FrameVerdict::Uncorrectable => ldpc.not_converged += 1,
            _ => ldpc.most_iterations = ldpc.most_iterations.max(iterations.count),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the serializer asks so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
