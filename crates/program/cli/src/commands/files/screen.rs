//! The display of a transfer: bars on a terminal, otherwise lines of text or JSON; and the account
//! at its end.

use super::receipts::Receipts;
use crate::commands::output::OutputFormat;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_files::{FileContent, RefusedBy, TransferRefusal};
use skyhaul_files_io::{Counters, EntryOutcome, Event};
use skyhaul_net::Clock;
use skyhaul_node::log;
use skyhaul_transport::Stats;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a transfer is shown.
pub struct Screen {
    format: OutputFormat,
    run: RunKind,
    bars: Option<Bars>,
    receipts: Option<Receipts>,
    peer: String,
    clock: Clock,
    begun: Instant,
    /// When it is shown again.
    next: Instant,
    totals: Totals,
    /// Files that were copied over sessions before this one: they are there already.
    before: u64,
    symbols: (u64, u64),
    worst: Option<Worst>,
}

/// Whether files are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// They are.
    Copy,
    /// Only the account of what would be copied is printed.
    DryRun,
}

/// Which end of a transfer this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferRole {
    /// It has the sources.
    Sending,
    /// It writes the copies.
    Receiving,
}

impl TransferRole {
    /// What this end did with a file, for a receipt.
    const fn of_a_file(self) -> &'static str {
        match self {
            Self::Sending => "sent",
            Self::Receiving => "received",
        }
    }
}

/// Bytes that left this end, and bytes that wait in the session.
#[derive(Clone, Copy)]
struct OnTheWay {
    moved: u64,
    waiting: u64,
}

struct Bars {
    all: MultiProgress,
    overall: ProgressBar,
    file: ProgressBar,
}

/// What became of files.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Totals {
    /// Copied, verified and on disk.
    copied: u64,
    /// Their bytes.
    copied_bytes: u64,
    /// There already.
    unchanged: u64,
    /// There already, with other rights than now.
    rights: u64,
    /// Folders and links made.
    made: u64,
    /// Would be copied.
    wanted: u64,
    /// Removed.
    removed: u64,
    /// Not copied.
    failed: u64,
}

/// The first failure of those whose exit code is the gravest.
struct Worst {
    exit: Exit,
    sentence: String,
}

/// The result of a transfer.
pub struct TransferVerdict {
    failed: u64,
    entries: u64,
    worst: Option<Worst>,
}

/// A line for programs.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    File {
        path: String,
        bytes: u64,
        fate: &'static str,
        blake3: Option<String>,
    },
    Failed {
        path: String,
        by: &'static str,
        reason: &'static str,
        sentence: &'a str,
    },
    Progress {
        elapsed_s: f64,
        files: u64,
        bytes: u64,
        all_found: bool,
        moved: u64,
        rate_bps: u64,
        repeated: f64,
    },
    Calling {
        call: &'a str,
        waited_s: f64,
    },
    Lost {
        node: &'a str,
        reason: &'a str,
    },
    Busy {
        node: &'a str,
        reason: &'a str,
    },
    Summary(Summary),
}

/// The account at the end.
#[derive(Serialize)]
struct Summary {
    elapsed_s: f64,
    #[serde(flatten)]
    totals: Totals,
    /// Bytes that an interrupted transfer had brought.
    resumed_bytes: u64,
    /// Bytes of contents sent over the line, each counted once.
    carried_bytes: u64,
    /// Of those, over the time.
    rate_bps: u64,
    /// Share of symbols that were sent again; `null` at a receiving end.
    repeated: Option<f64>,
    /// Share of blocks that arrived whole only after a repetition or by repair.
    repaired: Option<f64>,
    /// The file that has the receipts.
    receipts: Option<String>,
}

impl Screen {
    /// Of one transfer with the node whose key is `peer`.
    pub fn new(format: OutputFormat, run: RunKind, receipts: Option<Receipts>, peer: &str) -> Self {
        let has_bars = format == OutputFormat::Text && run == RunKind::Copy;
        let bars = (has_bars && std::io::stderr().is_terminal()).then(Bars::new);
        let clock = Clock::start();
        let begun = clock.now();
        let peer = peer.to_owned();
        let (totals, next) = (Totals::default(), begun + EVERY_LINE);
        Self {
            format,
            run,
            bars,
            receipts,
            peer,
            clock,
            begun,
            next,
            totals,
            before: 0,
            symbols: (0, 0),
            worst: None,
        }
    }

    fn is_text(&self) -> bool {
        self.format == OutputFormat::Text
    }

    /// Counts and shows an event at this end.
    pub fn take(
        &mut self,
        event: Event,
        role: TransferRole,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Event { path, bytes, fate } = event;
        match fate {
            EntryOutcome::Copied(hash) => {
                self.totals.copied += 1;
                self.totals.copied_bytes += bytes;
                if let Some(receipts) = &mut self.receipts {
                    let content = FileContent { bytes, hash };
                    receipts.add(role.of_a_file(), &self.peer, &path, content)?;
                }
                let blake3 = Some(hash.to_string());
                self.line(
                    &Line::File { path: path.to_string(), bytes, fate: "copied", blake3 },
                    out,
                )
            }
            EntryOutcome::Unchanged => {
                self.totals.unchanged += 1;
                self.line(
                    &Line::File { path: path.to_string(), bytes, fate: "unchanged", blake3: None },
                    out,
                )
            }
            EntryOutcome::Rights => {
                self.totals.rights += 1;
                if self.is_text() && self.run == RunKind::DryRun {
                    writeln!(out, "would change the permissions of {path}")?;
                }
                self.line(
                    &Line::File { path: path.to_string(), bytes, fate: "rights", blake3: None },
                    out,
                )
            }
            EntryOutcome::Made => {
                self.totals.made += 1;
                Ok(())
            }
            EntryOutcome::Wanted => {
                self.totals.wanted += 1;
                if self.is_text() {
                    writeln!(out, "would copy {path} ({})", size(bytes))?;
                }
                self.line(
                    &Line::File { path: path.to_string(), bytes, fate: "wanted", blake3: None },
                    out,
                )
            }
            EntryOutcome::Removed => {
                self.totals.removed += 1;
                self.line(
                    &Line::File { path: path.to_string(), bytes, fate: "removed", blake3: None },
                    out,
                )
            }
            EntryOutcome::Failed(refusal) => self.failed(&path.to_string(), &refusal, "here", out),
            EntryOutcome::Refused(refusal) => {
                self.failed(&path.to_string(), &refusal, "there", out)
            }
        }
    }

    fn failed(
        &mut self,
        path: &str,
        refusal: &TransferRefusal,
        by: &'static str,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        self.totals.failed += 1;
        let exit = match (refusal.reason.who(), by) {
            (RefusedBy::Source, _) => Exit::Result,
            (RefusedBy::Environment, "here") => Exit::Environment,
            (RefusedBy::Environment, _) => Exit::Peer,
        };
        if self.worst.as_ref().is_none_or(|worst| (exit as u8) > worst.exit as u8) {
            self.worst = Some(Worst { exit, sentence: refusal.sentence.clone() });
        }
        if self.is_text() && self.totals.failed <= SAID_MAX {
            self.say(&format!("not copied: {refusal}"));
        }
        let (path, reason, sentence) = (path.to_owned(), refusal.reason.name(), &*refusal.sentence);
        self.line(&Line::Failed { path, by, reason, sentence }, out)
    }

    /// Shows the counters where it is time to.
    pub fn look(
        &mut self,
        counters: &Counters,
        stats: impl Fn() -> Option<Stats>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let now = self.clock.now();
        if self.bars.is_none() && now < self.next {
            return Ok(());
        }
        let stats = stats();
        if let Some(stats) = stats {
            self.symbols = (
                stats.sent.symbols_repeated,
                stats.sent.symbols_sent + stats.sent.symbols_repeated,
            );
        }
        // Bytes that wait in the session have not been sent yet.
        let waiting = stats.map_or(0, |stats| stats.sent.buffer);
        let moved = read(&counters.moved).saturating_sub(waiting);
        let (files, bytes) = (read(&counters.files), read(&counters.bytes));
        let rate = self.rate(read(&counters.carried).saturating_sub(waiting), now);
        let repeated = share(self.symbols.0, self.symbols.1);
        if let Some(bars) = &self.bars {
            bars.show(counters, OnTheWay { moved, waiting }, rate, repeated);
            return Ok(());
        }
        self.next = now + if self.is_text() { EVERY_LINE } else { EVERY_OBJECT };
        let all_found = is_known(counters);
        if self.is_text() && self.run == RunKind::Copy {
            let of = if all_found { "" } else { " found so far" };
            self.say(&format!(
                "{} of {}{of}, {files} files, {}, {:.1} % repeated",
                size(moved),
                size(bytes),
                megabits(rate),
                repeated * 100.0
            ));
        }
        let elapsed_s = now.since(self.begun).as_secs_f64();
        let rate_bps = rate.as_bps();
        self.line(
            &Line::Progress { elapsed_s, files, bytes, all_found, moved, rate_bps, repeated },
            out,
        )
    }

    /// Nothing came back yet: who is called, and for how long.
    pub fn calling(
        &mut self,
        call: &str,
        waited: Duration,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let seconds = waited.as_nanos() / 1_000_000_000;
        let text = match seconds {
            0 => format!("connecting to {call}"),
            seconds => format!("connecting to {call}: no answer for {seconds} s"),
        };
        if let Some(bars) = &self.bars {
            bars.call(text);
            return Ok(());
        }
        let now = self.clock.now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + if self.is_text() { EVERY_LINE } else { EVERY_OBJECT };
        if self.is_text() {
            self.say(&text);
        }
        self.line(&Line::Calling { call, waited_s: waited.as_secs_f64() }, out)
    }

    /// The session was lost; the far node is called again.
    pub fn lost(&mut self, node: &str, reason: &str, out: &mut dyn Write) -> Result<(), Failure> {
        self.totals.unchanged = self.totals.unchanged.saturating_sub(self.before);
        self.before = self.totals.copied + self.totals.unchanged;
        self.totals.unchanged = 0;
        self.totals.made = 0;
        if self.is_text() {
            self.say(&format!("the session with {node} is lost ({reason}); reconnecting"));
        }
        self.line(&Line::Lost { node, reason }, out)
    }

    /// The far node takes no more transfers now; it is called again.
    pub fn busy(&mut self, node: &str, reason: &str, out: &mut dyn Write) -> Result<(), Failure> {
        if self.is_text() {
            let what = reason.split_once("; ").map_or(reason, |(what, _)| what);
            self.say(&format!("{node} is busy ({what}); retrying until it is free"));
        }
        self.line(&Line::Busy { node, reason }, out)
    }

    /// The account.
    ///
    /// # Errors
    /// The receipts or the account cannot be written.
    pub fn finish(
        mut self,
        counters: &Counters,
        out: &mut dyn Write,
    ) -> Result<TransferVerdict, Failure> {
        if let Some(bars) = self.bars.take() {
            // A closed terminal needs no clearing.
            let _ = bars.all.clear();
        }
        if let Some(receipts) = &self.receipts {
            receipts.sync()?;
        }
        let now = self.clock.now();
        let elapsed = now.since(self.begun);
        let earlier = self.before.saturating_sub(self.totals.copied.min(self.before));
        self.totals.unchanged = self.totals.unchanged.saturating_sub(self.before) + earlier;
        let totals = self.totals;
        let carried = read(&counters.carried);
        let (blocks, repaired) = (read(&counters.blocks.0), read(&counters.blocks.1));
        let summary = Summary {
            elapsed_s: elapsed.as_secs_f64(),
            totals,
            resumed_bytes: read(&counters.resumed),
            carried_bytes: carried,
            rate_bps: self.rate(carried, now).as_bps(),
            repeated: (self.symbols.1 > 0).then(|| share(self.symbols.0, self.symbols.1)),
            repaired: (blocks > 0).then(|| share(repaired, blocks)),
            receipts: self.receipts.as_ref().map(|receipts| receipts.path().display().to_string()),
        };
        let seconds = elapsed.as_secs_f64();
        if self.is_text() && self.run == RunKind::DryRun {
            writeln!(
                out,
                "{} would be copied, {} exist already, {} cannot be copied",
                totals.wanted, totals.unchanged, totals.failed
            )?;
        } else if self.is_text() {
            let rate = megabits(Rate::from_bps(summary.rate_bps));
            write!(
                out,
                "{} files of {} copied and verified in {seconds:.1} s ({rate})",
                totals.copied,
                size(totals.copied_bytes)
            )?;
            let rights = match totals.rights {
                0 => String::new(),
                changed => format!(" and {changed} with new permissions"),
            };
            writeln!(
                out,
                ", {} already there{rights}, {} removed, {} not copied",
                totals.unchanged, totals.removed, totals.failed
            )?;
            if let Some(receipts) = summary.receipts.as_ref().filter(|_| totals.copied > 0) {
                writeln!(out, "receipts: {receipts}")?;
            }
        }
        self.line(&Line::Summary(summary), out)?;
        out.flush()?;
        let entries = totals.copied
            + totals.unchanged
            + totals.rights
            + totals.made
            + totals.wanted
            + totals.failed;
        Ok(TransferVerdict { failed: totals.failed, entries, worst: self.worst })
    }

    fn rate(&self, bytes: u64, now: Instant) -> Rate {
        Rate::over(ByteCount::new(bytes), now.since(self.begun).max(Duration::from_millis(1)))
    }

    /// To standard error, which may be closed.
    fn say(&self, text: &str) {
        match &self.bars {
            Some(bars) => drop(bars.all.println(text)),
            None => log::say(text),
        }
    }

    fn line(&self, line: &Line<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if let (false, Ok(text)) = (self.is_text(), serde_json::to_string(line)) {
            writeln!(out, "{text}")?;
        }
        Ok(())
    }
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let overall = all.add(ProgressBar::new(0));
        let file = all.add(ProgressBar::new(0));
        let style = |template: &str| {
            ProgressStyle::with_template(template).expect("the templates are checked by a test")
        };
        overall.set_style(style(OVERALL));
        file.set_style(style(FILE));
        Self { all, overall, file }
    }

    fn show(&self, counters: &Counters, bytes: OnTheWay, rate: Rate, repeated: f64) {
        let OnTheWay { moved, waiting } = bytes;
        let bytes = read(&counters.bytes);
        let left = ByteCount::new(bytes.saturating_sub(moved));
        let eta = match is_known(counters) && rate > Rate::ZERO {
            true => format!("{} left", span(rate.time_for(left))),
            false => "…".to_owned(),
        };
        let message = format!(
            "{} of {}  {} files, {}, {eta}, {:.1} % repeated",
            size(moved.min(bytes)),
            size(bytes),
            read(&counters.files),
            megabits(rate),
            repeated * 100.0
        );
        fill(&self.overall, moved, bytes, message);
        let Some(current) = counters.current(waiting) else { return };
        let moved = current.moved;
        let of =
            if current.size > 0 { format!(" of {}", size(current.size)) } else { String::new() };
        let message = format!("{}{of}  {}", size(moved), current.path);
        fill(&self.file, moved, current.size, message);
    }

    /// Nothing has moved yet: the far node is being called.
    fn call(&self, text: String) {
        fill(&self.overall, 0, 0, text);
    }
}

/// Sets the position of a bar. A bar without bytes is empty.
fn fill(bar: &ProgressBar, moved: u64, bytes: u64, message: String) {
    bar.set_length(bytes.max(1));
    bar.set_position(moved.min(bytes));
    bar.set_message(message);
}

impl TransferVerdict {
    /// Whether all is as asked.
    ///
    /// # Errors
    /// Something was not copied.
    pub fn judge(self) -> Result<(), Failure> {
        let Some(worst) = self.worst else { return Ok(()) };
        let sentence =
            format!("{} of {} were not copied: {}", self.failed, self.entries, worst.sentence);
        Err(Failure::from_sentence(worst.exit, &sentence))
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Whether all is found, and each has a known end.
fn is_known(counters: &Counters) -> bool {
    read(&counters.walked) > 0 && !counters.endless.load(Ordering::Relaxed)
}

/// In powers of ten, as rates are.
fn size(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// The remaining time, with less precision for longer times.
fn span(span: Duration) -> String {
    match span.as_secs_f64() {
        ..600.0 => format!("{:.0} s", span.as_secs_f64()),
        ..36_000.0 => format!("{:.0} min", span.as_secs_f64() / 60.0),
        ..86_400.0 => format!("{:.0} h", span.as_secs_f64() / 3_600.0),
        _ => "more than a day".to_owned(),
    }
}

fn megabits(rate: Rate) -> String {
    format!("{:.1} Mbit/s", rate.as_bps() as f64 / 1e6)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

const OVERALL: &str = "all  [{bar:30}] {wide_msg}";
const FILE: &str = "file [{bar:30}] {wide_msg}";
/// Failures that are listed as text; `--json` has all.
const SAID_MAX: u64 = 20;
const EVERY_LINE: Duration = Duration::from_secs(5);
const EVERY_OBJECT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_powers_of_ten_and_long_spans_are_rounded() {
        let sizes = [0, 999, 1 << 10, 1 << 20, 500_000_000, 64 << 30].map(size);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "1.0 MB", "500.0 MB", "68.72 GB"]);
        let spans =
            [1, 599, 3_000, 80_000, 1_160_640].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["1 s", "599 s", "50 min", "22 h", "more than a day"]);
    }

    #[test]
    fn a_bar_is_full_when_all_has_moved_and_not_before() {
        let bars = Bars::new();
        let is_full = || bars.overall.position() == bars.overall.length().unwrap();
        bars.call("connecting to far".to_owned());
        assert!(!is_full());
        let counters = Counters::default();
        // Before the first figures the bar is empty.
        bars.show(&counters, OnTheWay { moved: 0, waiting: 0 }, Rate::ZERO, 0.0);
        assert!(!is_full());
        counters.bytes.store(100_000_000, Ordering::Relaxed);
        let half = OnTheWay { moved: 50_000_000, waiting: 50_000_000 };
        bars.show(&counters, half, Rate::ZERO, 0.011);
        assert!(!is_full());
        assert_eq!(
            bars.overall.message(),
            "50.0 MB of 100.0 MB  0 files, 0.0 Mbit/s, …, 1.1 % repeated"
        );
        bars.show(&counters, OnTheWay { moved: 100_000_000, waiting: 0 }, Rate::ZERO, 0.0);
        assert!(is_full());
    }

    #[test]
    fn the_templates_of_the_bars_are_valid() {
        assert!(
            [OVERALL, FILE]
                .into_iter()
                .all(|template| ProgressStyle::with_template(template).is_ok())
        );
    }
}
