//! A node of the demonstration: this program as a separate process, with its log in a file.

use super::folder::Folder;
use super::wait::pause;
use rustix::process::{Pid, Signal, kill_process};
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Duration;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A running node. It is ended when this is dropped.
#[derive(Debug)]
pub struct NodeProcess {
    name: &'static str,
    child: Child,
    log: PathBuf,
    ended: bool,
}

impl NodeProcess {
    /// Starts `skyhaul run NAME.toml` in the folder.
    ///
    /// # Errors
    /// The system refuses to start it.
    pub fn start(name: &'static str, folder: &Folder) -> Result<Self, Failure> {
        let log = folder.log(name);
        let refused = |source| {
            let help = "check the system's limits of processes and open files";
            Failure::io(
                &format!("the {name} cannot be started"),
                &log.display().to_string(),
                help,
                source,
            )
        };
        let output = File::options().create(true).append(true).open(&log).map_err(refused)?;
        let errors = output.try_clone().map_err(refused)?;
        let program = std::env::current_exe().map_err(refused)?;
        let child = Command::new(program)
            .args(["run", "--end-with-parent"])
            .arg(folder.root().join(format!("{name}.toml")))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C goes to the demonstration alone, which then ends its nodes in order.
            .process_group(0)
            .spawn()
            .map_err(refused)?;
        Ok(Self { name, child, log, ended: false })
    }

    /// Sees whether it still runs.
    ///
    /// # Errors
    /// It ended by itself; its last words are in the failure.
    pub fn check(&mut self) -> Result<(), Failure> {
        let Ok(Some(status)) = self.child.try_wait() else { return Ok(()) };
        self.ended = true;
        let what =
            format!("the {} ended by itself with {status}: {}", self.name, self.last_words());
        let place = self.log.display().to_string();
        Err(Failure::new(Exit::Environment, &what, "read its log").at(&place))
    }

    /// Asks it to end, and ends it where it does not within ten seconds. `None` where it had to be
    /// killed.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.ended = true;
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // The process may have ended already.
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        for _ in 0..PATIENCE.as_nanos() / STEP.as_nanos() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            pause(STEP);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }

    /// Kills it, as a loss of power does.
    pub fn kill(mut self) {
        self.ended = true;
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The last lines of its log, as one line.
    fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text =
            String::from_utf8_lossy(&text[text.len().saturating_sub(LAST_BYTES)..]).into_owned();
        let lines: Vec<&str> = text.lines().rev().take(LAST_LINES).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if !self.ended {
            self.end();
        }
    }
}

/// How long a node may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);
const LAST_LINES: usize = 5;
const LAST_BYTES: usize = 4 << 10;
