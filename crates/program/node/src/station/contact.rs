//! A contact that is captured: records gathered into blocks, and the totals for its closing record.

use super::packing::BlockRecords;
use super::spooler::SpoolBlock;
use crate::status::{ContactCaptured, ContactState};
use skyhaul_ccsds::frame::glimpse_as;
use skyhaul_ccsds::id::{Channel, Scid, Vcid};
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::{FrameFormat, Mission};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_records::payload::{BlockContent, BlockHead};
use skyhaul_records::{Close, MAX_CLOSE_CHANNELS, Open, Record, RecordWriter};
use skyhaul_units::{FlowId, Instant, Utc};
use std::collections::BTreeMap;
use std::ops::Range;

/// An open contact.
#[derive(Debug)]
pub struct CapturedContact {
    flow: FlowId,
    channel: String,
    writer: RecordWriter,
    records: Vec<u8>,
    /// The ranges of good frames in the records.
    places: Vec<Range<usize>>,
    /// When the first record of the block being gathered came.
    since: Option<Instant>,
    position: BitPosition,
    frames: BTreeMap<Channel, u64>,
    last_bit: Utc,
    /// The format of a frame's header.
    format: FrameFormat,
    layout: InputLayout,
    /// Bits of the input from one frame's start to the next one's.
    stride: u64,
    /// Bytes of a frame as the spacecraft sends it, with marker and check symbols, without an inner
    /// code.
    unit: u64,
    /// Bytes of each frame that are not sent: marker and check symbols.
    saved: u64,
    shown: ContactCaptured,
}

/// A block is closed before it grows beyond this size: small enough that a lost block costs little,
/// large enough that the overhead of a block is negligible.
const BLOCK: usize = 192 << 10;

impl CapturedContact {
    /// Begins a contact from an input of this `layout`, or resumes one whose last block has the
    /// head `before`.
    pub fn new(
        flow: FlowId,
        open: &Open,
        mission: &Mission,
        layout: InputLayout,
        before: Option<BlockHead>,
    ) -> Self {
        let sent =
            if open.keeps_check_symbols { mission.block_len() } else { mission.frame().length };
        let unit = unit(mission, layout);
        let saved = if layout == InputLayout::Frames { 0 } else { unit - sent };
        let shown = ContactCaptured {
            flow: flow.0,
            channel: open.channel.clone(),
            file: open.file.clone(),
            mission: mission.name().to_owned(),
            scid: open.scid.map(Scid::value),
            opened: Some(open.opened.to_string()),
            ..ContactCaptured::default()
        };
        let mut contact = Self {
            flow,
            channel: open.channel.clone(),
            writer: RecordWriter::new(),
            records: Vec::new(),
            places: Vec::new(),
            since: None,
            position: BitPosition::START,
            frames: BTreeMap::new(),
            last_bit: open.opened,
            format: *mission.frame(),
            layout,
            stride: stride(mission, layout),
            unit: unit as u64,
            saved: saved as u64,
            shown,
        };
        if let Some(head) = before {
            contact.position = head.position;
            contact.last_bit = head.closed;
            contact.shown.set_aside = head.set_aside;
            contact.shown.corrected_symbols = head.corrected_symbols;
            contact.shown.frames = head.frames.iter().map(|(_, frames)| frames).sum();
            contact.shown.bytes_saved = contact.shown.frames * contact.saved;
            contact.shown.bytes_captured = contact.shown.frames * contact.unit;
            contact.frames = head.frames.into_iter().collect();
        }
        contact
    }

    /// The same contact, sent with the delivery of `name` in place of its channel's.
    pub fn sent_as(self, name: &str) -> Self {
        Self { channel: name.to_owned(), ..self }
    }

    /// The same contact, shown with the names of its destinations.
    pub fn going_to(mut self, to: Vec<String>) -> Self {
        self.shown.to = to;
        self
    }

    /// Its flow.
    pub const fn flow(&self) -> FlowId {
        self.flow
    }

    /// The layout of its input.
    pub const fn layout(&self) -> InputLayout {
        self.layout
    }

    /// Where its last frame ends in the input.
    pub const fn position(&self) -> BitPosition {
        self.position
    }

    /// Its status.
    pub const fn shown(&self) -> &ContactCaptured {
        &self.shown
    }

    /// Adds a record that is not a frame.
    pub fn record(&mut self, now: Instant, record: &Record) {
        self.since.get_or_insert(now);
        self.writer.write(record, &mut self.records);
    }

    /// Adds a frame.
    pub fn frame(&mut self, now: Instant, frame: &CapturedFrame) {
        self.since.get_or_insert(now);
        self.writer.write_frame(frame, &mut self.records);
        let end = self.records.len() - frame.check_symbols.len();
        if frame.is_good() {
            self.places.push(end - frame.bytes.len()..end);
        }
        let own = self.format.is_variable().then_some(frame.bytes.len() as u64);
        self.position = frame.position.plus_bits(own.map_or(self.stride, |bytes| 8 * bytes));
        self.last_bit = self.last_bit.max(frame.received);
        if !frame.is_good() {
            self.shown.set_aside += 1;
            return;
        }
        let channel =
            glimpse_as(&frame.bytes, &self.format).map_or(UNKNOWN, |(_, channel, _)| channel);
        let full = self.frames.len() >= MAX_CLOSE_CHANNELS && !self.frames.contains_key(&channel);
        *self.frames.entry(if full { UNKNOWN } else { channel }).or_default() += 1;
        self.shown.frames += 1;
        self.shown.corrected_symbols += u64::from(frame.quality.corrected_symbols());
        self.shown.bytes_saved += self.saved;
        self.shown.bytes_captured += own.unwrap_or(self.unit);
    }

    /// When the first record of the block being gathered came.
    pub const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// The latest time at which the block being gathered is closed, where `gather` is the longest
    /// that a record waits.
    pub fn due(&self, gather: skyhaul_units::Duration) -> Option<Instant> {
        self.since
            .map(|since| if self.records.len() >= BLOCK { Instant::ZERO } else { since + gather })
    }

    /// Closes the block being gathered, if there is one. `pack` compresses its records where that
    /// pays.
    pub fn take_block(
        &mut self,
        closed: Utc,
        pack: impl FnOnce(BlockRecords<'_>) -> Option<Vec<u8>>,
    ) -> Option<SpoolBlock> {
        self.since.take()?;
        let head = BlockHead {
            closed,
            position: self.position,
            set_aside: self.shown.set_aside,
            corrected_symbols: self.shown.corrected_symbols,
            channel: self.channel.clone(),
            mission: self.shown.mission.clone(),
            frames: self.frames.iter().map(|(channel, frames)| (*channel, *frames)).collect(),
            hops: Vec::new(),
        };
        let (records, frames) = (&self.records[..], &self.places[..]);
        let packed = pack(BlockRecords { records, frames, format: &self.format });
        let content =
            packed.as_deref().map_or(BlockContent::Records(&self.records), BlockContent::Packed);
        let mut payload = Vec::with_capacity(self.records.len() + 128);
        head.encode(content, &mut payload);
        self.shown.bytes_saved +=
            packed.map_or(0, |packed| self.records.len() - packed.len()) as u64;
        self.records.clear();
        self.places.clear();
        self.writer.restart();
        Some(SpoolBlock { flow: self.flow, payload })
    }

    /// Adds the closing record. The caller takes the last block then.
    pub fn close(&mut self, now: Instant, closed: Utc) {
        let close = Close {
            closed,
            last_bit: self.last_bit,
            set_aside: self.shown.set_aside,
            corrected_symbols: self.shown.corrected_symbols,
            frames: self.frames.iter().map(|(channel, frames)| (*channel, *frames)).collect(),
        };
        self.shown.state = ContactState::Closed;
        self.shown.closed = Some(closed.to_string());
        self.record(now, &Record::Close(close));
    }
}

/// Bits of an input of this `layout` from one frame's start to the next one's.
pub fn stride(mission: &Mission, layout: InputLayout) -> u64 {
    let bits = 8 * unit(mission, layout) as u64;
    layout.symbols().map_or(bits, |symbols| mission.coding().inner.input_bits(symbols, bits))
}

/// Bytes from one frame's start to the next one's, without an inner code.
fn unit(mission: &Mission, layout: InputLayout) -> usize {
    match layout {
        InputLayout::Bits | InputLayout::Cadus | InputLayout::Symbols | InputLayout::Soft => {
            mission.cadu_len()
        }
        InputLayout::Frames => mission.frame().length,
    }
}

/// The channel of frames whose header cannot be read.
const UNKNOWN: Channel = Channel { scid: Scid::from_bits(0), vcid: Vcid::from_bits(0) };

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use skyhaul_ccsds::quality::Quality;

    const MISSION: &str = "name = \"given\"\ntitle = \"Given\"\nscids = [159]\n[frame]\nkind = \
                          \"aos\"\nlength = 1113\n\
                           [coding]\nrandomiser = \"none\"\n";

    /// Bare frames have no marker between them: read on a marker's length too far, every later
    /// frame is torn.
    #[test]
    fn the_input_goes_on_behind_the_last_frame_whatever_its_layout() {
        let mission = Mission::from_toml(MISSION).expect("a mission");
        let (channel, mission_text) = ("x".to_owned(), mission.text().to_owned());
        let opened = Utc::from_micros(0);
        let open = Open {
            channel,
            mission: mission_text,
            also_fits: Vec::new(),
            scid: None,
            opened,
            keeps_check_symbols: false,
            completes: None,
            file: None,
        };
        for (layout, len) in
            [(InputLayout::Frames, 1113), (InputLayout::Bits, 1117), (InputLayout::Cadus, 1117)]
        {
            let mut contact = CapturedContact::new(FlowId(1), &open, &mission, layout, None);
            let frame = CapturedFrame {
                received: opened,
                position: BitPosition::from_bits(8_000),
                quality: Quality::NOT_CHECKED,
                set_aside: None,
                bytes: Bytes::from(vec![0x40; 1113]),
                check_symbols: Bytes::new(),
            };
            contact.frame(Instant::ZERO, &frame);
            let block = contact.take_block(opened, |_| None).expect("a block");
            let (head, _) = BlockHead::decode(&block.payload).expect("a head");
            assert_eq!(head.position.as_bits(), 8_000 + 8 * len, "{layout:?}");
            assert_eq!(contact.shown().bytes_saved, len - 1113, "{layout:?}");
        }
    }
}
