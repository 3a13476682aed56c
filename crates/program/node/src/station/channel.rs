//! One channel: what its inputs bring in, contacts out. A contact opens with the first frame and
//! closes after silence, or when the input says that it is over; where there are several, when all
//! do.

use super::contact::CapturedContact;
use super::input::InputRead;
use super::inputs::Inputs;
use super::memo::{ChannelPosition, Memo};
use super::packing::{Packing, PackingContext};
use super::quiet::Quiet;
use super::receiver::After;
use super::resume::{ResumePoint, Resumed};
use super::shared::StationShared;
use super::spooler::ToSpool;
use crate::config;
use crate::fault::Fault;
use crate::status::{ChannelState, StoreState};
use skyhaul_ccsds::capture::CaptureEvent;
use skyhaul_ccsds::identify::Identification;
use skyhaul_ccsds::mission::{FrameFormat, MissionSet};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_ccsds::sync::SyncConfig;
use skyhaul_net::Clock;
use skyhaul_records::{Open, Record};
use skyhaul_store::{Disk, SpoolError, is_full};
use skyhaul_units::{Duration, FlowId, Instant, Utc};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// A channel and the contact that comes from it.
#[derive(Debug)]
pub struct ChannelRunner {
    index: usize,
    config: config::Channel,
    shared: Arc<StationShared>,
    blocks: SyncSender<ToSpool>,
    clock: Clock,
    /// The longest that a record waits in a block.
    gather: Duration,
    inputs: Inputs,
    memo: Memo,
    contact: Option<CapturedContact>,
    packing: Packing,
    /// For how long no frame has come.
    quiet: Quiet,
    progress_at: Instant,
    show_at: Instant,
    /// Of earlier contacts: what the channel's totals begin with.
    before: (u64, u64, u64),
    /// The opening record of the contact.
    open: Option<Open>,
    /// Where its capture began in each input.
    from: Vec<u64>,
}

/// What all channels of a station have in common.
#[derive(Debug, Clone)]
pub struct Common {
    /// The station's state.
    pub shared: Arc<StationShared>,
    /// Its state folder.
    pub disk: Arc<dyn Disk>,
    /// Where blocks go.
    pub blocks: SyncSender<ToSpool>,
    /// The process's clock.
    pub clock: Clock,
    /// The missions known.
    pub missions: MissionSet,
    /// The longest that a record waits in a block.
    pub gather: Duration,
    /// When a marker is believed.
    pub sync: SyncConfig,
}

/// The longest wait for input: the stop flag is looked at this often.
const PATIENCE: Duration = Duration::from_millis(20);
/// Between two records of how synchronisation goes.
const PROGRESS: Duration = Duration::from_secs(1);
/// Between two changes of what status shows.
const SHOW: Duration = Duration::from_millis(100);
/// Between two attempts to open a contact when the spool is full.
const RETRY: Duration = Duration::from_millis(200);

impl ChannelRunner {
    /// Opens channel number `index`; goes on with the contact that the reading of files was in when
    /// the station ended.
    ///
    /// # Errors
    /// An input cannot be opened; the mission configured cannot be read.
    pub fn open(
        index: usize,
        config: config::Channel,
        state: &Path,
        common: Common,
    ) -> Result<Self, Fault> {
        let memo = Memo::of(state, config.name.as_str());
        let (is_file, feeds) = (config.is_files(), config.feeds().len());
        let resume = ResumePoint::find(&mut common.shared.spool(), &memo, feeds)
            .map_err(|error| super::spool_fault(&error))?;
        let start = |at| if is_file { resume.position(at, feeds) } else { BitPosition::START };
        let inputs = Inputs::open(index, &config, &common, start)?;
        let Common { shared, blocks, clock, gather, .. } = common;
        shared.board.channel(index, |shown| {
            shown.address = inputs.address();
            inputs.show(&mut shown.inputs);
        });
        let mut runner = Self {
            index,
            blocks,
            clock,
            gather,
            inputs,
            memo,
            contact: None,
            packing: Packing::new(config.compress),
            quiet: Quiet::from(clock.now()),
            progress_at: Instant::ZERO,
            show_at: Instant::ZERO,
            before: (0, 0, 0),
            open: None,
            from: Vec::new(),
            shared,
            config,
        };
        if let ResumePoint::In(resumed) = resume {
            runner.go_on(*resumed);
        }
        Ok(runner)
    }

    /// The flow of the contact that it is in.
    pub fn flow(&self) -> Option<FlowId> {
        self.contact.as_ref().map(CapturedContact::flow)
    }

    /// Runs until the input is exhausted or the station ends.
    pub fn run(mut self) {
        if self.contact.is_some() && !self.inputs.is_file() {
            // What was sent meanwhile is gone: the contact ends where the station did.
            self.end_contact(After::Break);
        }
        while !self.shared.shutdown.is_requested() {
            let chunk = match self.inputs.read(self.patience()) {
                Ok(chunk) => chunk,
                Err(error) => {
                    self.shared.alarms.raise(
                        &format!("channel {}", self.config.name),
                        &format!("input failed ({error})"),
                    );
                    self.end_contact(After::Break);
                    return self.show(ChannelState::Failed);
                }
            };
            match chunk {
                // Frames of several inputs may be due.
                InputRead::Data(_) | InputRead::Idle => self.take_events(),
                InputRead::Break => self.end_contact(After::Break),
                InputRead::End => {
                    self.end_contact(After::Break);
                    return self.show(ChannelState::Ended);
                }
            }
            self.keep_time();
        }
        self.stop();
    }

    fn patience(&self) -> Duration {
        let due = self.contact.as_ref().and_then(|contact| contact.due(self.gather));
        due.map_or(PATIENCE, |due| self.clock.until(due).min(PATIENCE))
            .max(Duration::from_millis(1))
    }

    fn keep_time(&mut self) {
        let now = self.clock.now();
        self.quiet.pass(now);
        if self.inputs.is_catching_up() {
            self.quiet.heard(now);
        }
        if self.quiet.lasted() >= self.config.silence && self.contact.is_some() {
            self.end_contact(After::Pause);
        }
        if let Some(contact) = &mut self.contact
            && now >= self.progress_at
        {
            self.progress_at = now + PROGRESS;
            let drops = self.inputs.kernel_drops();
            self.shared.board.channel(self.index, |shown| {
                shown.dropped_datagrams = drops;
                self.inputs.show_drops(&mut shown.inputs);
            });
            contact.record(now, &Record::Progress(self.inputs.sync_counts()));
            if let Some(account) = self.inputs.account() {
                contact.record(now, &account);
            }
        }
        if self
            .contact
            .as_ref()
            .and_then(|contact| contact.due(self.gather))
            .is_some_and(|due| due <= now)
        {
            self.flush();
        }
        if let Some((title, doubt)) = self.inputs.doubt() {
            self.shared.alarms.raise(&title, &doubt.to_string());
        }
        if now >= self.show_at {
            self.show_at = now + SHOW;
            let state = if self.inputs.is_locked() && self.contact.is_some() {
                ChannelState::Lock
            } else if self.inputs.has_heard() {
                ChannelState::Search
            } else {
                ChannelState::Waiting
            };
            self.show(state);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.inputs.poll() {
            match event {
                CaptureEvent::Frame(frame) => self.frame(&frame),
                CaptureEvent::OtherSpacecraft { scid, .. } => {
                    let reason = format!(
                        "also frames of spacecraft {}; each spacecraft has its own account",
                        scid.value()
                    );
                    self.shared.alarms.raise(
                        &format!("channel {} carries two spacecraft", self.config.name),
                        &reason,
                    );
                }
                CaptureEvent::Unidentified(reason) if self.inputs.has_heard() => {
                    self.shared
                        .alarms
                        .raise(&format!("channel {}", self.config.name), &reason.to_string());
                }
                CaptureEvent::Changed { at, .. } => self.change(at),
                CaptureEvent::OtherDownlink(other) => self.tell_of(&other),
                // Nothing came in that could have been anything.
                CaptureEvent::Unidentified(_) => {}
                CaptureEvent::Identified(_)
                | CaptureEvent::Locked(_)
                | CaptureEvent::LockLost(_) => {}
            }
        }
    }

    fn frame(&mut self, frame: &CapturedFrame) {
        let now = self.clock.now();
        self.quiet.heard(now);
        if self.contact.is_none() {
            self.begin_contact(now, frame.received);
        }
        let Some(contact) = &mut self.contact else { return };
        contact.frame(now, frame);
        if contact.due(self.gather) == Some(Instant::ZERO) {
            self.flush();
        }
    }

    /// Opens a contact for the frame that came, waiting for space as long as the station runs.
    fn begin_contact(&mut self, now: Instant, opened: Utc) {
        let Some(identified) = self.inputs.identified() else { return };
        let open = Open {
            channel: self.config.name.to_string(),
            mission: identified.mission.text().to_owned(),
            also_fits: identified.also_fits.clone(),
            scid: identified.scid.or_else(|| identified.mission.scids().first().copied()),
            opened,
            keeps_check_symbols: self.config.keep_check_symbols,
            completes: None,
        };
        let flow = loop {
            let opened = self.shared.spool().open_flow(self.clock.utc());
            match opened {
                Ok(flow) => break flow,
                // The frame is lost with the input where that is live; a file is read again from
                // here.
                Err(SpoolError::Full { .. } | SpoolError::TooManyFlows)
                    if self.shared.shutdown.is_requested() =>
                {
                    return;
                }
                Err(error @ (SpoolError::Full { .. } | SpoolError::TooManyFlows)) => {
                    if let SpoolError::Full { .. } = error {
                        self.shared.board.spool(StoreState::Full);
                    }
                    self.shared.alarms.raise("cannot open a contact", &error.to_string());
                    self.shared.shutdown.pause(RETRY);
                }
                Err(error) => {
                    let help = "repair the disk and restart the station";
                    return self.shared.shutdown.fail(Fault::environment(
                        "the spool failed",
                        error,
                        help,
                    ));
                }
            }
        };
        self.shared.alarms.clear("cannot open a contact");
        let (format, from) = (identified.format, self.inputs.capture_from());
        self.from.clone_from(&from);
        self.remember(&ChannelPosition::Open { from, format, flow, open: open.clone() });
        // Waiting for space is no silence of the input.
        self.quiet.heard(self.clock.now());
        tracing::info!(
            channel = %self.config.name,
            mission = identified.mission.name(),
            flow = flow.0,
            "contact opened"
        );
        if !identified.also_fits.is_empty() {
            let others = identified.also_fits.join(", ");
            tracing::warn!(channel = %self.config.name, others, "other missions match too; set the \
                                                                channel's `mission` if this one is \
                                                                    wrong");
        }
        let mut contact = CapturedContact::new(flow, &open, &identified.mission, format, None);
        contact.record(now, &Record::Open(open.clone()));
        self.contact = Some(contact);
        self.open = Some(open);
    }

    /// Remembers a place, waiting for space as long as the station runs: a file would be captured
    /// twice after a restart at a place before this one. Whether it is remembered.
    fn remember(&self, place: &ChannelPosition) -> bool {
        let held = format!("channel {} is paused", self.config.name);
        let forgetful = format!("channel {} cannot save its position", self.config.name);
        let StationShared { board, alarms, shutdown, .. } = &*self.shared;
        loop {
            let outcome = self.memo.remember(place);
            match &outcome {
                Err(error) if is_full(error) && !shutdown.is_requested() => {
                    board.spool(StoreState::Full);
                    let reason =
                        format!("{error}; free space on the file system of the state folder");
                    alarms.raise(&held, &reason);
                    shutdown.pause(RETRY);
                    continue;
                }
                Err(error) => {
                    let reason = format!("{error}; check the disk and the permissions");
                    alarms.raise(&forgetful, &reason);
                }
                Ok(()) => {
                    alarms.clear(&forgetful);
                }
            }
            if alarms.clear(&held) {
                board.spool(StoreState::Ok);
            }
            return outcome.is_ok();
        }
    }

    fn go_on(&mut self, resumed: Resumed) {
        let now = self.clock.now();
        let Resumed { flow, open, mission, format, head, from } = resumed;
        self.from = from;
        tracing::info!(channel = %self.config.name, flow = flow.0, "contact resumed");
        let mut contact = CapturedContact::new(flow, &open, &mission, format, Some(head.clone()));
        contact.record(now, &Record::Resumed(head.position));
        self.contact = Some(contact);
        self.open = Some(open);
        if self.inputs.is_file() {
            self.inputs.go_on(&head, mission, format);
        }
    }

    /// Another downlink came without a break: the contact ends, and the next frame begins another
    /// one.
    fn change(&mut self, at: BitPosition) {
        let (account, next) = self.inputs.change(at);
        self.close_contact(account.as_ref(), next);
    }

    /// Says that what comes is not the mission's.
    fn tell_of(&self, other: &Identification) {
        let config::Channel { name, mission, .. } = &self.config;
        let configured = mission.as_ref().map_or(String::new(), |mission| format!(" ({mission})"));
        let reason = format!(
            "the downlink is that of mission {}{}; its frames are discarded; remove the channel's \
            `mission`, or set it to this one",
            other.mission.name(),
            other.scid.map_or(String::new(), |scid| format!(", spacecraft {}", scid.value())),
        );
        self.shared.alarms.raise(
            &format!("channel {name} receives another mission than configured{configured}"),
            &reason,
        );
    }

    /// Closes the contact with what the capture still holds, and begins to look for another.
    fn end_contact(&mut self, after: After) {
        self.inputs.finish();
        self.take_events();
        let account = self.inputs.account();
        self.inputs.begin_anew(after);
        self.close_contact(account.as_ref(), self.inputs.capture_from());
    }

    /// Closes the contact with this account of its inputs; they are read on from bytes `next` after
    /// a restart.
    fn close_contact(&mut self, account: Option<&Record>, next: Vec<u64>) {
        let (Some(mut contact), Some(open)) = (self.contact.take(), self.open.take()) else {
            return;
        };
        let (flow, format, from) =
            (contact.flow(), contact.layout(), core::mem::take(&mut self.from));
        if !self.remember(&ChannelPosition::Closing {
            next: next.clone(),
            from,
            format,
            flow,
            open,
        }) && self.inputs.is_file()
        {
            // A contact that were closed now would be captured again; left open, it goes on at the
            // next start.
            return;
        }
        if let Some(account) = account {
            contact.record(self.clock.now(), account);
        }
        contact.close(self.clock.now(), self.clock.utc());
        self.send(&mut contact);
        let (closed, is_closed) = sync_channel(1);
        let _ = self.blocks.send(ToSpool::CloseFlow(flow, closed));
        if is_closed.recv().is_ok() {
            self.remember(&ChannelPosition::Between(next));
        }
        let shown = contact.shown();
        self.shared.board.contact(shown);
        self.before.0 += shown.frames;
        self.before.1 += shown.corrected_symbols;
        self.before.2 += shown.set_aside;
        tracing::info!(
            channel = %self.config.name,
            flow = shown.flow,
            frames = shown.frames,
            "contact closed"
        );
    }

    /// The station ends: a file's contact goes on at the next start, a live one is closed.
    fn stop(&mut self) {
        if self.inputs.is_file() { self.flush() } else { self.end_contact(After::Break) }
    }

    fn flush(&mut self) {
        if let Some(mut contact) = self.contact.take() {
            self.quiet.pass(self.clock.now());
            self.send(&mut contact);
            self.contact = Some(contact);
            // Time in which the input is held back is no silence of the input.
            self.quiet.leave_out(self.clock.now());
        }
    }

    /// Hands the gathered block over; waits where the spool is behind, which holds the input back.
    fn send(&mut self, contact: &mut CapturedContact) {
        let live = contact
            .since()
            .filter(|_| !self.inputs.waits())
            .map(|since| self.clock.now().since(since));
        let (line, unsent) = (self.shared.board.line_rate(), self.shared.board.unsent());
        let (clock, pace) = (self.clock, PackingContext { live, line, unsent });
        let pack = |records: &[u8], frames: &[Range<usize>], format: &FrameFormat| {
            self.packing.pack(clock, pace, (records, frames), format)
        };
        if let Some(block) = contact.take_block(clock.utc(), pack) {
            // A spooler that is gone has failed, and the station is stopping.
            let _ = self.blocks.send(ToSpool::Block(block));
        }
    }

    fn show(&self, state: ChannelState) {
        let contact = self.contact.as_ref().map(CapturedContact::shown);
        if let Some(contact) = contact {
            self.shared.board.contact(contact);
        }
        let (identified, bytes) = (self.inputs.identified(), self.inputs.offsets().iter().sum());
        let packets = self.inputs.packets();
        self.shared.board.channel(self.index, |shown| {
            shown.state = state;
            shown.bytes = bytes;
            shown.vita49 = packets;
            self.inputs.show(&mut shown.inputs);
            if let Some(identified) = identified {
                shown.mission = Some(identified.mission.name().to_owned());
                shown.scid = identified.scid.map(|scid| scid.value());
            }
            shown.frames = self.before.0 + contact.map_or(0, |contact| contact.frames);
            shown.corrected_symbols =
                self.before.1 + contact.map_or(0, |contact| contact.corrected_symbols);
            shown.set_aside = self.before.2 + contact.map_or(0, |contact| contact.set_aside);
        });
    }
}
