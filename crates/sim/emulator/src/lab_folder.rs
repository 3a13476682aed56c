//! The state of a running lab: a folder with its control socket, the identifier of its process, and
//! its log.

use crate::control::ControlSocket;
use crate::error::EmulatorError;
use crate::lab_name::{lab_flag, lab_name};
use crate::order::EmulatorOrder;
use crate::place::{LinkEnd, Namespace};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::path::PathBuf;

/// What becomes of programs that still run in a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramsLeft {
    /// They go on, without a network.
    Keep,
    /// They are ended.
    End,
}

/// The folder of one lab.
pub struct LabFolder {
    lab: String,
    folder: PathBuf,
}

impl LabFolder {
    /// Of the lab of that name, whether it is up or not.
    ///
    /// # Errors
    /// It cannot be the name of a lab, or this user is not root.
    pub fn of(lab: &str) -> Result<Self, EmulatorError> {
        // The folder is removed as a whole: no name may lead out of the folder of all labs.
        let lab = lab_name(lab)
            .map_err(|help| EmulatorError::Order(format!("`{lab}` is not a lab's name; {help}")))?;
        if !rustix::process::geteuid().is_root() {
            return Err(EmulatorError::NotRoot);
        }
        Ok(Self { folder: PathBuf::from(FOLDER).join(&lab), lab })
    }

    /// The name of the lab.
    pub fn lab(&self) -> &str {
        &self.lab
    }

    /// The flag that names the lab on a command line, with a blank before it; empty for the
    /// default lab.
    pub fn flag(&self) -> String {
        lab_flag(&self.lab)
    }

    /// The socket on which the lab's process takes orders.
    pub fn control(&self) -> ControlSocket {
        ControlSocket::new(self.folder.join("control"))
    }

    /// The file in which a lab in the background writes why it could not be made.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Gives the running lab an order.
    ///
    /// # Errors
    /// The lab is not up, does not answer, or refuses the order.
    pub fn ask(&self, order: &EmulatorOrder) -> Result<serde_json::Value, EmulatorError> {
        if !self.control().path().exists() {
            return Err(self.absent());
        }
        self.control().ask(order)
    }

    /// The lab is not up.
    pub fn absent(&self) -> EmulatorError {
        EmulatorError::NotUp { lab: self.lab.clone() }
    }

    /// Makes the folder, and notes this process as the lab's.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create(&self) -> Result<(), EmulatorError> {
        let refused = |source| EmulatorError::Folder { folder: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(refused)?;
        std::fs::write(self.folder.join("pid"), std::process::id().to_string()).map_err(refused)
    }

    /// Removes the folder.
    pub fn remove(&self) {
        // The next lab of that name removes leftovers.
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// Removes what a lab of this name left behind whose process has ended.
    ///
    /// # Errors
    /// The lab is up, or programs run in its namespaces.
    pub fn clear_leftovers(&self) -> Result<(), EmulatorError> {
        let lab = || self.lab.clone();
        if self.control().ask(&EmulatorOrder::Status).is_ok() {
            return Err(EmulatorError::UpAlready { lab: lab() });
        }
        let programs = self.programs()?;
        if !programs.is_empty() {
            return Err(EmulatorError::ProgramsRun { lab: lab(), programs });
        }
        self.remove_all()
    }

    /// Ends the lab and removes all of it. Returns the identifiers of the programs that still run,
    /// without a network.
    ///
    /// # Errors
    /// There is no such lab, or a namespace cannot be removed.
    pub fn take_down(&self, programs_left: ProgramsLeft) -> Result<Vec<u32>, EmulatorError> {
        let is_known = self.folder.exists() || self.namespaces().iter().any(Namespace::exists);
        if !is_known {
            return Err(self.absent());
        }
        let mut programs = self.programs()?;
        if programs_left == ProgramsLeft::End {
            self.end_programs()?;
            programs.clear();
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
        self.remove_all()?;
        Ok(programs)
    }

    fn remove_all(&self) -> Result<(), EmulatorError> {
        for namespace in self.namespaces() {
            namespace.remove()?;
        }
        self.remove();
        Ok(())
    }

    fn namespaces(&self) -> [Namespace; 2] {
        LinkEnd::ALL.map(|place| Namespace::new(&self.lab, place))
    }

    /// Identifiers of the programs in both places.
    fn programs(&self) -> Result<Vec<u32>, EmulatorError> {
        let mut all = Vec::new();
        for namespace in self.namespaces().iter().filter(|namespace| namespace.exists()) {
            all.extend(namespace.processes()?);
        }
        Ok(all)
    }

    fn end_programs(&self) -> Result<(), EmulatorError> {
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

/// Gone after a restart of the machine, as namespaces are.
const FOLDER: &str = "/run/skyhaul/lab";

/// How long a process may take to end when it is asked to.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder_of_labs() {
        for name in ["..", "../state", "/", ""] {
            let refused = LabFolder::of(name);
            assert!(matches!(refused, Err(EmulatorError::Order(_))), "{name}");
        }
    }
}
