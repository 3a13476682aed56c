//! A downlink in memory, made of the packets of a real pass.

use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::decode::{BlockDecoder, CheckSymbols};
use skyhaul_ccsds::extract::Extractor;
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_coding::ReedSolomon;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// A pass of Suomi NPP: one megabyte of channel access data units.
const PASS: &[u8] = include_bytes!("../../../testdata/cadu/npp.20241206T173815.dat");

/// Bytes of the downlink: far more than the second-level cache of a core holds.
const LENGTH: usize = 32 << 20;

/// Bytes before the packet zone: frame header and pointer.
const HEAD: usize = 8;

/// Channel access data units without a wrong bit.
#[derive(Clone)]
pub struct Downlink {
    pub mission: Mission,
    pub stream: Vec<u8>,
    /// Packets that come out of it whole.
    pub packets: u64,
}

/// The packets of one channel, over and over.
#[derive(Default)]
struct Packets {
    packets: Vec<Vec<u8>>,
    next: usize,
    /// Bytes of the present packet that were sent.
    sent: usize,
    frames: u32,
}

impl Downlink {
    /// Its interleave depth.
    pub fn interleave(&self) -> usize {
        self.mission.coding().reed_solomon.map_or(1, |code| code.interleave)
    }

    /// The packets and the order of frames of the pass, at this interleave depth.
    pub fn new(interleave: usize) -> Self {
        let npp =
            MissionSet::built_in().by_name("suomi-npp").expect("the program holds it").clone();
        let text = npp.text().replace("length = 892", &format!("length = {}", 223 * interleave));
        let text = text.replace("interleave = 4", &format!("interleave = {interleave}"));
        let mission = Mission::from_toml(&text).expect("a depth of the standard");
        let mut extractor = Extractor::new(npp.clone());
        let mut channels: BTreeMap<Channel, Packets> = BTreeMap::new();
        let mut order = Vec::new();
        for frame in frames_of(&npp, PASS) {
            let taken = extractor.push(&frame, |packet| {
                channels.entry(packet.channel).or_default().packets.push(packet.bytes.to_vec());
            });
            order.push(taken.expect("the pass is clean").0);
        }
        let coder = BlockDecoder::new(&mission, CheckSymbols::Dropped);
        let mut stream = Vec::with_capacity(LENGTH + mission.cadu_len());
        let mut idle = Packets::default();
        let mut packets = 0;
        for channel in order.iter().cycle() {
            if stream.len() >= LENGTH {
                break;
            }
            let source = channels.get_mut(channel).unwrap_or(&mut idle);
            let frame = source.frame(*channel, mission.frame().length, &mut packets);
            coder.encode(mission.coding().marker, &frame, &mut stream);
        }
        Self { mission, stream, packets }
    }

    /// So many units, not randomised, with the code and the bytes from one to the next.
    pub fn units(&self, count: usize) -> (ReedSolomon, Vec<u8>, usize) {
        let code = self.mission.reed_solomon().expect("the mission is coded");
        let (randomiser, _) = self.mission.coding().randomiser.expect("the mission is randomised");
        let sequence = randomiser.sequence(code.block_len());
        let stride = self.mission.cadu_len();
        let mut units = self.stream[..count * stride].to_vec();
        for unit in units.chunks_exact_mut(stride) {
            sequence.apply(0, &mut unit[stride - code.block_len()..]);
        }
        (code, units, stride)
    }

    /// The frames.
    pub fn frames(&self) -> Vec<CapturedFrame> {
        frames_of(&self.mission, &self.stream)
    }
}

impl Packets {
    /// The next frame; counts the packets that end in it.
    fn frame(&mut self, channel: Channel, length: usize, ended: &mut u64) -> Vec<u8> {
        let Channel { scid, vcid } = channel;
        let ids = 1 << 14 | scid.value() << 6 | u16::from(vcid.value());
        let [_, high, middle, low] = self.frames.to_be_bytes();
        self.frames += 1;
        let [first, second] = ids.to_be_bytes();
        let mut frame = vec![first, second, high, middle, low, 0, 0x07, 0xFF];
        let mut start = None;
        while frame.len() < length && !self.packets.is_empty() {
            let packet = &self.packets[self.next];
            if self.sent == 0 {
                start.get_or_insert(frame.len() - HEAD);
            }
            let piece = &packet[self.sent..];
            let piece = &piece[..piece.len().min(length - frame.len())];
            frame.extend_from_slice(piece);
            self.sent += piece.len();
            if self.sent == packet.len() {
                *ended += 1;
                (self.next, self.sent) = ((self.next + 1) % self.packets.len(), 0);
            }
        }
        if let Some(start) = start {
            frame[6..HEAD].copy_from_slice(&(start as u16).to_be_bytes());
        }
        frame.resize(length, 0x55);
        frame
    }
}

fn frames_of(mission: &Mission, stream: &[u8]) -> Vec<CapturedFrame> {
    let options = CaptureOptions {
        mission: Some(mission.clone()),
        format: Some(InputLayout::Cadus),
        ..CaptureOptions::default()
    };
    let mut capture = Capture::new(MissionSet::built_in(), options);
    capture.push(Utc::from_micros(0), stream);
    capture.finish();
    let frame = |event| if let CaptureEvent::Frame(frame) = event { Some(frame) } else { None };
    std::iter::from_fn(|| capture.poll()).filter_map(frame).collect()
}
