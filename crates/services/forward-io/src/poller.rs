//! Which sockets are ready, reported once each time (edge-triggered epoll), so that ten thousand
//! idle ones cost nothing.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The watched sockets, each under a token. Closing a socket ends the watch.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    last_token: u64,
}

/// What a socket is ready for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    pub token: u64,
    pub readable: bool,
    pub writable: bool,
    /// It has a pending error, or both directions have ended.
    pub broken: bool,
}

/// Sockets reported by one call.
pub(super) const READY_MAX: usize = 256;

impl Poller {
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, last_token: 0 })
    }

    /// A token that no other socket has.
    pub const fn token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// Reports `socket` under `token` from now on, beginning with its present state.
    pub fn watch(&self, socket: &impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)?)
    }

    /// Readable when [`Poller::take`] has something.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The sockets that are ready, without waiting. [`READY_MAX`] of them means that there may be
    /// more.
    pub fn take(&self) -> io::Result<Vec<Ready>> {
        let mut events =
            [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; READY_MAX];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = match epoll::wait(&self.epoll, &mut events, Some(&at_once)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        let ready = events[..count].iter().map(|event| {
            let flags = event.flags;
            let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            Ready {
                token: event.data.u64(),
                readable: broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: broken || flags.contains(EventFlags::OUT),
                broken,
            }
        });
        Ok(ready.collect())
    }
}
