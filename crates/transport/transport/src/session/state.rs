//! The states of a session.
//!
//! ```text
//!          open()                     hello received
//!  New ------------> HelloSent ----------------------------> Open
//!   |                                                         ^
//!   |  hello received                        open()           |
//!   +------------------> HelloReceived -----------------------+
//!
//!  each of these:  end ------------------------------------> Closed
//!                  end with a reason for the paths -> Closing, and Closed once the control bytes
//!                                                     are out
//! ```

use super::config::Event;
use crate::wire::{Custody, Resume};
use skyhaul_units::SpoolIdentity;

/// Where a session is between its first path and its end, with what each state has to remember.
#[derive(Debug, Default)]
pub enum SessionState {
    /// Neither end has introduced itself.
    #[default]
    New,
    /// This end has introduced itself.
    HelloSent(OwnSpool),
    /// The far end has introduced itself, and the application does not know yet.
    HelloReceived(Greeting),
    /// Both have. Blocks go both ways.
    Open {
        /// The spool from which the far end sends.
        peer: SpoolIdentity,
    },
    /// The session is over. The paths are to be closed with this reason once the control bytes are
    /// out.
    Closing(String),
    /// The session is over, and nothing is left to do.
    Closed,
}

/// What this end said of itself.
#[derive(Debug, Default)]
pub struct OwnSpool {
    /// From which spool this end sends.
    pub spool: SpoolIdentity,
    /// What this end has of the far end's spools.
    pub custody: Vec<Custody>,
}

/// What the far end said of itself.
#[derive(Debug)]
pub struct Greeting {
    pub name: String,
    /// From which spool the far end sends.
    pub spool: SpoolIdentity,
    /// What the far end has of this end's spools.
    pub custody: Vec<Custody>,
}

/// Whether a call ended the session, or it was over before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Now,
    Before,
}

impl SessionState {
    /// Both ends have introduced themselves, and the session is not over.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Closing(_) | Self::Closed)
    }

    /// The far end has introduced itself, and the session is not over.
    pub const fn has_peer(&self) -> bool {
        matches!(self, Self::HelloReceived(_) | Self::Open { .. })
    }

    /// This end introduces itself. Returns from where the far end's flows go on, as far as the far
    /// end has said from which spool they come, and the event that the far end's hello becomes.
    pub fn open(&mut self, own: OwnSpool) -> (Resume, Option<Event>) {
        match core::mem::replace(self, Self::Closed) {
            Self::HelloReceived(greeting) => {
                *self = Self::Open { peer: greeting.spool };
                (own.resume(greeting.spool), Some(greeting.event(own.spool)))
            }
            Self::New | Self::HelloSent(_) => {
                let resume = own.resume(SpoolIdentity::default());
                *self = Self::HelloSent(own);
                (resume, None)
            }
            Self::Open { peer } => {
                *self = Self::Open { peer };
                (own.resume(peer), None)
            }
            over @ (Self::Closing(_) | Self::Closed) => {
                *self = over;
                (own.resume(SpoolIdentity::default()), None)
            }
        }
    }

    /// The far end introduces itself, for the first time. Returns from where its flows go on and
    /// the event for the application; neither before this end has introduced itself.
    pub fn hello_received(&mut self, greeting: Greeting) -> Option<(Resume, Event)> {
        match core::mem::replace(self, Self::Closed) {
            Self::New => *self = Self::HelloReceived(greeting),
            Self::HelloSent(own) => {
                *self = Self::Open { peer: greeting.spool };
                return Some((own.resume(greeting.spool), greeting.event(own.spool)));
            }
            other => *self = other,
        }
        None
    }

    /// The session ends. The paths stand until they fail or the far end closes them.
    pub fn end(&mut self) -> Ended {
        if self.is_over() {
            return Ended::Before;
        }
        *self = Self::Closed;
        Ended::Now
    }

    /// The session ends, and its paths are closed with a reason. A later reason replaces it.
    pub fn end_and_close(&mut self, reason: String) -> Ended {
        let ended = self.end();
        *self = Self::Closing(reason);
        ended
    }

    /// Takes the reason with which the paths are to be closed.
    pub fn take_close_reason(&mut self) -> Option<String> {
        match core::mem::replace(self, Self::Closed) {
            Self::Closing(reason) => Some(reason),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl OwnSpool {
    /// From where the flows of the far end's spool go on.
    fn resume(&self, peer: SpoolIdentity) -> Resume {
        let known = self.custody.iter().find(|custody| custody.spool.id == peer.id);
        known.map(|custody| custody.resume.clone()).unwrap_or_default()
    }
}

impl Greeting {
    /// The hello as the application learns it: of the custody only what concerns this end's spool.
    fn event(self, own: SpoolIdentity) -> Event {
        let custody = self.custody.into_iter().find(|custody| custody.spool.id == own.id);
        Event::Greeted { name: self.name, spool: self.spool, custody }
    }
}
