//! The capture of an input's downlinks: one after the other, each identified or configured.

use super::After;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::{Identification, InputLayout, Unidentified};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::sync::SyncCounts;
use skyhaul_units::Utc;

/// Finds frames in the bytes of an input.
#[derive(Debug)]
pub struct DownlinkCapture {
    missions: MissionSet,
    /// The options that the configuration gives for each capture.
    configured: CaptureOptions,
    capture: Capture,
    identified: Option<Identification>,
    /// The byte of the input that the present capture began with.
    from: u64,
    /// The next byte of the input when it began: later than `from` where the capture took over the
    /// part of a frame that a pause cut.
    began_at: u64,
}

impl DownlinkCapture {
    /// Begins a capture at bit `start` of the input.
    pub fn new(missions: MissionSet, configured: CaptureOptions, start: BitPosition) -> Self {
        let options = CaptureOptions { start, ..configured.clone() };
        Self {
            capture: Capture::new(missions.clone(), options),
            missions,
            configured,
            identified: None,
            from: start.byte(),
            began_at: start.byte(),
        }
    }

    /// Takes bytes of the input.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.capture.push(received, bytes);
    }

    /// The next event; `None` where more has to be read.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        let event = self.capture.poll()?;
        if let CaptureEvent::Identified(identification) = &event {
            self.identified = Some((**identification).clone());
        }
        Some(event)
    }

    /// The transmission is over: poll for what the capture still holds, then begin another one.
    pub fn finish(&mut self) {
        self.capture.finish();
    }

    /// Begins to look for another downlink from byte `offset` of the input on, which is in this
    /// `format` where that is known. After a pause it begins with the part of a frame that came
    /// before: the same downlink may go on.
    pub fn begin_anew(&mut self, after: After, offset: u64, format: Option<InputLayout>) {
        let open = self.capture.open_block().filter(|_| after == After::Pause);
        let options = CaptureOptions { format, ..self.configured.clone() };
        (self.capture, self.from) = if let Some(open) = open {
            (Capture::going_on(self.missions.clone(), options, &open), open.from.byte())
        } else {
            let start = BitPosition::from_bits(8 * offset);
            (Capture::new(self.missions.clone(), CaptureOptions { start, ..options }), offset)
        };
        self.began_at = offset;
        self.identified = None;
    }

    /// The present capture goes on with another downlink from `position` on.
    pub const fn goes_on_from(&mut self, position: BitPosition) {
        (self.from, self.began_at) = (position.byte(), position.byte());
    }

    /// Resumes a downlink that is known, with the frame at `frames_from`; the input is read from
    /// where decoding of that frame has to begin, or from where this capture began if that is
    /// later.
    pub fn resume(&mut self, frames_from: BitPosition, mission: Mission, format: InputLayout) {
        let needed = CaptureOptions::read_from(format, frames_from);
        let options = CaptureOptions {
            start: needed.max(BitPosition::from_bits(8 * self.from)),
            frames_from,
            format: Some(format),
            // A mission that was identified, not configured, may change again.
            may_change: self.configured.mission.is_none(),
            mission: Some(mission),
            ..self.configured.clone()
        };
        self.capture = Capture::new(self.missions.clone(), options);
    }

    /// The present downlink, once it is identified.
    pub const fn identified(&self) -> Option<&Identification> {
        self.identified.as_ref()
    }

    /// What is odd about an input in which no downlink was found so far.
    pub const fn doubt(&self) -> Option<Unidentified> {
        self.capture.doubt()
    }

    /// Whether the synchroniser has lock.
    pub fn is_locked(&self) -> bool {
        self.capture.is_locked()
    }

    /// What the synchroniser counted in the present capture.
    pub fn sync_counts(&self) -> SyncCounts {
        self.capture.stats().sync
    }

    /// The byte of the input that the present capture began with.
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// Whether the input, which is read up to byte `offset`, gave anything in the present capture.
    pub const fn has_heard(&self, offset: u64) -> bool {
        offset > self.began_at
    }
}
