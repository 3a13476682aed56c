//! One source of a channel, with what turns its bytes into frames. A receiver knows its own input
//! and nothing of contacts: the channel asks it to read, takes the events that this gave, and says
//! when a transmission is over.

use super::board::InputIndex;
use super::channel::Common;
use super::front::Front;
use super::input::{self, InputRead, InputSource, ReadSizes};
use super::recording::{Destination, Recording};
use super::shared::StationShared;
use crate::config::{self, ResolvedInput};
use crate::fault::Fault;
use crate::status::Vita49Status;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::{Identification, InputLayout, Unidentified};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::sync::SyncConfig;
use skyhaul_ccsds::sync::SyncCounts;
use skyhaul_net::Clock;
use skyhaul_store::raw::{RawConfig, RawKind};
use skyhaul_units::{Duration, Instant, Utc};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// An input and its capture.
#[derive(Debug)]
pub struct InputReceiver {
    config: config::Channel,
    feed: ResolvedInput,
    missions: MissionSet,
    /// The mission configured.
    mission: Option<Mission>,
    /// When a marker is believed.
    sync: SyncConfig,
    clock: Clock,
    source: InputSource,
    recording: Option<Recording>,
    front: Front,
    /// What came as other symbols than before: it belongs to the next capture.
    held: Option<(Utc, Vec<u8>)>,
    shared: Arc<StationShared>,
    /// Until when the input is said to bring what cannot be used.
    refusing_until: Option<Instant>,
    buffer: Vec<u8>,
    capture: Capture,
    identified: Option<Identification>,
    /// The next byte of the input.
    offset: u64,
    /// The byte that the present capture began with.
    capture_from: u64,
    /// The next byte of the input when it began: later, where it took over what had come of a
    /// frame.
    began_at: u64,
}

/// Read at once: 140 ms at 15 Mbit/s; what is read together is stamped with one time.
const READ: usize = 64 << 10;
/// Nothing was refused for so long: the input is well again.
const CALM: Duration = Duration::from_secs(10);

impl InputReceiver {
    /// Opens an input of the channel `config`; a file is read from `start` on.
    ///
    /// # Errors
    /// The input or its recording cannot be opened; the mission configured cannot be read.
    pub fn open(
        index: InputIndex,
        config: config::Channel,
        common: &Common,
        start: BitPosition,
    ) -> Result<Self, Fault> {
        let mission = super::mission_of(&config, &common.missions)?;
        let mut feeds = config.feeds();
        let steps = if feeds.len() > 1 { ReadSizes::Equal } else { ReadSizes::Any };
        let feed = feeds.swap_remove(index.input);
        let source =
            InputSource::open(&feed.input, (config.rate, steps), start.byte(), common.clock)?;
        let front = Front::of(&feed);
        let options =
            CaptureOptions { start, ..options(&config, &feed, mission.clone(), common.sync) };
        Ok(Self {
            front,
            held: None,
            shared: common.shared.clone(),
            refusing_until: None,
            missions: common.missions.clone(),
            mission,
            sync: common.sync,
            clock: common.clock,
            source,
            recording: recording(index, &config, common)?,
            buffer: vec![0; READ],
            capture: Capture::new(common.missions.clone(), options),
            identified: None,
            offset: start.byte(),
            capture_from: start.byte(),
            began_at: start.byte(),
            feed,
            config,
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> Option<SocketAddr> {
        self.source.address()
    }

    /// What its input is among those of the channel.
    pub const fn feed(&self) -> &ResolvedInput {
        &self.feed
    }

    /// Whether its input can be read again from any place.
    pub const fn is_file(&self) -> bool {
        self.feed.input.is_file()
    }

    /// Whether its input waits for the station, instead of going on without it.
    pub const fn waits(&self) -> bool {
        self.is_file() && self.config.rate.is_none()
    }

    /// Reads a file as fast as it can be, from here on; or again at the channel's rate.
    pub fn hurry(&mut self, hurry: Hurry) {
        self.source.play(if hurry == Hurry::Yes { None } else { self.config.rate });
    }

    /// Waits until one of several receivers of live inputs has something to read, up to `patience`.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait<'a>(
        receivers: impl Iterator<Item = &'a Self>,
        patience: Duration,
    ) -> io::Result<()> {
        input::wait(receivers.map(|receiver| &receiver.source), patience)
    }

    /// Datagrams that the kernel dropped before they were read; zero for other inputs, and where it
    /// does not tell.
    pub fn kernel_drops(&self) -> u64 {
        self.source.kernel_drops()
    }

    /// Reads what is there, waiting up to `patience` for something; then poll for what it gave.
    ///
    /// # Errors
    /// The file or pipe failed. Trouble on a socket ends a transmission and is no error.
    pub fn read(&mut self, patience: Duration) -> io::Result<InputRead> {
        if let Some((received, bytes)) = self.held.take() {
            self.capture.push(received, &bytes);
            return Ok(InputRead::Data(bytes.len()));
        }
        let chunk = self.source.read(&mut self.buffer, patience)?;
        let received = self.clock.utc();
        let bytes = match chunk {
            InputRead::Data(len) => &self.buffer[..len],
            InputRead::Idle | InputRead::Break | InputRead::End => &[],
        };
        if let Some(recording) = &self.recording {
            let kind = match chunk {
                InputRead::Data(_) if self.source.is_datagrams() => Some(RawKind::Datagram),
                InputRead::Data(_) => Some(RawKind::Stream),
                InputRead::Break => Some(RawKind::Break),
                InputRead::Idle | InputRead::End => None,
            };
            kind.into_iter().for_each(|kind| recording.take(received, self.offset, kind, bytes));
        }
        if bytes.is_empty() {
            return Ok(chunk);
        }
        self.offset += bytes.len() as u64;
        let before = self.front.format();
        match self.front.take(received, bytes) {
            Ok(Some(given)) if self.front.format() != before => {
                self.held = Some((given.received, given.bytes.into_owned()));
                return Ok(InputRead::Break);
            }
            Ok(Some(given)) => self.capture.push(given.received, &given.bytes),
            Ok(None) => {}
            Err(refused) => self.refuse(&refused.to_string()),
        }
        self.forgive();
        Ok(chunk)
    }

    /// Says once that the input brings what cannot be used.
    fn refuse(&mut self, reason: &str) {
        if self.refusing_until.is_none() {
            self.shared.alarms.raise(&self.refusal(), reason);
        }
        self.refusing_until = Some(self.clock.now() + CALM);
    }

    fn forgive(&mut self) {
        if self.refusing_until.is_some_and(|until| self.clock.now() >= until) {
            self.refusing_until = None;
            self.shared.alarms.clear(&self.refusal());
        }
    }

    fn refusal(&self) -> String {
        format!("{} receives unusable input", self.title())
    }

    /// In messages.
    pub fn title(&self) -> String {
        match self.config.inputs {
            Some(_) => format!("input {} of channel {}", self.feed.name, self.config.name),
            None => format!("channel {}", self.config.name),
        }
    }

    fn options(&self, mission: Option<Mission>) -> CaptureOptions {
        options(&self.config, &self.feed, mission, self.sync)
    }

    /// What became of the packets that the input brings, where it brings packets.
    pub fn packets(&self) -> Option<Vita49Status> {
        self.front.packets()
    }

    /// The next event of the capture; `None` where more has to be read.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        let event = self.capture.poll()?;
        if let CaptureEvent::Identified(identification) = &event {
            self.identified = Some((**identification).clone());
        }
        Some(event)
    }

    /// The transmission is over: poll for what the capture still holds, then [`Self::begin_anew`].
    pub fn finish(&mut self) {
        self.capture.finish();
    }

    /// Begins to look for another downlink from the next byte on; after a pause, from what had come
    /// of a frame on, which may be that of the same one.
    pub fn begin_anew(&mut self, after: After) {
        let open = self.capture.open_block().filter(|_| after == After::Pause);
        let options =
            CaptureOptions { format: self.front.format(), ..self.options(self.mission.clone()) };
        (self.capture, self.capture_from) = if let Some(open) = open {
            (Capture::going_on(self.missions.clone(), options, &open), open.from.byte())
        } else {
            let start = BitPosition::from_bits(8 * self.offset);
            (Capture::new(self.missions.clone(), CaptureOptions { start, ..options }), self.offset)
        };
        self.began_at = self.offset;
        self.identified = None;
    }

    /// The present capture goes on with another downlink, from this place on.
    pub const fn goes_on_from(&mut self, at: BitPosition) {
        (self.capture_from, self.began_at) = (at.byte(), at.byte());
    }

    /// Goes on with a downlink that is known, with the frame at `frames_from`; the input was opened
    /// where that one is to be read from.
    pub fn go_on(&mut self, frames_from: BitPosition, mission: Mission, format: InputLayout) {
        let known = self.options(Some(mission));
        let start = CaptureOptions::read_from(format, frames_from);
        // What was found out, and not configured, may change again.
        let may_change = self.mission.is_none();
        let options =
            CaptureOptions { start, frames_from, format: Some(format), may_change, ..known };
        self.capture = Capture::new(self.missions.clone(), options);
    }

    /// What the present downlink was found to be.
    pub const fn identified(&self) -> Option<&Identification> {
        self.identified.as_ref()
    }

    /// What is odd about an input in which nothing was found so far.
    pub const fn doubt(&self) -> Option<Unidentified> {
        self.capture.doubt()
    }

    /// Whether frames are being followed.
    pub fn is_locked(&self) -> bool {
        self.capture.is_locked()
    }

    /// What the synchroniser counted in the present capture.
    pub fn sync_counts(&self) -> SyncCounts {
        self.capture.stats().sync
    }

    /// The next byte of the input.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The byte that the present capture began with.
    pub const fn capture_from(&self) -> u64 {
        self.capture_from
    }

    /// Whether anything came in since the present capture began.
    pub const fn has_heard(&self) -> bool {
        self.offset > self.began_at
    }
}

/// What a transmission ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The input was silent: it may go on where it stopped.
    Pause,
    /// The input said that it is over.
    Break,
}

/// Whether a file is read without regard to its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hurry {
    /// As fast as it can be.
    Yes,
    /// At its rate.
    No,
}

/// The recording of an input, where the channel wants one.
fn recording(
    of: InputIndex,
    config: &config::Channel,
    common: &Common,
) -> Result<Option<Recording>, Fault> {
    if !config.record_raw {
        return Ok(None);
    }
    let bounds = RawConfig {
        max_size: config.raw_size,
        retention: config.raw_retention,
        ..RawConfig::default()
    };
    let feeds = config.feeds();
    let channel = match &feeds[..] {
        [_] => config.name.to_string(),
        // No channel has this name: `@` is no letter of names.
        _ => format!("{}@{}", config.name, feeds[of.input].name),
    };
    let waits = config.is_files() && config.rate.is_none();
    let to = Destination { disk: common.disk.clone(), of, channel, config: bounds, waits };
    Recording::start(to, common.shared.clone(), common.clock).map(Some)
}

fn options(
    config: &config::Channel,
    feed: &ResolvedInput,
    mission: Option<Mission>,
    sync: SyncConfig,
) -> CaptureOptions {
    CaptureOptions {
        format: feed.format.known(),
        mission,
        keep_check_symbols: config.keep_check_symbols,
        sync,
        ..CaptureOptions::default()
    }
}
