//! Log and output of a long-running process: each goes through a bounded queue, so that a reader
//! that stops or goes away neither slows nor ends the process.

mod descriptor;
mod outlet;

pub use outlet::Outlet;

use descriptor::Descriptor;
use skyhaul_net::Clock;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static ERRORS: OnceLock<Outlet> = OnceLock::new();
static OUTPUT: OnceLock<Outlet> = OnceLock::new();
static PANICKED: AtomicBool = AtomicBool::new(false);

/// A process that ends waits this long for queued output to be read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Starts the threads that write the log and the output.
///
/// # Errors
/// The system gives no thread.
pub fn start() -> io::Result<()> {
    let clock = Clock::start();
    let errors = Descriptor(io::stderr().as_fd().try_clone_to_owned()?);
    let note = move |lines| {
        let utc = clock.utc();
        format!(
            "{utc}  WARN skyhaul: {lines} log lines dropped here: standard error was not read\n"
        )
    };
    // A process has one log: an existing one stays.
    let _ = ERRORS.set(Outlet::start(errors, note)?);
    let output = Descriptor(io::stdout().as_fd().try_clone_to_owned()?);
    let note = |lines| format!("{{\"event\":\"dropped\",\"lines\":{lines}}}\n");
    let _ = OUTPUT.set(Outlet::start(output, note)?);
    std::panic::set_hook(Box::new(panicked));
    Ok(())
}

/// Like the standard library's panic hook, but it does not wait for a reader.
fn panicked(info: &PanicHookInfo<'_>) {
    PANICKED.store(true, Ordering::Relaxed);
    let thread = std::thread::current();
    let mut text = format!("thread '{}' {info}", thread.name().unwrap_or("<unnamed>"));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("\n{trace}"));
    }
    say(&text);
}

/// Writes a line to standard error. A closed standard error is ignored.
pub fn say(line: &str) {
    let _ = writeln!(errors(), "{line}");
}

/// Writes lines to standard output, from any thread. A closed standard output is ignored.
pub fn print(lines: &str) {
    let _ = output().write_all(lines.as_bytes());
}

/// Standard error.
pub fn errors() -> Lines {
    let to = ERRORS.get().map_or_else(|| To::Direct(Box::new(io::stderr())), To::Outlet);
    Lines { to, begun: Vec::new() }
}

/// Standard output.
pub fn output() -> Lines {
    let direct = || {
        // Not through the library's own lock: who runs a short command has that as long as the
        // command runs.
        To::Direct(match io::stdout().as_fd().try_clone_to_owned() {
            Ok(file) => Box::new(Descriptor(file)),
            Err(_) => Box::new(io::sink()),
        })
    };
    Lines { to: OUTPUT.get().map_or_else(direct, To::Outlet), begun: Vec::new() }
}

/// Whether a thread of the process has panicked.
pub fn has_panicked() -> bool {
    PANICKED.load(Ordering::Relaxed)
}

/// Lines of the log that were dropped since the process started.
pub fn dropped() -> u64 {
    ERRORS.get().map_or(0, Outlet::dropped)
}

/// Waits until everything is written, or until the readers have had their time.
pub fn finish() {
    for outlet in [&OUTPUT, &ERRORS].into_iter().filter_map(OnceLock::get) {
        outlet.finish(PATIENCE);
    }
}

/// Takes bytes, and hands them on line by line.
pub struct Lines {
    to: To,
    begun: Vec<u8>,
}

enum To {
    Outlet(&'static Outlet),
    Direct(Box<dyn Write>),
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outlet = match &mut self.to {
            To::Direct(file) => return file.write(bytes),
            To::Outlet(outlet) => outlet,
        };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if part.ends_with(b"\n") {
                outlet.push(std::mem::take(&mut self.begun));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Direct(file) => file.flush(),
            To::Outlet(outlet) => {
                if !self.begun.is_empty() {
                    outlet.push(std::mem::take(&mut self.begun));
                }
                Ok(())
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
