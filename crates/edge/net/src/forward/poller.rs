//! Which sockets have something new, told once each time (edge-triggered): ten thousand that have
//! nothing cost nothing.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The sockets that are watched. A socket that is closed is watched no more.
#[derive(Debug)]
pub(super) struct Poller(OwnedFd);

/// What is new of a socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    pub token: u64,
    pub readable: bool,
    pub writable: bool,
    /// It has an error to tell, or both directions are over.
    pub broken: bool,
}

/// Sockets told of in one call.
pub(super) const READY_MAX: usize = 256;

impl Poller {
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Tells of `socket` under `token` from now on; first of what it has already.
    pub fn watch(&self, socket: &impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.0, socket, EventData::new_u64(token), flags)?)
    }

    /// Readable when there is something to [take](Self::take).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// What is new, without waiting. As many as [`READY_MAX`] means that there may be more.
    pub fn take(&self) -> io::Result<Vec<Ready>> {
        let mut events =
            [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; READY_MAX];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = match epoll::wait(&self.0, &mut events, Some(&at_once)) {
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
