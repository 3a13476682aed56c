//! The state of a running lab: a folder with its control socket, the identifier of its process, and
//! its log.

use super::refused;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use skyhaul_emulator::{ControlSocket, EmulatorOrder, LinkEnd, Namespace};
use skyhaul_exit::{Exit, Failure};
use std::io::Write;
use std::path::PathBuf;

/// What becomes of programs that still run in a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramsLeft {
    /// They go on, without a network.
    Keep,
    /// They are ended.
    End,
}

/// One lab's folder.
pub struct Home {
    lab: String,
    folder: PathBuf,
}

impl Home {
    /// Of the lab of that name, whether it is up or not.
    pub fn of(lab: &str) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            let help = "run it with sudo; `skyhaul relay` emulates a line for UDP programs without";
            return Err(Failure::new(
                Exit::Environment,
                "emulated links for any program need root",
                help,
            ));
        }
        Ok(Self { lab: lab.to_owned(), folder: PathBuf::from(FOLDER).join(lab) })
    }

    pub fn lab(&self) -> &str {
        &self.lab
    }

    /// The flag that names it on a command line, with a blank before it; nothing for the lab that
    /// is meant without.
    pub fn flag(&self) -> String {
        if self.lab == DEFAULT_LAB { String::new() } else { format!(" --lab {}", self.lab) }
    }

    pub fn control(&self) -> ControlSocket {
        ControlSocket::new(self.folder.join("control"))
    }

    /// Where a lab behind us writes why it could not be made.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Gives the running lab an order.
    pub fn ask(&self, order: &EmulatorOrder) -> Result<serde_json::Value, Failure> {
        if !self.control().path().exists() {
            return Err(self.absent());
        }
        self.control().ask(order).map_err(|error| refused(&error))
    }

    /// There is no such lab.
    pub fn absent(&self) -> Failure {
        let what = format!("the lab `{}` is not up", self.lab);
        let help = format!("make it with `skyhaul lab up{} LINE.toml`", self.flag());
        Failure::new(Exit::Environment, &what, &help)
    }

    /// Makes the folder, with this process as the lab's.
    pub fn settle(&self) -> Result<(), Failure> {
        let place = self.folder.display().to_string();
        let refused =
            |source| Failure::io("the lab's folder cannot be written", &place, "free /run", source);
        std::fs::create_dir_all(&self.folder).map_err(refused)?;
        std::fs::write(self.folder.join("pid"), std::process::id().to_string()).map_err(refused)
    }

    /// Removes the folder.
    pub fn leave(&self) {
        // The next lab of that name removes leftovers.
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// Removes the leftovers of a lab of this name whose process has ended. Refuses a running one.
    pub fn clear_leftovers(&self) -> Result<(), Failure> {
        if self.control().ask(&EmulatorOrder::Status).is_ok() {
            let what = format!("the lab `{}` is up already", self.lab);
            return Err(Failure::new(
                Exit::Environment,
                &what,
                &format!(
                    "end it with `skyhaul lab down{}`, or give --lab another name",
                    self.flag()
                ),
            ));
        }
        let programs = self.programs()?;
        if !programs.is_empty() {
            let listed: Vec<_> = programs.iter().map(u32::to_string).collect();
            let what = format!(
                "programs still run in what a lab `{}` left behind: {}",
                self.lab,
                listed.join(", ")
            );
            return Err(Failure::new(
                Exit::Environment,
                &what,
                &format!("end them, or `skyhaul lab down{} --kill`", self.flag()),
            ));
        }
        self.remove()
    }

    /// Ends the lab and removes all of it.
    pub fn take_down(
        &self,
        programs_left: ProgramsLeft,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let is_known = self.folder.exists() || self.namespaces().iter().any(Namespace::exists);
        if !is_known {
            return Err(self.absent());
        }
        let programs = self.programs()?;
        if programs_left == ProgramsLeft::End {
            self.end_programs()?;
        }
        // A lab that does not answer is one whose process has gone, or that is ended by its
        // identifier below.
        let _ = self.control().ask(&EmulatorOrder::End);
        if let Some(pid) = self.process()
            && !have_ended(&[pid])
        {
            // It may have ended by itself in the meantime.
            let _ = kill_process(pid, Signal::KILL);
        }
        self.remove()?;
        writeln!(out, "the lab `{}` is down", self.lab)?;
        if programs_left == ProgramsLeft::Keep && !programs.is_empty() {
            let listed: Vec<_> = programs.iter().map(u32::to_string).collect();
            writeln!(out, "programs that still run, without a network now: {}", listed.join(", "))?;
        }
        Ok(())
    }

    fn remove(&self) -> Result<(), Failure> {
        for namespace in self.namespaces() {
            namespace.remove().map_err(|error| refused(&error))?;
        }
        self.leave();
        Ok(())
    }

    fn namespaces(&self) -> [Namespace; 2] {
        LinkEnd::ALL.map(|place| Namespace::new(&self.lab, place))
    }

    /// Identifiers of the programs in both places.
    fn programs(&self) -> Result<Vec<u32>, Failure> {
        let mut all = Vec::new();
        for namespace in self.namespaces().iter().filter(|namespace| namespace.exists()) {
            all.extend(namespace.processes().map_err(|error| refused(&error))?);
        }
        Ok(all)
    }

    fn end_programs(&self) -> Result<(), Failure> {
        for signal in [Signal::TERM, Signal::KILL] {
            let programs: Vec<Pid> =
                self.programs()?.into_iter().filter_map(|pid| Pid::from_raw(pid as i32)).collect();
            for pid in &programs {
                // It may have ended by itself in the meantime.
                let _ = kill_process(*pid, signal);
            }
            if have_ended(&programs) {
                break;
            }
        }
        Ok(())
    }

    /// The lab's process, if it runs: the identifier may have gone to another program, which is not
    /// ours to end.
    fn process(&self) -> Option<Pid> {
        let number: i32 =
            std::fs::read_to_string(self.folder.join("pid")).ok()?.trim().parse().ok()?;
        let command = std::fs::read(format!("/proc/{number}/cmdline")).ok()?;
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        let is_lab =
            |pair: &[&[u8]]| pair[0] == b"lab" && (pair[1] == b"up" || pair[1] == b"compare");
        let is_lab = words.windows(2).any(is_lab);
        Pid::from_raw(number).filter(|_| is_lab)
    }
}

/// Waits for processes to end. Whether they all did, in time.
fn have_ended(processes: &[Pid]) -> bool {
    processes.iter().all(|pid| match pidfd_open(*pid, PidfdFlags::empty()) {
        Ok(process) => poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&PATIENCE))
            .is_ok_and(|ended| ended > 0),
        // There is no process with this number any more.
        Err(_) => true,
    })
}

/// The lab that is meant where none is named.
pub const DEFAULT_LAB: &str = "lab";

/// Gone after a restart of the machine, as namespaces are.
const FOLDER: &str = "/run/skyhaul/lab";

/// How long a process may take to end when it is asked to.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
