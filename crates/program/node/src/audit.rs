//! The audit log of a node: an order is on the disk before it is carried out, and its outcome
//! behind it. Where it cannot be written, the order is refused.
//!
//! Only threads that carry orders out wait for this disk. The hash of each line also goes into the
//! event log, and with it to those who are told of events: a log that was changed as a whole
//! differs from those.

mod files;
#[cfg(test)]
mod tests;

use crate::fault::Fault;
use crate::journal::{EventNote, EventSink};
use crate::status::{OrderResult, OrderWords, StatusReply};
use serde_json::{Value, json};
use skyhaul_events::{
    AuditCheck, AuditEntry, AuditLine, AuditMeans, AuditOutcome, AuditWho, EventKind, audit_file,
    audit_file_first, audit_hash,
};
use skyhaul_net::Clock;
use skyhaul_store::{Disk, DiskFile};
use skyhaul_units::ByteCount;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use files::{AuditPart, AuditUnread, check, each_part};

/// The file in the state folder that grows. One that is complete is `audit-FIRST.jsonl`, by the
/// number of its first line.
pub const AUDIT_FILE: &str = "audit.jsonl";
/// A file with so much is complete, and the next line begins another one: 60,000 orders.
const FILE_BYTES: u64 = 64 << 20;
/// What is shown at a time.
const NEWEST_BYTES: u64 = 256 << 10;
/// Outcomes that could not be written: as many as orders that are carried out at a time, which are
/// fewer.
const UNWRITTEN_MAX: usize = 64;

/// Writes orders.
#[derive(Debug)]
pub struct AuditLog {
    disk: Arc<dyn Disk>,
    clock: Clock,
    events: EventSink,
    tail: Mutex<AuditTail>,
}

/// The end of the file.
#[derive(Debug)]
struct AuditTail {
    file: Option<Arc<dyn DiskFile>>,
    bytes: u64,
    /// The first line of the file.
    first: u64,
    /// The first line of the file before it; none where there is none.
    former: Option<u64>,
    /// A file of this length is complete.
    complete: u64,
    last: u64,
    head: String,
    /// A write failed, and part of it may be there.
    is_torn: bool,
    /// Outcomes that the disk refused: they come before the next order.
    unwritten: VecDeque<OrderOutcome>,
}

/// An order that was written, and is carried out.
#[derive(Debug)]
#[must_use = "its outcome is to be written"]
pub struct WrittenOrder {
    number: u64,
    who: AuditWho,
    subject: String,
}

#[derive(Debug, Clone)]
struct OrderOutcome {
    of: u64,
    who: AuditWho,
    outcome: AuditOutcome,
    said: String,
}

impl AuditLog {
    /// Takes up the log in the state folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(disk: Arc<dyn Disk>, clock: Clock, events: EventSink) -> Result<Self, Fault> {
        let tail = AuditTail::open(&*disk).map_err(|error| {
            let help = "repair the disk or the permissions, then start the node again";
            let what = format!("the audit log cannot be used ({error})");
            Fault::environment(what, AUDIT_FILE, help)
        })?;
        Ok(Self { disk, clock, events, tail: Mutex::new(tail) })
    }

    fn tail(&self) -> MutexGuard<'_, AuditTail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an order, durably, before it is carried out.
    ///
    /// # Errors
    /// It cannot be written: it must not be carried out.
    pub fn order(
        &self,
        who: AuditWho,
        words: OrderWords,
        order: Value,
    ) -> Result<WrittenOrder, Fault> {
        let OrderWords { sentence, subject } = words;
        let entry = AuditEntry::Order {
            sentence: sentence.clone(),
            subject: subject.clone(),
            order: order.clone(),
        };
        let mut tail = self.tail();
        let written = self.settle(&mut tail).and_then(|()| self.append(&mut tail, &who, entry));
        if let Err(error) = written {
            let what = format!("the order is not carried out: it cannot be written down ({error})");
            let place = format!("{AUDIT_FILE} in the state folder");
            let help = "free space on the disk of the state folder, and give the order again";
            return Err(Fault::environment(what, place, help));
        }
        let (number, head) = (tail.last, json!({"number": tail.last, "hash": tail.head}));
        // Noted while the lock is held: events have the order of the log.
        let note = EventNote::new(EventKind::OrderGiven, &subject, format!("{who}: {sentence}"));
        self.events.note(note.with("order", order).with("audit", head));
        drop(tail);
        Ok(WrittenOrder { number, who, subject })
    }

    /// Writes what became of an order.
    pub fn outcome(&self, order: WrittenOrder, reply: &StatusReply) {
        let (outcome, said) = match reply {
            StatusReply::Answer(OrderResult::Done { said }) => (AuditOutcome::Done, said.clone()),
            StatusReply::Answer(OrderResult::Refused { what, .. }) => {
                (AuditOutcome::Refused, what.clone())
            }
            _ => (AuditOutcome::Done, String::new()),
        };
        let WrittenOrder { number: of, who, subject } = order;
        let mut tail = self.tail();
        if tail.unwritten.len() < UNWRITTEN_MAX {
            tail.unwritten.push_back(OrderOutcome { of, who, outcome, said: said.clone() });
        }
        if let Err(error) = self.settle(&mut tail) {
            tracing::warn!(
                "the outcome of order {of} cannot be written to {AUDIT_FILE} ({error}): free space \
                on the disk of the state folder; no further order is taken before"
            );
            return;
        }
        let head = json!({"number": tail.last, "hash": tail.head});
        let word = if outcome == AuditOutcome::Done { "done" } else { "refused" };
        let sentence = format!("order {of} {word}: {said}");
        let note = EventNote::new(EventKind::OrderDone, subject, sentence);
        self.events.note(note.with("of", of).with("audit", head));
    }

    /// The newest lines, oldest first, as many as fit in 256 KiB.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn newest(&self) -> io::Result<Vec<AuditLine>> {
        let (file, bytes, former) = {
            let tail = self.tail();
            (tail.file.clone(), tail.bytes, tail.former)
        };
        let mut text = Vec::new();
        // Read without the lock: what is written of the files does not change.
        if let Some(first) = former.filter(|_| bytes < NEWEST_BYTES) {
            // It may have been archived.
            if let Ok(former) = self.disk.open(&audit_file(first)) {
                let size = former.size()?.as_u64();
                let room = NEWEST_BYTES - bytes;
                text = read(&*former, size.saturating_sub(room), size)?;
            }
        }
        if let Some(file) = file {
            text.extend(read(&*file, bytes.saturating_sub(NEWEST_BYTES), bytes)?);
        }
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| AuditLine::from_line(line).ok()).collect())
    }

    /// Writes outcomes that were not written.
    fn settle(&self, tail: &mut AuditTail) -> io::Result<()> {
        while let Some(OrderOutcome { of, who, outcome, said }) = tail.unwritten.front().cloned() {
            self.append(tail, &who, AuditEntry::Outcome { of, outcome, said })?;
            tail.unwritten.pop_front();
        }
        Ok(())
    }

    fn append(&self, tail: &mut AuditTail, who: &AuditWho, entry: AuditEntry) -> io::Result<()> {
        let time = self.clock.utc().to_string();
        tail.append(&*self.disk, |number, before| AuditLine {
            number,
            time,
            before,
            who: who.clone(),
            entry,
        })
    }
}

impl AuditTail {
    fn open(disk: &dyn Disk) -> io::Result<Self> {
        let mut tail = Self {
            file: None,
            bytes: 0,
            first: 1,
            former: None,
            complete: FILE_BYTES,
            last: 0,
            head: AuditLine::origin(),
            is_torn: false,
            unwritten: VecDeque::new(),
        };
        tail.follow(disk)?;
        let file = match disk.open(AUDIT_FILE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(tail),
            Err(error) => return Err(error),
        };
        let size = file.size()?.as_u64();
        let from = size.saturating_sub(2 * AuditLine::LINE_MAX as u64);
        let end = read(&*file, from, size)?;
        let whole = whole_lines(&end);
        if whole < end.len() {
            // A kill or a power cut tore it: it was not durable, and what it ordered was not
            // carried out.
            file.truncate(ByteCount::new(from + whole as u64))?;
        }
        tail.bytes = from + whole as u64;
        let last = end[..whole].trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
        match last.map(|line| (line, AuditLine::from_line(line))) {
            Some((line, Ok(known))) => (tail.last, tail.head) = (known.number, audit_hash(line)),
            Some((b"", _)) | None => {}
            // Somebody has changed it. What comes next stands behind it all the same.
            Some((_, Err(_))) => {
                let mut check = AuditCheck::default();
                check.file(tail.first);
                let text = read(&*file, 0, tail.bytes)?;
                text.trim_ascii_end()
                    .split(|byte| *byte == b'\n')
                    .for_each(|line| check.line(line));
                let found = check.finish();
                (tail.last, tail.head) = (found.last, found.head);
            }
        }
        tail.file = Some(file);
        Ok(tail)
    }

    /// Goes on behind the newest file that is complete.
    fn follow(&mut self, disk: &dyn Disk) -> io::Result<()> {
        let names = disk.list("")?;
        let newest = names.iter().filter_map(|entry| audit_file_first(&entry.name)).max();
        let Some(first) = newest else { return Ok(()) };
        let file = disk.open(&audit_file(first))?;
        let size = file.size()?.as_u64();
        let mut check = AuditCheck::default();
        check.file(first);
        let text = read(&*file, 0, size)?;
        text.trim_ascii_end().split(|byte| *byte == b'\n').for_each(|line| check.line(line));
        let found = check.finish();
        (self.last, self.head) = (found.last, found.head);
        (self.former, self.first) = (Some(first), found.last.saturating_add(1));
        Ok(())
    }

    /// The file is complete: it gets its own name, and the next line begins another one.
    fn complete(&mut self, disk: &dyn Disk) -> io::Result<()> {
        disk.rename(AUDIT_FILE, &audit_file(self.first))?;
        self.file = None;
        self.bytes = 0;
        self.former = Some(self.first);
        self.first = self.last.saturating_add(1);
        disk.sync_dir("")
    }

    fn append(
        &mut self,
        disk: &dyn Disk,
        line: impl FnOnce(u64, String) -> AuditLine,
    ) -> io::Result<()> {
        if self.bytes >= self.complete {
            self.complete(disk)?;
        }
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = disk.create(AUDIT_FILE)?;
                disk.sync_dir("")?;
                Arc::clone(self.file.insert(file))
            }
        };
        if self.is_torn {
            file.truncate(ByteCount::new(self.bytes))?;
        }
        self.is_torn = true;
        let line = line(self.last.saturating_add(1), self.head.clone()).to_line();
        file.append(&line)?;
        file.sync()?;
        self.is_torn = false;
        self.bytes += line.len() as u64;
        self.last = self.last.saturating_add(1);
        self.head = audit_hash(line.trim_ascii_end());
        Ok(())
    }
}

/// Bytes of whole lines. A power cut can leave zeros in place of what was not synced: no line has
/// any.
fn whole_lines(text: &[u8]) -> usize {
    let mut whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    while whole > 0 {
        let before = &text[..whole - 1];
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if !before[begin..].contains(&0) {
            break;
        }
        whole = begin;
    }
    whole
}

fn read(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut text = vec![0; usize::try_from(to - from).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut text, ByteCount::new(from))?;
    text.truncate(read);
    Ok(text)
}

/// Who gave a signal is not known.
pub(crate) fn by_signal() -> AuditWho {
    AuditWho::new(AuditMeans::Signal, "", "")
}
