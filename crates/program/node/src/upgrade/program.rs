//! The new process, as the old one sees it.

use super::messages::{FromNew, FromOld, OldSide, PassedSource};
use super::pair::{PairEnd, pair};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How the program is started again.
#[derive(Debug, Clone)]
pub struct ProgramCommand {
    /// The file of the program, as it was named when this process started.
    pub file: PathBuf,
    /// Its arguments; among them the one that lets it take over.
    pub arguments: Vec<OsString>,
}

/// A process that is to take over. Dropped before it may, it is ended.
#[derive(Debug)]
pub struct NewProgram {
    child: Child,
    pair: PairEnd,
    side: OldSide,
    version: String,
    file: PathBuf,
    clock: Clock,
    patience: Duration,
    /// When the present step is to be done.
    due: Instant,
    has_taken_over: bool,
}

/// A process that closed its end of the talk is about to end, and how is worth a wait: on a busy
/// machine the system takes a while to end one.
const END: Duration = Duration::from_secs(2);
/// One that may have said why it ends is waited for so long before it is killed.
const LINGER: Duration = Duration::from_millis(200);
/// It only has to receive descriptors.
const LAST: Duration = Duration::from_secs(10);
/// Between two looks at its end.
const LOOK: Duration = Duration::from_millis(10);

impl NewProgram {
    /// Starts it.
    ///
    /// # Errors
    /// A sentence: the file cannot be run.
    pub fn start(
        command: &ProgramCommand,
        binary: Option<&Path>,
        patience: Duration,
        clock: Clock,
    ) -> Result<Self, String> {
        let file = binary.unwrap_or(&command.file).to_owned();
        let failed = |error: io::Error| format!("{} cannot be run ({error})", file.display());
        let (pair, theirs) = pair().map_err(failed)?;
        let mut new = Command::new(&file);
        // Signs of life are asked of the process that the service manager knows.
        new.args(&command.arguments).stdin(Stdio::from(theirs)).env_remove("WATCHDOG_PID");
        let child = new.spawn().map_err(failed)?;
        let due = clock.now() + patience;
        let (side, version) = (OldSide::default(), String::new());
        Ok(Self { child, pair, side, version, file, clock, patience, due, has_taken_over: false })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its version, once it is ready.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Waits up to `patience` for its next step. Returns whether it is there.
    ///
    /// # Errors
    /// A sentence: it cannot take over.
    pub fn step(&mut self, patience: Duration) -> Result<bool, String> {
        match self.pair.receive(patience) {
            Ok(Some(received)) => {
                let message = FromNew::parse(&received.bytes)?;
                if let FromNew::Ready { version, .. } = &message {
                    self.version.clone_from(version);
                }
                self.side.hear(message)?;
                Ok(true)
            }
            Ok(None) if self.clock.now() >= self.due => {
                Err(format!("{} is not {} within {}", self.name(), self.awaited(), self.patience))
            }
            Ok(None) => Ok(false),
            Err(error) => Err(self.ended(&error)),
        }
    }

    /// Waits for its next step as long as it may take. Says with `is_alive` each second that this
    /// process lives.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn wait(&mut self, is_alive: &dyn Fn()) -> Result<(), String> {
        while !self.step(self.clock.until(self.due).min(LONGEST_WAIT))? {
            is_alive();
        }
        Ok(())
    }

    /// Gives it what [`FromOld::Inputs`] says, with the descriptors; it starts the node.
    ///
    /// # Errors
    /// A sentence: it is gone.
    pub fn give_inputs(
        &mut self,
        inputs: &FromOld,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        let sent = self.pair.send(inputs, descriptors);
        sent.map_err(|error| self.ended(&error))?;
        self.side.gave_inputs();
        self.due = self.clock.now() + self.patience;
        Ok(())
    }

    /// Lets it take over, and waits until it has. This process is to end then.
    ///
    /// # Errors
    /// A sentence: it is gone, and has read nothing.
    pub fn go(
        &mut self,
        sources: Vec<PassedSource>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        let sent = self.pair.send(&FromOld::Go { sources }, descriptors);
        sent.map_err(|error| self.ended(&error))?;
        self.side.gave_sources();
        self.due = self.clock.now() + LAST;
        self.wait(&|| {})?;
        self.has_taken_over = true;
        Ok(())
    }

    const fn awaited(&self) -> &'static str {
        match self.side {
            OldSide::Checking => "ready",
            _ => "running",
        }
    }

    fn name(&self) -> String {
        format!("the new process {} ({})", self.child.id(), self.file.display())
    }

    /// How it ended, instead of a message.
    fn ended(&mut self, error: &io::Error) -> String {
        match self.wait_for_end(END) {
            Some(how) => format!("{} ended ({how}) before it was {}", self.name(), self.awaited()),
            None => format!("{} does not talk to this one ({error})", self.name()),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a process has no descriptor to wait on here")]
    fn wait_for_end(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        let due = self.clock.now() + patience;
        loop {
            if let Ok(Some(how)) = self.child.try_wait() {
                return Some(how);
            }
            if self.clock.now() >= due {
                return None;
            }
            std::thread::sleep(LOOK.to_std());
        }
    }
}

/// Between two looks at the time.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Drop for NewProgram {
    fn drop(&mut self) {
        if !self.has_taken_over {
            // Nothing else may use the state folder after this.
            self.wait_for_end(LINGER);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
