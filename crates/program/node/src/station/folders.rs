//! Drop folders: each file that appears whole is handed over once, as a contact or as a file of its
//! destinations. Each folder has a thread and a ledger in the state folder for each destination
//! (`ways`), and the rules of [`DropFolder`].

mod aside;
mod captures;
mod ledger;
mod listing;
mod transfers;
mod ways;
mod words;

use super::channel_context::ChannelContext;
use super::shared::StationShared;
use crate::fault::Fault;
use crate::status::{FolderState, FolderStatus};
use captures::{CaptureOutcome, CaptureOutlet};
use ledger::DropLedger;
use listing::{DropPlace, Ground};
use skyhaul_channels_io::ChannelService;
use skyhaul_config::{AfterHandover, FolderEntry, FolderUse, StationConfig};
use skyhaul_events::{AlarmKind, AlarmSubject};
use skyhaul_files::RelPath;
use skyhaul_files::drop_folder::{
    DropErrand, DropFolder, DroppedFile, HandedFile, LedgerLine, ReadOutcome,
};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, FlowId, Instant};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use transfers::{BYTES_MAX, FILES_MAX, FileOutcome, TransferOutcome, TransferOutlet};
use ways::FolderWay;
use words::{ledger_fault, shown, unlisted, unwritten};

/// Hands over the files of one folder to one destination.
#[derive(Debug)]
pub struct FolderRunner {
    config: FolderEntry,
    way: FolderWay,
    place: DropPlace,
    folder: DropFolder,
    ledger: DropLedger,
    outlet: Outlet,
    shared: Arc<StationShared>,
    clock: Clock,
    /// Nothing is handed over before: something refused the last file.
    hold_until: Instant,
    /// How often a file could not be read.
    tries: BTreeMap<RelPath, u32>,
}

/// Where files go.
#[derive(Debug)]
enum Outlet {
    Contacts(Box<CaptureOutlet>),
    Files(TransferOutlet),
}

/// The alarms of a folder, behind its name.
/// The stop flag is checked this often.
const LOOK: Duration = Duration::from_millis(200);
/// Between two listings, at least, and at most while files wait to be whole.
const OFTEN: Duration = Duration::from_millis(50);
/// Between two listings of a folder in which nothing happens, and that cannot say so.
const SELDOM: Duration = Duration::from_secs(1);
/// A listing takes a tenth of the time at most: one of 100,000 files over a network takes seconds.
const REST: u64 = 9;
/// The pause before what was refused is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// The pause before a file is tried again that could neither be read nor set aside.
const LONG: Duration = Duration::from_secs(60);
/// How often a file is read that the file system does not give, before it is set aside.
const TRIES: u32 = 3;

/// Opens the folders of the configuration.
///
/// # Errors
/// A ledger cannot be read, or the mission of a channel.
pub fn open(
    config: &StationConfig,
    context: &ChannelContext,
    door: &ChannelService,
) -> Result<Vec<FolderRunner>, Fault> {
    let ways = FolderWay::all(config);
    context.shared.board.folders(ways.iter().map(|(folder, way)| shown(folder, way)).collect());
    ways.into_iter()
        .map(|(folder, way)| {
            let outlet = Outlet::open(folder, &way, config, context, door)?;
            FolderRunner::open(folder, way, outlet, context)
        })
        .collect()
}

impl Outlet {
    fn open(
        folder: &FolderEntry,
        way: &FolderWay,
        config: &StationConfig,
        context: &ChannelContext,
        door: &ChannelService,
    ) -> Result<Self, Fault> {
        let channel = config
            .channel
            .iter()
            .position(|channel| Some(&channel.name) == folder.channel.as_ref());
        Ok(match (folder.r#as, channel) {
            (FolderUse::Contacts, Some(at)) => Self::Contacts(Box::new(CaptureOutlet::new(
                at,
                config.channel[at].clone(),
                &config.node.state,
                context.clone(),
            )?)),
            _ => Self::Files(TransferOutlet::new(way.place, door.clone(), context.shared.clone())),
        })
    }
}

impl FolderRunner {
    fn open(
        folder: &FolderEntry,
        way: FolderWay,
        outlet: Outlet,
        context: &ChannelContext,
    ) -> Result<Self, Fault> {
        let mut remembered = DropFolder::new(folder.quiet, folder.leaving());
        let opened = DropLedger::open(context.disk.clone(), &way.ledger, &mut remembered);
        let (ledger, damaged) = opened.map_err(|error| ledger_fault(folder, &error))?;
        way.begin(&remembered, folder.leaving());
        if damaged > 0 {
            tracing::warn!(
                folder = %folder.name,
                damaged,
                "lines of the folder's ledger are damaged: their files are handed over again"
            );
        }
        Ok(Self {
            place: DropPlace::new(folder.path.clone(), folder.selection()),
            config: folder.clone(),
            way,
            folder: remembered,
            ledger,
            outlet,
            shared: context.shared.clone(),
            clock: context.clock,
            hold_until: Instant::ZERO,
            tries: BTreeMap::new(),
        })
    }

    /// The flow of the contact that was open when the station ended.
    pub fn flow(&self) -> Option<FlowId> {
        match &self.outlet {
            Outlet::Contacts(outlet) => outlet.flow(),
            Outlet::Files(_) => None,
        }
    }

    /// Runs until the station ends.
    pub fn run(mut self) {
        while !self.shared.shutdown.is_requested() {
            let began = self.clock.now();
            match self.place.list(&mut self.folder, began) {
                Ok(ground) => {
                    self.listed(ground);
                    if self.clock.now() >= self.hold_until {
                        self.hand_over();
                    }
                }
                Err(error) => self.fail(AlarmKind::FolderUnlisted, &unlisted(&self.config, &error)),
            }
            let took = self.clock.now().since(began);
            self.rest(took);
        }
    }

    /// The folder was listed.
    fn listed(&mut self, ground: Ground) {
        if ground == Ground::Other {
            tracing::warn!(
                folder = %self.config.name,
                "another folder is at {}: a file system was mounted or unmounted, or the folder \
                was made anew; nothing is forgotten",
                self.config.path.display()
            );
        }
        self.shared.alarms.clear(AlarmKind::FolderUnlisted, self.subject());
        if self.folder.is_done() {
            self.calm();
            self.shared.alarms.clear(AlarmKind::FolderUnmoved, self.subject());
        }
        if !aside::has_failed(self.place.path()) {
            self.shared.alarms.clear(AlarmKind::FolderSetAside, self.subject());
        }
        if self.folder.is_full() {
            let reason = format!(
                "{} files that were handed over are still in it, no more can be remembered; remove \
                some, or write done = \"delete\" or \"move:DIR\"",
                self.folder.remembered()
            );
            self.shared.alarms.raise(AlarmKind::FolderFull, self.subject(), &reason);
        } else {
            self.shared.alarms.clear(AlarmKind::FolderFull, self.subject());
        }
        if self.clock.now() >= self.hold_until {
            self.show_state();
        }
    }

    fn show_state(&self) {
        let state = if self.folder.is_done() { FolderState::Done } else { FolderState::Waiting };
        self.show(|status| (status.state, status.reason) = (state, None));
    }

    /// Clears the alarms about files that could not be handed over.
    fn calm(&self) {
        self.shared.alarms.clear(AlarmKind::FolderUnread, self.subject());
        self.shared.alarms.clear(AlarmKind::FolderUnsent, self.subject());
    }

    /// Runs the errands that are due.
    fn hand_over(&mut self) {
        if !self.resume() {
            return;
        }
        let left = self.way.take_left();
        if !left.is_empty() {
            self.note(left);
        }
        let (mut batch, mut gone) = (Vec::new(), Vec::new());
        while !self.shared.shutdown.is_requested() {
            let now = self.clock.now();
            if now < self.hold_until {
                break;
            }
            match self.folder.next(now) {
                None => break,
                Some(DropErrand::Note(lines)) => self.note(lines),
                Some(DropErrand::Leave(file)) => gone.extend(self.leave(&file)),
                Some(DropErrand::Read(file)) => self.read(&file, &mut batch),
            }
            let bytes: u64 = batch.iter().map(|handed: &HandedFile| handed.file.size).sum();
            if batch.len() >= FILES_MAX || bytes >= BYTES_MAX {
                self.send(core::mem::take(&mut batch));
            }
            if gone.len() >= FILES_MAX {
                self.note(core::mem::take(&mut gone));
            }
        }
        if !gone.is_empty() {
            self.note(gone);
        }
        if !batch.is_empty() {
            self.send(batch);
        }
        if self.clock.now() >= self.hold_until {
            self.show_state();
        }
    }

    /// Hands over to its end what was being handed over when the station ended, or something
    /// refused it. Returns whether other files may follow.
    fn resume(&mut self) -> bool {
        if let Outlet::Contacts(outlet) = &mut self.outlet
            && outlet.flow().is_some()
            && self.folder.taken().next().is_none()
        {
            // Its ledger is lost: nothing says which file the contact is of.
            return outlet.abandon(&RelPath::here()) == CaptureOutcome::Captured;
        }
        let taken: Vec<_> = self.folder.taken().cloned().collect();
        for handed in taken {
            match self.place.find(&handed.file) {
                Ok(Some(name)) => self.capture(&handed, &name),
                Ok(None) => {
                    let name = &handed.file.name;
                    tracing::warn!(
                        folder = %self.config.name,
                        "{name} changed or was removed while it was read: its contact ends with \
                        what was read"
                    );
                    if let Outlet::Contacts(outlet) = &mut self.outlet
                        && outlet.abandon(name) == CaptureOutcome::Captured
                    {
                        self.note(vec![LedgerLine::Forgotten(name.clone())]);
                    }
                }
                Err(error) => self.fail(AlarmKind::FolderUnlisted, &unlisted(&self.config, &error)),
            }
        }
        self.folder.taken().next().is_none()
    }

    /// Reads a whole file, and takes it where its contents are new.
    fn read(&mut self, file: &DroppedFile, batch: &mut Vec<HandedFile>) {
        let hash = self.place.hash(file, || self.shared.shutdown.is_requested());
        let looked = hash.and_then(|hash| Ok((hash, self.place.look(&file.name)?)));
        let (hash, after) = match looked {
            Ok((Some(hash), after)) => (hash, after),
            // It has another length by now, or the station ends.
            Ok((None, _)) => return self.folder.changed(&file.name),
            Err(error) => return self.unreadable(file, &error),
        };
        self.tries.remove(&file.name);
        match self.folder.was_read(file, hash, after.as_ref()) {
            ReadOutcome::Changed => {}
            ReadOutcome::Known(lines) => self.note(lines),
            ReadOutcome::New(handed) => match &self.outlet {
                Outlet::Contacts(outlet) => {
                    // In this order: a position in one file must not be taken for one in another.
                    if let Err(error) = outlet.begin() {
                        return self
                            .fail(AlarmKind::FolderUnwritten, &unwritten(&self.config, &error));
                    }
                    let name = handed.file.name.clone();
                    self.note(vec![LedgerLine::Taken(handed.clone())]);
                    if self.folder.taken().next().is_some() {
                        self.capture(&handed, &name);
                    }
                }
                Outlet::Files(_) => {
                    // Not made durable: a file that is sent again finds itself at the destination.
                    self.folder.note(LedgerLine::Taken(handed.clone()));
                    batch.push(handed);
                }
            },
        }
    }

    /// A file cannot be read.
    fn unreadable(&mut self, file: &DroppedFile, error: &io::Error) {
        if error.kind() == io::ErrorKind::NotFound {
            return self.folder.changed(&file.name);
        }
        let tries = self.tries.entry(file.name.clone()).or_default();
        *tries += 1;
        let is_certain = error.kind() == io::ErrorKind::PermissionDenied;
        if is_certain || *tries >= TRIES {
            self.tries.remove(&file.name);
            let help = "give this user the right to read it, or check the file system";
            self.set_aside(&file.name, &format!("it cannot be read ({error}); {help}"));
        } else {
            let sentence = format!("{} cannot be read ({error}); it is tried again", file.name);
            self.fail(AlarmKind::FolderUnread, &sentence);
        }
    }

    /// Reads the file of which `handed` was taken, which is now called `name`, as contacts.
    fn capture(&mut self, handed: &HandedFile, name: &RelPath) {
        let Outlet::Contacts(outlet) = &mut self.outlet else { return };
        let path = self.place.file(name);
        self.shared.board.folder(self.way.index, |status| {
            (status.state, status.current) = (FolderState::Busy, Some(name.to_string()));
        });
        let outcome = outlet.capture(&handed.file.name, &path);
        self.show(|status| status.current = None);
        match outcome {
            CaptureOutcome::Stopped => {}
            CaptureOutcome::Captured => {
                self.tries.remove(&handed.file.name);
                self.done(vec![handed.clone()]);
            }
            CaptureOutcome::Nothing(reason) => {
                // Forgotten before it is moved: after a crash it is read and set aside again.
                self.note(vec![LedgerLine::Forgotten(handed.file.name.clone())]);
                self.set_aside(name, &reason);
            }
            CaptureOutcome::Broken(reason) => {
                let tries = self.tries.entry(handed.file.name.clone()).or_default();
                *tries += 1;
                // A folder that is gone comes back; a file that is there and cannot be read stays
                // so.
                let is_there = self.place.look(name).is_ok_and(|found| found.is_some());
                if *tries < TRIES || !is_there {
                    return self.fail(
                        AlarmKind::FolderUnread,
                        &format!("{name}: {reason}; it is tried again"),
                    );
                }
                self.tries.remove(&handed.file.name);
                if abandon(&mut self.outlet, &handed.file.name) {
                    self.done(vec![handed.clone()]);
                    self.set_aside(name, &format!("{reason}; its contact has what was read"));
                }
            }
        }
    }

    /// Sends some files to the destination.
    fn send(&mut self, files: Vec<HandedFile>) {
        let Outlet::Files(outlet) = &self.outlet else { return };
        self.show(|status| {
            status.state = FolderState::Busy;
            status.current = files.first().map(|handed| handed.file.name.to_string());
        });
        let (outcomes, refused, is_lost) =
            match outlet.send(&self.config, self.place.path(), &files) {
                TransferOutcome::Over(outcomes, refused) => (outcomes, refused, false),
                TransferOutcome::Lost(outcomes) => (outcomes, None, true),
            };
        self.show(|status| status.current = None);
        let (mut there, mut first) = (Vec::new(), refused);
        for handed in files {
            let name = &handed.file.name;
            match outcomes.get(name) {
                Some(FileOutcome::There) => there.push(handed),
                Some(FileOutcome::Unsendable(reason)) if self.way.is_alone() => {
                    self.folder.release(name);
                    self.set_aside(name, &format!("it cannot be sent: {reason}"));
                }
                // Another destination may take what this one cannot have: the file stays.
                Some(FileOutcome::Refused(reason) | FileOutcome::Unsendable(reason)) => {
                    self.folder.release(name);
                    first.get_or_insert_with(|| format!("{name}: {reason}"));
                }
                Some(FileOutcome::Changed) | None => self.folder.release(name),
            }
        }
        if !there.is_empty() {
            self.done(there);
        }
        match first {
            Some(reason) => {
                self.fail(AlarmKind::FolderUnsent, &format!("{reason}; it is tried again"));
                self.hold_until = self.clock.now() + LONG;
            }
            None if is_lost => self.hold_until = self.clock.now() + OFTEN,
            None => {}
        }
    }

    /// Files were handed over.
    fn done(&mut self, files: Vec<HandedFile>) {
        let (count, bytes) =
            (files.len() as u64, files.iter().map(|handed| handed.file.size).sum::<u64>());
        self.calm();
        self.note(files.into_iter().map(LedgerLine::Done).collect());
        self.show(|status| {
            status.handed += count;
            status.bytes += bytes;
        });
    }

    /// Makes lines durable.
    fn note(&mut self, lines: Vec<LedgerLine>) {
        match self.ledger.write(lines.clone(), &mut self.folder) {
            Ok(()) => {
                lines.iter().for_each(|line| self.way.noted(line));
                self.shared.alarms.clear(AlarmKind::FolderUnwritten, self.subject());
            }
            Err(error) => {
                let reason = unwritten(&self.config, &error);
                self.fail(AlarmKind::FolderUnwritten, &reason);
            }
        }
    }

    /// Moves a file to `failed` for this reason.
    fn set_aside(&mut self, name: &RelPath, reason: &str) {
        self.folder.postpone(name, self.clock.now() + LONG);
        match aside::set_aside(self.place.path(), name, reason, self.clock.utc()) {
            Ok(to) => {
                let reason = format!("{name}: {reason}; it is now {}", to.display());
                self.shared.alarms.clear(AlarmKind::FolderUnmoved, self.subject());
                self.shared.alarms.raise(AlarmKind::FolderSetAside, self.subject(), &reason);
                self.show(|status| status.set_aside += 1);
            }
            Err(error) => {
                let reason = format!(
                    "{name}: {reason}; it cannot be moved to {} ({error}), give this user the \
                    right to write there",
                    aside::FAILED
                );
                self.shared.alarms.raise(AlarmKind::FolderUnmoved, self.subject(), &reason);
            }
        }
    }

    /// Removes a file that was handed over, or moves it away. Returns the line for the ledger.
    fn leave(&mut self, file: &DroppedFile) -> Option<LedgerLine> {
        let subject = self.subject();
        let mut lacked = false;
        let gone = match self.place.look(&file.name) {
            Ok(Some(found)) if found.is_same_version(file) => {
                lacked = !self.way.may_leave(file);
                if lacked && !(self.way.gives_way(file) && self.place.is_nearly_full()) {
                    return None;
                }
                match aside::leave(self.place.path(), &file.name, &self.config.done) {
                    // Another destination's thread made it leave at the same time.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        lacked = false;
                        Ok(())
                    }
                    gone => gone,
                }
            }
            // Another file has come in its place.
            Ok(Some(_)) => return None,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        match gone {
            Ok(()) => {
                self.shared.alarms.clear(AlarmKind::FolderStaying, &subject);
                let lacking = self.way.left(file);
                lacking.into_iter().filter(|_| lacked).for_each(|index| self.gave_way(index));
                Some(LedgerLine::Forgotten(file.name.clone()))
            }
            Err(error) => {
                let help = match &self.config.done {
                    AfterHandover::Move(_) if error.kind() == io::ErrorKind::CrossesDevices => {
                        "write a folder on the same file system after move:"
                    }
                    _ => "give this user the right to write in the folder",
                };
                let reason = format!("{}: {error}; {help}", file.name);
                self.shared.alarms.raise(AlarmKind::FolderStaying, &subject, &reason);
                self.folder.postpone_leaving(self.clock.now() + LONG);
                None
            }
        }
    }

    /// A file left the folder before the destination of this index in the status had it.
    fn gave_way(&self, index: usize) {
        let mut shown = (String::new(), 0);
        self.shared.board.folder(index, |status| {
            status.gave_way += 1;
            shown = (status.to.clone().unwrap_or_default(), status.gave_way);
        });
        let (to, files) = shown;
        let reason = format!(
            "{files} files left the folder before it had them, because the file system is full; \
            restore the line, or make room there"
        );
        let subject = format!("folder {} to {to}", self.config.name);
        self.shared.alarms.raise(AlarmKind::FolderLacking, subject, &reason);
    }

    /// Raises an alarm of the folder, and pauses.
    fn fail(&mut self, kind: AlarmKind, sentence: &str) {
        self.shared.alarms.raise(kind, self.subject(), sentence);
        self.hold_until = self.clock.now() + RETRY;
        self.show(|status| {
            (status.state, status.reason) = (FolderState::Failed, Some(sentence.to_owned()));
        });
    }

    fn subject(&self) -> AlarmSubject {
        AlarmSubject::from(match &self.way.to {
            Some(to) => format!("folder {} to {to}", self.config.name),
            None => format!("folder {}", self.config.name),
        })
    }

    fn show(&self, change: impl FnOnce(&mut FolderStatus)) {
        let (waiting, remembered) = (self.folder.waiting(), self.folder.remembered());
        self.shared.board.folder(self.way.index, |status| {
            (status.waiting, status.remembered) = (waiting, remembered);
            change(status);
        });
    }

    /// Waits for the next listing, after one that took so long.
    fn rest(&mut self, took: Duration) {
        let least = (took * REST).max(OFTEN);
        let most = if self.folder.waiting() > 0 { self.config.quiet / 2 } else { SELDOM };
        let now = self.clock.now();
        let (soon, late) = (now + least, now + most.max(least).min(SELDOM.max(least)));
        while !self.shared.shutdown.is_requested() {
            let now = self.clock.now();
            if now >= late {
                return;
            }
            if now < soon {
                self.shared.shutdown.pause(soon.since(now).min(LOOK));
            } else if self.place.wait(late.since(now).min(LOOK)) {
                return;
            }
        }
    }
}

/// Ends the contact of a file that cannot be read on. Returns whether it has ended.
fn abandon(outlet: &mut Outlet, name: &RelPath) -> bool {
    match outlet {
        Outlet::Contacts(outlet) => outlet.abandon(name) == CaptureOutcome::Captured,
        Outlet::Files(_) => false,
    }
}
