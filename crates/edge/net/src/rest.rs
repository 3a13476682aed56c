//! How a thread waits for its sockets.

use crate::turn::Arrived;
use crate::{Clock, Waker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_units::{Duration, Instant};
use std::io;

/// The longest wait: a stop flag is checked this often even where nobody wakes the thread.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// The shortest wait, so that what is due within it is sent together: six packets at 93 Mbit/s.
const WAIT_MIN: Duration = Duration::from_micros(500);
/// Datagrams that arrive within this time are taken together: 16 at 93 Mbit/s, which would
/// otherwise wake the thread one by one. The pacer wakes the thread as often.
const GATHER: Duration = Duration::from_millis(2);
/// The least such time, for fast lines, where plenty arrives sooner. The sender takes this wait for
/// a queue, so it must be short.
const GATHER_LEAST: Duration = Duration::from_micros(125);

/// Lets datagrams gather until plenty have arrived, for [`GATHER`] at most.
#[derive(Debug)]
pub(crate) struct Gathering {
    span: Duration,
    /// The datagrams taken next have gathered.
    has_gathered: bool,
}

impl Default for Gathering {
    fn default() -> Self {
        Self { span: GATHER, has_gathered: false }
    }
}

impl Gathering {
    /// Adapts the time to how much was taken.
    pub(crate) fn took(&mut self, arrived: Arrived) {
        if arrived != Arrived::Nothing && core::mem::take(&mut self.has_gathered) {
            self.span = match arrived {
                Arrived::Nothing | Arrived::Little => (self.span * 2).min(GATHER),
                Arrived::Plenty | Arrived::More => (self.span / 2).max(GATHER_LEAST),
            };
        }
    }

    /// Waits for datagrams to gather, for less time if something is `due`. Returns whether that, or
    /// the waker, ended the wait.
    pub(crate) fn rest(
        &mut self,
        waker: &Waker,
        clock: &Clock,
        now: Instant,
        due: Option<Instant>,
    ) -> io::Result<bool> {
        let full = now + self.span;
        let end = due.map_or(full, |due| due.min(full));
        self.has_gathered = end == full;
        let woken = sleep(waker, clock.until(end), None)?;
        Ok(woken || end < full)
    }
}

/// Waits for `waker`, one of `fds`, or what is `due`.
pub(crate) fn wait<'a>(
    waker: &'a Waker,
    clock: &Clock,
    due: Option<Instant>,
    fds: impl IntoIterator<Item = PollFd<'a>>,
) -> io::Result<()> {
    let span = due.map_or(WAIT_MAX, |due| clock.until(due)).clamp(WAIT_MIN, WAIT_MAX);
    sleep(waker, span, fds).map(drop)
}

/// Returns whether the waker ended the wait, or prevented it.
fn sleep<'a>(
    waker: &'a Waker,
    span: Duration,
    fds: impl IntoIterator<Item = PollFd<'a>>,
) -> io::Result<bool> {
    if !waker.may_sleep() {
        return Ok(true);
    }
    let mut all = vec![PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN)];
    all.extend(fds);
    let polled = poll_for(&mut all, span);
    let woken = waker.slept(all[0].revents());
    polled.map(|()| woken)
}

/// Waits for one of `fds`, `span` at most; a signal ends it too.
fn poll_for(fds: &mut [PollFd<'_>], span: Duration) -> io::Result<()> {
    let nanos = span.as_nanos();
    let timeout = Timespec {
        tv_sec: (nanos / 1_000_000_000).cast_signed(),
        tv_nsec: (nanos % 1_000_000_000).cast_signed(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_gather_for_as_long_as_it_takes_for_plenty_to_come() {
        let mut gathering = Gathering::default();
        let mut gathered = |arrived| {
            gathering.has_gathered = true;
            gathering.took(arrived);
            gathering.span
        };
        assert_eq!((gathered(Arrived::Plenty), gathered(Arrived::More)), (GATHER / 2, GATHER / 4));
        assert_eq!((0..9).map(|_| gathered(Arrived::More)).last(), Some(GATHER_LEAST));
        assert_eq!(gathered(Arrived::Nothing), GATHER_LEAST);
        assert_eq!(gathered(Arrived::Little), GATHER_LEAST * 2);
        assert_eq!((0..9).map(|_| gathered(Arrived::Little)).last(), Some(GATHER));
        // Datagrams that came without a wait do not change its length.
        (gathering.has_gathered, gathering.span) = (false, GATHER);
        gathering.took(Arrived::Plenty);
        assert_eq!(gathering.span, GATHER);
    }
}
