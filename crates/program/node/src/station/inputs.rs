//! The inputs of a channel, to the channel as one: a single receiver as it is, or several of the
//! same downlink, joined.
//!
//! All are read in one thread. Live inputs are read as they have something, and none is waited for
//! longer than the next frame is due. Files are read evenly and in equal steps, so that what comes
//! out does not depend on when it is read: after a restart the contact is captured again from its
//! beginning, and what is durable of it passed over by counting frames.

use super::board::InputIndex;
use super::channel::Common;
use super::input::InputRead;
use super::receiver::{After, Hurry, InputReceiver};
use super::shared::StationShared;
use super::union::{Sighting, Union};
use crate::config;
use crate::fault::Fault;
use crate::status::{ChannelState, InputFrames, InputStatus, Vita49Status};
use skyhaul_ccsds::capture::{CaptureEvent, CaptureStats};
use skyhaul_ccsds::identify::{Identification, InputLayout, Unidentified};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::select::InputAccount;
use skyhaul_ccsds::sync::SyncCounts;
use skyhaul_net::Clock;
use skyhaul_records::Record;
use skyhaul_records::payload::BlockHead;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// The receivers of one channel.
#[derive(Debug)]
pub struct Inputs {
    channel: String,
    entries: Vec<Entry>,
    union: Union,
    window: Option<Duration>,
    /// What is to be told, beside frames: a few for each read.
    events: VecDeque<CaptureEvent>,
    /// Frames that are durable already.
    skip: u64,
    /// Since when the first of several has gone over to another downlink.
    changed_at: Option<Instant>,
    /// The captures have ended: nothing more is waited for.
    is_finishing: bool,
    shared: Arc<StationShared>,
    clock: Clock,
}

/// One input.
#[derive(Debug)]
struct Entry {
    receiver: InputReceiver,
    /// It is exhausted or has failed.
    over: Option<Over>,
    /// Of earlier transmissions in the same contact.
    sync: SyncCounts,
    /// Of earlier contacts.
    before: (InputAccount, u64),
    /// Frames that had come too late when that was looked at last.
    late: u64,
    /// Where it went over to another downlink, of which nothing is taken before the others have
    /// come as far.
    gone_over: Option<BitPosition>,
    /// What it gave of that.
    later: VecDeque<CaptureEvent>,
}

/// How long live inputs are waited for that have not gone over to the next downlink: antennas are
/// closer together than that.
const SETTLE: Duration = Duration::from_secs(1);
/// Frames of the next downlink that wait for that at the most: a second at 134 Mbit/s.
const LATER: usize = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Ended,
    Failed,
}

impl Inputs {
    /// Opens the inputs of channel number `index`; files are read from what `start` says for each.
    ///
    /// # Errors
    /// As [`Receiver::open`].
    pub fn open(
        index: usize,
        config: &config::Channel,
        common: &Common,
        start: impl Fn(usize) -> BitPosition,
    ) -> Result<Self, Fault> {
        let open = |at| {
            let of = InputIndex { channel: index, input: at };
            let receiver = InputReceiver::open(of, config.clone(), common, start(at))?;
            let (sync, before) = (SyncCounts::default(), (InputAccount::default(), 0));
            let later = VecDeque::new();
            Ok(Entry { receiver, over: None, sync, before, late: 0, gone_over: None, later })
        };
        let entries = (0..config.feeds().len()).map(open).collect::<Result<Vec<_>, Fault>>()?;
        let window = (!config.is_files()).then_some(config.select_window);
        Ok(Self {
            channel: config.name.to_string(),
            union: Union::new(entries.len(), window),
            entries,
            window,
            events: VecDeque::new(),
            skip: 0,
            changed_at: None,
            is_finishing: false,
            shared: common.shared.clone(),
            clock: common.clock,
        })
    }

    /// The only one, where there is one.
    fn only(&self) -> Option<&InputReceiver> {
        match &self.entries[..] {
            [entry] => Some(&entry.receiver),
            _ => None,
        }
    }

    fn only_mut(&mut self) -> Option<&mut InputReceiver> {
        match &mut self.entries[..] {
            [entry] => Some(&mut entry.receiver),
            _ => None,
        }
    }

    fn receivers(&self) -> impl Iterator<Item = &InputReceiver> {
        self.entries.iter().map(|entry| &entry.receiver)
    }

    /// Whether they can be read again from any place: all of them, or none.
    pub fn is_file(&self) -> bool {
        self.receivers().all(InputReceiver::is_file)
    }

    /// Whether they wait for the station, instead of going on without it.
    pub fn waits(&self) -> bool {
        self.receivers().all(InputReceiver::waits)
    }

    /// Whether frames that are durable already are passed over.
    pub const fn is_catching_up(&self) -> bool {
        self.skip > 0
    }

    /// Reads what is there, waiting up to `patience` for something; then poll for what it gave,
    /// also where it gave nothing: frames may be due.
    ///
    /// # Errors
    /// The file or pipe failed; of several, all of them.
    pub fn read(&mut self, patience: Duration) -> io::Result<InputRead> {
        if let Some(only) = self.only_mut() {
            return only.read(patience);
        }
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
        let going = self.entries.iter().filter(|entry| entry.over.is_none());
        InputReceiver::wait(going.map(|entry| &entry.receiver), patience)?;
        Ok(InputRead::Idle)
    }

    /// Takes a step of that file of which the least waits; of such, of the one that was read least.
    fn read_files(&mut self, patience: Duration) -> io::Result<InputRead> {
        let going = self.entries.iter().enumerate().filter(|(_, entry)| entry.over.is_none());
        let next = going.min_by_key(|(at, entry)| {
            let receiver = &entry.receiver;
            (
                self.union.holding(*at) + entry.later.len(),
                receiver.offset() - receiver.capture_from(),
                *at,
            )
        });
        let Some((at, _)) = next else { return Ok(InputRead::End) };
        match self.step(at, patience)? {
            InputRead::Break => Ok(InputRead::Idle),
            other => Ok(other),
        }
    }

    /// Reads one of several; [`Chunk::End`] where that was the last one to end.
    fn step(&mut self, at: usize, patience: Duration) -> io::Result<InputRead> {
        if self.entries[at].over.is_some() {
            return Ok(InputRead::Idle);
        }
        let over = match self.entries[at].receiver.read(patience) {
            Ok(chunk @ (InputRead::Data(_) | InputRead::Idle)) => {
                self.take(at);
                return Ok(chunk);
            }
            Ok(InputRead::Break) => {
                self.finish_one(at);
                let entry = &mut self.entries[at];
                entry.sync = entry.sync.plus(entry.receiver.sync_counts());
                entry.receiver.begin_anew(After::Break);
                return Ok(InputRead::Break);
            }
            Ok(InputRead::End) => Ok(Over::Ended),
            Err(error) => Err(error),
        };
        self.finish_one(at);
        let entry = &mut self.entries[at];
        entry.over = Some(*over.as_ref().unwrap_or(&Over::Failed));
        if let Err(error) = &over {
            let reason = format!("input failed ({error}); the other inputs continue");
            self.shared.alarms.raise(&self.entries[at].receiver.title(), &reason);
        }
        if self.entries.iter().any(|entry| entry.over.is_none()) {
            return Ok(InputRead::Data(0));
        }
        let is_ended = self.entries.iter().any(|entry| entry.over == Some(Over::Ended));
        if is_ended { Ok(InputRead::End) } else { over.map(|_| InputRead::End) }
    }

    /// The transmission of one of several is over.
    fn finish_one(&mut self, at: usize) {
        self.entries[at].receiver.finish();
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
        if self.entries[at].gone_over.is_some() {
            return self.entries[at].later.push_back(event);
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
                    self.shared.alarms.raise(&foreign(receiver), &reason);
                }
            },
            CaptureEvent::Unidentified(reason) if receiver.has_heard() => {
                self.shared.alarms.raise(&receiver.title(), &reason.to_string());
            }
            CaptureEvent::Changed { at: place, stats } => {
                let entry = &mut self.entries[at];
                (entry.gone_over, entry.sync) = (Some(place), entry.sync.plus(stats.sync));
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

    /// Whether no more is waited for of the downlink that an input has gone over from.
    fn is_change_due(&self) -> bool {
        let Some(since) = self.changed_at else { return false };
        let is_through = |(at, entry): (usize, &Entry)| {
            let is_out = entry.over.is_some() || !entry.receiver.has_heard();
            entry.gone_over.is_some() || is_out || self.union.account(at).0.given == 0
        };
        self.is_finishing
            || self.entries.iter().enumerate().all(is_through)
            || self.entries.iter().any(|entry| entry.later.len() >= LATER)
            || (self.window.is_some() && self.clock.now().since(since) >= SETTLE)
    }

    /// Another downlink has come without a break, at `place` of a single input; the contact ended
    /// before it. What became of the inputs' frames in that, and from where each has to be read for
    /// the next one.
    pub fn change(&mut self, place: BitPosition) -> (Option<Record>, Vec<u64>) {
        if let Some(only) = self.only_mut() {
            only.goes_on_from(place);
            return (None, vec![place.byte()]);
        }
        let account = self.account();
        self.end_union();
        // Those that have gone over say first which downlink is the next.
        let (mut gone, mut stayed) = (Vec::new(), Vec::new());
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if let Some(place) = entry.gone_over.take() {
                entry.receiver.goes_on_from(place);
                gone.push((at, core::mem::take(&mut entry.later)));
            } else if let Some(found) = entry.receiver.identified().filter(|_| entry.over.is_none())
            {
                // It is known what it receives, and not told again.
                stayed.push((
                    at,
                    VecDeque::from([CaptureEvent::Identified(Box::new(found.clone()))]),
                ));
            }
        }
        for (at, later) in gone.into_iter().chain(stayed) {
            later.into_iter().for_each(|event| self.handle(at, event));
        }
        if self.is_finishing {
            self.union.finish();
        }
        (account, self.capture_from())
    }

    /// The next event; `None` where more has to be read, or frames are not due.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        if let Some(only) = self.only_mut() {
            return only.poll();
        }
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
        if let Some(only) = self.only_mut() {
            return only.finish();
        }
        for at in 0..self.entries.len() {
            self.finish_one(at);
        }
        self.is_finishing = true;
        self.union.finish();
    }

    /// Begins to look for another downlink from the next bytes on; after a pause, from what had
    /// come of a frame on.
    pub fn begin_anew(&mut self, after: After) {
        for entry in &mut self.entries {
            entry.receiver.begin_anew(after);
            entry.gone_over = None;
            entry.later.clear();
        }
        self.end_union();
        (self.skip, self.is_finishing) = (0, false);
    }

    /// The downlink that several have been joined to has ended.
    fn end_union(&mut self) {
        self.changed_at = None;
        if self.only().is_some() {
            return;
        }
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let (account, foreign) = self.union.account(at);
            entry.before = (entry.before.0.plus(account), entry.before.1 + foreign);
            (entry.sync, entry.late) = (SyncCounts::default(), 0);
            self.shared.alarms.clear(&self::foreign(&entry.receiver));
            self.shared.alarms.clear(&too_late(&entry.receiver));
        }
        self.union = Union::new(self.entries.len(), self.window);
    }

    /// Goes on with a contact of which `head` says what is durable.
    pub fn go_on(&mut self, head: &BlockHead, mission: Mission, format: InputLayout) {
        if let Some(only) = self.only_mut() {
            return only.go_on(head.position, mission, format);
        }
        self.skip = head.set_aside + head.frames.iter().map(|(_, frames)| frames).sum::<u64>();
        if self.skip > 0 {
            self.entries.iter_mut().for_each(|entry| entry.receiver.hurry(Hurry::Yes));
        }
    }

    /// What the present downlink was found to be.
    pub fn identified(&self) -> Option<&Identification> {
        self.only().map_or_else(|| self.union.downlink(), InputReceiver::identified)
    }

    /// What is odd about an input in which nothing was found so far.
    pub fn doubt(&self) -> Option<(String, Unidentified)> {
        self.receivers().find_map(|receiver| Some((receiver.title(), receiver.doubt()?)))
    }

    /// Whether frames are being followed at any.
    pub fn is_locked(&self) -> bool {
        self.entries.iter().any(|entry| entry.over.is_none() && entry.receiver.is_locked())
    }

    /// What the synchronisers counted in the present contact, together.
    pub fn sync_counts(&self) -> SyncCounts {
        let counts = self.entries.iter().map(|entry| entry.sync.plus(entry.receiver.sync_counts()));
        counts.fold(SyncCounts::default(), SyncCounts::plus)
    }

    /// The next byte of each.
    pub fn offsets(&self) -> Vec<u64> {
        self.receivers().map(InputReceiver::offset).collect()
    }

    /// The byte of each that the present contact began with.
    pub fn capture_from(&self) -> Vec<u64> {
        self.receivers().map(InputReceiver::capture_from).collect()
    }

    /// Whether anything came in since the present captures began.
    pub fn has_heard(&self) -> bool {
        self.receivers().any(InputReceiver::has_heard)
    }

    /// Datagrams that the kernel dropped before they were read.
    pub fn kernel_drops(&self) -> u64 {
        self.receivers().map(InputReceiver::kernel_drops).sum()
    }

    /// What became of the packets of a single input that brings packets.
    pub fn packets(&self) -> Option<Vita49Status> {
        self.only()?.packets()
    }

    /// The address that a single input listens on.
    pub fn address(&self) -> Option<String> {
        self.only()?.address().map(|address| address.to_string())
    }

    /// What each of several gave in the present contact, for its account. Says where one comes too
    /// late.
    pub fn account(&mut self) -> Option<Record> {
        if self.only().is_some() || self.union.downlink().is_none() {
            return None;
        }
        for at in 0..self.entries.len() {
            self.watch(at);
        }
        let feeds = self.receivers().map(InputReceiver::feed);
        let named = feeds.map(|feed| (&*feed.name, feed.input.to_string()));
        Some(Record::Inputs(self.union.reports(named)))
    }

    /// An input whose frames come after the window loses what it alone has.
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
        self.shared.alarms.raise(&too_late(&entry.receiver), &reason);
    }

    /// What status shows of each of several.
    pub fn show(&self, shown: &mut Vec<InputStatus>) {
        if self.only().is_some() {
            return;
        }
        shown.resize_with(self.entries.len(), InputStatus::default);
        for (at, (entry, shown)) in self.entries.iter().zip(shown).enumerate() {
            let (receiver, (account, foreign)) = (&entry.receiver, self.union.account(at));
            *shown = InputStatus {
                name: receiver.feed().name.clone(),
                input: receiver.feed().input.to_string(),
                address: receiver.address().map(|address| address.to_string()),
                state: entry.state(),
                bytes: receiver.offset(),
                frames: InputFrames::of(&entry.before.0.plus(account), entry.before.1 + foreign),
                dropped_datagrams: shown.dropped_datagrams,
                recording: shown.recording.take(),
                vita49: receiver.packets(),
            };
        }
    }

    /// Datagrams that the kernel dropped, of each of several.
    pub fn show_drops(&self, shown: &mut [InputStatus]) {
        for (receiver, shown) in self.receivers().zip(shown) {
            shown.dropped_datagrams = receiver.kernel_drops();
        }
    }
}

impl Entry {
    fn state(&self) -> ChannelState {
        match self.over {
            Some(Over::Ended) => ChannelState::Ended,
            Some(Over::Failed) => ChannelState::Failed,
            None if self.receiver.identified().is_some() && self.receiver.is_locked() => {
                ChannelState::Lock
            }
            None if self.receiver.has_heard() => ChannelState::Search,
            None => ChannelState::Waiting,
        }
    }
}

fn foreign(receiver: &InputReceiver) -> String {
    format!("{} receives another downlink", receiver.title())
}

fn too_late(receiver: &InputReceiver) -> String {
    format!("{} lags too far behind", receiver.title())
}
