//! Where programs come in. Accepting pauses while the process has no descriptor for another one:
//! the listening socket stays readable then, and a thread that tried at once would never rest.

use crate::packet;
use crate::waiting::Waiting;
use skyhaul_units::{Duration, Instant};
use std::os::fd::OwnedFd;

/// The listening socket, and whether it is listened to.
#[derive(Debug)]
pub(crate) struct Entrance {
    listener: OwnedFd,
    /// Nobody is accepted before.
    again_at: Option<Instant>,
    is_short: bool,
}

/// What came of a look at the entrance.
#[derive(Debug)]
pub(crate) enum Entering {
    /// A program has come.
    Program(OwnedFd),
    /// Nobody waits, or accepting pauses.
    Nobody,
    /// A program waits and cannot be accepted, for this reason.
    Short(String),
    /// Programs can be accepted again.
    Again,
}

/// Between two attempts while no program can be accepted: ten a second cost nothing, and a program
/// waits no longer than a tenth of a second too long.
const PAUSE: Duration = Duration::from_millis(100);

impl Entrance {
    pub const fn new(listener: OwnedFd) -> Self {
        Self { listener, again_at: None, is_short: false }
    }

    /// Looks for the next program.
    pub fn next(&mut self, now: Instant, waiting: &Waiting) -> Entering {
        if let Some(at) = self.again_at {
            if now < at {
                return Entering::Nobody;
            }
            self.again_at = None;
            waiting.listen(&self.listener);
        }
        match packet::accept(&self.listener) {
            Err(error) => {
                self.again_at = Some(now + PAUSE);
                waiting.ignore(&self.listener);
                self.is_short = true;
                Entering::Short(format!(
                    "the system gives no descriptor for another program ({error}); raise the \
                     node's limit of open files, or end programs that it serves; those that wait \
                     are accepted then"
                ))
            }
            // The program that could not be accepted is in, or has gone.
            Ok(None) if core::mem::take(&mut self.is_short) => Entering::Again,
            Ok(None) => Entering::Nobody,
            Ok(Some(program)) => Entering::Program(program),
        }
    }

    /// When it wants to look again, while accepting pauses.
    pub const fn due(&self) -> Option<Instant> {
        self.again_at
    }
}
