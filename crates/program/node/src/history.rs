//! The history of the node: a thread makes samples of each look, and writes them once a minute.
//! Nobody waits for it: a look that it has no room for is left out of the history.

mod accounts;
mod files;
mod series;

use crate::alarms::Alarms;
use crate::centre::CentreShared;
use crate::fault::Fault;
use crate::looks::NodeLook;
use crate::services;
use accounts::AccountSeries;
use files::HistoryFiles;
use series::LookSeries;
use skyhaul_catalogue::{ItemForm, LatencyBudget};
use skyhaul_config::{BudgetEntry, HistoryEntry};
use skyhaul_events::AlarmKind;
use skyhaul_history::{HistoryBook, HistoryList, HistoryPage, HistoryQuery, HistoryRefusal};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The thread that keeps the history, until this is dropped.
#[derive(Debug)]
pub struct HistoryService {
    /// As it began.
    entry: HistoryEntry,
    desk: Arc<HistoryDesk>,
    /// Nothing is the end.
    looks: SyncSender<Option<Arc<NodeLook>>>,
    thread: Option<JoinHandle<()>>,
}

/// Answers queries, from any thread.
#[derive(Debug)]
pub struct HistoryDesk {
    clock: Clock,
    book: Mutex<HistoryBook>,
    /// None while they cannot be used.
    files: Mutex<Option<Arc<HistoryFiles>>>,
}

/// Of what a history is kept, and where.
pub struct HistoryPlace {
    /// The folder, which need not exist.
    pub folder: PathBuf,
    /// What receives, where a part does.
    pub centre: Option<Arc<CentreShared>>,
    /// Where it says that it cannot be written.
    pub alarms: Option<Arc<Alarms>>,
    /// By when products are to be handed over.
    pub budgets: Vec<LatencyBudget>,
}

/// Looks that wait for a disk that is slow.
const LOOKS_WAITING: usize = 8;
/// After files could not be used.
const RETRY: Duration = Duration::from_secs(30);
const SUBJECT: &str = "the history";

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A `[[budget]]`, as the latency account has it.
pub fn latency_budget(entry: &BudgetEntry) -> LatencyBudget {
    LatencyBudget {
        mission: entry.mission.as_ref().map(ToString::to_string),
        form: entry.kind.and_then(|kind| ItemForm::named(kind.name())),
        within: entry.within,
    }
}

/// What has to wait for a restart, at a node that runs with `before`.
pub fn waiting(before: Option<&HistoryEntry>, new: Option<&HistoryEntry>) -> Vec<String> {
    let waits = (before != new).then(|| "[history]".to_owned());
    waits.into_iter().collect()
}

impl HistoryService {
    /// Begins to keep it.
    ///
    /// # Errors
    /// The system refuses a thread. What is wrong with the files is an alarm.
    pub fn start(entry: &HistoryEntry, place: HistoryPlace, clock: Clock) -> Result<Self, Fault> {
        let desk = Arc::new(HistoryDesk {
            clock,
            book: Mutex::new(HistoryBook::new(entry.hours())),
            files: Mutex::default(),
        });
        let (sender, looks) = sync_channel(LOOKS_WAITING);
        let mut keeper = HistoryKeeper {
            desk: desk.clone(),
            accounts: AccountSeries::new(clock.utc(), place.budgets.clone()),
            look: LookSeries::default(),
            place,
            due: Instant::ZERO,
        };
        let thread = services::thread("history", move || keeper.run(&looks))?;
        Ok(Self { entry: entry.clone(), desk, looks: sender, thread: Some(thread) })
    }

    /// How long it keeps it.
    pub const fn entry(&self) -> &HistoryEntry {
        &self.entry
    }

    /// Answers queries.
    pub const fn desk(&self) -> &Arc<HistoryDesk> {
        &self.desk
    }

    /// Takes each look.
    pub fn taker(&self) -> impl Fn(&Arc<NodeLook>) + Send + 'static + use<> {
        let looks = self.looks.clone();
        move |look| {
            // A disk that holds up the thread costs the seconds meanwhile.
            let _ = looks.try_send(Some(look.clone()));
        }
    }
}

impl Drop for HistoryService {
    fn drop(&mut self) {
        // Who still looks does not keep the thread.
        let _ = self.looks.send(None);
        if let Some(thread) = self.thread.take() {
            // A panic was logged.
            let _ = thread.join();
        }
    }
}

impl HistoryDesk {
    /// The series.
    pub fn list(&self) -> HistoryList {
        locked(&self.book).list()
    }

    /// A series over time. It reads the disk.
    ///
    /// # Errors
    /// Why nothing can be said.
    pub fn page(&self, query: &HistoryQuery) -> Result<HistoryPage, HistoryRefusal> {
        let plan = locked(&self.book).plan(query, self.clock.utc())?;
        let files = locked(&self.files).clone();
        Ok(plan.finish(|file, offset, into| {
            files.as_ref().is_some_and(|files| files.read(file, offset, into).is_ok())
        }))
    }
}

/// What the thread works with.
struct HistoryKeeper {
    desk: Arc<HistoryDesk>,
    place: HistoryPlace,
    look: LookSeries,
    accounts: AccountSeries,
    /// When files that cannot be used are tried again.
    due: Instant,
}

impl HistoryKeeper {
    fn run(&mut self, looks: &Receiver<Option<Arc<NodeLook>>>) {
        while let Ok(Some(look)) = looks.recv() {
            self.add(&look);
        }
        locked(&self.desk.book).end();
        self.write();
    }

    fn add(&mut self, look: &NodeLook) {
        let mut samples = self.look.samples(look);
        if let Some(centre) = &self.place.centre {
            samples.extend(series::of_frames(centre.board.take_recent()));
            let read = || centre.deliveries().reader().map_err(|error| error.to_string());
            samples.extend(self.accounts.samples(look.taken, read));
        }
        // What came while there are no files is in no row: they may hold other series already.
        if self.open() {
            locked(&self.desk.book).add(look.taken, &samples);
            self.write();
        }
    }

    /// Whether the files can be used.
    fn open(&mut self) -> bool {
        if locked(&self.desk.files).is_some() {
            return true;
        }
        let now = self.desk.clock.now();
        if now < self.due {
            return false;
        }
        self.due = now + RETRY;
        let mut book = locked(&self.desk.book).clone();
        match HistoryFiles::open(&self.place.folder, &mut book, self.desk.clock.utc()) {
            Ok(files) => {
                *locked(&self.desk.book) = book;
                *locked(&self.desk.files) = Some(Arc::new(files));
                self.tell(None);
                true
            }
            Err(reason) => {
                self.tell(Some(&reason));
                false
            }
        }
    }

    /// Writes what is to be written.
    fn write(&self) {
        let Some(files) = locked(&self.desk.files).clone() else { return };
        loop {
            let Some(write) = locked(&self.desk.book).poll() else { return };
            match files.write(&write) {
                Ok(()) => {
                    locked(&self.desk.book).wrote(&write);
                    self.tell(None);
                }
                Err(error) => {
                    locked(&self.desk.book).failed(&write);
                    self.tell(Some(&format!("{error} at {}", files.folder().display())));
                    return;
                }
            }
        }
    }

    fn tell(&self, reason: Option<&str>) {
        let Some(alarms) = &self.place.alarms else { return };
        match reason {
            Some(reason) => alarms.raise(AlarmKind::HistoryStopped, SUBJECT, reason),
            None => drop(alarms.clear(AlarmKind::HistoryStopped, SUBJECT)),
        }
    }
}

#[cfg(test)]
mod tests;
