//! Who is told of events outside this machine: servers, commands, mail. Each entry of the
//! configuration has a thread, which reads the event log behind its cursor; the cursor is on the
//! disk, so that nothing is left out over a restart.

mod command;
mod cursor;
mod mail;
mod webhook;

use crate::alarms::Alarms;
use crate::fault::Fault;
use crate::journal::EventSink;
use command::CommandNotice;
use cursor::NoticeCursor;
use mail::MailNotice;
use skyhaul_config::NoticesConfig;
use skyhaul_events::{AlarmKind, EventFilter, NodeEvent};
use skyhaul_net::Clock;
use skyhaul_store::Disk;
use skyhaul_units::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use webhook::WebhookNotice;

/// Between two looks at the event log.
const LOOK: Duration = Duration::from_millis(500);
/// Events of one look.
const PAGE: usize = 200;
/// After the first failure; it doubles with each.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest pause between two attempts.
const RETRY_LAST: Duration = Duration::from_secs(300);

/// What is needed to tell others.
#[derive(Debug, Clone)]
pub(crate) struct NoticePlace {
    /// The log that is read.
    pub events: EventSink,
    /// Has the alarm that somebody cannot be told.
    pub alarms: Arc<Alarms>,
}

/// The threads. Dropped, they end; what they did not tell is told after the next start.
#[derive(Debug)]
pub(crate) struct Notices {
    stop: Arc<NoticeStop>,
    threads: Vec<JoinHandle<()>>,
}

/// Ends the threads.
#[derive(Debug, Default)]
pub(crate) struct NoticeStop {
    is_ending: Mutex<bool>,
    ends: Condvar,
}

/// What became of telling about events.
pub(crate) enum NoticeOutcome {
    /// The first so many are done with.
    Done(usize),
    /// It is not time yet.
    NotYet,
    /// Nothing was told, for this reason: it is tried again later.
    Again(String),
    /// The first cannot be told, for this reason, and is left out.
    LeftOut(String),
}

/// Somebody who is told from a cursor on.
pub(crate) struct PreparedNotice {
    notice: Box<dyn Notice>,
    filter: EventFilter,
    cursor: NoticeCursor,
}

/// Somebody who is told.
pub(crate) trait Notice: Send {
    /// What the log and the alarm call it.
    fn name(&self) -> String;

    /// Tells about these events, which are all wanted and not none. `attempt` counts from 1 those
    /// that began with the same event.
    fn tell(&mut self, events: &[NodeEvent], attempt: u32, stop: &NoticeStop) -> NoticeOutcome;
}

impl NoticeStop {
    /// Whether the node ends.
    pub(crate) fn is_requested(&self) -> bool {
        *self.is_ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `span`, or until the node ends.
    pub(crate) fn pause(&self, span: Duration) {
        let guard = self.is_ending.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.ends.wait_timeout_while(guard, span.to_std(), |is_ending| !*is_ending));
    }

    fn request(&self) {
        *self.is_ending.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ends.notify_all();
    }
}

impl Notices {
    /// Tells them.
    ///
    /// # Errors
    /// The system gives no thread.
    #[allow(clippy::disallowed_methods, reason = "each of them has a thread of its own")]
    pub(crate) fn start(all: Vec<PreparedNotice>, place: &NoticePlace) -> Result<Self, Fault> {
        let stop = Arc::new(NoticeStop::default());
        let mut own = Self { stop: Arc::clone(&stop), threads: Vec::new() };
        for PreparedNotice { notice, filter, cursor } in all {
            let (stop, place) = (Arc::clone(&stop), place.clone());
            let teller = Teller { notice, filter, cursor, stop, place };
            let thread = std::thread::Builder::new().name("skyhaul-notice".to_owned());
            let thread = thread.spawn(move || teller.run()).map_err(|error| {
                let help = "raise the limit of threads of this user";
                Fault::environment(error.to_string(), "a thread for notices", help)
            })?;
            own.threads.push(thread);
        }
        Ok(own)
    }
}

/// Reads what is needed to tell those of `config`: from the next event on where they are new.
///
/// # Errors
/// A secret or a cursor cannot be read.
pub(crate) fn prepare(
    config: &NoticesConfig,
    disk: &Arc<dyn Disk>,
    clock: Clock,
    events: &EventSink,
) -> Result<Vec<PreparedNotice>, Fault> {
    let mut all = Vec::new();
    let mut add = |notice: Box<dyn Notice>, filter: &EventFilter, key: String| {
        let cursor = NoticeCursor::open(disk.clone(), &key, events.last())?;
        all.push(PreparedNotice { notice, filter: filter.clone(), cursor });
        Ok::<(), Fault>(())
    };
    for entry in &config.webhooks {
        let notice = WebhookNotice::new(entry, clock)?;
        add(Box::new(notice), &entry.events, format!("webhook {}", entry.url.text()))?;
    }
    for entry in &config.commands {
        let key = format!("exec {:?}", entry.command);
        add(Box::new(CommandNotice::new(entry)), &entry.events, key)?;
    }
    for entry in &config.mails {
        let key = format!("mail {:?}", entry.to);
        add(Box::new(MailNotice::new(entry, clock)), &entry.events, key)?;
    }
    Ok(all)
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.stop.request();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Tells one of them.
struct Teller {
    notice: Box<dyn Notice>,
    filter: EventFilter,
    cursor: NoticeCursor,
    stop: Arc<NoticeStop>,
    place: NoticePlace,
}

impl Teller {
    fn run(mut self) {
        let (mut attempt, mut pause) = (0, RETRY_FIRST);
        while !self.stop.is_requested() {
            let page = match self.place.events.page(self.cursor.number(), PAGE) {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(
                        "{}: the event log cannot be read ({error})",
                        self.notice.name()
                    );
                    self.stop.pause(RETRY_LAST);
                    continue;
                }
            };
            let own = |event: &NodeEvent| self.filter.wants(event) && !self.is_about_me(event);
            let wanted: Vec<NodeEvent> = page.events.iter().filter(|it| own(it)).cloned().collect();
            let Some(first) = wanted.first() else {
                self.advance(page.next);
                if page.events.is_empty() {
                    self.stop.pause(LOOK);
                }
                continue;
            };
            // What is not wanted needs no attempt.
            self.advance(first.number - 1);
            attempt += 1;
            let (told, reason) = match self.notice.tell(&wanted, attempt, &self.stop) {
                NoticeOutcome::NotYet => {
                    attempt -= 1;
                    continue;
                }
                NoticeOutcome::Done(count) => (count, None),
                NoticeOutcome::LeftOut(reason) => (1, Some(reason)),
                NoticeOutcome::Again(reason) => (0, Some(reason)),
            };
            if let Some(last) = wanted.get(..told).and_then(<[NodeEvent]>::last) {
                self.advance(last.number);
                (attempt, pause) = (0, RETRY_FIRST);
            }
            match reason {
                None => _ = self.place.alarms.clear(AlarmKind::NoticeFailed, self.notice.name()),
                Some(reason) => {
                    let (alarms, name) = (&self.place.alarms, self.notice.name());
                    alarms.raise(AlarmKind::NoticeFailed, name, &reason);
                }
            }
            if told == 0 {
                self.stop.pause(pause);
                pause = (pause * 2).min(RETRY_LAST);
            }
        }
    }

    /// The alarm that this one cannot be told is not told to it: it would wait behind itself.
    fn is_about_me(&self, event: &NodeEvent) -> bool {
        event.data.get("alarm").is_some_and(|kind| kind == AlarmKind::NoticeFailed.name())
            && event.subject == self.notice.name()
    }

    fn advance(&mut self, number: u64) {
        if let Err(error) = self.cursor.advance(number) {
            // It is told again after a kill.
            tracing::warn!("{}: its cursor cannot be saved ({error})", self.notice.name());
        }
    }
}

/// What has to wait for a restart, at a node that runs with `before`.
pub(crate) fn waiting(before: &NoticesConfig, new: &NoticesConfig) -> Vec<String> {
    let tables = [
        ("[[webhook]]", before.webhooks != new.webhooks),
        ("[[exec]]", before.commands != new.commands),
        ("[[mail]]", before.mails != new.mails),
    ];
    let changed = tables.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(table, _)| table.to_owned()).collect()
}
