//! Refill: looks for frames that the centre misses in the spool and the recordings, and sends them
//! as a contact that completes the original one.
//!
//! A thread of its own answers the centre's questions, one at a time: decoding a recording must
//! delay neither inputs nor line. Frames that are found go through the spool like all others, in
//! the class of `[refill]`. Each channel has at most one such contact open; it ends when the centre
//! asks about another contact, or asks no more for a while.

mod questions;
mod search;
mod wanted;

pub use questions::{DestinationAsk, Questions};
use skyhaul_events::AlarmKind;

use super::channel_context::ChannelContext;
use super::contact::CapturedContact;
use super::memo::{ChannelPosition, Memo};
use super::packing::{Packing, PackingContext};
use super::recording;
use super::resume::ResumePoint;
use super::routing::PLACES;
use super::spooler::{SpoolBlock, ToSpool};
use crate::fault::Fault;
use search::{Decoding, in_block, in_recording};
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_config::{Compress, REFILL, Refill};
use skyhaul_level0::ledger::DurableFrame;
use skyhaul_level0::ledger::talk::{Ask, GapAnswer, UnavailableReason};
use skyhaul_records::{Open, Record};
use skyhaul_store::raw::{RawError, RawReader};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Utc};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use wanted::{Wanted, seen};

/// The thread that looks for frames.
#[derive(Debug)]
pub struct RefillRunner {
    config: Refill,
    channels: Vec<skyhaul_config::Channel>,
    context: ChannelContext,
    state: PathBuf,
    packing: Packing,
    /// The open contacts, by channel and destination.
    open: BTreeMap<RefillKey, Completing>,
    /// The index of the destination that asked last.
    asking: usize,
    /// A frame that was found could not be sent.
    is_refused: bool,
}

/// An input whose recording is searched.
#[derive(Clone, Copy)]
struct RecordedInput<'a> {
    reader: &'a RawReader,
    channel: &'a skyhaul_config::Channel,
    feed: &'a skyhaul_config::ResolvedInput,
    /// The mission of the contact.
    mission: &'a Mission,
}

/// What a refill contact is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RefillKey {
    channel: String,
    /// The index of the destination that asked.
    to: usize,
}

/// A contact that completes another.
#[derive(Debug)]
struct Completing {
    contact: CapturedContact,
    open: Open,
    format: InputLayout,
    memo: Memo,
    asked_at: Instant,
    /// The frames in it, by virtual channel and count: a frame that is requested again because an
    /// answer was lost is not sent again.
    sent: BTreeMap<(Channel, u64), DurableFrame>,
}

/// Stands for the channels of other stations, whose names are not this node's to trust; no channel
/// has this name.
/// The subject of the alarm about answers to questions for missing frames.
const REQUESTED: &str = "requested frames";
const PASSED_ON: &str = "";
/// The stop flag and idle contacts are checked this often.
const LOOK: Duration = Duration::from_millis(100);
/// A contact that the centre asks no more about ends after this time: longer than usual outages of
/// a line.
const SILENCE: Duration = Duration::from_secs(60);
/// The most frames that are remembered of a refill contact: 5 MB. Beyond that, a frame that is
/// requested again is sent again, and the centre drops the copy.
const SENT_MAX: usize = 65_536;
/// The longest time that a recording may be behind its input: what its queue holds at 100 Mbit/s.
const LAG: Duration = Duration::from_secs(5);
/// Decoded bytes after which a block is handed over.
const GATHER: Duration = Duration::from_secs(3_600);

impl RefillRunner {
    /// Ends the contacts that were open when the station ended.
    ///
    /// # Errors
    /// The spool cannot be read or written.
    pub fn open(
        config: &Refill,
        channels: &[skyhaul_config::Channel],
        state: &Path,
        context: ChannelContext,
    ) -> Result<Self, Fault> {
        let packing = Packing::new(Compress::Auto);
        let mut runner = Self {
            config: config.clone(),
            channels: channels.to_vec(),
            context,
            state: state.to_owned(),
            packing,
            open: BTreeMap::new(),
            asking: 0,
            is_refused: false,
        };
        let places = 0..PLACES;
        let names = channels.iter().map(|channel| channel.name.as_str()).chain([PASSED_ON]);
        for (channel, to) in names.flat_map(|name| places.clone().map(move |to| (name, to))) {
            let memo = Memo::of_refill(state, channel, to);
            let found = ResumePoint::find(&mut runner.context.shared.spool(), &memo, 1);
            if let ResumePoint::In(resumed) = found.map_err(|error| super::spool_fault(&error))? {
                let (format, open) = (resumed.format, resumed.open);
                let contact = CapturedContact::new(
                    resumed.flow,
                    &open,
                    &resumed.mission,
                    format,
                    Some(resumed.head),
                );
                let contact = contact.sent_as(REFILL);
                let asked_at = runner.context.clock.now();
                let completing =
                    Completing { contact, open, format, memo, asked_at, sent: BTreeMap::new() };
                runner.open.insert(RefillKey { channel: channel.to_owned(), to }, completing);
            }
        }
        Ok(runner)
    }

    /// The flows of the contacts that are open.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.open.values().map(|completing| completing.contact.flow())
    }

    /// Runs until the station ends.
    pub fn run(mut self) {
        self.end_all(|_| true);
        while !self.context.shared.shutdown.is_requested() {
            if let Some(DestinationAsk { of, ask }) = self.context.shared.questions.next(LOOK) {
                self.asking = of;
                // The centre repeats a question without an answer.
                if let Some(answer) = self.look(&ask) {
                    tracing::info!(
                        contact = ask.contact.0,
                        "refill request: {}",
                        in_words(&answer, &ask)
                    );
                    self.context.shared.questions.answer(of, answer);
                    self.context.shared.shutdown.wake_line();
                }
            }
            let now = self.context.clock.now();
            self.end_all(|completing| completing.asked_at + SILENCE <= now);
        }
        self.end_all(|_| true);
    }

    /// Looks for the requested frames, and sends those that it finds; none where the spool did not
    /// take them.
    fn look(&mut self, ask: &Ask) -> Option<GapAnswer> {
        self.is_refused = false;
        let mut wanted = Wanted::new(ask);
        let completing = self.open.get(&self.key(ask));
        if let Some(open) = completing.filter(|open| open.open.completes == Some(ask.contact)) {
            for seen in open.sent.values() {
                wanted.take_seen(seen);
            }
        }
        let channel =
            self.channels.iter().find(|channel| channel.name.as_str() == ask.channel).cloned();
        let outcome = match channel {
            _ if !self.config.enabled => Some(UnavailableReason::Disabled),
            None => self.look_in_passed_on(ask, &mut wanted),
            Some(channel) => self.look_in(ask, &channel, &mut wanted),
        };
        let key = self.key(ask);
        if let Some(open) = self.open.get_mut(&key) {
            open.asked_at = self.context.clock.now();
        }
        self.hand_over(&key);
        if ask.is_last && self.completes(&key) == Some(ask.contact) {
            self.end(&key);
        }
        (!self.is_refused).then(|| wanted.answer(ask.number, outcome))
    }

    /// Searches the recording. Returns the reason where it could not.
    fn look_in(
        &mut self,
        ask: &Ask,
        channel: &skyhaul_config::Channel,
        wanted: &mut Wanted,
    ) -> Option<UnavailableReason> {
        if wanted.is_complete() {
            return None;
        }
        let mission = match super::mission_of(channel, &self.context.missions) {
            Ok(Some(mission)) => mission,
            _ => match self.context.missions.by_name(&ask.mission) {
                Some(mission) => mission.clone(),
                None => return Some(UnavailableReason::NoChannel),
            },
        };
        if ask.is_damaged && !self.look_in_spool(ask, &mission, wanted) {
            return Some(UnavailableReason::Refused);
        }
        if wanted.is_complete() {
            return None;
        }
        if !channel.record_raw {
            return Some(UnavailableReason::NoRecording);
        }
        let feeds = channel.feeds();
        let [feed] = &feeds[..] else { return Some(UnavailableReason::SeveralInputs) };
        if feed.format == skyhaul_config::InputFormat::Vita49 {
            return Some(UnavailableReason::Packets);
        }
        let reader =
            RawReader::open(self.context.disk.clone(), &recording::folder(channel.name.as_str()));
        let recorded = RecordedInput { reader: &reader, channel, feed, mission: &mission };
        match self.look_in_recording(ask, recorded, wanted) {
            Ok(()) => None,
            Err(error) => {
                self.context.shared.alarms.raise(
                    AlarmKind::RecordingUnreadable,
                    "a recording",
                    &error.to_string(),
                );
                Some(UnavailableReason::Refused)
            }
        }
    }

    /// Searches a contact that the node only passed on, or one of a channel that it had once.
    /// Returns the reason where frames are not found.
    fn look_in_passed_on(&mut self, ask: &Ask, wanted: &mut Wanted) -> Option<UnavailableReason> {
        let Some(mission) = self.context.missions.by_name(&ask.mission).cloned() else {
            return Some(UnavailableReason::NoChannel);
        };
        if !self.look_in_spool(ask, &mission, wanted) {
            return Some(UnavailableReason::Refused);
        }
        (!wanted.is_complete()).then_some(UnavailableReason::NoChannel)
    }

    /// Whether the spool could be read.
    fn look_in_spool(&mut self, ask: &Ask, mission: &Mission, wanted: &mut Wanted) -> bool {
        let Some((from, _)) = wanted.extent() else { return true };
        let mut reader = self.context.shared.spool().queue().recall_reader(ask.contact, from);
        loop {
            let read = self.context.shared.spool().queue_mut().recall(&mut reader);
            let record = match read {
                Ok(Some(record)) => record,
                Ok(None) => return true,
                Err(error) => {
                    self.context.shared.alarms.raise(
                        AlarmKind::SpoolUnreadable,
                        "the spool",
                        &error.to_string(),
                    );
                    return false;
                }
            };
            let mut found =
                |frame: &CapturedFrame| self.send(ask, mission, frame, InputLayout::Bits);
            if !in_block(&record.payload, mission, wanted, &mut found) {
                return true;
            }
        }
    }

    fn look_in_recording(
        &mut self,
        ask: &Ask,
        recorded: RecordedInput<'_>,
        wanted: &mut Wanted,
    ) -> Result<(), RawError> {
        let RecordedInput { reader, channel, feed, mission } = recorded;
        let (missions, attempts) = (self.context.missions.clone(), self.config.attempts());
        let decoding =
            Decoding { channel, feed, mission, missions: &missions, attempts: &attempts };
        let ChannelContext { shared, clock, .. } = self.context.clone();
        let mut found =
            |frame: &CapturedFrame, format: InputLayout| self.send(ask, mission, frame, format);
        loop {
            in_recording(reader, &decoding, wanted, &mut found)?;
            let now = clock.utc();
            if wanted.behind().is_none_or(|received| received + LAG < now)
                || shared.shutdown.is_requested()
            {
                return Ok(());
            }
            // The recording is behind its input.
            shared.shutdown.pause(LOOK);
        }
    }

    /// Adds a frame to the contact that completes the one asked about, and opens that where there
    /// is none.
    fn send(&mut self, ask: &Ask, mission: &Mission, frame: &CapturedFrame, format: InputLayout) {
        let now = self.context.clock.now();
        let key = self.key(ask);
        if self.completes(&key).is_some_and(|contact| contact != ask.contact) {
            self.end(&key);
        }
        if !self.open.contains_key(&key) {
            let Some(completing) = self.begin(ask, mission, frame.received, format) else {
                self.is_refused = true;
                return;
            };
            self.open.insert(key.clone(), completing);
        }
        let Some(completing) = self.open.get_mut(&key) else { return };
        completing.contact.frame(now, frame);
        if let Some(seen) =
            seen(frame, mission.frame()).filter(|_| completing.sent.len() < SENT_MAX)
        {
            completing.sent.insert((seen.channel, seen.count), seen);
        }
        if completing.contact.due(GATHER) == Some(Instant::ZERO) {
            self.hand_over(&key);
        }
    }

    /// The contact that a question is about has this key among those that are open.
    fn key(&self, ask: &Ask) -> RefillKey {
        let is_own = |channel: &skyhaul_config::Channel| channel.name.as_str() == ask.channel;
        let is_own = self.channels.iter().any(is_own);
        let channel = if is_own { ask.channel.clone() } else { PASSED_ON.to_owned() };
        RefillKey { channel, to: self.asking }
    }

    fn completes(&self, key: &RefillKey) -> Option<FlowId> {
        self.open.get(key)?.open.completes
    }

    /// Opens a contact; none where the spool is full now. The centre asks again.
    fn begin(
        &self,
        ask: &Ask,
        mission: &Mission,
        opened: Utc,
        format: InputLayout,
    ) -> Option<Completing> {
        let ChannelContext { shared, clock, .. } = &self.context;
        let keeps = self
            .channels
            .iter()
            .any(|channel| channel.name.as_str() == ask.channel && channel.keep_check_symbols);
        let open = Open {
            channel: ask.channel.clone(),
            mission: mission.text().to_owned(),
            also_fits: Vec::new(),
            scid: ask.spans.first().map(|span| span.channel.scid),
            opened,
            keeps_check_symbols: keeps,
            completes: Some(ask.contact),
            file: None,
        };
        let flow = match shared.open_flow(clock.utc(), &shared.routing.route_to(self.asking)) {
            Ok(flow) => flow,
            Err(error) => {
                shared.alarms.raise(AlarmKind::RefillUnsent, REQUESTED, &error.to_string());
                return None;
            }
        };
        shared.alarms.clear(AlarmKind::RefillUnsent, REQUESTED);
        let memo = Memo::of_refill(&self.state, &self.key(ask).channel, self.asking);
        if let Err(error) = memo.remember(&ChannelPosition::Open {
            from: vec![0],
            format,
            flow,
            open: open.clone(),
        }) {
            let reason = error.to_string();
            shared.alarms.raise(AlarmKind::RefillUnsaved, "a refill's state", &reason);
        }
        let mut contact = CapturedContact::new(flow, &open, mission, format, None).sent_as(REFILL);
        contact.record(clock.now(), &Record::Open(open.clone()));
        tracing::info!(
            channel = ask.channel,
            flow = flow.0,
            completes = ask.contact.0,
            "contact completed"
        );
        let (asked_at, sent) = (clock.now(), BTreeMap::new());
        Some(Completing { contact, open, format, memo, asked_at, sent })
    }

    /// Hands the gathered block of a channel's contact over.
    fn hand_over(&mut self, key: &RefillKey) {
        if let Some(completing) = self.open.get_mut(key)
            && let Some(block) = block(&mut self.packing, &self.context, &mut completing.contact)
        {
            // A spooler whose thread has ended failed, and the station is stopping.
            let _ = self.context.blocks.send(ToSpool::Block(block));
            self.context.shared.board.contact(completing.contact.shown());
        }
    }

    /// Ends the contacts that `which` selects.
    fn end_all(&mut self, which: impl Fn(&Completing) -> bool) {
        let ending = self.open.iter().filter(|(_, completing)| which(completing));
        let ending: Vec<RefillKey> = ending.map(|(key, _)| key.clone()).collect();
        ending.iter().for_each(|key| self.end(key));
    }

    fn end(&mut self, key: &RefillKey) {
        let Some(completing) = self.open.remove(key) else { return };
        let Completing { mut contact, open, format, memo, .. } = completing;
        let (ChannelContext { shared, clock, .. }, flow) = (&self.context, contact.flow());
        if memo
            .remember(&ChannelPosition::Closing {
                next: vec![0],
                from: Vec::new(),
                format,
                flow,
                open,
            })
            .is_err()
        {
            // It stays open, and is ended at the next start.
            return;
        }
        contact.close(clock.now(), clock.utc());
        if let Some(block) = block(&mut self.packing, &self.context, &mut contact) {
            let _ = self.context.blocks.send(ToSpool::Block(block));
        }
        let (closed, is_closed) = sync_channel(1);
        let _ = self.context.blocks.send(ToSpool::CloseFlow(flow, closed));
        if is_closed.recv().is_ok() && memo.remember(&ChannelPosition::Between(vec![0])).is_err() {
            tracing::warn!(
                flow = flow.0,
                "the end of a refill cannot be saved; it is checked again after a restart"
            );
        }
        shared.board.contact(contact.shown());
    }
}

fn block(
    packing: &mut Packing,
    context: &ChannelContext,
    contact: &mut CapturedContact,
) -> Option<SpoolBlock> {
    let ChannelContext { shared, clock, .. } = context;
    let pace =
        PackingContext { live: None, line: shared.board.line_rate(), unsent: ByteCount::ZERO };
    contact.take_block(clock.utc(), |block| packing.pack(*clock, pace, block))
}

fn in_words(answer: &GapAnswer, ask: &Ask) -> String {
    let wanted: u64 = ask.spans.iter().map(|span| span.count).sum();
    let found: u64 = answer.outcomes.iter().map(|(found, _)| found).sum();
    let why =
        answer.outcomes.iter().map(|(_, why)| *why).find(|why| *why != UnavailableReason::Found);
    let why = why.map_or(String::new(), |why| format!("; the rest: {}", why.text()));
    format!("{found} of {wanted} found{why}")
}
