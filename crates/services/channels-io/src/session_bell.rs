//! A descriptor that is readable when a channel has news, for programs that wait with `poll`.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Wake;

/// Rings where something happens on a channel.
#[derive(Debug)]
pub(crate) struct SessionBell(OwnedFd);

impl SessionBell {
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub fn ring(&self) {
        // A full counter is readable already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub fn still(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl Wake for SessionBell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}
