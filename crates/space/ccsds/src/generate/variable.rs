//! Frames with a length field: several whole packets, or a packet in segments (CCSDS 732.1-B-3
//! 4.1.4.2.2).

use super::channel::ChannelStream;
use super::random::Random;
use crate::count::Modulus;
use crate::frame::{self, ConstructionRule, Frame, FrameFields, UslpFields, VcCount};
use crate::mission::{FrameFormat, FrameLengths, Mission};

/// One frame in this many of a channel is truncated, if the mission has truncated frames.
const TRUNCATED_EVERY: u64 = 16;
/// USLP protocol identifier of service data units of the access point, which are not read as
/// packets (CCSDS 732.1-B-3 4.1.4.2.3).
const PROTOCOL_UNITS: u8 = 5;

/// The data field of a frame.
struct Content {
    rule: ConstructionRule,
    data: Vec<u8>,
}

impl ChannelStream {
    /// The channel's next frame, of a length of its own. Call `Arrivals::settle` after it.
    pub fn next_variable(&mut self, mission: &Mission, lengths: &mut Random) -> Vec<u8> {
        let format = mission.frame();
        let template = self.source.template.clone();
        let template =
            Frame::parse(&template, format).expect("templates are frames of the mission");
        let uslp = template.uslp.expect("only USLP frames say their length");
        self.frames_made += 1;
        let is_truncated = matches!(format.lengths, FrameLengths::Variable { truncated: Some(_) })
            && self.field.has_packets
            && self.frames_made.is_multiple_of(TRUNCATED_EVERY);
        let fields = FrameFields {
            channel: template.channel,
            count: VcCount { value: self.frame_count, modulus: self.field.modulus },
            is_replay: false,
            first_header: None,
            insert_zone: &[],
            data: &[],
            ocf: template.ocf,
            uslp: None,
        };
        if is_truncated {
            let rule = ConstructionRule::Unsegmented;
            let uslp =
                UslpFields { is_truncated, rule, protocol: PROTOCOL_UNITS, pointer: None, ..uslp };
            let count = VcCount { value: 0, modulus: Modulus::NONE };
            return made(&FrameFields { count, ocf: None, uslp: Some(uslp), ..fields }, format);
        }
        let room = room(&template, format);
        let drawn = 1 + lengths.below(room as u64) as usize;
        let Content { rule, data } = match self.field.has_packets {
            true => self.content(room, drawn),
            false => Content { rule: ConstructionRule::Unsegmented, data: vec![0; drawn] },
        };
        self.frame_count = self.field.modulus.after(self.frame_count);
        let uslp = UslpFields { rule, pointer: None, ..uslp };
        made(&FrameFields { data: &data, uslp: Some(uslp), ..fields }, format)
    }

    /// As many of the next packets as fit into `drawn` bytes, at least one; or a segment of a
    /// packet that is longer than `room`, the maximum.
    fn content(&mut self, room: usize, drawn: usize) -> Content {
        let content = self.next_content(room, drawn);
        self.arrivals.in_last = content.data.len();
        content
    }

    fn next_content(&mut self, room: usize, drawn: usize) -> Content {
        if !self.waiting.is_empty() {
            let rest = self.waiting.len();
            let (rule, len) = match rest <= room {
                true => (ConstructionRule::LastSegment, rest),
                false => (ConstructionRule::ContinuingSegment, drawn),
            };
            return Content { rule, data: self.waiting.drain(..len).collect() };
        }
        let first = self.ahead.take().unwrap_or_else(|| self.packets.following());
        if first.len() > room {
            let (segment, rest) = first.split_at(drawn);
            let data = segment.to_vec();
            self.waiting.extend(rest);
            self.arrivals.begin(first);
            return Content { rule: ConstructionRule::FirstSegment, data };
        }
        let mut data = first.clone();
        self.arrivals.begin(first);
        loop {
            let packet = self.packets.following();
            if data.len() + packet.len() > drawn {
                self.ahead = Some(packet);
                return Content { rule: ConstructionRule::Unsegmented, data };
            }
            data.extend_from_slice(&packet);
            self.arrivals.begin(packet);
        }
    }
}

/// Bytes of data that the longest frame like `template` has room for, without a pointer.
fn room(template: &Frame<'_>, format: &FrameFormat) -> usize {
    let pointer = template.uslp.and_then(|uslp| uslp.pointer).map_or(0, |_| 2);
    (template.data.len() + pointer).min(format.length)
}

fn made(fields: &FrameFields<'_>, format: &FrameFormat) -> Vec<u8> {
    frame::write(fields, format).expect("what has no room was segmented")
}
