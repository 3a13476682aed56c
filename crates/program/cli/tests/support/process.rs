//! The program as a process: run to its end, or in the background and ended with the test.

use super::patience::{PATIENCE, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};

/// The program with these arguments, in `folder`. It writes nothing into the user's folders.
pub fn skyhaul(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_remove("HOME").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    command
}

/// Runs the program to its end.
pub fn run(arguments: &[&str], folder: &Path) -> Output {
    skyhaul(arguments, folder).output().expect("the program starts")
}

/// What the program prints; it must succeed.
#[track_caller]
pub fn printed(arguments: &[&str], folder: &Path) -> String {
    let output = run(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// What the program wrote, which must be UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8")
}

/// A process that does not outlive the test, however that ends.
pub struct Running {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
    log: Option<BufReader<ChildStderr>>,
}

/// How a process ended, and the output that was not read before.
pub struct Ended {
    pub code: Option<i32>,
    pub output: String,
    pub log: String,
}

impl Running {
    /// Starts the program and discards its log.
    pub fn start(arguments: &[&str], folder: &Path) -> Self {
        Self::of(skyhaul(arguments, folder).stdout(Stdio::piped()).stderr(Stdio::null()))
    }

    /// Starts the program, whose log the test reads.
    pub fn start_logged(arguments: &[&str], folder: &Path) -> Self {
        Self::of(skyhaul(arguments, folder).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts a command. Output that it pipes can be read.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let (output, log) =
            (child.stdout.take().map(BufReader::new), child.stderr.take().map(BufReader::new));
        Self { child, output, log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let piped = self.output.as_mut().expect("its output is piped");
        assert!(says_more(piped), "nothing is printed after {PATIENCE:?}");
        piped.read_line(&mut line).expect("it writes UTF-8");
        line
    }

    /// The addresses in the next printed line, which says where it listens.
    pub fn addresses(&mut self) -> Vec<String> {
        let line = self.line();
        let is_address = |word: &&str| word.parse::<SocketAddr>().is_ok();
        let addresses: Vec<String> =
            line.split_whitespace().filter(is_address).map(str::to_owned).collect();
        assert!(!addresses.is_empty(), "no address in `{line}`");
        addresses
    }

    /// The first of these addresses.
    pub fn address(&mut self) -> String {
        self.addresses().swap_remove(0)
    }

    /// What it logs, up to the line that holds `part`.
    pub fn log_until(&mut self, part: &str) -> String {
        let (mut log, mut from) = (String::new(), 0);
        while !log[from..].contains(part) {
            from = log.len();
            let piped = self.log.as_mut().expect("its log is piped");
            assert!(says_more(piped), "nothing after {PATIENCE:?}: `{part}` is not in: {log}");
            let read = piped.read_line(&mut log).expect("the log is text");
            assert!(read > 0, "`{part}` is not in: {log}");
        }
        log
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it has not been waited for");
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is a child of the test");
        self.child.wait().expect("it is a child of the test");
    }

    /// How it ended. `None` if it still runs.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its state is known")
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let status = until(|| self.status(), || "it has not ended".to_owned());
        let (mut output, mut log) = (String::new(), String::new());
        if let Some(mut piped) = self.output.take() {
            piped.read_to_string(&mut output).expect("it writes UTF-8");
        }
        if let Some(mut piped) = self.log.take() {
            piped.read_to_string(&mut log).expect("the log is text");
        }
        Ended { code: status.code(), output, log }
    }
}

/// Waits until there is something to read, or the end of it.
fn says_more<R: Read + AsFd>(piped: &BufReader<R>) -> bool {
    let mut ready = [PollFd::new(piped.get_ref(), PollFlags::IN)];
    let patience = Timespec::try_from(PATIENCE).expect("it is short");
    !piped.buffer().is_empty() || poll(&mut ready, Some(&patience)).is_ok_and(|count| count > 0)
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, and a process that cannot be killed must be left alone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
