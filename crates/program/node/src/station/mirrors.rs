//! Mirrors: folders of centres that are kept equal to folders here, each by a thread of its own
//! over an application channel of the session.

use super::shared::StationShared;
use crate::status::{MirrorState, MirrorStatus};
use skyhaul_channels_io::ChannelService;
use skyhaul_config::{MirrorEntry, StationConfig};
use skyhaul_events::{AlarmKind, AlarmSubject};
use skyhaul_files_io::{
    Cancel, Changes, Counters, EntryOutcome, Event, TransferEnd, TransferReports, TransferTask,
    TreeWatch,
};
use skyhaul_net::Clock;
use skyhaul_transport::ClassId;
use skyhaul_units::{Duration, Instant};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

/// Keeps one folder of the centre equal to one here.
#[derive(Debug)]
pub struct Mirror {
    config: MirrorEntry,
    way: MirrorWay,
    door: ChannelService,
    shared: Arc<StationShared>,
    clock: Clock,
}

/// Where one mirror goes.
#[derive(Debug, Clone)]
pub struct MirrorWay {
    /// Its index in the status.
    pub index: usize,
    /// The index of the destination.
    pub place: usize,
    /// The name of the destination, where the configuration names it.
    pub to: Option<String>,
}

/// Why a pass failed.
#[derive(Debug)]
enum Trouble {
    /// The session has ended: the pass continues over the next one.
    Lost,
    /// For this reason.
    Failed(String),
}

/// Between two looks for changes, and two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(200);
/// A folder that never stops changing is copied after this many looks: 2 s.
const LOOKS_MAX: usize = 10;
/// The pause before files that could not be copied are tried again.
const RETRY: Duration = Duration::from_secs(60);
/// Before the next application channel, where the session was lost.
const PAUSE: Duration = Duration::from_millis(500);
/// Events that wait to be counted.
const EVENTS: usize = 1_024;

impl Mirror {
    /// The mirror to this destination.
    pub const fn new(
        config: MirrorEntry,
        way: MirrorWay,
        door: ChannelService,
        shared: Arc<StationShared>,
        clock: Clock,
    ) -> Self {
        Self { config, way, door, shared, clock }
    }

    /// Runs until the station ends; a mirror that does not watch, until one pass is complete.
    pub fn run(self) {
        while !self.shared.shutdown.is_requested() {
            // Watched before the first pass: no change between the two is missed.
            let watch = self.config.watch.then(|| TreeWatch::new(&self.config.source)).transpose();
            match watch {
                Ok(watch) => {
                    if self.follow(watch) {
                        return;
                    }
                }
                Err(error) => {
                    let help = "make the folder, or raise fs.inotify.max_user_watches above the \
                               number of folders";
                    self.failed(&format!("it cannot be watched ({error}); {help}"));
                }
            }
            self.rest(RETRY);
        }
    }

    /// Copies changes. Returns whether the mirror is done.
    fn follow(&self, mut watch: Option<TreeWatch>) -> bool {
        let mut changes = Changes::All;
        while !self.shared.shutdown.is_requested() {
            let retry = match self.pass(&changes) {
                Ok(()) => None,
                Err(Trouble::Lost) => {
                    self.show(|status| status.state = MirrorState::Waiting);
                    self.shared.shutdown.pause(PAUSE);
                    continue;
                }
                Err(Trouble::Failed(sentence)) => {
                    self.failed(&sentence);
                    Some(self.clock.now() + RETRY)
                }
            };
            changes = match (&mut watch, retry) {
                (Some(watch), _) => match self.wait_for_changes(watch, retry) {
                    Some(changes) => changes,
                    None => return false,
                },
                (None, Some(_)) => {
                    self.rest(RETRY);
                    Changes::All
                }
                (None, None) => return true,
            };
        }
        true
    }

    /// The changes, once there are some; everything, where a former pass is to be tried again.
    /// `None` where changes cannot be watched any more.
    fn wait_for_changes(&self, watch: &mut TreeWatch, retry: Option<Instant>) -> Option<Changes> {
        while !self.shared.shutdown.is_requested() {
            match self.quiet(watch) {
                Ok(Changes::None) if retry.is_some_and(|at| self.clock.now() >= at) => {
                    return Some(Changes::All);
                }
                Ok(Changes::None) => {}
                // Files that failed before are tried with the changes.
                Ok(_) if retry.is_some() => return Some(Changes::All),
                Ok(found) => return Some(found),
                Err(error) => {
                    self.failed(&format!("it can no longer be watched ({error})"));
                    return None;
                }
            }
        }
        Some(Changes::None)
    }

    /// The changes, once nothing has changed for a moment: a program that writes one file often
    /// writes the next one too.
    fn quiet(&self, watch: &mut TreeWatch) -> std::io::Result<Changes> {
        let mut all = Changes::None;
        for _ in 0..LOOKS_MAX {
            self.shared.shutdown.pause(LOOK);
            let found = watch.changes()?;
            if found == Changes::None || self.shared.shutdown.is_requested() {
                break;
            }
            all = all.and(found);
        }
        Ok(all)
    }

    /// One pass over the changes, once the line is open.
    fn pass(&self, changes: &Changes) -> Result<(), Trouble> {
        let cancel = Cancel::default();
        let (events, told) = sync_channel(EVENTS);
        let reports = TransferReports { events, counters: Arc::new(Counters::default()) };
        std::thread::scope(|scope| {
            let cancelled = &cancel;
            let worker = scope.spawn(move || self.carry(changes, &reports, cancelled));
            let failures = self.count(&told, &cancel);
            worker.join().expect("no thread of a transfer panics")?;
            match failures {
                (0, _) => {
                    self.shared.alarms.clear(AlarmKind::MirrorFailed, self.subject());
                    self.show(|status| {
                        (status.state, status.passes, status.reason) =
                            (MirrorState::Done, status.passes + 1, None);
                    });
                    Ok(())
                }
                (count, first) => {
                    Err(Trouble::Failed(format!("{count} files not copied; the first: {first}")))
                }
            }
        })
    }

    fn carry(
        &self,
        changes: &Changes,
        reports: &TransferReports,
        cancel: &Cancel,
    ) -> Result<(), Trouble> {
        let hello = self.config.hello();
        let link = cancel.or(self.door.connect(self.way.place, &hello.class));
        let Some(Ok(link)) = link else { return Err(Trouble::Lost) };
        self.show(|status| status.state = MirrorState::Copying);
        let source = &self.config.source;
        let sources = changes.sources(source).map_err(|error| {
            Trouble::Failed(format!("{} cannot be copied: {error}", source.display()))
        })?;
        // The application channel names the class: a reload may give it another number.
        let ended = skyhaul_files_io::call(
            &link,
            TransferTask { hello, class: ClassId::default(), sources, into: None },
            reports,
            cancel,
        );
        ended.map_err(|end| match end {
            TransferEnd::Lost(_) | TransferEnd::Cancelled => Trouble::Lost,
            TransferEnd::Refused(refused) => {
                Trouble::Failed(format!("the centre refuses: {refused}"))
            }
            TransferEnd::Here(refused) => Trouble::Failed(refused.to_string()),
            TransferEnd::Malformed(what) => {
                Trouble::Failed(format!("protocol error from the centre ({what})"))
            }
        })
    }

    /// Counts events until the transfer has ended; cancels it where the station ends. Returns the
    /// failures, and the first one.
    fn count(&self, told: &Receiver<Event>, cancel: &Cancel) -> (u64, String) {
        let mut failures = (0, String::new());
        loop {
            match told.recv_timeout(LOOK.to_std()) {
                Ok(Event { path, bytes, fate }) => match fate {
                    EntryOutcome::Copied(_) => self.show(|status| {
                        status.copied += 1;
                        status.bytes += bytes;
                    }),
                    EntryOutcome::Removed => self.show(|status| status.removed += 1),
                    EntryOutcome::Failed(refusal) | EntryOutcome::Refused(refusal) => {
                        if failures.0 == 0 {
                            failures.1 = format!("{path}: {refusal}");
                        }
                        failures.0 += 1;
                    }
                    EntryOutcome::Unchanged
                    | EntryOutcome::Rights
                    | EntryOutcome::Made
                    | EntryOutcome::Wanted => {}
                },
                Err(RecvTimeoutError::Timeout) if self.shared.shutdown.is_requested() => {
                    cancel.set();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return failures,
            }
        }
    }

    fn failed(&self, sentence: &str) {
        self.shared.alarms.raise(AlarmKind::MirrorFailed, self.subject(), sentence);
        self.show(|status| {
            (status.state, status.reason) = (MirrorState::Failed, Some(sentence.to_owned()));
        });
    }

    /// The subject of its alarm.
    fn subject(&self) -> AlarmSubject {
        self.shared.behind(self.way.to.as_deref(), self.name())
    }

    fn name(&self) -> String {
        let source = self.config.source.display();
        match &self.way.to {
            Some(to) => format!("the mirror of {source} to {to}"),
            None => format!("the mirror of {source}"),
        }
    }

    fn show(&self, change: impl FnOnce(&mut MirrorStatus)) {
        self.shared.board.mirror(self.way.index, change);
    }

    /// Waits for so long, or until the station ends.
    fn rest(&self, span: Duration) {
        let until = self.clock.now() + span;
        while self.clock.now() < until && !self.shared.shutdown.is_requested() {
            self.shared.shutdown.pause(LOOK);
        }
    }
}

/// The ways of the mirrors of a configuration: one for each destination of each.
pub fn ways(config: &StationConfig) -> Vec<(&MirrorEntry, MirrorWay)> {
    let mut found = Vec::new();
    for mirror in &config.folders.mirrored {
        for place in mirror.destinations(&config.destinations) {
            let name = config.destinations[place].name().to_owned();
            let to = mirror.to.is_some().then_some(name);
            found.push((mirror, MirrorWay { index: found.len(), place, to }));
        }
    }
    found
}

/// The status of a mirror that has done nothing yet.
pub fn shown(config: &MirrorEntry, way: &MirrorWay) -> MirrorStatus {
    let (source, into) = (config.source.display().to_string(), config.into.0.to_string());
    MirrorStatus { source, into, to: way.to.clone(), ..MirrorStatus::default() }
}
