//! Contacts for pollers that come for them (CADIP): a thread reads what is durable of each contact,
//! in the store of a centre or in the spool of a station, and cuts its frames into files, while the
//! contact comes in.
//!
//! ```text
//! contact-files/SESSION.json            a contact: what is served of it, and where it is read on
//! contact-files/DCS_…_00001.raw         its files
//! ```
//!
//! A file is on the disk under its name before the contact's JSON names it, and only then can it be
//! seen. After a restart a contact is read on behind its last file. A contact that was finished
//! before the interface was configured is not offered.

mod cut;
mod kept;
mod source;
mod times;

use crate::custody::StoredContact;
use crate::fault::Fault;
use crate::services;
use cut::CutContact;
use kept::KeptSession;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_serve::ContactSession;
use skyhaul_serve_io::SessionBoard;
use skyhaul_units::{Duration, Instant, Utc};
pub use source::{ContactBlocks, ContactSource};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};
use times::SessionTimes;

/// The folder in the state folder.
pub const FOLDER: &str = "contact-files";
/// Between two looks at the store: pollers ask every few seconds.
const LOOK: Duration = Duration::from_millis(500);
/// Between two looks for files that go, and between two attempts after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// Contacts that are offered at a time; the oldest go first beyond that. A week has a few hundred.
const SESSIONS_MAX: usize = 4_096;
/// So much later than its end a contact may be seen as finished.
const FINISHED_LATE: Duration = Duration::from_secs(5);
/// Blocks of one contact before the next has its turn.
const TURN: usize = 64;
const STUCK: &str = "contacts";

/// The thread.
#[derive(Debug)]
pub struct SessionWriter<S: ContactSource> {
    source: Arc<S>,
    times: SessionTimes,
    folder: PathBuf,
    retention: Duration,
    board: Arc<SessionBoard>,
    /// Contacts that come in.
    going: BTreeMap<StoredContact, CutContact<S>>,
    /// Contacts that have ended.
    over: Vec<KeptSession>,
    /// Contacts of which the beginning is gone, as far as the source still has them.
    unknown: BTreeSet<StoredContact>,
    /// Contacts that were finished from then on are offered too: one may come in whole between two
    /// looks.
    from: Utc,
    next_number: u64,
    /// When files that go are looked for next.
    look: Instant,
    /// Not before this time, after a failure.
    again_at: Instant,
}

impl<S: ContactSource> SessionWriter<S> {
    /// Takes up what earlier runs offered, in the state folder `state`.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(
        source: Arc<S>,
        clock: Clock,
        state: &Path,
        retention: Duration,
    ) -> Result<Self, Fault> {
        let folder = state.join(FOLDER);
        services::make_folder(&folder)?;
        let failed = |error: io::Error| {
            let help = "repair the disk or the permissions, then start the node again";
            Fault::environment(error.to_string(), folder.display(), help)
        };
        let kept = kept::load(&folder).map_err(failed)?;
        let next_number = kept.iter().map(|kept| kept.session.number + 1).max().unwrap_or(1);
        let times = |kept: &KeptSession| {
            let files = kept.session.files.iter().map(|file| file.published);
            files.chain([kept.session.published]).max()
        };
        let last = kept.iter().filter_map(times).max();
        // Where nothing was offered yet, the folder is as it was made.
        let from = match last {
            Some(last) => last,
            None => modified(&folder).map_err(failed)?,
        };
        let times = SessionTimes::new(clock, last.unwrap_or(Utc::from_micros(0)));
        let (mut going, mut over) = (BTreeMap::new(), Vec::new());
        for mut kept in kept {
            if kept.session.is_over() {
                // A run that was killed at its end did not say until when.
                let evicted = kept.session.evicted.unwrap_or(times.utc() + retention);
                kept.session.evicted = Some(evicted);
                over.push(kept);
            } else {
                let contact = kept.contact.clone();
                going.insert(contact, CutContact::again(kept, folder.clone()));
            }
        }
        let (board, look, again_at) = (Arc::default(), Instant::ZERO, Instant::ZERO);
        let this = Self {
            source,
            times,
            folder,
            retention,
            board,
            going,
            over,
            unknown: BTreeSet::new(),
            from,
            next_number,
            look,
            again_at,
        };
        this.show();
        Ok(this)
    }

    /// What is offered.
    pub fn board(&self) -> Arc<SessionBoard> {
        Arc::clone(&self.board)
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        while !self.source.shutdown().is_requested() {
            let now = self.times.now();
            let turned = if now < self.again_at { Ok(false) } else { self.turn() };
            match turned {
                Ok(true) => continue,
                Ok(false) if now >= self.again_at => {
                    _ = self.source.alarms().clear(AlarmKind::PollersUnserved, STUCK);
                }
                Ok(false) => {}
                Err(reason) => {
                    self.source.alarms().raise(AlarmKind::PollersUnserved, STUCK, &reason);
                    self.again_at = now + PAUSE;
                }
            }
            if now >= self.look {
                self.look = now + PAUSE;
                self.evict();
            }
            self.source.shutdown().pause(LOOK);
        }
    }

    /// Gives each contact a turn. Returns whether any has more to do.
    fn turn(&mut self) -> Result<bool, String> {
        let looked = self.times.utc();
        for contact in self.new_ones() {
            let number = self.next_number;
            self.next_number += 1;
            let cut = CutContact::new(contact.clone(), number, self.folder.clone());
            self.going.insert(contact, cut);
        }
        self.from = looked - FINISHED_LATE;
        let (mut more, mut news) = (false, false);
        let contacts: Vec<StoredContact> = self.going.keys().cloned().collect();
        for contact in contacts {
            let Some(cut) = self.going.get_mut(&contact) else { continue };
            let was = cut.files();
            let turned = Self::contact(&*self.source, &mut self.times, cut);
            let turned = turned.map_err(|reason| format!("contact {contact}: {reason}"));
            if turned.is_err() {
                cut.begin_again();
            }
            more |= turned? == Turn::More;
            news |= cut.files() != was || cut.is_over();
            if cut.is_unknown() {
                self.going.remove(&contact);
                self.unknown.insert(contact);
                continue;
            }
            if cut.is_over()
                && let Some(cut) = self.going.remove(&contact)
            {
                let evicted = self.times.utc() + self.retention;
                self.over.extend(cut.ended(evicted)?);
            }
        }
        if news {
            self.show();
        }
        Ok(more)
    }

    /// The contacts that are to be offered, and are not yet.
    fn new_ones(&mut self) -> BTreeSet<StoredContact> {
        let mut found = self.source.contacts(self.from);
        self.unknown.retain(|contact| found.contains(contact));
        let over = |contact: &StoredContact| self.over.iter().any(|kept| kept.contact == *contact);
        found.retain(|contact| {
            let is_known = self.going.contains_key(contact) || self.unknown.contains(contact);
            !is_known && !over(contact)
        });
        found
    }

    /// Takes some blocks of a contact.
    fn contact(
        source: &S,
        times: &mut SessionTimes,
        cut: &mut CutContact<S>,
    ) -> Result<Turn, String> {
        for _ in 0..TURN {
            match cut.next_block(source)? {
                ContactBlocks::Idle => {
                    cut.cut_if_due(times)?;
                    return Ok(Turn::Idle);
                }
                ContactBlocks::Gone => {
                    cut.give_up(times)?;
                    return Ok(Turn::Idle);
                }
                ContactBlocks::Damaged => cut.broken(),
                ContactBlocks::Block(record) => cut.block(&record, source, times)?,
            }
            if cut.is_over() {
                return Ok(Turn::Idle);
            }
        }
        Ok(Turn::More)
    }

    /// Shows what is offered.
    fn show(&self) {
        let going = self.going.values().filter_map(CutContact::session);
        let over = self.over.iter().map(|kept| kept.session.clone());
        let mut all: Vec<Arc<ContactSession>> = going.chain(over).map(Arc::new).collect();
        all.sort_by_key(|session| session.number);
        self.board.show(all);
    }

    /// Removes what has been kept long enough.
    fn evict(&mut self) {
        let now = self.times.utc();
        self.over.sort_by_key(|kept| kept.session.number);
        let extra = self.over.len().saturating_sub(SESSIONS_MAX);
        let mut place = 0;
        let folder = &self.folder;
        let before = self.over.len();
        self.over.retain(|kept| {
            place += 1;
            let is_due = kept.session.evicted.is_some_and(|evicted| evicted <= now);
            let goes = is_due || place <= extra;
            if goes {
                kept::remove(folder, &kept.session);
            }
            !goes
        });
        if self.over.len() < before {
            self.show();
        }
    }
}

/// When the entries of a folder last changed.
fn modified(folder: &Path) -> io::Result<Utc> {
    let since = fs::metadata(folder)?.modified()?.duration_since(SystemTime::UNIX_EPOCH);
    let micros = since.map(|since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    Ok(Utc::from_micros(micros.unwrap_or(0)))
}

/// What a turn of a contact brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    More,
    Idle,
}
