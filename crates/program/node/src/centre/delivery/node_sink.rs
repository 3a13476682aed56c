//! A folder of another node as a destination: its files go over the session with it, as those of
//! `skyhaul cp` do, and its report that a file is on its disk is the proof.
//!
//! The far end keeps the part of a file and the map of its chunks on its disk, so that this end
//! keeps no note of how far it was: whichever of the two ends restarts, a file goes on. Notices are
//! asked for over an application channel of their own, which is kept as long as there are some.

use super::published::published_hash;
use crate::file_doors::FileDoors;
use skyhaul_config::{Name, NodeFolder};
use skyhaul_dispatch::{DeliveryFailure, FailureKind, Proof};
use skyhaul_files::wire::{Naming, Options, TransferDirection, TransferHello};
use skyhaul_files::{RefusalReason, RelPath, TransferRefusal};
use skyhaul_files_io::{
    Cancel, Counters, Directory, EntryOutcome, Event, FileRequests, FileSource, TransferEnd,
    TransferReports, TransferTask,
};
use skyhaul_net::Clock;
use skyhaul_remote::{
    Abilities, GoOn, OutgoingFile, PartNote, PlaceProgress, Placing, PublishWay, RemoteEntry,
    RemoteFound, RemoteSink, ResumeNote, ResumeStep, StoreCheck,
};
use skyhaul_transport::ClassId;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

/// A folder of another node.
pub struct NodeSink {
    at: NodeFolder,
    /// The most that goes there over one connection.
    limit: Option<Rate>,
    /// The class of what goes there; empty is the first one.
    class: String,
    doors: Arc<FileDoors>,
    /// Kept while there are notices.
    requests: Option<FileRequests>,
}

/// How a transfer ended.
enum Ended {
    /// The caller stopped it.
    Stopped,
    /// So ended each entry.
    Over(Vec<EntryOutcome>),
}

/// A pipe that cannot be read: the far end forgets what it has of the file of this name.
struct Unreadable;

impl NodeSink {
    /// A folder of a node to which `doors` open channels.
    pub const fn new(at: NodeFolder, doors: Arc<FileDoors>) -> Self {
        Self { at, limit: None, class: String::new(), doors, requests: None }
    }

    /// No faster than this.
    pub fn limited(self, limit: Option<Rate>) -> Self {
        Self { limit, ..self }
    }

    /// Under the class of this name; none is the first one.
    pub fn of_class(self, class: Option<&Name>) -> Self {
        Self { class: class.map(Name::to_string).unwrap_or_default(), ..self }
    }

    /// A file or folder at the far node, by its name below the folder.
    fn path(&self, name: &str) -> Result<RelPath, DeliveryFailure> {
        let below = match (self.at.folder.as_str(), name) {
            ("", name) => name.to_owned(),
            (folder, "") => folder.to_owned(),
            (folder, name) => format!("{folder}/{name}"),
        };
        RelPath::new(below.as_bytes())
            .map_err(|_| self.failed(FailureKind::Refused, &format!("no file can be {name:?}")))
    }

    /// The folder at the far node of a file, and the file's name in it.
    fn split(&self, name: &str) -> Result<(RelPath, RelPath), DeliveryFailure> {
        let path = self.path(name)?;
        let parts =
            path.split().and_then(|(folder, last)| Some((folder, RelPath::new(last).ok()?)));
        parts.ok_or_else(|| self.failed(FailureKind::Refused, &format!("no file can be {name:?}")))
    }

    /// Asks about single files of the far node. Each wait is bounded.
    fn ask<T: Send>(
        &mut self,
        request: impl Fn(&FileRequests, &Cancel) -> Result<T, TransferEnd> + Sync,
    ) -> Result<T, DeliveryFailure> {
        match self.requests.take() {
            None => self.ask_over(None, &request),
            kept => match self.ask_over(kept, &request) {
                // It was of a session that has ended; there may be another one.
                Err(failure) if failure.kind == FailureKind::Line => self.ask_over(None, &request),
                answered => answered,
            },
        }
    }

    /// Asks over an application channel, which is kept unless the request fails.
    fn ask_over<T: Send>(
        &mut self,
        open: Option<FileRequests>,
        request: &(impl Fn(&FileRequests, &Cancel) -> Result<T, TransferEnd> + Sync),
    ) -> Result<T, DeliveryFailure> {
        let cancel = Cancel::default();
        let ((opened, is_open), (done, outcome)) = (sync_channel(1), sync_channel(1));
        let asked = std::thread::scope(|scope| {
            let (cancelled, doors, node) = (&cancel, &self.doors, self.at.node.as_str());
            let class = self.class.as_str();
            let worker = scope.spawn(move || {
                let requests = match open {
                    Some(requests) => requests,
                    None => {
                        let link = cancelled.or(doors.connect(node, class));
                        let link = link.ok_or(TransferEnd::Cancelled)?;
                        let link = link.map_err(|error| TransferEnd::Lost(error.to_string()))?;
                        FileRequests::begin(link, cancelled)?
                    }
                };
                // The other ends of these wait as long as this thread works.
                let _ = opened.send(());
                let answer = request(&requests, cancelled)?;
                let _ = done.send(());
                Ok((answer, requests))
            });
            // A worker that fails drops its ends: then nothing is waited for.
            let timed_out = |wait: RecvTimeoutError| wait == RecvTimeoutError::Timeout;
            let late = match is_open.recv_timeout(OPENS_WITHIN.to_std()) {
                Err(wait) if timed_out(wait) => Some(UNREACHED),
                _ => {
                    let answered = outcome.recv_timeout(ANSWERS_WITHIN.to_std());
                    answered
                        .is_err_and(timed_out)
                        .then_some("it does not answer; it is asked again")
                }
            };
            if late.is_some() {
                cancel.set();
            }
            (worker.join().expect("no thread of a request panics"), late)
        });
        match asked {
            (Ok((answer, requests)), _) => {
                self.requests = Some(requests);
                Ok(answer)
            }
            (Err(TransferEnd::Cancelled), Some(late)) => Err(self.failed(FailureKind::Line, late)),
            (Err(end), _) => Err(self.ended(end)),
        }
    }

    /// Why a transfer or request was not carried out.
    fn ended(&self, end: TransferEnd) -> DeliveryFailure {
        match end {
            TransferEnd::Refused(refused) => self.refused(&refused),
            TransferEnd::Here(refused) => {
                DeliveryFailure::new(FailureKind::Line, refused.to_string())
            }
            TransferEnd::Malformed(what) => {
                let what =
                    format!("protocol error ({what}); install the same version at both ends");
                self.failed(FailureKind::Line, &what)
            }
            TransferEnd::Lost(reason) => {
                self.failed(FailureKind::Line, &format!("the session was lost ({reason})"))
            }
            TransferEnd::Cancelled => {
                self.failed(FailureKind::Line, "the transfer was interrupted")
            }
        }
    }

    fn failed(&self, kind: FailureKind, what: &str) -> DeliveryFailure {
        DeliveryFailure::new(kind, format!("node {}: {what}", self.at.node))
    }

    fn hello(&self, target: RelPath, options: Options) -> TransferHello {
        TransferHello {
            direction: TransferDirection::Put,
            options: Options { priority: PRIORITY, limit: self.limit, ..options },
            class: String::new(),
            naming: Naming::Into,
            target,
            sources: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// Carries out a transfer. `watch` is asked several times a second, with the bytes that went
    /// out.
    fn transfer(
        &self,
        hello: TransferHello,
        sources: Vec<FileSource>,
        watch: &mut dyn FnMut(ByteCount) -> GoOn,
    ) -> Result<Ended, DeliveryFailure> {
        let (cancel, (events, told)) = (Cancel::default(), sync_channel(EVENTS));
        let (opened, is_open) = sync_channel(1);
        let counters = Arc::new(Counters::default());
        let reports = TransferReports { events, counters: counters.clone() };
        let task = TransferTask { hello, class: ClassId::default(), sources, into: None };
        let (ended, watched) = std::thread::scope(|scope| {
            let (cancelled, doors, node) = (&cancel, &self.doors, self.at.node.as_str());
            let class = self.class.as_str();
            let worker = scope.spawn(move || {
                let link = cancelled.or(doors.connect(node, class));
                let link = link.ok_or(TransferEnd::Cancelled)?;
                let link = link.map_err(|error| TransferEnd::Lost(error.to_string()))?;
                // The other end of this waits as long as this thread works.
                let _ = opened.send(());
                skyhaul_files_io::call(&link, task, &reports, cancelled)
            });
            let mut sent = || watch(ByteCount::new(counters.moved.load(Ordering::Relaxed)));
            let watched = attend(&told, &is_open, &cancel, &mut sent);
            (worker.join().expect("no thread of a transfer panics"), watched)
        });
        match (watched, ended) {
            (Attended { outcomes, stop: None }, Ok(())) => Ok(Ended::Over(outcomes)),
            (Attended { stop: Some(Stop::Asked), .. }, _) => Ok(Ended::Stopped),
            (Attended { stop: Some(Stop::Unreached), .. }, _) => {
                Err(self.failed(FailureKind::Line, UNREACHED))
            }
            (_, Err(end)) => Err(self.ended(end)),
        }
    }

    /// What the far node's refusal means.
    fn refused(&self, refused: &TransferRefusal) -> DeliveryFailure {
        let kind = match refused.reason {
            RefusalReason::Exists => FailureKind::Differs,
            RefusalReason::NoSpace => FailureKind::Full,
            RefusalReason::NotAllowed
            | RefusalReason::Outside
            | RefusalReason::Absent
            | RefusalReason::NoPermission
            | RefusalReason::ReadOnly => FailureKind::Access,
            RefusalReason::InTheWay
            | RefusalReason::Name
            | RefusalReason::Special
            | RefusalReason::TooMany => FailureKind::Refused,
            RefusalReason::Busy
            | RefusalReason::Changed
            | RefusalReason::Vanished
            | RefusalReason::Differs
            | RefusalReason::Version
            | RefusalReason::Failed => FailureKind::Line,
        };
        self.failed(kind, &refused.sentence)
    }

    /// Puts one source into a folder; none where it was stopped.
    fn put(
        &self,
        hello: TransferHello,
        source: FileSource,
        watch: &mut dyn FnMut(ByteCount) -> GoOn,
    ) -> Result<Option<EntryOutcome>, DeliveryFailure> {
        match self.transfer(hello, vec![source], watch)? {
            Ended::Stopped => Ok(None),
            Ended::Over(mut outcomes) => match outcomes.pop() {
                Some(EntryOutcome::Refused(refused)) => Err(self.refused(&refused)),
                Some(outcome) => Ok(Some(outcome)),
                None => Err(self.failed(FailureKind::Line, "it did not say what it has")),
            },
        }
    }
}

/// The published file, offered under its last name.
fn source_of(file: &OutgoingFile, last: RelPath) -> Result<FileSource, DeliveryFailure> {
    let unread = |what: String| {
        DeliveryFailure::new(FailureKind::Line, format!("{}: {what}", file.path.display()))
    };
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let place = Directory::open(folder)
        .map_err(|error| unread(format!("{error}; repair the folder, no data is lost")))?;
    let name = file.path.file_name().unwrap_or_default().as_encoded_bytes();
    let at = RelPath::new(name).map_err(|error| unread(error.to_string()))?;
    Ok(FileSource::Tree { place, at, name: last })
}

/// What was seen of a transfer.
struct Attended {
    outcomes: Vec<EntryOutcome>,
    stop: Option<Stop>,
}

/// Why a transfer was cancelled.
enum Stop {
    /// The caller wanted it.
    Asked,
    /// There was no session in time.
    Unreached,
}

/// Takes down what becomes of each entry until the transfer has ended.
fn attend(
    told: &Receiver<Event>,
    is_open: &Receiver<()>,
    cancel: &Cancel,
    watch: &mut dyn FnMut() -> GoOn,
) -> Attended {
    let (clock, mut waits) = (Clock::start(), true);
    let mut seen = Attended { outcomes: Vec::new(), stop: None };
    loop {
        match told.recv_timeout(LOOK.to_std()) {
            Ok(Event { fate, .. }) => seen.outcomes.push(fate),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return seen,
        }
        waits = waits && is_open.try_recv().is_err();
        let stop = match watch() {
            GoOn::Stop => Some(Stop::Asked),
            GoOn::Continue if waits && clock.now() > Instant::ZERO + OPENS_WITHIN => {
                Some(Stop::Unreached)
            }
            GoOn::Continue => None,
        };
        if let (None, Some(stop)) = (&seen.stop, stop) {
            seen.stop = Some(stop);
            cancel.set();
        }
    }
}

impl RemoteSink for NodeSink {
    /// Asks whether this node may write there; nothing is written.
    fn abilities(&mut self) -> Result<Abilities, DeliveryFailure> {
        let folder = RelPath::new(self.at.folder.as_str().as_bytes())
            .map_err(|error| self.failed(FailureKind::Refused, &error.to_string()))?;
        let hello = self.hello(folder, Options { dry_run: true, ..Options::default() });
        match self.transfer(hello, Vec::new(), &mut |_| GoOn::Continue)? {
            Ended::Stopped => Err(self.failed(FailureKind::Line, "the trial was interrupted")),
            Ended::Over(_) => Ok(Abilities {
                server: format!("node {}", self.at.node),
                publish: PublishWay::Rename,
                says_durable: true,
                resumes: true,
                refuses_existing: true,
                check: StoreCheck::Blake3,
                replaces: Some(true),
                free: None,
            }),
        }
    }

    /// A file of the same length counts as absent: only [`RemoteSink::place`] compares contents.
    fn look(&mut self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure> {
        let (folder, last) = self.split(&file.name)?;
        let options = Options { dry_run: true, keep: true, ..Options::default() };
        let source = source_of(file, last)?;
        match self.put(self.hello(folder, options), source, &mut |_| GoOn::Continue) {
            Err(DeliveryFailure { kind: FailureKind::Differs, .. }) => Ok(RemoteFound::Differs),
            Err(failure) => Err(failure),
            Ok(_) => Ok(RemoteFound::Absent),
        }
    }

    fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure> {
        let (folder, last) = self.split(&file.name)?;
        let mut watch = |sent| progress(PlaceProgress::Sent(sent));
        let Some(hash) = published_hash(file, &mut watch)? else { return Ok(Placing::Stopped) };
        if *resume == ResumeNote::Nothing {
            // From now on there may be a part there, which a delivery that is given up removes.
            let note = PartNote { sha256: file.sha256, bytes: 0 };
            let step = ResumeStep::Whole(ResumeNote::Part(note));
            if progress(PlaceProgress::Reached(&step)) == GoOn::Stop {
                return Ok(Placing::Stopped);
            }
        }
        let hello = self.hello(folder, Options { keep: true, ..Options::default() });
        let mut watch = |sent| progress(PlaceProgress::Sent(sent));
        match self.put(hello, source_of(file, last)?, &mut watch)? {
            None => Ok(Placing::Stopped),
            Some(EntryOutcome::Copied(copied)) if copied == hash => {
                Ok(Placing::Placed(Proof::Receipt))
            }
            Some(EntryOutcome::Unchanged | EntryOutcome::Rights) => {
                Ok(Placing::Placed(Proof::Receipt))
            }
            Some(EntryOutcome::Failed(refused)) if refused.reason == RefusalReason::Exists => {
                Err(self.refused(&refused))
            }
            Some(EntryOutcome::Failed(refused)) => {
                Err(DeliveryFailure::new(FailureKind::Line, refused.to_string()))
            }
            Some(_) => {
                let path = file.path.display();
                let what = format!(
                    "the published file {path} changed while it was sent; restore it, or publish \
                     it anew"
                );
                Err(DeliveryFailure::new(FailureKind::Source, what))
            }
        }
    }

    fn discard(&mut self, file: &OutgoingFile, _: &ResumeNote) -> Result<(), DeliveryFailure> {
        let (folder, last) = self.split(&file.name)?;
        let source = FileSource::Pipe(last, Some(Box::new(Unreadable)));
        let hello = self.hello(folder, Options::default());
        self.put(hello, source, &mut |_| GoOn::Continue).map(drop)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        let (folder, last) = self.split(name)?;
        let source = FileSource::Pipe(last, Some(Box::new(Cursor::new(bytes.to_owned()))));
        let hello = self.hello(folder, Options::default());
        match self.put(hello, source, &mut |_| GoOn::Continue)? {
            Some(EntryOutcome::Copied(_)) => Ok(()),
            Some(EntryOutcome::Failed(refused)) => Err(self.refused(&refused)),
            _ => {
                Err(self.failed(FailureKind::Line, &format!("it does not say that it has {name}")))
            }
        }
    }

    fn list(&mut self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure> {
        let folder = self.path(folder)?;
        let files = self.ask(|requests, cancel| requests.list(&folder, cancel))?;
        let entry = |(size, name)| {
            let name = String::from_utf8(name).ok()?;
            Some(RemoteEntry { name, size: ByteCount::new(size) })
        };
        let mut found: Vec<RemoteEntry> = files.into_iter().filter_map(entry).collect();
        found.sort();
        if found.is_empty() {
            self.requests = None;
        }
        Ok(found)
    }

    fn read(&mut self, name: &str, most: ByteCount) -> Result<Option<Vec<u8>>, DeliveryFailure> {
        let path = self.path(name)?;
        self.ask(|requests, cancel| requests.read(&path, most.as_u64(), cancel))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        self.ask(|requests, cancel| requests.rename(&from, &to, cancel))
    }
}

impl Read for Unreadable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the delivery was given up"))
    }
}

/// Behind live data of contacts, as the files of drop folders.
const PRIORITY: u8 = 7;
/// Between two looks whether the transfer goes on.
const LOOK: Duration = Duration::from_millis(200);
/// A session that is not there by then is one that is not: the destination is tried again later.
const OPENS_WITHIN: Duration = Duration::from_secs(5);
/// An answer has 1 MiB at most: twenty seconds are a line of 0.5 Mbit/s.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
/// Why nothing is sent.
const UNREACHED: &str = "there is no session with it; what waits goes as soon as there is one";
/// Events that wait: a transfer is of one file.
const EVENTS: usize = 16;
