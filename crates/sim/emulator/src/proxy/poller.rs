//! Waiting for sockets with time-outs in nanoseconds, and what the kernel dropped from them.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;
use skyhaul_net::drops::{inode, kernel_drops};
use skyhaul_units::Duration;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// What became readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// The socket clients send to.
    Listener,
    /// [`Poller::wake`] was called.
    Wake,
    /// The upstream socket of the client in this slot.
    Client(u32),
}

/// The sockets that are waited for.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// Identity of each socket in the kernel's tables; at most one a client, and the listener.
    inodes: Mutex<BTreeSet<u64>>,
}

impl Poller {
    pub fn new() -> io::Result<Self> {
        let poller = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            inodes: Mutex::default(),
        };
        poller.add(&poller.wake, Token::Wake)?;
        Ok(poller)
    }

    /// Waits for `socket` from now on, until it is closed or [unwatched](Self::unwatch).
    pub fn watch(&self, socket: &impl AsFd, token: Token) -> io::Result<()> {
        self.add(socket, token)?;
        let inode = inode(socket)?;
        self.inodes.lock().unwrap_or_else(PoisonError::into_inner).insert(inode);
        Ok(())
    }

    /// Forgets `socket`, which is about to be closed.
    pub fn unwatch(&self, socket: &impl AsFd) {
        // Closing would take it out as well; what is not in cannot be taken out.
        let _ = epoll::delete(&self.epoll, socket);
        if let Ok(inode) = inode(socket) {
            self.inodes.lock().unwrap_or_else(PoisonError::into_inner).remove(&inode);
        }
    }

    fn add(&self, socket: &impl AsFd, token: Token) -> io::Result<()> {
        let number = match token {
            Token::Listener => LISTENER,
            Token::Wake => WAKE,
            Token::Client(slot) => FIRST_CLIENT + u64::from(slot),
        };
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
        Ok(())
    }

    /// Waits for at most `span`, and adds what is readable to `ready`. Interruptions end the wait
    /// early.
    pub fn wait(&self, span: Duration, ready: &mut Vec<Token>) -> io::Result<()> {
        // This call takes nanoseconds on every kernel; the time-out of the next one does not.
        let mut sockets = [PollFd::new(&self.epoll, PollFlags::IN)];
        match poll(&mut sockets, Some(&timespec(span))) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut events = [EMPTY; READY_AT_ONCE];
        let count = match epoll::wait(&self.epoll, &mut events, Some(&timespec(Duration::ZERO))) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        ready.extend(events[..count].iter().map(|event| match event.data.u64() {
            LISTENER => Token::Listener,
            WAKE => Token::Wake,
            client => Token::Client((client - FIRST_CLIENT) as u32),
        }));
        Ok(())
    }

    /// Ends a wait, or the next one, from any thread.
    pub fn wake(&self) {
        // Fails only where the count is at its end, and then the wait ends anyhow.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Takes the wake-up, so that the next wait waits.
    pub fn take_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }

    /// Datagrams the kernel dropped because one of the watched sockets' buffers was full; `None`
    /// where the system does not tell.
    pub fn kernel_drops(&self) -> Option<u64> {
        let inodes = self.inodes.lock().unwrap_or_else(PoisonError::into_inner);
        kernel_drops(|inode| inodes.contains(&inode))
    }
}

fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}

const EMPTY: epoll::Event =
    epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };

/// Sockets handled after one wait; the rest stay readable for the next.
pub(super) const READY_AT_ONCE: usize = 64;

const LISTENER: u64 = 0;
const WAKE: u64 = 1;
const FIRST_CLIENT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_ends_one_wait() {
        let poller = Poller::new().unwrap();
        poller.wake();
        let mut ready = Vec::new();
        poller.wait(Duration::from_secs(60), &mut ready).unwrap();
        assert_eq!(ready, [Token::Wake]);
        poller.take_wake();
        ready.clear();
        poller.wait(Duration::from_micros(1), &mut ready).unwrap();
        assert_eq!(ready, []);
    }
}
