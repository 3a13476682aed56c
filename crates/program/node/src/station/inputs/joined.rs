//! Several inputs of the same downlink, joined: of each frame the best copy, once and in order.
//!
//! All are read in one thread. Live inputs are read when they have something, and none is waited
//! for longer than the next frame is due. Files are read evenly and in equal steps, so that the
//! outcome does not depend on when they are read: after a restart the contact is captured again
//! from its beginning, and frames that are durable already are skipped by counting them.

use super::joined_input::{InputEnd, JoinedInput, NextDownlink};
use crate::station::channel_context::ChannelContext;
use crate::station::input::InputRead;
use crate::station::receiver::{After, Hurry, InputReceiver};
use crate::station::shared::StationShared;
use crate::station::union::{Sighting, Union};
use crate::status::InputStatus;
use skyhaul_ccsds::capture::{CaptureEvent, CaptureStats};
use skyhaul_ccsds::identify::Identification;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::sync::SyncCounts;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_records::Record;
use skyhaul_records::payload::BlockHead;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Several receivers of one downlink.
#[derive(Debug)]
pub struct JoinedInputs {
    channel: String,
    entries: Vec<JoinedInput>,
    union: Union,
    /// How long a frame waits for a better copy; none with files.
    window: Option<Duration>,
    /// Events beside frames: a few for each read.
    events: VecDeque<CaptureEvent>,
    /// Frames that are durable already, to be skipped.
    skip: u64,
    /// When the first input changed to another downlink.
    changed_at: Option<Instant>,
    /// The captures have ended: nothing more is waited for.
    is_finishing: bool,
    shared: Arc<StationShared>,
    clock: Clock,
}

/// How long the present downlink is kept for live inputs that have not changed to the next one:
/// the skew between antennas is smaller than that.
const SETTLE: Duration = Duration::from_secs(1);
/// Events of the next downlink that wait for that at most: a second of frames at 134 Mbit/s.
const LATER: usize = 16_384;

impl JoinedInputs {
    /// Joins the receivers of the channel `config`.
    pub fn new(
        receivers: Vec<InputReceiver>,
        config: &skyhaul_config::Channel,
        context: &ChannelContext,
    ) -> Self {
        let window = (!config.is_files()).then_some(config.select_window);
        Self {
            channel: config.name.to_string(),
            union: Union::new(receivers.len(), window),
            entries: receivers.into_iter().map(JoinedInput::new).collect(),
            window,
            events: VecDeque::new(),
            skip: 0,
            changed_at: None,
            is_finishing: false,
            shared: context.shared.clone(),
            clock: context.clock,
        }
    }

    /// The receivers, in the order of the configuration.
    pub fn receivers(&self) -> impl Iterator<Item = &InputReceiver> {
        self.entries.iter().map(|entry| &entry.receiver)
    }

    /// The same, to be changed.
    pub fn receivers_mut(&mut self) -> impl Iterator<Item = &mut InputReceiver> {
        self.entries.iter_mut().map(|entry| &mut entry.receiver)
    }

    /// Whether the inputs are files, which can be read again from any byte.
    fn is_file(&self) -> bool {
        self.receivers().all(InputReceiver::is_file)
    }

    /// Whether frames that are durable already are being skipped.
    pub const fn is_catching_up(&self) -> bool {
        self.skip > 0
    }

    /// Reads what is there, waiting up to `patience` for something; then poll for what it gave,
    /// also where it gave nothing: frames may be due.
    ///
    /// # Errors
    /// The file or pipe failed; of several, all of them.
    pub fn read(&mut self, patience: Duration) -> io::Result<InputRead> {
        let patience =
            self.union.due().map_or(patience, |due| due.since(self.clock.utc()).min(patience));
        if self.is_file() { self.read_files(patience) } else { self.read_live(patience) }
    }

    /// Takes what is there from each.
    fn read_live(&mut self, patience: Duration) -> io::Result<InputRead> {
        let mut taken = 0;
        let mut is_break = false;
        for at in 0..self.entries.len() {
            match self.step(at, Duration::ZERO)? {
                InputRead::Data(len) => taken += len,
                InputRead::Idle => {}
                InputRead::Break => is_break = true,
                InputRead::End => return Ok(InputRead::End),
            }
        }
        if is_break && !self.receivers().any(InputReceiver::has_heard) {
            return Ok(InputRead::Break);
        }
        if taken > 0 || is_break {
            return Ok(InputRead::Data(taken));
        }
        let going = self.entries.iter().filter(|entry| entry.ended.is_none());
        InputReceiver::wait(going.map(|entry| &entry.receiver), patience)?;
        Ok(InputRead::Idle)
    }

    /// Reads a step of the file of which the fewest frames wait; of several such, of the one that
    /// was read least.
    fn read_files(&mut self, patience: Duration) -> io::Result<InputRead> {
        let going = self.entries.iter().enumerate().filter(|(_, entry)| entry.ended.is_none());
        let next = going.min_by_key(|(at, entry)| {
            let receiver = &entry.receiver;
            (
                self.union.holding(*at) + entry.waiting(),
                receiver.offset() - receiver.capture().from(),
                *at,
            )
        });
        let Some((at, _)) = next else { return Ok(InputRead::End) };
        match self.step(at, patience)? {
            InputRead::Break => Ok(InputRead::Idle),
            other => Ok(other),
        }
    }

    /// Reads one of the inputs; [`InputRead::End`] where it was the last one to end.
    fn step(&mut self, at: usize, patience: Duration) -> io::Result<InputRead> {
        if self.entries[at].ended.is_some() {
            return Ok(InputRead::Idle);
        }
        let end = match self.entries[at].receiver.read(patience) {
            Ok(chunk @ (InputRead::Data(_) | InputRead::Idle)) => {
                self.take(at);
                return Ok(chunk);
            }
            Ok(InputRead::Break) => {
                self.finish_one(at);
                let entry = &mut self.entries[at];
                entry.sync_before = entry.sync_counts();
                entry.receiver.begin_anew(After::Break);
                return Ok(InputRead::Break);
            }
            Ok(InputRead::End) => Ok(InputEnd::Exhausted),
            Err(error) => Err(error),
        };
        self.finish_one(at);
        let entry = &mut self.entries[at];
        entry.ended = Some(*end.as_ref().unwrap_or(&InputEnd::Failed));
        if let Err(error) = &end {
            let reason = format!("input failed ({error}); the other inputs continue");
            self.shared.alarms.raise(
                AlarmKind::InputFailed,
                self.entries[at].receiver.title(),
                &reason,
            );
        }
        if self.entries.iter().any(|entry| entry.ended.is_none()) {
            return Ok(InputRead::Data(0));
        }
        let is_ended = self.entries.iter().any(|entry| entry.ended == Some(InputEnd::Exhausted));
        if is_ended { Ok(InputRead::End) } else { end.map(|_| InputRead::End) }
    }

    /// The transmission of one of several is over.
    fn finish_one(&mut self, at: usize) {
        self.entries[at].receiver.capture_mut().finish();
        self.take(at);
        self.union.close(at);
    }

    /// Takes what the capture of one of several gave.
    fn take(&mut self, at: usize) {
        while let Some(event) = self.entries[at].receiver.poll() {
            self.handle(at, event);
        }
    }

    fn handle(&mut self, at: usize, event: CaptureEvent) {
        if let Some(next) = &mut self.entries[at].next {
            return next.events.push_back(event);
        }
        let receiver = &self.entries[at].receiver;
        match event {
            CaptureEvent::Frame(frame) => self.union.push(at, frame),
            CaptureEvent::Identified(found) => match self.union.identified(at, &found) {
                Sighting::First => self.events.push_back(CaptureEvent::Identified(found)),
                Sighting::Same => {
                    tracing::info!(input = receiver.title(), "receives the same downlink");
                }
                Sighting::Other { of_contact, its } => {
                    let reason = format!(
                        "it receives {its}, the other inputs receive {of_contact}; its frames are \
                        excluded from this contact. Configure one channel for each downlink"
                    );
                    self.shared.alarms.raise(AlarmKind::OtherDownlink, receiver.title(), &reason);
                }
            },
            CaptureEvent::Unidentified(reason) if receiver.has_heard() => {
                self.shared.alarms.raise(
                    AlarmKind::DownlinkUnknown,
                    receiver.title(),
                    &reason.to_string(),
                );
            }
            CaptureEvent::Changed { at: position, stats } => {
                let entry = &mut self.entries[at];
                entry.next = Some(NextDownlink { at: position, events: VecDeque::new() });
                entry.sync_before = entry.sync_before.plus(stats.sync);
                self.union.close(at);
                self.changed_at.get_or_insert(self.clock.now());
            }
            CaptureEvent::OtherSpacecraft { .. } | CaptureEvent::OtherDownlink(_) => {
                self.events.push_back(event);
            }
            CaptureEvent::Unidentified(_) | CaptureEvent::Locked(_) | CaptureEvent::LockLost(_) => {
            }
        }
    }

    /// Whether the present downlink is over, after an input changed to another one.
    fn is_change_due(&self) -> bool {
        let Some(since) = self.changed_at else { return false };
        let is_through = |(at, entry): (usize, &JoinedInput)| {
            let is_out = entry.ended.is_some() || !entry.receiver.has_heard();
            entry.next.is_some() || is_out || self.union.account(at).0.given == 0
        };
        self.is_finishing
            || self.entries.iter().enumerate().all(is_through)
            || self.entries.iter().any(|entry| entry.waiting() >= LATER)
            || (self.window.is_some() && self.clock.now().since(since) >= SETTLE)
    }

    /// Another downlink came without a break; the contact ended before it. Returns what each input
    /// gave in the contact.
    pub fn change(&mut self) -> Option<Record> {
        let account = self.account();
        self.end_union();
        // Those that have changed say first which downlink is the next.
        let (mut changed, mut stayed) = (Vec::new(), Vec::new());
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if let Some(next) = entry.next.take() {
                entry.receiver.capture_mut().goes_on_from(next.at);
                changed.push((at, next.events));
            } else if entry.ended.is_none()
                && let Some(found) = entry.receiver.capture().identified()
            {
                // Its capture has identified this downlink before and will not report it again.
                let identified = CaptureEvent::Identified(Box::new(found.clone()));
                stayed.push((at, VecDeque::from([identified])));
            }
        }
        for (at, events) in changed.into_iter().chain(stayed) {
            events.into_iter().for_each(|event| self.handle(at, event));
        }
        if self.is_finishing {
            self.union.finish();
        }
        account
    }

    /// The next event; `None` where more has to be read, or frames are not due.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let now = self.clock.utc();
        let is_change_due = self.is_change_due();
        if is_change_due {
            self.union.finish();
        }
        while let Some(frame) = self.union.poll(now) {
            if self.skip == 0 {
                return Some(CaptureEvent::Frame(frame));
            }
            self.skip -= 1;
            if self.skip == 0 {
                self.entries.iter_mut().for_each(|entry| entry.receiver.hurry(Hurry::No));
            }
        }
        let (at, stats) = (BitPosition::START, CaptureStats::default());
        is_change_due.then_some(CaptureEvent::Changed { at, stats })
    }

    /// The contact is over: poll for what is still held, then [`Self::begin_anew`].
    pub fn finish(&mut self) {
        for at in 0..self.entries.len() {
            self.finish_one(at);
        }
        self.is_finishing = true;
        self.union.finish();
    }

    /// Begins to look for another downlink from the next bytes on; after a pause, from the part of
    /// a frame on that came before it.
    pub fn begin_anew(&mut self, after: After) {
        for entry in &mut self.entries {
            entry.receiver.begin_anew(after);
            entry.next = None;
        }
        self.end_union();
        (self.skip, self.is_finishing) = (0, false);
    }

    /// The downlink that the inputs were joined to has ended.
    fn end_union(&mut self) {
        self.changed_at = None;
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let (account, foreign) = self.union.account(at);
            entry.end_contact(account, foreign);
            self.shared.alarms.clear(AlarmKind::OtherDownlink, entry.receiver.title());
            self.shared.alarms.clear(AlarmKind::InputLags, entry.receiver.title());
        }
        self.union = Union::new(self.entries.len(), self.window);
    }

    /// Resumes a contact of which `head` says what is durable: those frames are skipped.
    pub fn resume(&mut self, head: &BlockHead) {
        self.skip = head.set_aside + head.frames.iter().map(|(_, frames)| frames).sum::<u64>();
        if self.skip > 0 {
            self.entries.iter_mut().for_each(|entry| entry.receiver.hurry(Hurry::Yes));
        }
    }

    /// The downlink that the inputs are joined to, once it is identified.
    pub fn identified(&self) -> Option<&Identification> {
        self.union.downlink()
    }

    /// Whether any synchroniser has lock.
    pub fn is_locked(&self) -> bool {
        self.entries.iter().any(JoinedInput::is_locked)
    }

    /// What the synchronisers counted in the present contact, together.
    pub fn sync_counts(&self) -> SyncCounts {
        let counts = self.entries.iter().map(JoinedInput::sync_counts);
        counts.fold(SyncCounts::default(), SyncCounts::plus)
    }

    /// What each input gave in the present contact. Raises an alarm where one comes too late.
    pub fn account(&mut self) -> Option<Record> {
        self.union.downlink()?;
        for at in 0..self.entries.len() {
            self.watch(at);
        }
        let feeds = self.receivers().map(InputReceiver::feed);
        let named = feeds.map(|feed| (&*feed.name, feed.input.to_string()));
        Some(Record::Inputs(self.union.reports(named)))
    }

    /// Raises an alarm where frames that one input alone has come after the window, and are lost.
    fn watch(&mut self, at: usize) {
        let (account, _) = self.union.account(at);
        let entry = &mut self.entries[at];
        let is_more = account.late > std::mem::replace(&mut entry.late, account.late);
        let Some(window) = self.window.filter(|window| is_more && account.skew > *window) else {
            return;
        };
        let reason = format!(
            "it lags {} behind the others, the window is {window}: {} frames that only it received \
            are lost; raise select_window of channel {} above the lag",
            account.skew, account.late, self.channel
        );
        self.shared.alarms.raise(AlarmKind::InputLags, entry.receiver.title(), &reason);
    }

    /// Shows each input.
    pub fn show(&self, shown: &mut Vec<InputStatus>) {
        shown.resize_with(self.entries.len(), InputStatus::default);
        for (at, (entry, shown)) in self.entries.iter().zip(shown).enumerate() {
            let (receiver, (account, foreign)) = (&entry.receiver, self.union.account(at));
            *shown = InputStatus {
                name: receiver.feed().name.clone(),
                input: receiver.feed().input.to_string(),
                address: receiver.address().map(|address| address.to_string()),
                state: entry.state(),
                bytes: receiver.offset(),
                frames: entry.frames(account, foreign),
                dropped_datagrams: shown.dropped_datagrams,
                recording: shown.recording.take(),
                vita49: receiver.packets(),
            };
        }
    }
}
