//! Wakes the thread that waits on sockets.

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Wakes a waiting [`crate::Driver`]; clones wake the same one. It costs a system call only where
/// the driver sleeps.
///
/// ```text
///   AWAKE ── before it waits ──► ASLEEP ── woken: one write ──► RUNG
///     │                            │                             │
///     ├── woken: no write ──► RUNG │ the wait ended by itself    │ after this wait,
///     │                            │                             │ or before the next
///     └────────────────────────────┴─────────────────────────────┴──► AWAKE
/// ```
#[derive(Debug, Clone)]
pub struct Waker(Arc<Bell>);

#[derive(Debug)]
struct Bell {
    fd: OwnedFd,
    state: AtomicU8,
}

const AWAKE: u8 = 0;
/// Woken while awake: there is no next wait.
const RUNG: u8 = 1;
const ASLEEP: u8 = 2;

impl Waker {
    /// A new one, awake.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Bell { fd, state: AtomicU8::new(AWAKE) })))
    }

    /// Ends the current wait, or prevents the next one.
    pub fn wake(&self) {
        if self.0.state.swap(RUNG, Ordering::AcqRel) == ASLEEP {
            // A full counter means that the thread is awake already.
            let _ = rustix::io::write(&self.0.fd, &1u64.to_ne_bytes());
        }
    }

    /// Call right before waiting for [`Waker::fd`]: returns whether to wait. What was handed over
    /// before a [`Waker::wake`] that this saw can be taken.
    pub fn may_sleep(&self) -> bool {
        let asleep =
            self.0.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        asleep.is_ok() || {
            self.0.state.swap(AWAKE, Ordering::AcqRel);
            false
        }
    }

    /// Call right after waiting, with the poll result of [`Waker::fd`]. Returns whether the thread
    /// was woken.
    pub fn slept(&self, revents: PollFlags) -> bool {
        let woken = self.0.state.swap(AWAKE, Ordering::AcqRel) == RUNG;
        if revents.contains(PollFlags::IN) {
            // A write that comes after the swap ends one more wait without need.
            let _ = rustix::io::read(&self.0.fd, &mut [0u8; 8]);
        }
        woken
    }

    /// Readable where it was woken while it slept.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, Timespec, poll};

    fn is_readable(waker: &Waker) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        fds[0].revents().contains(PollFlags::IN)
    }

    #[test]
    fn one_that_is_awake_is_woken_without_a_system_call_and_does_not_go_to_sleep() {
        let waker = Waker::new().unwrap();
        waker.wake();
        waker.clone().wake();
        assert!(!is_readable(&waker));
        assert!(!waker.may_sleep());
        assert!(waker.may_sleep());
    }

    #[test]
    fn one_that_sleeps_is_woken_by_one_write() {
        let waker = Waker::new().unwrap();
        assert!(waker.may_sleep());
        waker.wake();
        waker.wake();
        assert!(is_readable(&waker));
        assert!(waker.slept(PollFlags::IN));
        assert!(!is_readable(&waker));
        assert!(waker.may_sleep());
        assert!(!waker.slept(PollFlags::empty()));
    }

    #[test]
    fn nothing_handed_over_is_slept_through() {
        let (waker, items) = (Waker::new().unwrap(), 20_000u32);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for item in 0..items {
                    sender.send(item).unwrap();
                    waker.wake();
                }
            });
            let mut taken = 0;
            while taken < items {
                taken += u32::try_from(receiver.try_iter().count()).unwrap();
                if taken < items && waker.may_sleep() {
                    let mut fds = [PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN)];
                    // Far longer than it takes: only a wake-up that was missed would let it end by
                    // itself.
                    let count = poll(&mut fds, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })).unwrap();
                    assert_eq!(count, 1, "slept through {taken} of {items}");
                    waker.slept(PollFlags::IN);
                }
            }
        });
    }
}
