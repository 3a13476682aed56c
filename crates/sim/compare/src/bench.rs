//! The line of one cell, and the programs on it. Every process that is started here is ended here,
//! by its identifier.

use crate::experiment::{ComparedCell, PLAIN, PublishedExperiment};
use crate::gone::Gone;
use crate::program::{Program, end};
use crate::quiet::QuietWatch;
use crate::wait::pause;
use skyhaul_emulator::{Emulation, EmulatorError, LabDescription, LinkEnd, Namespace};
use skyhaul_units::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Where experiments take place, and what bounds them.
pub struct Site<'a> {
    /// Whose places the line joins.
    pub lab: &'a str,
    /// The user wants to end.
    pub stop: &'a AtomicBool,
    /// How long a tool may take beyond its time before it is ended.
    pub patience: Duration,
    /// Watches what others do meanwhile.
    pub watch: &'a QuietWatch,
}

/// A line that is up, in a cell of an experiment.
pub struct Bench<'a> {
    pub site: &'a Site<'a>,
    pub cell: &'a ComparedCell,
    pub line: LabDescription,
    pub duration: Duration,
    _carried: Carried,
}

/// A line that carries packets until this is dropped, and is removed then.
pub struct Carried {
    namespaces: [Namespace; 2],
    ended: Arc<AtomicBool>,
    carrying: Option<JoinHandle<Result<(), EmulatorError>>>,
}

/// Has a line carry packets while this thread waits for programs.
#[allow(
    clippy::disallowed_methods,
    reason = "the line carries packets while this thread waits for programs"
)]
pub fn carry(lab: &str, mut emulation: Emulation) -> Carried {
    let ended = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&ended);
    let carrying = std::thread::spawn(move || {
        let ran = emulation.run(&until);
        ran.and(emulation.take_down())
    });
    let namespaces = LinkEnd::ALL.map(|place| Namespace::new(lab, place));
    Carried { namespaces, ended, carrying: Some(carrying) }
}

impl<'a> Bench<'a> {
    /// Makes the line of a cell in a round, new and empty, for a run of `duration`.
    pub fn up(
        site: &'a Site<'a>,
        experiment: &'a PublishedExperiment,
        cell: usize,
        round: u32,
        duration: Duration,
    ) -> Result<Self, Gone> {
        let line = experiment.line_in(cell, round);
        let carried = carry(site.lab, Emulation::set_up(site.lab, &line)?);
        let bench = Self { site, cell: &experiment.cells[cell], line, duration, _carried: carried };
        bench.prepare()?;
        Ok(bench)
    }

    /// Makes a new line that does not belong to a cell, for programs that take up to `duration`.
    pub fn over(
        site: &'a Site<'a>,
        line: LabDescription,
        duration: Duration,
    ) -> Result<Self, Gone> {
        let carried = carry(site.lab, Emulation::set_up(site.lab, &line)?);
        Ok(Self { site, cell: &PLAIN, line, duration, _carried: carried })
    }

    /// Buffers of the kernel's TCP, and the second path of its multipath TCP.
    fn prepare(&self) -> Result<(), Gone> {
        if let Some(buffer) = self.cell.tcp_buffer {
            let most = buffer.as_u64();
            self.set_everywhere("net/ipv4/tcp_rmem", &format!("4096 131072 {most}"))?;
            self.set_everywhere("net/ipv4/tcp_wmem", &format!("4096 16384 {most}"))?;
        }
        if self.line.links.len() > 1 {
            for place in LinkEnd::ALL {
                self.namespace(place).ip(&[
                    "mptcp",
                    "limits",
                    "set",
                    "subflows",
                    "8",
                    "add_addr_accepted",
                    "8",
                ])?;
            }
            for link in 1..self.line.links.len() {
                self.namespace(LinkEnd::B).ip(&[
                    "mptcp",
                    "endpoint",
                    "add",
                    &self.far(link),
                    "signal",
                ])?;
            }
        }
        Ok(())
    }

    pub fn namespace(&self, place: LinkEnd) -> Namespace {
        Namespace::new(self.site.lab, place)
    }

    /// The sender's address on a link.
    pub fn near(&self, link: usize) -> String {
        LinkEnd::A.ipv4(link).to_string()
    }

    /// The receiver's address on a link.
    pub fn far(&self, link: usize) -> String {
        LinkEnd::B.ipv4(link).to_string()
    }

    /// How long a tool sends, whole seconds.
    pub fn seconds(&self) -> u64 {
        self.duration.as_nanos() / 1_000_000_000
    }

    /// The user wants to end.
    pub fn is_interrupted(&self) -> bool {
        self.site.stop.load(Ordering::Relaxed)
    }

    /// Sets a value under /proc/sys in both places.
    pub fn set_everywhere(&self, key: &str, value: &str) -> Result<(), Gone> {
        for place in LinkEnd::ALL {
            let written = self
                .namespace(place)
                .enter(|| Ok(std::fs::write(format!("/proc/sys/{key}"), value)))?;
            written.map_err(|error| {
                Gone::Failed(format!("{key} cannot be set to {value} ({error})"))
            })?;
        }
        Ok(())
    }

    /// Starts a program at the receiver, and waits until it listens.
    pub fn serve(&self, command: &[String], over: &str, port: u16) -> Result<Program, Gone> {
        self.serve_at(LinkEnd::B, command, over, port)
    }

    /// Starts a program at the sender that others there call, and waits until it listens.
    pub fn serve_near(&self, command: &[String], over: &str, port: u16) -> Result<Program, Gone> {
        self.serve_at(LinkEnd::A, command, over, port)
    }

    fn serve_at(
        &self,
        place: LinkEnd,
        command: &[String],
        over: &str,
        port: u16,
    ) -> Result<Program, Gone> {
        let mut program = self.start(place, command)?;
        for _ in 0..START.as_nanos() / STEP.as_nanos() {
            if self.is_interrupted() {
                return Err(Gone::Interrupted);
            }
            if self.namespace(place).enter(|| Ok(is_listening(over, port)))? {
                return Ok(program);
            }
            if let Some(said) = program.has_ended() {
                return Err(Gone::Failed(format!("{} ended at once: {said}", command[0])));
            }
            pause(STEP);
        }
        Err(Gone::Failed(format!("{} does not listen after five seconds", command[0])))
    }

    /// Starts a program at the sender.
    pub fn begin(&self, command: &[String]) -> Result<Program, Gone> {
        self.start(LinkEnd::A, command)
    }

    /// Runs a program at the sender to its end. Gives what it printed. A far end that is gone
    /// before ends it.
    pub fn send(&self, command: &[String], far: &mut Program) -> Result<String, Gone> {
        self.finish(self.begin(command)?, far)
    }

    /// Waits for a program to end by itself. Gives what it printed.
    pub fn finish(&self, program: Program, other: &mut Program) -> Result<String, Gone> {
        program.finish(self.duration + self.site.patience, self.site.stop, Some(other))
    }

    fn start(&self, place: LinkEnd, command: &[String]) -> Result<Program, Gone> {
        Program::inside(self.namespace(place).name(), command)
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        // Tools are ended before; this is for what one of them started in a session of its own. The
        // places are ours alone.
        for namespace in self.namespaces.iter().filter(|namespace| namespace.exists()) {
            namespace.processes().unwrap_or_default().into_iter().for_each(end);
        }
        self.ended.store(true, Ordering::Relaxed);
        // Leftovers are removed by the next line of this name, or by `skyhaul lab down`.
        let _ = self.carrying.take().map(JoinHandle::join);
    }
}

/// Whether a socket of this thread's namespace waits at a port.
fn is_listening(over: &str, port: u16) -> bool {
    let at = format!(":{port:04X}");
    let listed = ["", "6"].map(|version| {
        std::fs::read_to_string(format!("/proc/thread-self/net/{over}{version}"))
            .unwrap_or_default()
    });
    let waits = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        local.ends_with(&at) && remote.ends_with(":0000")
    };
    listed.iter().any(|table| table.lines().skip(1).any(waits))
}

/// How long a program may take to listen.
const START: Duration = Duration::from_secs(5);

/// How often it is looked at.
const STEP: Duration = Duration::from_millis(20);

/// A tool's, beyond its own time: what waits in buffers of many megabytes, and every time-out of a
/// connection that is ended.
pub const PATIENCE: Duration = Duration::from_secs(25);
