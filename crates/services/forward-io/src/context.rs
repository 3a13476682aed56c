//! What listeners, dials, connections and associations share: the time, sessions, the poller, name
//! look-ups, counters and notices.

use crate::poller::Poller;
use crate::refusal::RequestRefusal;
use crate::resolver::NameLookups;
use crate::sessions::Sessions;
use crate::{Counters, ForwardNotice};
use rustix::io::Errno;
use skyhaul_forward::{ConnectRefusal, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::Instant;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Receives what an operator wants to know.
pub type Notify = Box<dyn FnMut(&ForwardNotice) + Send>;

/// Shared by all parts of [`Forwards`](crate::Forwards).
pub(super) struct ForwardContext {
    /// The time of this turn of the thread.
    pub now: Instant,
    pub sessions: Sessions,
    pub poller: Poller,
    pub names: NameLookups,
    pub counters: Counters,
    pub notify: Notify,
    /// Bytes between a socket and a session, within one call.
    pub buffer: Vec<u8>,
}

/// Where a target's address comes from.
#[derive(Debug)]
pub(super) enum Located {
    /// The target names its address.
    At(SocketAddr),
    /// The name look-up has begun; its result comes under the same token.
    LookingUp,
    Refused(RequestRefusal),
}

impl ForwardContext {
    pub fn notice(&mut self, notice: &ForwardNotice) {
        (self.notify)(notice);
    }

    /// Counts and reports a connection that one of the two ends has refused.
    pub fn refused(&mut self, target: Target, refusal: RequestRefusal) {
        self.counters.refused += 1;
        let RequestRefusal { reason, sentence } = refusal;
        self.notice(&ForwardNotice::Refused { target, reason, sentence });
    }

    /// Finds the address of a target that the far node of `session` wants to be connected to.
    pub fn locate(&mut self, session: SessionId, token: u64, target: &Target) -> Located {
        let port = target.port().unwrap_or_default();
        // No name is looked up where no address of it could be allowed.
        let may = self.sessions.get(session).is_some_and(|peer| peer.may_look_up(target));
        match (target.ip(), target.host()) {
            (Some(ip), _) => Located::At(SocketAddr::new(ip, port)),
            (None, Some(host)) if may && self.names.ask(token, host, port) => Located::LookingUp,
            (None, Some(_)) if may => Located::Refused(RequestRefusal::new(
                ConnectRefusal::Busy,
                "too many name look-ups in progress",
            )),
            _ => Located::Refused(RequestRefusal::not_allowed()),
        }
    }

    /// Those of a target's addresses that the far node of `session` may have this node connect to.
    pub fn allowed(
        &self,
        session: SessionId,
        target: &Target,
        addresses: &[SocketAddr],
    ) -> Vec<SocketAddr> {
        let Some(peer) = self.sessions.get(session) else { return Vec::new() };
        let allowed = addresses.iter().filter(|address| peer.permits(target, Some(address.ip())));
        allowed.copied().collect()
    }

    /// Watches a new socket under `token`.
    pub fn watched(&self, socket: OwnedFd, token: u64) -> Result<OwnedFd, Errno> {
        let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM);
        self.poller.watch(&socket, token).map_err(failed).map(|()| socket)
    }
}
