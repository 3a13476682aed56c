//! The alarms of a part of a node: what an operator must act on now. Threads raise and clear them;
//! the node's own thread moves them on.

use crate::journal::EventSink;
use skyhaul_events::{
    AckError, Acknowledgement, AlarmKey, AlarmKind, AlarmNews, AlarmRegister, AlarmStatus,
    AlarmSubject, Moment,
};
use skyhaul_net::Clock;
use skyhaul_units::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The alarms of one part.
#[derive(Debug)]
pub struct Alarms {
    clock: Clock,
    register: Mutex<AlarmRegister>,
    events: EventSink,
}

impl Alarms {
    /// None, yet.
    pub fn new(clock: Clock, events: EventSink) -> Self {
        Self { clock, register: Mutex::default(), events }
    }

    /// Takes events of this part.
    pub const fn events(&self) -> &EventSink {
        &self.events
    }

    /// None, yet, of a part that tells nobody.
    #[cfg(test)]
    pub fn quiet(clock: Clock) -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self::new(clock, EventSink::default()))
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

    /// Notes who works on an alarm.
    ///
    /// # Errors
    /// It does not stand, or a text does not fit.
    pub fn acknowledge(&self, key: &AlarmKey, by: String, note: String) -> Result<(), AckError> {
        self.change(|register, at| {
            let said = Acknowledgement { by, note, at: at.utc.to_string() };
            register.acknowledge(key, said)
        })
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
