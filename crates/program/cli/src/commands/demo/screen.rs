//! The live view: one updating block on a terminal, otherwise a line each second, or JSON.

use super::backup::BackupState;
use super::line::LineFacts;
use super::progress::{ChannelProgress, DemoProgress};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use skyhaul_exit::Failure;
use skyhaul_node::status::{ChannelState, LineState};
use skyhaul_units::{Duration, Instant};
use std::io::{IsTerminal, Write};

/// Where looks are shown.
pub struct Screen {
    kind: Kind,
    next: Instant,
}

enum Kind {
    /// An updating block on standard error.
    Block(Box<Block>),
    /// A line a second on standard error.
    Lines,
    /// An object a second on standard output.
    Json,
}

/// The block: bars one below the other, of which those without a pass are only text.
struct Block {
    facts: LineFacts,
    /// Keeps the bars in their places.
    _lines: MultiProgress,
    title: ProgressBar,
    channels: Vec<ProgressBar>,
    spool: ProgressBar,
    line: ProgressBar,
    latency: ProgressBar,
    products: ProgressBar,
    backup: ProgressBar,
}

impl Screen {
    /// A view of a pass with `channels` inputs; `json` as asked, else what standard error is good
    /// for.
    pub fn new(json: OutputFormat, facts: LineFacts, channels: usize) -> Self {
        let kind = match json {
            OutputFormat::Json => Kind::Json,
            OutputFormat::Text if std::io::stderr().is_terminal() => {
                Kind::Block(Box::new(Block::new(facts, channels)))
            }
            OutputFormat::Text => Kind::Lines,
        };
        Self { kind, next: Instant::ZERO }
    }

    /// Shows a look where it is time for one.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn show(
        &mut self,
        now: Instant,
        progress: &DemoProgress,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        if now < self.next {
            return Ok(());
        }
        match &self.kind {
            Kind::Block(block) => {
                self.next = now + BLOCK_STEP;
                block.draw(progress);
            }
            Kind::Lines => {
                self.next = now + LINE_STEP;
                // Standard error may be closed.
                let _ = writeln!(std::io::stderr(), "{}", one_line(progress));
            }
            Kind::Json => {
                self.next = now + LINE_STEP;
                let line = serde_json::to_string(progress).expect("a look is plain data");
                writeln!(out, "{line}")?;
                out.flush()?;
            }
        }
        Ok(())
    }
}

impl Screen {
    /// Shows the last look, whatever the time.
    ///
    /// # Errors
    /// As [`Self::show`].
    pub fn show_last(
        &mut self,
        progress: &DemoProgress,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        self.show(Instant::FAR_FUTURE, progress, out)
    }

    /// Ends the updating block: what is printed next stands below it.
    pub fn end(&mut self) {
        self.kind = Kind::Lines;
    }
}

/// What the command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Block {
    fn new(facts: LineFacts, channels: usize) -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let text = || style("  {prefix:<10} {wide_msg}");
        let add = |style: ProgressStyle, prefix: &'static str| {
            lines.add(ProgressBar::new(1).with_style(style).with_prefix(prefix))
        };
        let bar = || style("  {prefix:<10} [{bar:16.cyan}] {wide_msg}").progress_chars("=> ");
        Self {
            facts,
            title: add(style("{wide_msg}"), ""),
            channels: (0..channels).map(|_| add(bar(), "")).collect(),
            spool: add(text(), "spool"),
            line: add(text(), "line"),
            latency: add(text(), "latency"),
            products: add(text(), "products"),
            backup: add(text(), "backup"),
            _lines: lines,
        }
    }

    fn draw(&self, progress: &DemoProgress) {
        let seconds = progress.elapsed_s as u64;
        self.title.set_message(format!(
            "{}:{:02}  {} antennas → station → {} → two centres",
            seconds / 60,
            seconds % 60,
            self.channels.len(),
            self.facts.describe()
        ));
        for (bar, channel) in self.channels.iter().zip(&progress.channels) {
            bar.set_prefix(channel.name.clone());
            bar.set_length(channel.total_bytes);
            bar.set_position(channel.played_bytes);
            bar.set_message(describe(channel));
        }
        let spool = &progress.spool;
        let waiting = if spool.blocks == 1 { "block" } else { "blocks" };
        self.spool.set_message(format!(
            "{:>8.1} kB in {} {waiting} until the centre has them on disk",
            kilo(spool.bytes),
            spool.blocks
        ));
        let line = &progress.line;
        self.line.set_message(format!(
            "{:>8.2} Mbit/s, round trip {:.0} ms, {:.1} % lost, {}",
            mega(line.rate_bps),
            line.rtt_s * 1e3,
            line.loss * 1e2,
            line_state(line.state)
        ));
        let latency = &progress.latency_s;
        self.latency.set_message(format!(
            "{:>8.0} ms median, {:.0} ms at 99 %, from a frame's last bit to the centre's disk",
            latency.p50 * 1e3,
            latency.p99 * 1e3
        ));
        self.products.set_message(format!(
            "{:>8} written, {} of {} contacts done",
            progress.products,
            progress.contacts_done,
            self.channels.len()
        ));
        self.backup.set_message(backup_in_words(progress));
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let texts =
            [&self.title, &self.spool, &self.line, &self.latency, &self.products, &self.backup];
        texts.into_iter().chain(&self.channels).for_each(ProgressBar::abandon);
        // The block's last line has no end of its own.
        let _ = writeln!(std::io::stderr());
    }
}

fn backup_in_words(progress: &DemoProgress) -> String {
    let blocks = progress.backup.blocks;
    let state = match progress.backup.state {
        BackupState::Running => "running",
        BackupState::Killed => "KILLED",
        BackupState::Back => "back after it was killed",
    };
    format!("{state}, {blocks} blocks wait at the station for it")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are constants")
}

fn describe(channel: &ChannelProgress) -> String {
    format!(
        "{:<7} {:<10} {:>7} frames, {} symbols corrected, {} set aside",
        channel_state(channel.state),
        channel.mission.as_deref().unwrap_or("-"),
        channel.frames,
        channel.corrected_symbols,
        channel.set_aside
    )
}

fn one_line(progress: &DemoProgress) -> String {
    let mut text = format!("{:>6.1} s", progress.elapsed_s);
    for channel in &progress.channels {
        let mission = channel.mission.as_deref().unwrap_or("-");
        text += &format!("  {} {mission} {} frames", channel_state(channel.state), channel.frames);
        if channel.corrected_symbols > 0 {
            text += &format!(" {} corrected", channel.corrected_symbols);
        }
    }
    format!(
        "{text}  spool {:.1} kB  line {:.2} Mbit/s rtt {:.0} ms loss {:.1} %  latency {:.0} \
        ms  products {}  backup {}",
        kilo(progress.spool.bytes),
        mega(progress.line.rate_bps),
        progress.line.rtt_s * 1e3,
        progress.line.loss * 1e2,
        progress.latency_s.p50 * 1e3,
        progress.products,
        backup_in_words(progress)
    )
}

const fn channel_state(state: ChannelState) -> &'static str {
    match state {
        ChannelState::Waiting => "waiting",
        ChannelState::Search => "search",
        ChannelState::Lock => "lock",
        ChannelState::Ended => "ended",
        ChannelState::Failed => "failed",
    }
}

const fn line_state(state: LineState) -> &'static str {
    match state {
        LineState::Connecting => "connecting",
        LineState::Open => "open",
        LineState::Down => "down",
        LineState::Refused => "refused",
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn kilo(value: u64) -> f64 {
    value as f64 / 1e3
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn mega(value: u64) -> f64 {
    value as f64 / 1e6
}

const BLOCK_STEP: Duration = Duration::from_millis(200);
const LINE_STEP: Duration = Duration::from_secs(1);
