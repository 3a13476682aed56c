//! The event log of a node: threads note what happened, one thread writes it. Nobody waits for the
//! disk: what finds no room in the queue is counted, and its number lacks.

mod segments;
#[cfg(test)]
mod tests;

use crate::fault::Fault;
use segments::{EventSegments, SegmentsView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use skyhaul_events::{AlarmNews, CauseBook, EventKind, NodeEvent, Severity};
use skyhaul_net::Clock;
use skyhaul_store::Disk;
use skyhaul_transport::DownReason;
use skyhaul_units::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Events that wait for the disk: minutes of a busy node.
const QUEUE_MAX: usize = 4_096;
/// Events of one write.
const BATCH_MAX: usize = 1_024;
/// After a write that failed.
const RETRY: Duration = Duration::from_secs(1);
/// Events before the start that may explain those after it.
const CAUSES_OF: u64 = 5_000;
/// Events of one page.
const PAGE_MAX: usize = 1_000;

/// Takes events from any thread; a clone takes them for the same log.
#[derive(Debug, Clone, Default)]
pub struct EventSink(Option<Arc<EventQueue>>);

/// What happened, before it has a number.
#[derive(Debug, Clone)]
pub struct EventNote {
    kind: EventKind,
    severity: Severity,
    subject: String,
    sentence: String,
    data: Map<String, Value>,
}

#[derive(Debug)]
struct EventQueue {
    node: String,
    clock: Clock,
    waiting: Mutex<WaitingEvents>,
    news: Condvar,
    view: Mutex<SegmentsView>,
    /// Events that found no room, or that the disk refused to the end.
    lost: AtomicU64,
}

#[derive(Debug)]
struct WaitingEvents {
    queue: VecDeque<NodeEvent>,
    next: u64,
    /// What explains the events that come.
    causes: CauseBook,
    is_ending: bool,
}

/// Numbers of events that are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventHole {
    /// The first of them.
    pub from: u64,
    /// The last of them.
    pub to: u64,
}

/// A page of the event log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<NodeEvent>,
    /// What lacks between them, and before them.
    pub holes: Vec<EventHole>,
    /// The next page is behind this number.
    pub next: u64,
    /// The number of the last event that is kept.
    pub last: u64,
}

impl EventNote {
    /// Of this kind, about a subject.
    pub fn new(kind: EventKind, subject: impl Into<String>, sentence: impl Into<String>) -> Self {
        let (subject, sentence) = (subject.into(), sentence.into());
        Self { kind, severity: kind.severity(), subject, sentence, data: Map::new() }
    }

    /// As bad as this.
    #[must_use]
    pub const fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// No fault where the other node only goes on in another process.
    #[must_use]
    pub fn because(self, reason: &DownReason) -> Self {
        match reason {
            DownReason::GoesOnElsewhere => self.severity(Severity::Info),
            _ => self,
        }
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }
}

impl EventSink {
    /// Notes what happened. Never waits.
    pub fn note(&self, note: EventNote) {
        let Some(queue) = &self.0 else { return };
        let time = queue.clock.utc();
        let mut waiting = queue.waiting();
        let number = waiting.next;
        waiting.next += 1;
        if waiting.queue.len() >= QUEUE_MAX {
            queue.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let EventNote { kind, severity, subject, sentence, data } = note;
        let (time, node) = (time.to_string(), queue.node.clone());
        let cause = None;
        let event =
            NodeEvent { number, time, node, kind, severity, subject, sentence, cause, data };
        let mut event = event.bounded();
        event.cause = waiting.causes.follow(&event);
        waiting.queue.push_back(event);
        queue.news.notify_one();
    }

    /// Notes an event without more values.
    pub fn tell(&self, kind: EventKind, subject: impl Into<String>, sentence: impl Into<String>) {
        if self.0.is_some() {
            self.note(EventNote::new(kind, subject, sentence));
        }
    }

    /// Notes what became of an alarm.
    pub fn alarm(&self, news: &AlarmNews) {
        let (kind, alarm) = match news {
            AlarmNews::Raised(alarm) => (EventKind::AlarmRaised, alarm),
            AlarmNews::Cleared(alarm) => (EventKind::AlarmCleared, alarm),
            AlarmNews::Acknowledged(alarm) => (EventKind::AlarmAcknowledged, alarm),
            AlarmNews::Changed(_) | AlarmNews::LeftOut(_) => return,
        };
        let sentence = match (news, &alarm.acknowledged) {
            (AlarmNews::Acknowledged(_), Some(said)) => {
                format!("{} (acknowledged by {}: {})", alarm.sentence, said.by, said.note)
            }
            _ => alarm.sentence.clone(),
        };
        let note = EventNote::new(kind, alarm.subject.clone(), sentence);
        let note = match news {
            AlarmNews::Raised(_) => note.severity(alarm.severity),
            _ => note,
        };
        let note = note.with("alarm", alarm.kind.name()).with("since", alarm.since.clone());
        self.note(match (news, &alarm.acknowledged) {
            // It stood before the node was started again, and somebody works on it.
            (AlarmNews::Raised(_), Some(said)) => note.with("acknowledged", said.by.clone()),
            _ => note,
        });
    }

    /// Events that are not kept, since the start.
    pub fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, |queue| queue.lost.load(Ordering::Relaxed))
    }

    /// The number of the last event that is kept.
    pub fn last(&self) -> u64 {
        self.0.as_ref().map_or(0, |queue| queue.view().last())
    }

    /// The events behind number `since`, at most `limit` of them.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn page(&self, since: u64, limit: usize) -> io::Result<EventPage> {
        let Some(queue) = &self.0 else { return Ok(EventPage::default()) };
        // Read without the lock: what is written of a file does not change.
        let view = queue.view().clone();
        let (events, last) = (view.read(since, limit.min(PAGE_MAX))?, view.last());
        let (mut holes, mut next) = (Vec::new(), since);
        for event in &events {
            if event.number > next + 1 {
                holes.push(EventHole { from: next + 1, to: event.number - 1 });
            }
            next = event.number;
        }
        Ok(EventPage { events, holes, next, last })
    }
}

impl EventQueue {
    fn waiting(&self) -> MutexGuard<'_, WaitingEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> MutexGuard<'_, SegmentsView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for events; none where the log ends.
    fn batch(&self) -> Option<Vec<NodeEvent>> {
        let mut waiting = self.waiting();
        while waiting.queue.is_empty() {
            if waiting.is_ending {
                return None;
            }
            waiting = self.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        // They stay in the queue until they are written: it is the bound.
        Some(waiting.queue.iter().take(BATCH_MAX).cloned().collect())
    }

    /// After a write that failed. Returns whether it is tried again.
    fn rest(&self) -> bool {
        let waiting = self.waiting();
        if !waiting.is_ending {
            drop(self.news.wait_timeout_while(waiting, RETRY.to_std(), |it| !it.is_ending));
            return true;
        }
        false
    }

    fn write(&self, mut segments: EventSegments) {
        let mut has_failed = false;
        while let Some(batch) = self.batch() {
            match segments.append(&batch, self.clock.utc()) {
                Ok(()) => {
                    if std::mem::take(&mut has_failed) {
                        tracing::info!("events are written again");
                    }
                    self.waiting().queue.drain(..batch.len());
                    *self.view() = segments.view();
                }
                Err(error) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(
                            "events cannot be written ({error}): {QUEUE_MAX} wait, more are lost; \
                            free space on the disk of the state folder"
                        );
                    }
                    if !self.rest() {
                        self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                        return;
                    }
                }
            }
        }
    }
}

/// The thread that writes events. Dropped, it writes what waits, and ends.
#[derive(Debug)]
pub struct EventLog {
    sink: EventSink,
    thread: Option<JoinHandle<()>>,
}

impl EventLog {
    /// Takes up the log in the state folder.
    ///
    /// # Errors
    /// The folder cannot be used.
    #[allow(clippy::disallowed_methods, reason = "the log has a thread of its own")]
    pub fn start(disk: Arc<dyn Disk>, node: &str, clock: Clock) -> Result<Self, Fault> {
        let failed = |error: io::Error| {
            let help = "repair the disk or the permissions, then start the node again";
            let what = format!("the event log cannot be used ({error})");
            Fault::environment(what, segments::FOLDER, help)
        };
        let segments = EventSegments::open(disk).map_err(failed)?;
        let view = segments.view();
        let mut causes = CauseBook::default();
        let since = view.last().saturating_sub(CAUSES_OF);
        for event in view.read(since, CAUSES_OF as usize).map_err(failed)? {
            causes.follow(&event);
        }
        let next = view.last() + 1;
        let waiting = WaitingEvents { queue: VecDeque::new(), next, causes, is_ending: false };
        let queue = Arc::new(EventQueue {
            node: node.to_owned(),
            clock,
            waiting: Mutex::new(waiting),
            news: Condvar::new(),
            view: Mutex::new(view),
            lost: AtomicU64::new(0),
        });
        let of = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("skyhaul-events".to_owned());
        let thread = thread.spawn(move || of.write(segments)).map_err(failed)?;
        Ok(Self { sink: EventSink(Some(queue)), thread: Some(thread) })
    }

    /// Takes events for it.
    pub fn sink(&self) -> EventSink {
        self.sink.clone()
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        if let Some(queue) = &self.sink.0 {
            queue.waiting().is_ending = true;
            queue.news.notify_all();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
