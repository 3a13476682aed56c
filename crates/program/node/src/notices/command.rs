//! A command that is run for each event, and how programs are run and ended.

use super::{Notice, NoticeStop, Told};
use skyhaul_config::ExecEntry;
use skyhaul_events::NodeEvent;
use skyhaul_units::{Duration, printable};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// One `[[exec]]`.
pub struct CommandNotice {
    command: Vec<String>,
}

/// A program that takes longer is killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(20);
/// An event that the program fails so often with is left out.
const ATTEMPTS: u32 = 3;
/// Bytes of its words that are kept.
const WORDS_MAX: usize = 300;

impl CommandNotice {
    /// Runs the command of `entry`.
    pub fn new(entry: &ExecEntry) -> Self {
        Self { command: entry.command.clone() }
    }
}

impl Notice for CommandNotice {
    fn name(&self) -> String {
        let program = self.command.first().map_or("", String::as_str);
        format!("command {program}")
    }

    fn tell(&mut self, events: &[NodeEvent], attempt: u32, stop: &NoticeStop) -> Told {
        let (Some(event), Some((program, arguments))) =
            (events.first(), self.command.split_first())
        else {
            return Told::Done(0);
        };
        match run(program, arguments, event.to_line(), stop) {
            Ok(()) => Told::Done(1),
            Err(reason) if attempt >= ATTEMPTS => {
                Told::LeftOut(format!("{reason}; event {} is left out", event.number))
            }
            Err(reason) => Told::Again(reason),
        }
    }
}

/// Runs a program with `input` on its standard input, and waits for its end.
///
/// # Errors
/// It could not be run, failed, or took too long; with its words.
pub fn run(
    program: &str,
    arguments: &[impl AsRef<OsStr>],
    input: Vec<u8>,
    stop: &NoticeStop,
) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| format!("{program} cannot be run ({error})"))?;
    let ended = std::thread::scope(|scope| {
        // A program that reads nothing, or says much, holds up only these; they end with it.
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        scope.spawn(move || stdin.map(|mut pipe| pipe.write_all(&input)));
        let words = scope.spawn(move || stderr.map_or_else(Vec::new, words));
        let ended = wait(&mut child, stop);
        (ended, words.join().unwrap_or_default())
    });
    match ended {
        (Ok(status), _) if status.success() => Ok(()),
        (Ok(status), words) => {
            let words = printable(String::from_utf8_lossy(&words).trim(), WORDS_MAX);
            Err(format!("{program} ended with {status}: {words}"))
        }
        (Err(reason), _) => Err(format!("{program} {reason}")),
    }
}

/// The beginning of what a program says; the rest is read too, so that it can end.
fn words(mut pipe: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut piece = [0; 4_096];
    while let Ok(read @ 1..) = pipe.read(&mut piece) {
        let room = (4 * WORDS_MAX).saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..read.min(room)]);
    }
    kept
}

/// Waits for the end of a program, and kills it where that takes too long or the node ends.
#[allow(clippy::disallowed_methods, reason = "the time of another program is the system's")]
fn wait(child: &mut Child, stop: &NoticeStop) -> Result<std::process::ExitStatus, String> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(format!("cannot be waited for ({error})")),
        }
        let is_late = begun.elapsed() >= PATIENCE.to_std();
        if is_late || stop.is_requested() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(match is_late {
                true => format!("took more than {PATIENCE} and was killed"),
                false => "was killed, because the node ends".to_owned(),
            });
        }
        stop.pause(LOOK);
    }
}
