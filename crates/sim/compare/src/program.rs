//! A program of a comparison: started in a namespace, limited in time, ended by its identifier.

use crate::gone::Gone;
use crate::wait::pause;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpgid, waitpid,
};
use skyhaul_units::{ByteCount, Duration};
use std::io::{self, Read};
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
    /// Starts it in a network namespace.
    pub fn inside(namespace: &str, command: &[String]) -> Result<Self, Gone> {
        let words = ["ip", "netns", "exec", namespace].map(str::to_owned);
        Self::start(&[&words, command].concat(), command.first()).map_err(|error| {
            Gone::Failed(format!("`ip netns exec` cannot be run ({error}); install iproute2"))
        })
    }

    /// Starts a program of this machine; `None` if there is none of this name.
    pub fn here(command: &[&str]) -> Option<Self> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        Self::start(&command, command.first()).ok()
    }

    /// As the first of a process group of its own.
    fn start(command: &[String], name: Option<&String>) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let said = [child.stdout.take().map(listen), child.stderr.take().map(listen)];
        let name = name.map_or("", |name| name.rsplit('/').next().unwrap_or(name)).to_owned();
        Ok(Self { name, child, said })
    }

    /// Its last output, if it has ended.
    pub fn has_ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        let [out, errors] = self.words();
        let last = errors.lines().chain(out.lines()).rfind(|line| !line.trim().is_empty());
        Some(last.map_or_else(|| status.to_string(), |line| line.trim().to_owned()))
    }

    /// Waits until it ends by itself, for `limit` at most. Gives what it printed. If `other`, the
    /// program at the far end, fails before, this one has no longer than [`GRACE`].
    pub fn finish(
        mut self,
        limit: Duration,
        stop: &AtomicBool,
        mut other: Option<&mut Self>,
    ) -> Result<String, Gone> {
        let (mut left, mut alone) = (limit.as_nanos() / STEP.as_nanos(), None);
        while left > 0 {
            if stop.load(Ordering::Relaxed) {
                return Err(Gone::Interrupted);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let [out, errors] = self.words();
                if status.success() || (alone.is_none() && !out.trim().is_empty()) {
                    return Ok(out);
                }
                let last = errors
                    .lines()
                    .rfind(|line| !line.trim().is_empty())
                    .unwrap_or("no word")
                    .trim();
                let why =
                    alone.unwrap_or_else(|| format!("{} ended with {status}: {last}", self.name));
                return Err(Gone::Failed(why));
            }
            if let (None, Some(other)) = (&alone, &mut other)
                && let Some(why) = other.has_failed()
            {
                alone = Some(format!("the other end was gone: {why}"));
                left = left.min(GRACE.as_nanos() / STEP.as_nanos());
            }
            pause(STEP);
            left -= 1;
        }
        let pid = self.child.id();
        Err(Gone::Failed(alone.unwrap_or_else(|| {
            format!("{} (process {pid}) hung, and was ended after {limit}", self.name)
        })))
    }

    /// How it ended, if it has, and not well.
    fn has_failed(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        (!status.success()).then(|| format!("{} ended with {status}", self.name))
    }

    fn words(&mut self) -> [String; 2] {
        [0, 1].map(|at| self.said[at].take().and_then(|said| said.join().ok()).unwrap_or_default())
    }

    /// Ends it with all that it started: as long as it is not waited for, the number is its own.
    fn end_group(&mut self) {
        let Some(group) = number(self.child.id()) else { return };
        // All processes of the group may have ended.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        // What it had started is this process's now: once waited for, its time counts as ours and
        // not as others'.
        while let Ok(Some(_)) = waitpgid(group, WaitOptions::empty()) {}
    }
}

/// Ends a process of this number at once, and waits for it if its parent has gone.
pub fn end(pid: u32) {
    let Some(pid) = number(pid) else { return };
    // It may have ended by itself, or be a child of another process.
    let _ = kill_process(pid, Signal::KILL);
    let _ = waitpid(Some(pid), WaitOptions::empty());
}

fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end_group();
        }
    }
}

/// Reads to the end, so that the writer never waits; keeps no more than its bound.
#[allow(clippy::disallowed_methods, reason = "a pipe that nobody reads holds the program up")]
fn listen(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        // A broken pipe has no more output.
        let _ = from.by_ref().take(MOST_SAID.as_u64()).read_to_end(&mut kept);
        let _ = io::copy(&mut from, &mut io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// How often a program is looked at.
const STEP: Duration = Duration::from_millis(20);

/// How long a program can go on after the one at the other end has ended: its own time-out may give
/// a better reason.
const GRACE: Duration = Duration::from_secs(3);

/// Most that is kept of what a program prints: a minute of iperf3's eight streams is a quarter of a
/// MiB.
const MOST_SAID: ByteCount = ByteCount::mib(8);
