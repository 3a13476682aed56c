//! The alarms of a part of a node: what an operator must act on now. Threads raise and clear them;
//! the node's own thread moves them on.

mod record;

use crate::fault::Fault;
use crate::journal::EventSink;
use record::{AckRead, AckRecord};
use skyhaul_events::{
    Acknowledgement, AlarmKey, AlarmKind, AlarmNews, AlarmRegister, AlarmStatus, AlarmSubject,
    Moment,
};
use skyhaul_net::Clock;
use skyhaul_store::Disk;
use skyhaul_units::{Duration, Instant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use record::AlarmPart;
pub use record::check_acknowledgements;

/// The alarms of one part.
#[derive(Debug)]
pub struct Alarms {
    clock: Clock,
    register: Mutex<AlarmRegister>,
    events: EventSink,
    /// None: acknowledgements are not kept.
    kept: Option<Mutex<KeptAcks>>,
}

/// The acknowledgements on the disk. Its lock is taken before that of the register, and held while
/// the disk writes: data threads never take it.
#[derive(Debug)]
struct KeptAcks {
    record: AckRecord,
    /// The change of the register that the disk has; none: it has another one.
    change: Option<u64>,
    /// The disk refused: it is not tried before this time.
    again: Instant,
}

/// After a write that failed.
const RETRY: Duration = Duration::from_secs(5);

impl Alarms {
    /// None, yet; those of an earlier run are remembered with who worked on them.
    pub(crate) fn open(
        clock: Clock,
        events: EventSink,
        disk: Arc<dyn Disk>,
        part: AlarmPart,
    ) -> Self {
        let record = AckRecord::new(disk, part);
        let (read, file) = (record.read(), record.file());
        let kept = KeptAcks { record, change: Some(0), again: Instant::ZERO };
        let own = Self { kept: Some(Mutex::new(kept)), ..Self::new(clock, events) };
        match read {
            AckRead::Whole(notes) => own.change(|register, at| register.recall(at, notes)),
            AckRead::Damaged(reason) => {
                let reason =
                    format!("{file} in the state folder: {reason}; acknowledge again what stands");
                own.raise(AlarmKind::AlarmRecordDamaged, RECORD, &reason);
            }
        }
        own
    }

    /// None, yet; who works on them is not kept.
    pub(crate) fn new(clock: Clock, events: EventSink) -> Self {
        Self { clock, register: Mutex::default(), events, kept: None }
    }

    /// Takes events of this part.
    pub const fn events(&self) -> &EventSink {
        &self.events
    }

    /// None, yet, of a part that tells nobody.
    #[cfg(test)]
    pub fn quiet(clock: Clock) -> Arc<Self> {
        Arc::new(Self::new(clock, EventSink::default()))
    }

    /// The clock that they go by.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The condition holds; `reason` replaces the one before.
    pub fn raise(&self, kind: AlarmKind, subject: impl Into<AlarmSubject>, reason: &str) {
        self.change(|register, at| register.raise(at, kind, subject, reason));
    }

    /// The condition is over. Returns whether it held.
    pub fn clear(&self, kind: AlarmKind, subject: impl Into<AlarmSubject>) -> bool {
        let subject = subject.into();
        self.change(|register, at| register.clear(at, kind, &subject))
    }

    /// A session with this node is expected: without one it is silent after `patience`.
    pub fn expect(&self, node: &str, patience: Duration) {
        self.change(|register, at| register.expect(at, node, patience));
    }

    /// No session with this node is expected any more.
    pub fn forget(&self, node: &str) {
        self.change(|register, at| register.forget(at, node));
    }

    /// There is a session with this node.
    pub fn connected(&self, node: &str) {
        self.change(|register, at| register.connected(at, node));
    }

    /// The last session with this node has ended.
    pub fn lost(&self, node: &str) {
        self.change(|register, at| register.lost(at, node));
    }

    /// Moves all alarms on.
    pub fn tick(&self) {
        self.change(AlarmRegister::tick);
    }

    /// Notes who works on an alarm; it is durable before anybody sees it. Waits for the disk.
    ///
    /// # Errors
    /// It does not stand, a text does not fit, or the disk refuses.
    pub fn acknowledge(&self, key: &AlarmKey, by: String, note: String) -> Result<(), Fault> {
        let at = self.clock.utc().to_string();
        let said = Acknowledgement { by, note, at };
        let refused = |error: skyhaul_events::AckError| {
            let help = "see `skyhaul alarms list`";
            Fault::configuration(error.to_string(), "the status socket", help)
        };
        let Some(kept) = &self.kept else {
            return self.change(|register, _| register.acknowledge(key, said)).map_err(refused);
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (notes, before) = {
            let register = self.register();
            (register.with_acknowledged(key, &said).map_err(refused)?, register.ack_changes())
        };
        kept.record.write(notes).map_err(|error| {
            let what = format!("the acknowledgement cannot be kept ({error})");
            let help = "free space on the disk of the state folder, and give the order again";
            Fault::environment(what, kept.record.file(), help)
        })?;
        kept.change = None;
        let after = self
            .change(|register, _| register.acknowledge(key, said).map(|()| register.ack_changes()));
        let after = after.map_err(refused)?;
        // Where others ended meanwhile, the next look at it writes what is left.
        kept.change = (after == before + 1).then_some(after);
        self.clear(AlarmKind::AlarmRecordDamaged, RECORD);
        Ok(())
    }

    /// Brings the disk up to date: what is said of alarms that are over goes. Waits for the disk,
    /// unless an acknowledgement does so now.
    pub fn keep(&self) {
        let Some(Ok(mut kept)) = self.kept.as_ref().map(Mutex::try_lock) else { return };
        let now = self.clock.now();
        let (change, notes) = {
            let register = self.register();
            if kept.change == Some(register.ack_changes()) || now < kept.again {
                return;
            }
            (register.ack_changes(), register.acknowledged())
        };
        match kept.record.write(notes) {
            Ok(()) => {
                kept.change = Some(change);
                self.clear(AlarmKind::AlarmRecordDamaged, RECORD);
            }
            Err(error) => {
                kept.again = now + RETRY;
                tracing::warn!(
                    "{} cannot be written ({error}): free space on the disk of the state folder",
                    kept.record.file()
                );
            }
        }
    }

    /// Raises the alarm that events are not kept.
    pub fn watch_events(&self) {
        let lost = self.events.lost();
        if lost > 0 {
            let reason = format!(
                "{lost} found no room since the start; free space on the disk of the state folder"
            );
            self.raise(AlarmKind::EventsLost, "events", &reason);
        }
    }

    /// The alarms that stand.
    pub fn status(&self) -> Vec<AlarmStatus> {
        self.tick();
        self.register().standing()
    }

    /// The conditions that hold now, a sentence each: also those that are no alarms yet.
    #[cfg(test)]
    pub fn conditions(&self) -> Vec<String> {
        self.register().conditions()
    }

    fn register(&self) -> MutexGuard<'_, AlarmRegister> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes them, and says what became of each. The lock is held until then: what is said has
    /// the order of what happened.
    fn change<T>(&self, change: impl FnOnce(&mut AlarmRegister, Moment) -> T) -> T {
        let now = self.clock.now();
        let at = Moment { now, utc: self.clock.utc_of(now) };
        let mut register = self.register();
        let outcome = change(&mut register, at);
        while let Some(news) = register.poll() {
            say(&news);
            self.events.alarm(&news);
        }
        outcome
    }
}

/// Logs what became of an alarm.
fn say(news: &AlarmNews) {
    match news {
        AlarmNews::Raised(alarm) | AlarmNews::Changed(alarm) => {
            tracing::warn!("{}", alarm.sentence);
        }
        AlarmNews::Cleared(alarm) => {
            tracing::info!(kind = alarm.kind.name(), "{}: cleared", alarm.subject);
        }
        AlarmNews::Acknowledged(alarm) => {
            let said = alarm.acknowledged.as_ref();
            let (by, note) = said.map_or(("", ""), |said| (&said.by, &said.note));
            tracing::info!(kind = alarm.kind.name(), by, "{}: acknowledged: {note}", alarm.subject);
        }
        AlarmNews::LeftOut(count) => {
            tracing::warn!("{count} alarms are not kept: 1024 are there already");
        }
    }
}

/// The subject of the alarm about the acknowledgements.
const RECORD: &str = "the record of acknowledgements";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Responsible;
    use skyhaul_store::sim::SimDisk;
    use skyhaul_units::ByteCount;

    /// It is an alarm at once.
    const KIND: AlarmKind = AlarmKind::SpoolDamaged;

    fn opened(disk: &SimDisk) -> Alarms {
        let disk = Arc::new(disk.clone());
        Alarms::open(Clock::start(), EventSink::default(), disk, AlarmPart::Centre)
    }

    fn acknowledge(alarms: &Alarms, by: &str) -> Result<(), Fault> {
        let key = AlarmKey { kind: KIND, subject: "the spool".to_owned() };
        alarms.acknowledge(&key, by.to_owned(), "disk ordered".to_owned())
    }

    /// Who works on the alarm about the spool.
    fn who(alarms: &Alarms) -> Option<String> {
        let all = alarms.status().into_iter();
        all.filter(|alarm| alarm.kind == KIND).find_map(|alarm| Some(alarm.acknowledged?.by))
    }

    #[test]
    fn an_acknowledgement_is_there_after_a_crash_while_its_alarm_stands() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let alarms = opened(&disk);
        alarms.raise(KIND, "the spool", "1 block");
        acknowledge(&alarms, "kim").unwrap();
        drop(alarms);
        disk.crash(1);
        let alarms = opened(&disk);
        assert_eq!(who(&alarms), None, "it does not stand yet");
        alarms.raise(KIND, "the spool", "1 block");
        assert_eq!(who(&alarms).as_deref(), Some("kim"));
        drop(alarms);
        // Its condition is found to be over: what comes later is another alarm.
        let alarms = opened(&disk);
        alarms.clear(KIND, "the spool");
        alarms.keep();
        drop(alarms);
        let alarms = opened(&disk);
        alarms.raise(KIND, "the spool", "1 block");
        assert_eq!(who(&alarms), None);
    }

    #[test]
    fn what_the_disk_refuses_is_not_said_and_the_one_before_stays() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let alarms = opened(&disk);
        alarms.raise(KIND, "the spool", "1 block");
        acknowledge(&alarms, "kim").unwrap();
        disk.set_capacity(ByteCount::ZERO);
        let refused = acknowledge(&alarms, "ada").unwrap_err();
        assert_eq!(refused.who, Responsible::Environment, "{refused}");
        assert_eq!(who(&alarms).as_deref(), Some("kim"));
        drop(alarms);
        disk.crash(1);
        let alarms = opened(&disk);
        alarms.raise(KIND, "the spool", "1 block");
        assert_eq!(who(&alarms).as_deref(), Some("kim"));
    }

    #[test]
    fn a_damaged_record_is_an_alarm_and_costs_the_notes_alone() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let alarms = opened(&disk);
        alarms.raise(KIND, "the spool", "1 block");
        acknowledge(&alarms, "kim").unwrap();
        drop(alarms);
        let file = disk.open("acknowledged-centre.json").unwrap();
        file.truncate(ByteCount::new(70)).unwrap();
        let alarms = opened(&disk);
        alarms.raise(KIND, "the spool", "1 block");
        alarms.keep();
        let kinds = |alarms: &Alarms| -> Vec<AlarmKind> {
            alarms.status().iter().map(|alarm| alarm.kind).collect()
        };
        assert_eq!(kinds(&alarms), [AlarmKind::AlarmRecordDamaged, KIND]);
        assert_eq!(who(&alarms), None);
        acknowledge(&alarms, "ada").unwrap();
        drop(alarms);
        let alarms = opened(&disk);
        alarms.raise(KIND, "the spool", "1 block");
        assert_eq!((kinds(&alarms), who(&alarms)), (vec![KIND], Some("ada".to_owned())));
    }
}
