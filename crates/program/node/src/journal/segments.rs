//! The files of the event log.
//!
//! ```text
//! events/00000000000000000001.jsonl     events 1 to 5000, a line each
//! events/00000000000000005001.jsonl     the next ones
//! ```
//!
//! A file is appended to until it has enough events; the oldest files go. A line that a kill tore
//! is cut off at the next start. Numbers that lack between two events are a hole.

use skyhaul_events::NodeEvent;
use skyhaul_store::{Disk, DiskFile, EntryKind};
use skyhaul_units::{ByteCount, Duration, Utc};
use std::io;
use std::sync::Arc;

/// The folder in the state folder.
pub const FOLDER: &str = "events";
/// Events in a file: twenty files and the one that is written hold what is promised.
const SEGMENT_EVENTS: u64 = 5_000;
/// Or so many bytes.
const SEGMENT_BYTES: u64 = 2 << 20;
/// Or for so long: what goes with a file goes this much late.
const SEGMENT_SPAN: Duration = Duration::from_secs(86_400);
/// So many events stay at least, unless they are old or large.
const KEPT_EVENTS: u64 = 100_000;
/// All files together.
const KEPT_BYTES: u64 = 64 << 20;
/// How long an event stays.
const KEPT_SPAN: Duration = Duration::from_secs(30 * 86_400);
/// A file is not read beyond this: none is written that long.
const READ_MAX: u64 = SEGMENT_BYTES + 2 * NodeEvent::LINE_MAX as u64 * 1_024;

/// One file.
#[derive(Debug, Clone)]
pub struct EventSegment {
    /// The number that its first event has, or would have.
    first: u64,
    /// When its first event was; none while it has none.
    begun: Option<Utc>,
    bytes: u64,
}

/// The files, oldest first, and the one that is appended to.
#[derive(Debug)]
pub struct EventSegments {
    disk: Arc<dyn Disk>,
    all: Vec<EventSegment>,
    /// The last of them, open.
    active: Option<Arc<dyn DiskFile>>,
    /// A write failed, and part of it may be there.
    is_torn: bool,
    last: u64,
}

impl EventSegments {
    /// Takes up what is on the disk.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(disk: Arc<dyn Disk>) -> io::Result<Self> {
        disk.make_dir(FOLDER)?;
        let mut all = Vec::new();
        for entry in disk.list(FOLDER)? {
            let number = entry.name.strip_suffix(".jsonl").and_then(|name| name.parse().ok());
            if let (EntryKind::File, Some(first)) = (entry.kind, number) {
                all.push(EventSegment { first, begun: None, bytes: entry.size.as_u64() });
            }
        }
        all.sort_by_key(|segment| segment.first);
        let mut own = Self { disk, all, active: None, is_torn: false, last: 0 };
        for nth in 0..own.all.len() {
            own.all[nth].begun = own.begun(&own.all[nth])?;
        }
        own.take_up()?;
        Ok(own)
    }

    /// The time of the first event of a file.
    fn begun(&self, segment: &EventSegment) -> io::Result<Option<Utc>> {
        let file = self.disk.open(&path(segment.first))?;
        let mut head = vec![0; NodeEvent::LINE_MAX];
        let read = file.read_at(&mut head, ByteCount::ZERO)?;
        let first = head[..read].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let event = NodeEvent::from_line(first).ok();
        Ok(event.and_then(|event| Utc::from_rfc3339(&event.time)))
    }

    /// Opens the newest file behind its last whole line.
    fn take_up(&mut self) -> io::Result<()> {
        let Some(newest) = self.all.last() else { return Ok(()) };
        let first = newest.first;
        let file = self.disk.open(&path(first))?;
        let text = read_all(&*file)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.truncate(ByteCount::new(whole as u64))?;
        }
        let lines = text[..whole].split(|byte| *byte == b'\n').rev();
        let last = lines.filter_map(|line| NodeEvent::from_line(line).ok()).next();
        self.last = last.map_or(first.saturating_sub(1), |event| event.number);
        if let Some(newest) = self.all.last_mut() {
            newest.bytes = whole as u64;
        }
        self.active = Some(file);
        Ok(())
    }

    /// Writes events durably. They are there as a whole, or an error says that none may be.
    ///
    /// # Errors
    /// The disk refuses: give them again.
    pub fn append(&mut self, events: &[NodeEvent], now: Utc) -> io::Result<()> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        self.mend()?;
        self.rotate(first.number, now)?;
        let lines: Vec<u8> = events.iter().flat_map(NodeEvent::to_line).collect();
        let file = Arc::clone(self.active.as_ref().expect("rotate opens one"));
        self.is_torn = true;
        file.append(&lines)?;
        file.sync()?;
        self.is_torn = false;
        self.last = last.number;
        if let Some(active) = self.all.last_mut() {
            active.bytes += lines.len() as u64;
            active.begun = active.begun.or_else(|| Utc::from_rfc3339(&first.time));
        }
        self.free(now);
        Ok(())
    }

    /// Cuts off what a failed write left.
    fn mend(&mut self) -> io::Result<()> {
        if let (true, Some(file), Some(active)) = (self.is_torn, &self.active, self.all.last()) {
            file.truncate(ByteCount::new(active.bytes))?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Begins a new file where there is none, or the last has enough.
    fn rotate(&mut self, next: u64, now: Utc) -> io::Result<()> {
        let is_enough = self.all.last().is_none_or(|active| {
            next.saturating_sub(active.first) >= SEGMENT_EVENTS
                || active.bytes >= SEGMENT_BYTES
                || active.begun.is_some_and(|begun| now.since(begun) >= SEGMENT_SPAN)
        });
        if !is_enough && self.active.is_some() {
            return Ok(());
        }
        let file = self.disk.create(&path(next))?;
        self.disk.sync_dir(FOLDER)?;
        self.active = Some(file);
        self.all.push(EventSegment { first: next, begun: None, bytes: 0 });
        Ok(())
    }

    /// Removes the oldest files that are not needed. What the disk does not remove is tried again.
    fn free(&mut self, now: Utc) {
        loop {
            let [oldest, next, ..] = &self.all[..] else { return };
            let bytes: u64 = self.all.iter().map(|segment| segment.bytes).sum();
            let is_old = next.begun.is_some_and(|begun| now.since(begun) >= KEPT_SPAN);
            let is_extra = self.last.saturating_sub(next.first) + 1 >= KEPT_EVENTS;
            if !(is_old || is_extra || bytes > KEPT_BYTES) {
                return;
            }
            match self.disk.remove(&path(oldest.first)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return,
                _ => drop(self.all.remove(0)),
            }
        }
    }

    /// A view for readers: it is good until files of it go.
    pub fn view(&self) -> SegmentsView {
        SegmentsView { disk: Arc::clone(&self.disk), all: self.all.clone(), last: self.last }
    }
}

/// What readers know of the files.
#[derive(Debug, Clone)]
pub struct SegmentsView {
    disk: Arc<dyn Disk>,
    all: Vec<EventSegment>,
    last: u64,
}

impl SegmentsView {
    /// The number of the last event.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Up to `limit` events behind number `since`, oldest first.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, since: u64, limit: usize) -> io::Result<Vec<NodeEvent>> {
        let mut found = Vec::new();
        for (nth, segment) in self.all.iter().enumerate() {
            let is_before = |next: &EventSegment| next.first <= since.saturating_add(1);
            if self.all.get(nth + 1).is_some_and(is_before) {
                continue;
            }
            let text = match self.disk.open(&path(segment.first)) {
                Ok(file) => read_all(&*file)?,
                // It went meanwhile: a hole.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for line in text.split(|byte| *byte == b'\n') {
                // A damaged line is a hole.
                let Ok(event) = NodeEvent::from_line(line) else { continue };
                // What is behind the last is not durable yet.
                if event.number > since && event.number <= self.last {
                    found.push(event);
                }
                if found.len() >= limit {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}

fn path(first: u64) -> String {
    format!("{FOLDER}/{first:020}.jsonl")
}

fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let size = file.size()?.as_u64().min(READ_MAX);
    let mut text = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut text, ByteCount::ZERO)?;
    text.truncate(read);
    Ok(text)
}
