//! The new process's side: it says how far it is, and is given the inputs.

use super::messages::{FromNew, FromOld, PROTOCOL, PassedInput, PassedKind, PassedSource};
use super::pair::PairEnd;
use super::slot::{GivenSource, SourceSlot};
use super::sockets::HandedSocket;
use crate::fault::Fault;
use skyhaul_units::Duration;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The talk with the old process.
#[derive(Debug)]
pub struct NewSide(PairEnd);

/// A live input that another process, or an earlier start in this one, read before.
#[derive(Debug)]
pub struct HandedInput {
    /// Which.
    pub passed: PassedInput,
    /// What was read and not decoded.
    pub undecoded: File,
    /// What was read since.
    pub reads: File,
    /// Where the source comes to.
    pub slot: Arc<SourceSlot>,
}

/// The live inputs and the sockets for calls that a node begins with; who uses them takes them.
#[derive(Debug, Default)]
pub struct HandedInputs {
    inputs: Mutex<Vec<HandedInput>>,
    sockets: Mutex<Vec<HandedSocket>>,
    /// Of each input; who has taken all that was read of it before lets go of it.
    slots: Vec<Weak<SourceSlot>>,
}

/// One look at the pair while the old process ends its threads; it is waited for without limit, as
/// it ends this process where that takes too long.
const LOOK: Duration = Duration::from_secs(10);

impl HandedInputs {
    /// These.
    pub(crate) fn new(inputs: Vec<HandedInput>, sockets: Vec<HandedSocket>) -> Self {
        let slots = inputs.iter().map(|input| Arc::downgrade(&input.slot)).collect();
        Self { inputs: Mutex::new(inputs), sockets: Mutex::new(sockets), slots }
    }

    /// Whether a channel has not taken yet all that was read of its input before, and since.
    pub(crate) fn is_behind(&self) -> bool {
        self.slots.iter().any(|slot| slot.strong_count() > 0)
    }

    /// Takes the socket that waits for calls at an address, as the configuration names it.
    pub(crate) fn take_socket(&self, kind: PassedKind, listen: SocketAddr) -> Option<HandedSocket> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &HandedSocket| one.passed.kind == kind && one.passed.listen == listen;
        let at = sockets.iter().position(is_it)?;
        Some(sockets.remove(at))
    }

    /// Takes the input of a channel, as the configuration names both.
    pub(crate) fn take(&self, channel: &str, input: &str) -> Option<HandedInput> {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &HandedInput| one.passed.channel == channel && one.passed.input == input;
        let at = inputs.iter().position(is_it)?;
        Some(inputs.swap_remove(at))
    }

    /// Forgets those that nobody has taken; their sockets are closed.
    pub(crate) fn forget(&self) {
        for left in self.inputs.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let PassedInput { channel, input, .. } = left.passed;
            tracing::warn!(channel, input, "the new configuration does not have this input");
        }
        for left in self.sockets.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let address = left.passed.listen;
            tracing::warn!(%address, "the new configuration does not listen there any more");
        }
    }
}

impl NewSide {
    /// Of this process, which has the pair as its standard input.
    ///
    /// # Errors
    /// It has not.
    pub fn of_stdin() -> Result<Self, Fault> {
        let open = || -> io::Result<OwnedFd> {
            let end = io::stdin().as_fd().try_clone_to_owned()?;
            let kind = rustix::net::sockopt::socket_type(&end)?;
            if kind != rustix::net::SocketType::SEQPACKET {
                return Err(io::Error::other("standard input is no pair of sockets"));
            }
            Ok(end)
        };
        open().map(|end| Self(PairEnd::of(end))).map_err(|error| {
            let help = "use `skyhaul upgrade`, which starts this process";
            Fault::configuration(
                format!("there is no process to take over from ({error})"),
                "--take-over",
                help,
            )
        })
    }

    /// Says that this process can take over, as far as it can know.
    ///
    /// # Errors
    /// The old process is gone.
    pub fn say_ready(&self) -> Result<(), Fault> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.say(&FromNew::Ready { protocol: PROTOCOL, version })
    }

    /// Says why this process cannot take over.
    pub fn refuse(&self, why: &str) {
        // Who is gone needs no reason.
        let _ = self.say(&FromNew::Refused { why: why.to_owned() });
    }

    /// Says that the node runs.
    ///
    /// # Errors
    /// The old process is gone.
    pub(crate) fn say_running(&self) -> Result<(), Fault> {
        self.say(&FromNew::Running)
    }

    fn say(&self, message: &FromNew) -> Result<(), Fault> {
        self.0.send(message, &[]).map_err(|error| gone(&error.to_string()))
    }

    /// Waits for the inputs; also returns where their sources come to.
    ///
    /// # Errors
    /// The old process is gone, or goes on itself.
    pub(crate) fn inputs(&self) -> Result<(HandedInputs, Vec<Arc<SourceSlot>>), Fault> {
        let (message, descriptors) = self.next()?;
        let FromOld::Inputs { inputs, sockets } = message else {
            return Err(gone("it says something else"));
        };
        if descriptors.len() != 2 * (inputs.len() + sockets.len()) {
            return Err(gone("descriptors are missing"));
        }
        let slots: Vec<Arc<SourceSlot>> = inputs.iter().map(|_| Arc::default()).collect();
        let mut all = descriptors.into_iter();
        let handed = inputs.into_iter().zip(&slots).filter_map(|(passed, slot)| {
            let (undecoded, reads) = (all.next()?.into(), all.next()?.into());
            Some(HandedInput { passed, undecoded, reads, slot: slot.clone() })
        });
        let handed = handed.collect();
        let sockets = sockets.into_iter().filter_map(|passed| {
            let (socket, calls) = (all.next()?, all.next()?.into());
            Some(HandedSocket { passed, socket, calls })
        });
        Ok((HandedInputs::new(handed, sockets.collect()), slots))
    }

    /// Waits until the old process has stopped to read, and puts the sources where the channels
    /// wait for them. If that process is gone, its inputs are opened again.
    pub(crate) fn sources(self, slots: &[Arc<SourceSlot>]) {
        let (sources, descriptors) = match self.next() {
            Ok((FromOld::Go { sources }, descriptors)) => {
                // An old process that is gone meanwhile has given everything.
                let _ = self.say(&FromNew::Taken);
                (sources, descriptors)
            }
            Ok(_) | Err(_) => {
                tracing::error!("the old process is gone: the inputs are opened again");
                (Vec::new(), Vec::new())
            }
        };
        let (mut sources, mut descriptors) = (sources.into_iter(), descriptors.into_iter());
        for slot in slots {
            slot.give(match sources.next() {
                Some(PassedSource { kind, descriptors: count, .. }) => {
                    let own = descriptors.by_ref().take(usize::from(count)).collect();
                    GivenSource::Given(kind, own)
                }
                None => GivenSource::Lost,
            });
        }
    }

    fn next(&self) -> Result<(FromOld, Vec<OwnedFd>), Fault> {
        loop {
            let received = self.0.receive(LOOK).map_err(|error| gone(&error.to_string()))?;
            if let Some(received) = received {
                let message = FromOld::parse(&received.bytes).map_err(|error| gone(&error))?;
                return Ok((message, received.descriptors));
            }
        }
    }
}

fn gone(why: &str) -> Fault {
    let help = "look at its log; the node runs there, or its service starts it again";
    Fault::environment(format!("the old process does not hand over ({why})"), "--take-over", help)
}
