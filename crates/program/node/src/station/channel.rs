//! One channel: frames of its inputs in, blocks of contacts out. A contact opens with the first
//! frame and closes after silence, or when the input says that it is over; where there are several
//! inputs, when all do.

mod contact_log;
mod leaving;

use super::channel_context::ChannelContext;
use super::contact::CapturedContact;
use super::handed_reads::HandedState;
use super::input::InputRead;
use super::inputs::{ContactChange, Inputs};
use super::memo::{ChannelPosition, Memo};
use super::packing::{BlockRecords, Packing, PackingContext};
use super::quiet::Quiet;
use super::receiver::After;
use super::resume::{ResumePoint, Resumed};
use super::shared::StationShared;
use super::spooler::ToSpool;
use crate::fault::Fault;
use crate::status::{ChannelState, StoreState};
use crate::upgrade::HandedInput;
use contact_log::subject;
use skyhaul_ccsds::capture::CaptureEvent;
use skyhaul_ccsds::identify::Identification;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_events::{AlarmKind, AlarmSubject};
use skyhaul_net::Clock;
use skyhaul_records::{Open, Record};
use skyhaul_store::is_full;
use skyhaul_units::{Duration, FlowId, Instant, Utc};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// A channel and the contact that comes from it.
#[derive(Debug)]
pub struct ChannelRunner {
    index: usize,
    config: skyhaul_config::Channel,
    shared: Arc<StationShared>,
    blocks: SyncSender<ToSpool>,
    clock: Clock,
    /// The longest that a record waits in a block.
    gather: Duration,
    inputs: Inputs,
    memo: Memo,
    contact: Option<PresentContact>,
    packing: Packing,
    /// For how long no frame has come.
    quiet: Quiet,
    progress_at: Instant,
    show_at: Instant,
    /// The totals of earlier contacts.
    before: ChannelTotals,
    /// The name of the file that it reads, where a folder brought it.
    file: Option<String>,
}

/// The end of a channel's input.
#[derive(Debug)]
pub struct ChannelEnd {
    /// Why it ended.
    pub why: InputEnd,
    /// What was captured, with what was before.
    pub totals: ChannelTotals,
}

/// Why a channel does not read on.
#[derive(Debug)]
pub enum InputEnd {
    /// The input is exhausted.
    Exhausted,
    /// The input failed. The contact of a folder's file is still open, and goes on when the
    /// channel is opened again.
    Failed(io::Error),
    /// The station ends.
    Stopped,
}

/// The contact that the channel is in.
#[derive(Debug)]
struct PresentContact {
    contact: CapturedContact,
    /// Its opening record.
    open: Open,
    /// The byte of each input that its capture began with.
    from: Vec<u64>,
    /// A block that the queue to the spool had no room for.
    held: Option<ToSpool>,
    way: Continued,
}

/// What a contact has of its input after the station started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continued {
    /// Everything.
    Whole,
    /// What came before: a live input sent on while the station did not run. The contact ends
    /// there.
    Cut,
}

/// What a channel captured since the station started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelTotals {
    /// Contacts that it opened or resumed.
    pub contacts: u64,
    /// Good frames in those that are closed.
    pub frames: u64,
    /// Symbols corrected in them.
    pub corrected_symbols: u64,
    /// Frames set aside in them.
    pub set_aside: u64,
    /// Why no downlink was identified in a folder's file.
    pub doubt: Option<String>,
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
    /// Opens channel number `index`. Where the inputs are files, it resumes the contact that the
    /// channel was in when the station ended.
    ///
    /// # Errors
    /// An input cannot be opened; the mission configured cannot be read.
    pub fn open(
        index: usize,
        config: skyhaul_config::Channel,
        state: &Path,
        context: ChannelContext,
    ) -> Result<Self, Fault> {
        let memo = Memo::of(state, config.name.as_str());
        let (is_file, feeds) = (config.is_files(), config.feeds().len());
        let resume = ResumePoint::find(&mut context.shared.spool(), &memo, feeds)
            .map_err(|error| super::spool_fault(&error))?;
        let handed = leaving::handed(&config, &context.handed);
        let flow = leaving::flow(&handed);
        let goes_on = matches!(&resume, ResumePoint::In(of) if flow == Some(of.flow));
        let start = |at, handed: Option<&HandedInput>| match handed {
            Some(handed) => resume.handed(handed.passed.undecoded_from, flow),
            None if is_file => resume.position(at, feeds),
            None => BitPosition::START,
        };
        let address = leaving::address(&handed);
        let inputs = Inputs::open(index, &config, &context, handed, start)?;
        let ChannelContext { shared, blocks, clock, gather, .. } = context;
        shared.board.channel(index, |shown| {
            shown.address = inputs.address().or(address);
            inputs.show(shown);
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
            before: ChannelTotals::default(),
            file: None,
            shared,
            config,
        };
        if let ResumePoint::In(resumed) = resume {
            let way = if is_file || goes_on { Continued::Whole } else { Continued::Cut };
            runner.resume(*resumed, way);
        }
        Ok(runner)
    }

    /// Reads the file of a folder that has this name, after other ones in which `before` was
    /// captured.
    pub fn of_file(self, name: String, before: ChannelTotals) -> Self {
        let contacts = before.contacts + self.before.contacts;
        let before = ChannelTotals { contacts, doubt: None, ..before };
        Self { file: Some(name), before, ..self }
    }

    /// The flow of the contact that it is in.
    pub fn flow(&self) -> Option<FlowId> {
        self.contact.as_ref().map(|present| present.contact.flow())
    }

    /// Runs until the input is exhausted or the station ends.
    pub fn run(mut self) -> ChannelEnd {
        if self.contact.as_ref().is_some_and(|present| present.way == Continued::Cut) {
            // What it began with is not the contact's.
            match self.inputs.handed() != HandedState::Taken {
                true => self.close_contact(None, self.inputs.capture_from()),
                false => self.end_contact(After::Break),
            }
        }
        while !self.shared.shutdown.is_requested() {
            let read = match self.inputs.read(self.patience()) {
                Ok(read) => read,
                Err(error) if self.file.is_some() => {
                    self.flush();
                    return self.end(ChannelState::Waiting, InputEnd::Failed(error));
                }
                Err(error) => {
                    self.shared.alarms.raise(
                        AlarmKind::InputFailed,
                        subject(&self.config),
                        &format!("input failed ({error})"),
                    );
                    self.end_contact(After::Break);
                    return self.end(ChannelState::Failed, InputEnd::Failed(error));
                }
            };
            match read {
                // Frames of several inputs may be due.
                InputRead::Data(_) | InputRead::Idle => self.take_events(),
                InputRead::Break => self.end_contact(After::Break),
                InputRead::End => {
                    self.end_contact(After::Break);
                    return self.end(ChannelState::Ended, InputEnd::Exhausted);
                }
            }
            self.keep_time();
        }
        self.stop();
        ChannelEnd { why: InputEnd::Stopped, totals: self.before }
    }

    fn end(self, state: ChannelState, why: InputEnd) -> ChannelEnd {
        self.show(state);
        ChannelEnd { why, totals: self.before }
    }

    /// Raises an alarm about the input; notes a doubt about a folder's file, which is judged at its
    /// end.
    fn doubt(&mut self, subject: &AlarmSubject, reason: String) {
        match self.file {
            Some(_) => self.before.doubt = Some(reason),
            None => {
                self.shared.alarms.raise(AlarmKind::DownlinkUnknown, subject, &reason);
            }
        }
    }

    fn patience(&self) -> Duration {
        self.block_due()
            .map_or(PATIENCE, |due| self.clock.until(due).min(PATIENCE))
            .max(Duration::from_millis(1))
    }

    /// When the block that is being gathered is to be sent.
    fn block_due(&self) -> Option<Instant> {
        let present = self.contact.as_ref().filter(|present| present.held.is_none());
        present.and_then(|present| present.contact.due(self.gather))
    }

    fn keep_time(&mut self) {
        let now = self.clock.now();
        self.quiet.pass(now);
        if self.inputs.is_catching_up() || self.inputs.handed() == HandedState::Elsewhere {
            self.quiet.heard(now);
        }
        if self.quiet.lasted() >= self.config.silence && self.contact.is_some() {
            self.end_contact(After::Pause);
        }
        if let Some(PresentContact { contact, .. }) = &mut self.contact
            && now >= self.progress_at
        {
            self.progress_at = now + PROGRESS;
            self.shared.board.channel(self.index, |shown| self.inputs.show_drops(shown));
            contact.record(now, &Record::Progress(self.inputs.sync_counts()));
            if let Some(account) = self.inputs.account() {
                contact.record(now, &account);
            }
        }
        let holds = self.contact.as_ref().is_some_and(|present| present.held.is_some());
        if holds || self.block_due().is_some_and(|due| due <= now) {
            self.hand_over();
        }
        if let Some((title, doubt)) = self.inputs.doubt() {
            self.doubt(&AlarmSubject::from(title), doubt.to_string());
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
                        AlarmKind::TwoSpacecraft,
                        subject(&self.config),
                        &reason,
                    );
                }
                CaptureEvent::Unidentified(reason) if self.inputs.has_heard() => {
                    let subject = subject(&self.config);
                    self.doubt(&subject, reason.to_string());
                }
                CaptureEvent::Changed { at, .. } => self.change(at),
                CaptureEvent::OtherDownlink(other) => self.report_other_mission(&other),
                // Nothing came in: there was nothing to identify.
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
        let Some(PresentContact { contact, .. }) = &mut self.contact else { return };
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
            file: self.file.clone(),
        };
        let route = self.shared.routing.route_of(&self.config.name, &identified.mission);
        let Some(flow) = contact_log::open_flow(self, &route) else { return };
        let (format, from) = (identified.format, self.inputs.capture_from());
        self.remember(&ChannelPosition::Open {
            from: from.clone(),
            format,
            flow,
            open: open.clone(),
        });
        // Time spent waiting for disk space does not count as silence of the input.
        self.quiet.heard(self.clock.now());
        contact_log::opened(self, flow, identified.mission.name());
        warn_of_others(&self.config, &identified.also_fits);
        let to = self.shared.routing.names(&route);
        if to.is_empty() {
            tracing::warn!(
                channel = %self.config.name,
                flow = flow.0,
                "no destination: the subscriptions send this contact nowhere"
            );
        }
        let mut contact =
            CapturedContact::new(flow, &open, &identified.mission, format, None).going_to(to);
        contact.record(now, &Record::Open(open.clone()));
        let way = Continued::Whole;
        self.contact = Some(PresentContact { contact, open, from, held: None, way });
        self.before.contacts += 1;
    }

    /// Saves a position, and waits for disk space as long as the station runs: from an earlier
    /// position, a file would be captured twice after a restart. Returns whether it is saved.
    fn remember(&self, position: &ChannelPosition) -> bool {
        let subject = subject(&self.config);
        let StationShared { alarms, shutdown, .. } = &*self.shared;
        loop {
            let outcome = self.memo.remember(position);
            match &outcome {
                Err(error) if is_full(error) && !shutdown.is_requested() => {
                    self.shared.show_spool(StoreState::Full);
                    let reason =
                        format!("{error}; free space on the file system of the state folder");
                    alarms.raise(AlarmKind::ChannelPaused, &subject, &reason);
                    shutdown.pause(RETRY);
                    continue;
                }
                Err(error) => {
                    let reason = format!("{error}; check the disk and the permissions");
                    alarms.raise(AlarmKind::PositionUnsaved, &subject, &reason);
                }
                Ok(()) => {
                    alarms.clear(AlarmKind::PositionUnsaved, &subject);
                }
            }
            if alarms.clear(AlarmKind::ChannelPaused, &subject) {
                self.shared.show_spool(StoreState::Ok);
            }
            return outcome.is_ok();
        }
    }

    fn resume(&mut self, resumed: Resumed, way: Continued) {
        let now = self.clock.now();
        let Resumed { flow, open, mission, format, head, from } = resumed;
        tracing::info!(channel = %self.config.name, flow = flow.0, "contact resumed");
        let route = self.shared.routing.route_of(&self.config.name, &mission);
        // The station may have ended before the contact's route was on the disk.
        self.shared.spool().destinations_mut().route(flow, &route);
        let mut contact = CapturedContact::new(flow, &open, &mission, format, Some(head.clone()))
            .going_to(self.shared.routing.names(&route));
        contact.record(now, &Record::Resumed(head.position));
        self.contact = Some(PresentContact { contact, open, from, held: None, way });
        self.before.contacts += 1;
        if way == Continued::Whole {
            self.inputs.resume(&head, mission, format);
        }
    }

    /// Another downlink came without a break: the contact ends, and the next frame begins another
    /// one.
    fn change(&mut self, at: BitPosition) {
        let ContactChange { account, next } = self.inputs.change(at);
        self.close_contact(account.as_ref(), next);
    }

    /// Raises the alarm that the downlink is not that of the configured mission.
    fn report_other_mission(&self, other: &Identification) {
        let configured = self.config.mission.as_ref();
        let configured = configured.map_or(String::new(), |mission| format!(", not of {mission}"));
        let reason = format!(
            "the downlink is that of mission {}{}{configured}; its frames are discarded; remove \
             the channel's `mission`, or set it to this one",
            other.mission.name(),
            other.scid.map_or(String::new(), |scid| format!(", spacecraft {}", scid.value())),
        );
        self.shared.alarms.raise(AlarmKind::OtherMission, subject(&self.config), &reason);
    }

    /// Closes the contact with what the capture still holds, and begins to look for another.
    fn end_contact(&mut self, after: After) {
        self.inputs.finish();
        self.take_events();
        let account = self.inputs.account();
        self.inputs.begin_anew(after);
        self.close_contact(account.as_ref(), self.inputs.capture_from());
    }

    /// Closes the contact with this account of its inputs; after a restart, they are read on from
    /// the bytes `next`.
    fn close_contact(&mut self, account: Option<&Record>, next: Vec<u64>) {
        let Some(PresentContact { mut contact, open, from, held, .. }) = self.contact.take() else {
            return;
        };
        let (flow, format) = (contact.flow(), contact.layout());
        let closing = ChannelPosition::Closing { next: next.clone(), from, format, flow, open };
        if !self.remember(&closing) && self.inputs.is_file() {
            // Closed now, the contact would be captured again; left open, it is resumed at the next
            // start.
            return;
        }
        if let Some(account) = account {
            contact.record(self.clock.now(), account);
        }
        contact.close(self.clock.now(), self.clock.utc());
        self.send(held);
        let last = self.take_block(&mut contact);
        self.send(last);
        let (closed, is_closed) = sync_channel(1);
        let _ = self.blocks.send(ToSpool::CloseFlow(flow, closed));
        if is_closed.recv().is_ok() {
            self.remember(&ChannelPosition::Between(next));
        }
        let shown = contact.shown();
        self.shared.board.contact(shown);
        self.before.frames += shown.frames;
        self.before.corrected_symbols += shown.corrected_symbols;
        self.before.set_aside += shown.set_aside;
        contact_log::closed(self, shown);
    }

    /// The station ends: a file's contact is resumed at the next start, a live one is closed, or
    /// goes on in another process.
    fn stop(&mut self) {
        if self.inputs.is_file() {
            self.flush();
        } else if self.shared.handing_over.is_ordered() {
            leaving::leave(self);
        } else {
            leaving::end(self);
        }
    }

    /// Hands the gathered block to the spool. Where that is behind, a live input does not wait for
    /// it: its block grows up to its usual size meanwhile, so that a disk that stalls for seconds
    /// costs no datagram.
    fn hand_over(&mut self) {
        let Some(present) = &mut self.contact else { return };
        if self.inputs.waits() || present.contact.due(self.gather) == Some(Instant::ZERO) {
            return self.flush();
        }
        let held = present.held.take().or_else(|| {
            let mut present = self.contact.take()?;
            let block = self.take_block(&mut present.contact);
            self.contact = Some(present);
            block
        });
        let Some(block) = held else { return };
        if let Err(TrySendError::Full(block)) = self.blocks.try_send(block)
            && let Some(present) = &mut self.contact
        {
            present.held = Some(block);
        }
    }

    /// The same, and waits where the spool is behind, which applies backpressure to the input.
    fn flush(&mut self) {
        if let Some(mut present) = self.contact.take() {
            self.quiet.pass(self.clock.now());
            self.send(present.held.take());
            let block = self.take_block(&mut present.contact);
            self.send(block);
            self.contact = Some(present);
            // Time under backpressure does not count as silence of the input.
            self.quiet.leave_out(self.clock.now());
        }
    }

    fn send(&self, block: Option<ToSpool>) {
        // A spooler that is gone has failed, and the station is stopping.
        block.into_iter().for_each(|block| drop(self.blocks.send(block)));
    }

    fn take_block(&mut self, contact: &mut CapturedContact) -> Option<ToSpool> {
        let live = contact
            .since()
            .filter(|_| !self.inputs.waits())
            .map(|since| self.clock.now().since(since));
        let (line, unsent) = (self.shared.board.line_rate(), self.shared.board.unsent());
        let (clock, pace) = (self.clock, PackingContext { live, line, unsent });
        let pack = |block: BlockRecords<'_>| self.packing.pack(clock, pace, block);
        let block = contact.take_block(clock.utc(), pack).map(ToSpool::Block);
        self.inputs.forget_before(contact.layout(), contact.position());
        block
    }

    fn show(&self, state: ChannelState) {
        let contact = self.contact.as_ref().map(|present| present.contact.shown());
        if let Some(contact) = contact {
            self.shared.board.contact(contact);
        }
        let identified = self.inputs.identified();
        self.shared.board.channel(self.index, |shown| {
            shown.state = state;
            self.inputs.show(shown);
            if let Some(identified) = identified {
                shown.mission = Some(identified.mission.name().to_owned());
                shown.scid = identified.scid.map(|scid| scid.value());
            }
            shown.frames = self.before.frames + contact.map_or(0, |contact| contact.frames);
            shown.corrected_symbols = self.before.corrected_symbols
                + contact.map_or(0, |contact| contact.corrected_symbols);
            shown.set_aside =
                self.before.set_aside + contact.map_or(0, |contact| contact.set_aside);
        });
    }
}

/// Logs the other missions that fit the downlink.
fn warn_of_others(config: &skyhaul_config::Channel, others: &[String]) {
    if !others.is_empty() {
        tracing::warn!(
            channel = %config.name,
            others = others.join(", "),
            "other missions match too; set the channel's `mission` if this one is wrong"
        );
    }
}

#[cfg(test)]
mod tests;
