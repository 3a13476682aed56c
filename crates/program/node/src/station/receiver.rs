//! One input of a channel, with its recording and the capture that finds frames in it. A receiver
//! does not know contacts: the channel asks it to read, polls the events that this gave, and
//! decides when a transmission is over.

mod downlink;
mod unusable;

pub use downlink::DownlinkCapture;

use super::board::InputIndex;
use super::channel_context::ChannelContext;
use super::front::Front;
use super::handed_reads::{HandedRead, HandedReads, HandedState};
use super::handing_over::{KeptInput, Undecoded};
use super::input::{self, InputRead, InputSource, ReadSizes};
use super::left_input::LeftInput;
use super::recent_bytes::RecentBytes;
use super::recording::{Recording, RecordingPlace};
use crate::fault::Fault;
use crate::status::Vita49Status;
use crate::upgrade::{BacklogHead, BacklogKind, HandedInput, PassedInput};
use skyhaul_ccsds::capture::{CaptureEvent, CaptureOptions};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_config::{Input, ResolvedInput};
use skyhaul_net::Clock;
use skyhaul_store::raw::{RawConfig, RawKind};
use skyhaul_units::{Duration, FlowId, Rate, Utc};
use std::io;
use std::net::SocketAddr;
use unusable::UnusableInput;

/// An input and its capture.
#[derive(Debug)]
pub struct InputReceiver {
    /// Names it in messages.
    title: String,
    feed: ResolvedInput,
    /// The rate that a file is played at; none: as fast as the station accepts it.
    rate: Option<Rate>,
    clock: Clock,
    source: InputSource,
    recording: Option<Recording>,
    front: Front,
    /// Bytes in another format than before: they belong to the next capture.
    held: Option<(Utc, Vec<u8>)>,
    unusable: UnusableInput,
    buffer: Vec<u8>,
    /// The next byte of the input.
    offset: u64,
    capture: DownlinkCapture,
    /// What the capture of a live input may still need.
    recent: RecentBytes,
    /// What was read elsewhere of the input, until that is taken.
    handed: Option<HandedReads>,
}

/// Read at once: 140 ms at 15 Mbit/s; what is read together is stamped with one time.
const READ: usize = 64 << 10;

impl InputReceiver {
    /// Opens an input of the channel `config`; its capture begins with `start`. A live input may
    /// have been read elsewhere before.
    ///
    /// # Errors
    /// The input or its recording cannot be opened; the mission configured cannot be read.
    pub fn open(
        index: InputIndex,
        config: &skyhaul_config::Channel,
        context: &ChannelContext,
        start: BitPosition,
        handed: Option<HandedInput>,
    ) -> Result<Self, Fault> {
        let mut feeds = config.feeds();
        let sizes = if feeds.len() > 1 { ReadSizes::Equal } else { ReadSizes::Any };
        let feed = feeds.swap_remove(index.input);
        let title = match config.inputs {
            Some(_) => format!("input {} of channel {}", feed.name, config.name),
            None => format!("channel {}", config.name),
        };
        let options = CaptureOptions {
            format: feed.format.known(),
            mission: super::mission_of(config, &context.missions)?,
            keep_check_symbols: config.keep_check_symbols,
            sync: context.sync,
            ..CaptureOptions::default()
        };
        let capture = DownlinkCapture::new(context.missions.clone(), options, start);
        let source = match handed {
            Some(_) => InputSource::away(context.clock),
            None => {
                InputSource::open(&feed.input, config.rate, sizes, start.byte(), context.clock)?
            }
        };
        let offset = handed.as_ref().map_or(start.byte(), |handed| handed.passed.offset);
        let reads =
            |handed| HandedReads::new(handed, feed.input.clone(), start.byte(), context.clock);
        Ok(Self {
            handed: handed.map(reads),
            recent: RecentBytes::new(start.byte()),
            source,
            front: Front::of(&feed),
            recording: recording(index, config, context)?,
            unusable: UnusableInput::new(context.shared.alarms.clone(), &title),
            title,
            rate: config.rate,
            clock: context.clock,
            held: None,
            buffer: vec![0; READ],
            offset,
            capture,
            feed,
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> Option<SocketAddr> {
        self.source.address()
    }

    /// Its configuration.
    pub const fn feed(&self) -> &ResolvedInput {
        &self.feed
    }

    /// Whether its input can be read again from any byte.
    pub const fn is_file(&self) -> bool {
        self.feed.input.is_file()
    }

    /// Whether its input waits for the station, instead of going on without it.
    pub const fn waits(&self) -> bool {
        self.is_file() && self.rate.is_none()
    }

    /// Reads a file as fast as it can be, from here on; or again at the channel's rate.
    pub fn hurry(&mut self, hurry: Hurry) {
        self.source.play(if hurry == Hurry::Yes { None } else { self.rate });
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
    /// The file or pipe failed. A socket that fails ends a transmission, which is no error.
    pub fn read(&mut self, patience: Duration) -> io::Result<InputRead> {
        if let Some((received, bytes)) = self.held.take() {
            self.push(received, &bytes);
            return Ok(InputRead::Data(bytes.len()));
        }
        if let Some(handed) = &mut self.handed {
            match handed.next(&mut self.buffer, patience)? {
                HandedRead::NotYet => return Ok(InputRead::Idle),
                HandedRead::Entry(head, from) => return self.take_handed(head, from),
                HandedRead::Over(source) => (self.source, self.handed) = (source, None),
            }
        }
        let read = self.source.read(&mut self.buffer, patience)?;
        self.take(read, self.clock.utc())
    }

    /// Takes what was read elsewhere.
    fn take_handed(&mut self, head: BacklogHead, from: usize) -> io::Result<InputRead> {
        let BacklogHead { kind, received, length } = head;
        match kind {
            BacklogKind::Read => self.take(InputRead::Data(length), received),
            BacklogKind::Break => self.take(InputRead::Break, received),
            BacklogKind::End => self.take(InputRead::End, received),
            BacklogKind::Prepared => {
                let bytes = std::mem::take(&mut self.buffer);
                self.push(received, &bytes[from..length]);
                self.buffer = bytes;
                Ok(InputRead::Data(length - from))
            }
            BacklogKind::Description => {
                // It was taken before: here it only says how to read what follows.
                let _ = self.front.take(received, &self.buffer[..length]);
                Ok(InputRead::Idle)
            }
        }
    }

    fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.capture.push(received, bytes);
        if !self.is_file() {
            self.recent.push(received, bytes);
        }
    }

    /// Takes one read, whose bytes are in the buffer.
    fn take(&mut self, read: InputRead, received: Utc) -> io::Result<InputRead> {
        let bytes = match read {
            InputRead::Data(len) => &self.buffer[..len],
            InputRead::Idle | InputRead::Break | InputRead::End => &[],
        };
        if let Some(recording) = &self.recording {
            let kind = match read {
                InputRead::Data(_) => Some(kind_of(&self.feed.input)),
                InputRead::Break => Some(RawKind::Break),
                InputRead::Idle | InputRead::End => None,
            };
            kind.into_iter().for_each(|kind| recording.take(received, self.offset, kind, bytes));
        }
        if bytes.is_empty() {
            return Ok(read);
        }
        self.offset += bytes.len() as u64;
        let before = self.front.format();
        match self.front.take(received, bytes) {
            Ok(Some(given)) if self.front.format() != before => {
                self.held = Some((given.received, given.bytes.into_owned()));
                return Ok(InputRead::Break);
            }
            Ok(Some(given)) => {
                self.capture.push(given.received, &given.bytes);
                if !self.feed.input.is_file() {
                    self.recent.push(given.received, &given.bytes);
                }
            }
            Ok(None) => {}
            Err(refused) => self.unusable.refuse(self.clock.now(), &refused.to_string()),
        }
        self.unusable.keep_time(self.clock.now());
        Ok(read)
    }

    /// Its name in messages.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What became of the packets that the input brings, where it brings packets.
    pub fn packets(&self) -> Option<Vita49Status> {
        self.front.packets()
    }

    /// The capture.
    pub const fn capture(&self) -> &DownlinkCapture {
        &self.capture
    }

    /// The capture, to be changed.
    pub const fn capture_mut(&mut self) -> &mut DownlinkCapture {
        &mut self.capture
    }

    /// The next event of the capture; `None` where more has to be read.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        self.capture.poll()
    }

    /// Begins to look for another downlink from the next byte on; after a pause, from the part of a
    /// frame on that came before it.
    pub fn begin_anew(&mut self, after: After) {
        self.capture.begin_anew(after, self.offset, self.front.format());
        self.recent.begin(self.capture.from());
    }

    /// The frames before byte `from` of the capture are in the contact.
    pub fn forget_before(&mut self, from: u64) {
        self.recent.forget_before(from);
    }

    /// Whether its input was read elsewhere, and not all of that is taken.
    pub fn handed(&self) -> HandedState {
        self.handed.as_ref().map_or(HandedState::Taken, HandedReads::state)
    }

    /// Ends what reads on of its live input while this one catches up, so that the rest has an end.
    ///
    /// # Errors
    /// The input is gone.
    pub fn stop_reading_on(&mut self) -> io::Result<()> {
        self.handed.as_mut().map_or(Ok(()), HandedReads::stop)
    }

    /// Lets go of its live input, which a thread reads from here on, or reads already. What was
    /// read elsewhere before is taken.
    ///
    /// # Errors
    /// The system gives no memory or no thread; another process still reads it.
    pub fn let_go(&mut self) -> io::Result<LeftInput> {
        if let Some(handed) = self.handed.take() {
            return handed.let_go();
        }
        let away = InputSource::away(self.clock);
        let source = std::mem::replace(&mut self.source, away);
        LeftInput::read_on(source, self.clock)
    }

    /// What it leaves for another process that goes on with the contact `flow`, or between two
    /// contacts.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn leave(
        &mut self,
        left: LeftInput,
        channel: &str,
        flow: Option<FlowId>,
    ) -> io::Result<KeptInput> {
        if let Some((received, bytes)) = self.held.take() {
            self.push(received, &bytes);
        }
        let passed = PassedInput {
            channel: channel.to_owned(),
            input: self.feed.input.to_string(),
            address: left.address(),
            flow: flow.map(|flow| flow.0),
            undecoded_from: self.recent.from(),
            offset: self.offset,
            reads_from: left.from(),
        };
        let undecoded =
            Undecoded { description: self.front.description(), recent: &mut self.recent };
        KeptInput::new(passed, undecoded, left)
    }

    /// The next byte of the input.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether anything came in since the present capture began.
    pub const fn has_heard(&self) -> bool {
        self.capture.has_heard(self.offset)
    }
}

/// How a transmission ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The input was silent: it may continue where it stopped.
    Pause,
    /// The input ended the transmission.
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

/// What each read of an input is, here and where the input was read before.
const fn kind_of(input: &Input) -> RawKind {
    match input {
        Input::Udp(_) => RawKind::Datagram,
        _ => RawKind::Stream,
    }
}

/// Starts the recording of an input, where the channel wants one.
fn recording(
    of: InputIndex,
    config: &skyhaul_config::Channel,
    context: &ChannelContext,
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
        // No channel has this name: `@` is not allowed in names.
        _ => format!("{}@{}", config.name, feeds[of.input].name),
    };
    let waits = config.is_files() && config.rate.is_none();
    let to = RecordingPlace { disk: context.disk.clone(), of, channel, config: bounds, waits };
    Recording::start(to, context.shared.clone(), context.clock).map(Some)
}
