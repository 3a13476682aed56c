//! Alarms as state machines, one for each kind and subject.
//!
//! ```text
//!          raise            held on             clear            held off
//! (none) ────────► pending ─────────► standing ───────► ending ──────────► (none), cleared
//!                    │ clear            ▲                  │ raise
//!                    ▼                  └──────────────────┘
//!                  (none)
//! ```
//!
//! A standing alarm is announced unless another one explains it: an alarm about a node that is
//! silent is not announced while that lasts. While a node is away and not yet silent, its pending
//! alarms wait until that is decided.

use crate::event::Severity;
use crate::kind::{AlarmKind, HOLD_OFF};
use crate::moment::Moment;
use crate::silence::Silence;
use serde::{Deserialize, Serialize};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// What an alarm is about, and the node whose silence explains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmSubject {
    name: String,
    node: Option<String>,
}

impl AlarmSubject {
    /// A subject that is not to be judged while there is no session with `node`.
    #[must_use]
    pub fn behind(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }
}

impl From<&str> for AlarmSubject {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), node: None }
    }
}

impl From<String> for AlarmSubject {
    fn from(name: String) -> Self {
        Self { name, node: None }
    }
}

impl From<&String> for AlarmSubject {
    fn from(name: &String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<&Self> for AlarmSubject {
    fn from(subject: &Self) -> Self {
        subject.clone()
    }
}

/// What identifies an alarm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AlarmKey {
    /// What it is about.
    pub kind: AlarmKind,
    /// What has it.
    pub subject: String,
}

/// Who works on an alarm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The name.
    pub by: String,
    /// What the person says about it.
    pub note: String,
    /// When (UTC).
    pub at: String,
}

/// An alarm as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmStatus {
    /// What it is about.
    pub kind: AlarmKind,
    /// What has it.
    pub subject: String,
    /// The newest reason.
    pub reason: String,
    /// All of it as a sentence.
    pub sentence: String,
    /// How bad it is.
    pub severity: Severity,
    /// When its condition began (UTC).
    pub since: String,
    /// The alarm that explains it.
    pub caused_by: Option<AlarmKey>,
    /// Who works on it.
    pub acknowledged: Option<Acknowledgement>,
}

/// What became of an alarm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlarmNews {
    /// It stands, and nothing else explains it.
    Raised(AlarmStatus),
    /// It has another reason.
    Changed(AlarmStatus),
    /// It stands no more.
    Cleared(AlarmStatus),
    /// Somebody works on it.
    Acknowledged(AlarmStatus),
    /// So many alarms found no room.
    LeftOut(u64),
}

/// Why an alarm cannot be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// It does not stand.
    #[error("no alarm `{}` about `{}` stands", .0.kind, .0.subject)]
    Unknown(AlarmKey),
    /// The name is empty, or a text is too long.
    #[error("the name has 1 to 100 bytes, the note up to 1000")]
    Text,
}

/// All alarms of a part of a node.
#[derive(Debug, Default)]
pub struct AlarmRegister {
    alarms: BTreeMap<AlarmKey, Alarm>,
    silence: Silence,
    news: VecDeque<AlarmNews>,
    left_out: u64,
    recalled: Recalled,
    /// Changes of who works on which alarm.
    ack_changes: u64,
}

/// Who worked on alarms before the node was started again. Each counts when its alarm stands again.
#[derive(Debug, Default)]
struct Recalled {
    notes: BTreeMap<AlarmKey, Acknowledgement>,
    until: Option<Instant>,
}

#[derive(Debug)]
struct Alarm {
    reason: String,
    /// The node whose silence explains it.
    node: Option<String>,
    since: Moment,
    phase: AlarmPhase,
    is_announced: bool,
    acknowledged: Option<Acknowledgement>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlarmPhase {
    /// The condition holds, and is not an alarm yet.
    Pending,
    /// It is an alarm.
    Standing,
    /// It is one until its condition has been over for a while.
    Ending(Instant),
}

/// More alarms are counted and not kept: nobody reads a thousand.
const ALARMS_MAX: usize = 1_024;
/// News that nobody took; the oldest go first.
const NEWS_MAX: usize = 4_096;
/// An alarm that stood when the node ended stands again within this time of its start, or is over.
/// A node may be silent later: it is decided then.
const RECALLED_FOR: Duration = Duration::from_secs(3_600);
const NAME_MAX: usize = 100;
const NOTE_MAX: usize = 1_000;

impl AlarmRegister {
    /// The condition holds; `reason` replaces the one before.
    pub fn raise(
        &mut self,
        at: Moment,
        kind: AlarmKind,
        subject: impl Into<AlarmSubject>,
        reason: &str,
    ) {
        let AlarmSubject { name, node } = subject.into();
        let key = AlarmKey { kind, subject: name };
        if let Some(alarm) = self.alarms.get_mut(&key) {
            if let AlarmPhase::Ending(_) = alarm.phase {
                alarm.phase = AlarmPhase::Standing;
            }
            if alarm.reason != reason {
                reason.clone_into(&mut alarm.reason);
                if alarm.is_announced {
                    self.tell(&key, AlarmNews::Changed);
                }
            }
        } else if self.alarms.len() < ALARMS_MAX {
            let alarm = Alarm {
                reason: reason.to_owned(),
                node,
                since: at,
                phase: AlarmPhase::Pending,
                is_announced: false,
                acknowledged: None,
            };
            self.alarms.insert(key.clone(), alarm);
        } else {
            self.left_out += 1;
            if self.left_out.is_power_of_two() {
                self.push(AlarmNews::LeftOut(self.left_out));
            }
        }
        self.step(at, &key);
    }

    /// The condition is over. Returns whether it held.
    pub fn clear(&mut self, at: Moment, kind: AlarmKind, subject: &AlarmSubject) -> bool {
        let key = AlarmKey { kind, subject: subject.name.clone() };
        if self.recalled.notes.remove(&key).is_some() {
            self.ack_changes += 1;
        }
        let Some(alarm) = self.alarms.get_mut(&key) else { return false };
        match alarm.phase {
            AlarmPhase::Pending => drop(self.alarms.remove(&key)),
            AlarmPhase::Standing => alarm.phase = AlarmPhase::Ending(at.now),
            AlarmPhase::Ending(_) => return false,
        }
        true
    }

    /// Whether the condition holds now, whether it is an alarm yet or not.
    pub fn holds(&self, kind: AlarmKind, subject: &AlarmSubject) -> bool {
        let key = AlarmKey { kind, subject: subject.name.clone() };
        let phase = self.alarms.get(&key).map(|alarm| alarm.phase);
        matches!(phase, Some(AlarmPhase::Pending | AlarmPhase::Standing))
    }

    /// A session with this node is expected from now on: without one it is silent after `patience`.
    pub fn expect(&mut self, at: Moment, node: &str, patience: Duration) {
        self.silence.expect(at, node, patience);
    }

    /// No session with this node is expected any more.
    pub fn forget(&mut self, at: Moment, node: &str) {
        self.silence.forget(node);
        self.clear(at, AlarmKind::PeerSilent, &about(node));
    }

    /// There is a session with this node.
    pub fn connected(&mut self, at: Moment, node: &str) {
        self.silence.connected(node);
        self.clear(at, AlarmKind::PeerSilent, &about(node));
    }

    /// The last session with this node has ended.
    pub fn lost(&mut self, at: Moment, node: &str) {
        self.silence.lost(at, node);
    }

    /// Remembers who worked on alarms before the node was started. What is said of one counts when
    /// it stands again, and goes when its condition is found to be over, or after an hour.
    pub fn recall(
        &mut self,
        at: Moment,
        notes: impl IntoIterator<Item = (AlarmKey, Acknowledgement)>,
    ) {
        let notes = notes.into_iter().take(ALARMS_MAX).collect();
        self.recalled = Recalled { notes, until: Some(at.now + RECALLED_FOR) };
    }

    /// Forgets what was said of alarms that did not come again.
    fn forget_recalled(&mut self, at: Moment) {
        if self.recalled.until.is_none_or(|until| at.now < until) {
            return;
        }
        let before = self.recalled.notes.len();
        let silence = &self.silence;
        self.recalled.notes.retain(|key, _| {
            let node = key.subject.strip_prefix(NODE);
            key.kind == AlarmKind::PeerSilent && node.is_some_and(|node| silence.is_away(node))
        });
        self.ack_changes += (before - self.recalled.notes.len()) as u64;
        if self.recalled.notes.is_empty() {
            self.recalled.until = None;
        }
    }

    /// Moves every alarm on as far as the time says.
    pub fn tick(&mut self, at: Moment) {
        self.forget_recalled(at);
        for (node, since) in self.silence.silent(at) {
            if !self.holds(AlarmKind::PeerSilent, &about(&node)) {
                let reason = format!(
                    "no session with it since {}; see whether it runs, and the line to it",
                    since.utc
                );
                self.raise(at, AlarmKind::PeerSilent, about(&node), &reason);
            }
        }
        let keys: Vec<AlarmKey> = self.alarms.keys().cloned().collect();
        // What explains others comes first.
        let (causes, others): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| key.kind == AlarmKind::PeerSilent);
        causes.iter().chain(&others).for_each(|key| self.step(at, key));
    }

    /// Moves one alarm on.
    fn step(&mut self, at: Moment, key: &AlarmKey) {
        let Some(alarm) = self.alarms.get(key) else { return };
        let is_caused = self.cause_of(alarm).is_some();
        let is_undecided =
            !is_caused && alarm.node.as_ref().is_some_and(|node| self.silence.is_away(node));
        let Some(alarm) = self.alarms.get_mut(key) else { return };
        match alarm.phase {
            AlarmPhase::Pending => {
                if is_undecided || at.now.since(alarm.since.now) < key.kind.hold_on() {
                    return;
                }
                alarm.phase = AlarmPhase::Standing;
                alarm.acknowledged = self.recalled.notes.remove(key);
            }
            AlarmPhase::Ending(from) if at.now.since(from) >= HOLD_OFF => {
                let is_announced = alarm.is_announced;
                self.ack_changes += u64::from(alarm.acknowledged.is_some());
                if is_announced {
                    self.tell(key, AlarmNews::Cleared);
                }
                self.alarms.remove(key);
                return;
            }
            AlarmPhase::Standing | AlarmPhase::Ending(_) => {}
        }
        if alarm.phase == AlarmPhase::Standing && !alarm.is_announced && !is_caused {
            alarm.is_announced = true;
            self.tell(key, AlarmNews::Raised);
        }
    }

    /// The alarm that explains this one.
    fn cause_of(&self, alarm: &Alarm) -> Option<AlarmKey> {
        let node = alarm.node.as_ref()?;
        let key = AlarmKey { kind: AlarmKind::PeerSilent, subject: about(node).name };
        let cause = self.alarms.get(&key)?;
        (cause.phase != AlarmPhase::Pending).then_some(key)
    }

    /// Says who works on an alarm; it goes on standing.
    ///
    /// # Errors
    /// It does not stand, or a text does not fit.
    pub fn acknowledge(&mut self, key: &AlarmKey, said: Acknowledgement) -> Result<(), AckError> {
        self.check(key, &said)?;
        if let Some(alarm) = self.alarms.get_mut(key) {
            alarm.acknowledged = Some(said);
        }
        self.ack_changes += 1;
        self.tell(key, AlarmNews::Acknowledged);
        Ok(())
    }

    fn check(&self, key: &AlarmKey, said: &Acknowledgement) -> Result<(), AckError> {
        if said.by.is_empty() || said.by.len() > NAME_MAX || said.note.len() > NOTE_MAX {
            return Err(AckError::Text);
        }
        let alarm = self.alarms.get(key).filter(|it| it.phase != AlarmPhase::Pending);
        alarm.map(drop).ok_or_else(|| AckError::Unknown(key.clone()))
    }

    /// Who works on which alarm: of those that stand, and of those that may stand again.
    pub fn acknowledged(&self) -> Vec<(AlarmKey, Acknowledgement)> {
        let stand = self.alarms.iter();
        let stand = stand.filter_map(|(key, alarm)| Some((key, alarm.acknowledged.as_ref()?)));
        let all = stand.chain(&self.recalled.notes);
        all.map(|(key, said)| (key.clone(), said.clone())).collect()
    }

    /// The same, as they are after this acknowledgement.
    ///
    /// # Errors
    /// See [`Self::acknowledge`].
    pub fn with_acknowledged(
        &self,
        key: &AlarmKey,
        said: &Acknowledgement,
    ) -> Result<Vec<(AlarmKey, Acknowledgement)>, AckError> {
        self.check(key, said)?;
        let mut all = self.acknowledged();
        all.retain(|(other, _)| other != key);
        all.push((key.clone(), said.clone()));
        Ok(all)
    }

    /// Counts each change of [`Self::acknowledged`].
    pub const fn ack_changes(&self) -> u64 {
        self.ack_changes
    }

    /// The alarms that stand, ordered by kind and subject.
    pub fn standing(&self) -> Vec<AlarmStatus> {
        let is_standing = |alarm: &Alarm| alarm.phase != AlarmPhase::Pending;
        let all = self.alarms.iter().filter(|(_, alarm)| is_standing(alarm));
        all.map(|(key, alarm)| self.shown(key, alarm)).collect()
    }

    /// The conditions that hold now, a sentence each: also those that are no alarms yet.
    pub fn conditions(&self) -> Vec<String> {
        let holds = |alarm: &Alarm| !matches!(alarm.phase, AlarmPhase::Ending(_));
        let all = self.alarms.iter().filter(|(_, alarm)| holds(alarm));
        all.map(|(key, alarm)| sentence(key, &alarm.reason)).collect()
    }

    /// What became of an alarm, oldest first.
    pub fn poll(&mut self) -> Option<AlarmNews> {
        self.news.pop_front()
    }

    fn tell(&mut self, key: &AlarmKey, news: impl Fn(AlarmStatus) -> AlarmNews) {
        if let Some(alarm) = self.alarms.get(key) {
            let news = news(self.shown(key, alarm));
            self.push(news);
        }
    }

    fn push(&mut self, news: AlarmNews) {
        if self.news.len() >= NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }

    fn shown(&self, key: &AlarmKey, alarm: &Alarm) -> AlarmStatus {
        AlarmStatus {
            kind: key.kind,
            subject: key.subject.clone(),
            reason: alarm.reason.clone(),
            sentence: sentence(key, &alarm.reason),
            severity: key.kind.severity(),
            since: alarm.since.utc.to_string(),
            caused_by: self.cause_of(alarm),
            acknowledged: alarm.acknowledged.clone(),
        }
    }
}

/// The subject of an alarm about a node begins so.
const NODE: &str = "node ";

/// The subject of the alarm that a node is silent.
fn about(node: &str) -> AlarmSubject {
    AlarmSubject::from(format!("{NODE}{node}"))
}

fn sentence(key: &AlarmKey, reason: &str) -> String {
    let AlarmKey { kind, subject } = key;
    match kind.says() {
        "" => format!("{subject}: {reason}"),
        says => format!("{subject} {says}: {reason}"),
    }
}

#[cfg(test)]
mod tests;
