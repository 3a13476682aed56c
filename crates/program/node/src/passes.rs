//! Planned passes: a thread reads the files of the plans, and the thread of the looks compares them
//! with the contacts that came. What it finds are alarms and events.

mod pass_plan;

pub use pass_plan::PassPlanFile;

use crate::alarms::Alarms;
use crate::fault::Fault;
use crate::services;
use crate::status::{NodeStatus, PassStatus, seconds};
use skyhaul_config::PlanEntry;
use skyhaul_events::{AlarmKind, EventKind};
use skyhaul_passes::{PassBook, PassNews, PlannedPass, PlannedPasses, SeenContact};
use skyhaul_units::{Duration, Utc};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The planned passes of a node.
#[derive(Debug)]
pub struct PassWatch {
    alarms: Arc<Alarms>,
    book: Mutex<PassBook>,
    reader: Mutex<Option<PlanReader>>,
}

/// The thread that reads the files.
#[derive(Debug)]
struct PlanReader {
    entries: Vec<PlanEntry>,
    desk: Arc<PlanDesk>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread leaves for the looks.
#[derive(Debug, Default)]
struct PlanDesk {
    read: Mutex<ReadPlan>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct ReadPlan {
    /// A plan that nobody has taken yet.
    plan: Option<PlannedPasses>,
    is_ending: bool,
}

/// The files are looked at this often: a schedule changes a few times a day.
const LOOK: Duration = Duration::from_secs(2);
/// A lock that comes later than this is told while it lacks: antennas lock within seconds of the
/// horizon, and plans of low orbits are right to seconds.
const GRACE: Duration = Duration::from_secs(60);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PassWatch {
    /// Reads the plans of `entries`, and raises what lacks among `alarms`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(entries: &[PlanEntry], alarms: Arc<Alarms>) -> Result<Self, Fault> {
        let began = alarms.clock().utc();
        let watch = Self {
            alarms,
            book: Mutex::new(PassBook::new(began, GRACE)),
            reader: Mutex::default(),
        };
        watch.adopt(entries)?;
        Ok(watch)
    }

    /// Reads other plans from now on. Returns whether they are others.
    ///
    /// # Errors
    /// The system refuses a thread: no plan is read any more.
    pub fn adopt(&self, entries: &[PlanEntry]) -> Result<bool, Fault> {
        let mut reader = locked(&self.reader);
        if reader.as_ref().map_or(&[][..], |reader| &reader.entries) == entries {
            return Ok(false);
        }
        let before = reader.take().map_or_else(Vec::new, |reader| reader.entries.clone());
        for gone in &before {
            self.alarms.clear(AlarmKind::PassPlanUnread, subject(gone));
        }
        if entries.is_empty() {
            let mut book = locked(&self.book);
            book.adopt(PlannedPasses::default());
            self.tell_all(&mut book);
        } else {
            // What the passes of the former plan came to stays known until the new one is read.
            *reader = Some(PlanReader::start(entries, &self.alarms)?);
        }
        Ok(true)
    }

    /// What has become of the passes, as far as the contacts in `status` say.
    pub fn look(&self, status: &NodeStatus) -> Vec<PassStatus> {
        let reader = locked(&self.reader);
        let Some(reader) = reader.as_ref() else { return Vec::new() };
        let mut book = locked(&self.book);
        if let Some(plan) = locked(&reader.desk.read).plan.take() {
            book.adopt(plan);
        }
        let ids = contact_ids(status);
        let shown = book.look(self.alarms.clock().utc(), &seen(status, &ids));
        self.tell_all(&mut book);
        shown.into_iter().map(PassStatus::from).collect()
    }

    fn tell_all(&self, book: &mut PassBook) {
        while let Some(news) = book.poll() {
            self.tell(&news);
        }
    }

    fn tell(&self, news: &PassNews) {
        match news {
            PassNews::Due(pass) => {
                let sentence = format!("{} begins, until {}", subject_of(pass), seconds(pass.end));
                self.alarms.events().tell(EventKind::PassDue, subject_of(pass), sentence);
            }
            PassNews::NoLock(pass) => {
                let end = seconds(pass.end);
                let reason =
                    format!("no frame comes, until {end}: look at the antenna and the receiver");
                self.alarms.raise(AlarmKind::PassNoLock, subject_of(pass), &reason);
            }
            PassNews::Locked(pass) => {
                self.alarms.clear(AlarmKind::PassNoLock, subject_of(pass));
            }
            PassNews::Missed(pass) => {
                let end = seconds(pass.end);
                let reason = format!(
                    "no frame came until {end}: ask for the data by another pass or station"
                );
                let sentence = format!("{} missed: {reason}", subject_of(pass));
                // Before the alarm, which it explains.
                self.alarms.events().tell(EventKind::PassMissed, subject_of(pass), sentence);
                self.alarms.raise(AlarmKind::PassMissed, subject_of(pass), &reason);
            }
            PassNews::Found(pass) => {
                self.alarms.clear(AlarmKind::PassMissed, subject_of(pass));
            }
        }
    }
}

fn subject(entry: &PlanEntry) -> String {
    format!("plan {}", entry.path().display())
}

fn subject_of(pass: &PlannedPass) -> String {
    format!("pass {}, {}", pass.label(), seconds(pass.start))
}

/// The names of the contacts in a status.
fn contact_ids(status: &NodeStatus) -> Vec<String> {
    let captured = status.station.iter().flat_map(|station| {
        station.contacts.iter().map(|contact| format!("{}-{}", station.name, contact.flow))
    });
    let received = status.centre.iter().flat_map(|centre| &centre.contacts);
    captured.chain(received.map(|contact| contact.name())).collect()
}

/// The contacts in a status, with their names.
fn seen<'a>(status: &'a NodeStatus, ids: &'a [String]) -> Vec<SeenContact<'a>> {
    let time = |text: &Option<String>| text.as_deref().and_then(Utc::from_rfc3339);
    let captured = status.station.iter().flat_map(|station| {
        station.contacts.iter().map(|one| {
            (&*station.name, &*one.channel, &*one.mission, time(&one.opened), time(&one.closed))
        })
    });
    let received = status.centre.iter().flat_map(|centre| &centre.contacts).map(|one| {
        (&*one.station, &*one.channel, &*one.mission, time(&one.opened), time(&one.closed))
    });
    let all = ids.iter().zip(captured.chain(received));
    let seen = all.filter_map(|(id, (station, channel, mission, opened, closed))| {
        Some(SeenContact { id, station, channel, mission, opened: opened?, closed })
    });
    seen.collect()
}

impl PlanReader {
    fn start(entries: &[PlanEntry], alarms: &Arc<Alarms>) -> Result<Self, Fault> {
        let desk = Arc::<PlanDesk>::default();
        let files: Vec<_> = entries.iter().map(PassPlanFile::new).collect();
        let (own, alarms, of) = (desk.clone(), alarms.clone(), entries.to_vec());
        let thread = services::thread("plans", move || own.run(files, &of, &alarms))?;
        Ok(Self { entries: entries.to_vec(), desk, thread: Some(thread) })
    }
}

impl Drop for PlanReader {
    fn drop(&mut self) {
        locked(&self.desk.read).is_ending = true;
        self.desk.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was logged.
            let _ = thread.join();
        }
    }
}

impl PlanDesk {
    fn run(&self, mut files: Vec<PassPlanFile>, of: &[PlanEntry], alarms: &Alarms) {
        let mut is_first = true;
        loop {
            let now = alarms.clock().utc();
            let changed = files.iter_mut().filter_map(|file| file.look(now).then_some(())).count();
            for (file, entry) in files.iter().zip(of) {
                match file.fault() {
                    Some(fault) => {
                        let reason = format!("{fault}; {}", file.what_stays());
                        alarms.raise(AlarmKind::PassPlanUnread, subject(entry), &reason);
                    }
                    None => drop(alarms.clear(AlarmKind::PassPlanUnread, subject(entry))),
                }
            }
            let mut read = locked(&self.read);
            // The first one replaces what a former configuration planned, also where it is empty.
            if core::mem::take(&mut is_first) || changed > 0 {
                let plans = files.iter().filter_map(PassPlanFile::plan);
                read.plan = Some(plans.fold(PlannedPasses::default(), PlannedPasses::with));
            }
            if !read.is_ending {
                let waited = self.ended.wait_timeout(read, LOOK.to_std());
                read = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if read.is_ending {
                return;
            }
        }
    }
}
