//! A command that is run for each event, and how programs are run and ended.

use super::{Notice, NoticeOutcome, NoticeStop};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use skyhaul_config::ExecEntry;
use skyhaul_events::NodeEvent;
use skyhaul_units::{Duration, printable};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
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
/// Bytes that it can say.
const SAID_MAX: usize = 16 << 10;
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

    fn tell(&mut self, events: &[NodeEvent], attempt: u32, stop: &NoticeStop) -> NoticeOutcome {
        let (Some(event), Some((program, arguments))) =
            (events.first(), self.command.split_first())
        else {
            return NoticeOutcome::Done(0);
        };
        match run(program, arguments, event.to_line(), stop) {
            Ok(()) => NoticeOutcome::Done(1),
            Err(reason) if attempt >= ATTEMPTS => {
                NoticeOutcome::LeftOut(format!("{reason}; event {} is left out", event.number))
            }
            Err(reason) => NoticeOutcome::Again(reason),
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
    let lacks = |error: std::io::Error| format!("{program} cannot be run ({error})");
    // Files and no pipes: what the program leaves behind may hold them open for ever.
    let given = in_memory(&input).map_err(lacks)?;
    let mut words = in_memory(&[0; SAID_MAX]).map_err(lacks)?;
    let stderr = words.try_clone().map_err(lacks)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").process_group(0);
    command.stdin(given).stdout(Stdio::null()).stderr(stderr);
    let mut child = command.spawn().map_err(lacks)?;
    match wait(&mut child, stop) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let mut said = Vec::new();
            let _ = words.rewind().and_then(|()| words.read_to_end(&mut said));
            let said = String::from_utf8_lossy(&said).replace('\0', "");
            Err(format!("{program} ended with {status}: {}", printable(said.trim(), WORDS_MAX)))
        }
        Err(reason) => Err(format!("{program} {reason}")),
    }
}

/// A file in memory that holds `bytes`, and never more.
fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("skyhaul-notice", flags)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::GROW)?;
    Ok(file)
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
            // With what it started.
            if let Some(group) = Pid::from_raw(child.id().try_into().unwrap_or(0)) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            return Err(match is_late {
                true => format!("took more than {PATIENCE} and was killed"),
                false => "was killed, because the node ends".to_owned(),
            });
        }
        stop.pause(LOOK);
    }
}
