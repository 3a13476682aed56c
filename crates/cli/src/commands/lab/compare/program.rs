//! A program of a comparison: started in a place, bounded in time, ended by its identifier.

use super::bench::{Gone, MOST_SAID};
use crate::commands::demo::pause;
use rustix::process::{Pid, Signal, kill_process_group};
use skyhaul_units::Duration;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running program with all that it starts. It is ended when this is dropped.
pub struct Program {
    name: String,
    child: Child,
    said: [Option<JoinHandle<String>>; 2],
}

impl Program {
    /// Starts it in a network namespace, as the first of a process group of its own.
    pub fn start(namespace: &str, command: &[String]) -> Result<Self, Gone> {
        let mut child = Command::new("ip")
            .args(["netns", "exec", namespace])
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                Gone::Failed(format!("`ip netns exec` cannot be run ({error}); install iproute2"))
            })?;
        let said = [child.stdout.take().map(listen), child.stderr.take().map(listen)];
        let name = command.first().map_or("", |name| name.rsplit('/').next().unwrap_or(name)).to_owned();
        Ok(Self { name, child, said })
    }

    /// What it said at last, if it has ended.
    pub fn has_ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        let [out, errors] = self.words();
        let last = errors.lines().chain(out.lines()).rfind(|line| !line.trim().is_empty());
        Some(last.map_or_else(|| status.to_string(), |line| line.trim().to_owned()))
    }

    /// Waits until it ends by itself, for `limit` at most. Gives what it printed.
    pub fn finish(mut self, limit: Duration, stop: &AtomicBool) -> Result<String, Gone> {
        for _ in 0..limit.as_nanos() / STEP.as_nanos() {
            if stop.load(Ordering::Relaxed) {
                return Err(Gone::Interrupted);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let [out, errors] = self.words();
                if status.success() || !out.trim().is_empty() {
                    return Ok(out);
                }
                let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no word").trim();
                return Err(Gone::Failed(format!("{} ended with {status}: {last}", self.name)));
            }
            pause(STEP);
        }
        let pid = self.child.id();
        Err(Gone::Failed(format!("{} (process {pid}) hung, and was ended after {limit}", self.name)))
    }

    fn words(&mut self) -> [String; 2] {
        [0, 1].map(|at| self.said[at].take().and_then(|said| said.join().ok()).unwrap_or_default())
    }

    /// Ends it with all that it started: as long as it is not waited for, the number is its own.
    fn end_group(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // All of them may have ended.
        let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end_group();
            let _ = self.child.wait();
        }
    }
}

/// Reads to the end, so that the writer never waits; keeps no more than its bound.
#[allow(clippy::disallowed_methods, reason = "a pipe that nobody reads holds the program up")]
fn listen(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        // A pipe that breaks has said what it had to say.
        let _ = from.by_ref().take(MOST_SAID.as_u64()).read_to_end(&mut kept);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// How often a program is looked at.
const STEP: Duration = Duration::from_millis(20);
