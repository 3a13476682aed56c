//! Reads the lines of a feed from a socket, a file or a command, without waiting for any of them.

use crate::watched_file::{FileVersion, open_file};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use skyhaul_hints::{FeedSource, LINE_MAX, PathFeed};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant, Utc};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The source of a feed, opened where it can be.
#[derive(Debug)]
pub struct FeedReader {
    source: FeedSource,
    clock: Clock,
    stale_after: Duration,
    open: Open,
    /// When it is opened again.
    retry_at: Instant,
    /// The pause after the next failure.
    pause: Duration,
    /// Why it is not open.
    reason: Option<String>,
}

#[derive(Debug)]
enum Open {
    Nothing,
    Stream(UnixStream),
    Command(Box<RunningCommand>),
    /// A file as it was read last.
    File(FileVersion),
}

/// A command that runs; dropping it ends it with all that it started.
#[derive(Debug)]
struct RunningCommand {
    child: Child,
    output: ChildStdout,
    /// Looks after its output was closed, until it is taken for one that goes on.
    looks_left: u32,
}

/// Of one look: ten times a second. A modem writes one line a second.
const READ_MAX: usize = 16 << 10;
/// A second: a command that closed its output has ended by then, or goes on without it.
const LOOKS_TO_END: u32 = 10;
/// The first pause before a source is opened again; it doubles until a line was read.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

impl FeedReader {
    /// A source that was not opened yet. A file that was older than `stale_after` at first is not
    /// read before it changes.
    pub const fn new(source: FeedSource, clock: Clock, stale_after: Duration) -> Self {
        Self {
            source,
            clock,
            stale_after,
            open: Open::Nothing,
            retry_at: Instant::ZERO,
            pause: PAUSE_MIN,
            reason: None,
        }
    }

    /// Where the lines come from.
    pub const fn source(&self) -> &FeedSource {
        &self.source
    }

    /// What is wrong with the source, if anything.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Passes what is there to `feed`.
    pub fn read(&mut self, now: Instant, feed: &mut PathFeed) {
        if let FeedSource::File(path) = &self.source {
            let path = path.clone();
            let read = self.read_file(now, &path, feed);
            self.reason = read.err().map(|error| format!("{}: {error}", path.display()));
            return;
        }
        if matches!(self.open, Open::Nothing) {
            if now < self.retry_at {
                return;
            }
            match self.open_source() {
                Ok(open) => self.open = open,
                Err(reason) => return self.failed(now, feed, reason),
            }
        }
        let before = feed.counters().lines;
        let mut buffer = [0; READ_MAX];
        let outcome = match &mut self.open {
            Open::Stream(stream) => stream.read(&mut buffer),
            Open::Command(command) => command.output.read(&mut buffer),
            Open::Nothing | Open::File(_) => return,
        };
        let reason = match outcome {
            Ok(0) => self.ended(),
            Ok(len) => {
                feed.take(now, &buffer[..len]);
                None
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                None
            }
            Err(error) => Some(format!("reading failed: {error}")),
        };
        if feed.counters().lines > before {
            (self.pause, self.reason) = (PAUSE_MIN, None);
        }
        if let Some(reason) = reason {
            self.failed(now, feed, reason);
        }
    }

    fn failed(&mut self, now: Instant, feed: &mut PathFeed, reason: String) {
        feed.ended();
        self.open = Open::Nothing;
        self.reason = Some(reason);
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn open_source(&self) -> Result<Open, String> {
        match &self.source {
            FeedSource::Unix(path) => connect(path)
                .map(Open::Stream)
                .map_err(|error| format!("{}: {error}", path.display())),
            FeedSource::Exec(command) => RunningCommand::start(command)
                .map(|running| Open::Command(Box::new(running)))
                .map_err(|error| format!("the command cannot be started: {error}")),
            FeedSource::File(_) => Ok(Open::Nothing),
        }
    }

    /// Why there is no more to read; none while that is not known.
    fn ended(&mut self) -> Option<String> {
        match &mut self.open {
            Open::Command(command) => match command.child.try_wait() {
                Ok(Some(status)) => Some(format!("the command ended: {status}")),
                // Its output closes a moment before it has ended.
                _ if command.looks_left > 0 => {
                    command.looks_left -= 1;
                    None
                }
                _ => Some("the command closed its output".to_owned()),
            },
            _ => Some("the other program closed the connection".to_owned()),
        }
    }

    /// The last line of a file that changed.
    fn read_file(&mut self, now: Instant, path: &Path, feed: &mut PathFeed) -> io::Result<()> {
        let metadata = std::fs::metadata(path)?;
        let version = FileVersion::of(&metadata);
        let is_first = match self.open {
            Open::File(seen) if seen == version => return Ok(()),
            Open::File(_) => false,
            _ => true,
        };
        self.open = Open::File(version);
        let changed = Utc::from_nanos(
            version.changed.0.saturating_mul(1_000_000_000).saturating_add(version.changed.1),
        );
        if is_first && self.clock.utc().since(changed) > self.stale_after {
            return Ok(());
        }
        let mut file = open_file(path)?;
        let tail = (LINE_MAX as u64 + 2) * 2;
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(tail)))?;
        let mut bytes = Vec::new();
        file.take(tail).read_to_end(&mut bytes)?;
        feed.line(now, last_line(&bytes));
        Ok(())
    }
}

/// The last whole line, or all where no line has an end.
fn last_line(bytes: &[u8]) -> &[u8] {
    let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &bytes[..end],
        None => bytes,
    };
    let line = whole.iter().rposition(|byte| *byte == b'\n').map_or(whole, |at| &whole[at + 1..]);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

impl RunningCommand {
    fn start(command: &str) -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
        let running = Self { child, output, looks_left: LOOKS_TO_END };
        rustix::io::ioctl_fionbio(&running.output, true)?;
        Ok(running)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(group) =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            // It may have ended by itself.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
