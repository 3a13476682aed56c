//! Bounded queues between two threads that sleep in `poll`, with few wake-ups.
//!
//! Neither end ever waits for the other: items that the queue has no room for are kept at the
//! giving end, which takes in no more meanwhile, and is woken when there is room.

use crate::Waker;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

/// The giving end. Clones give into the same queue; each keeps its own items in order.
#[derive(Debug)]
pub(super) struct Outlet<T> {
    sender: SyncSender<T>,
    /// Items that did not fit, bounded by the owner, which checks [`Outlet::is_blocked`].
    kept: VecDeque<T>,
    wants_room: Arc<AtomicBool>,
    taker: Waker,
}

/// The taking end.
#[derive(Debug)]
pub(super) struct Inlet<T> {
    receiver: Receiver<T>,
    wants_room: Arc<AtomicBool>,
    giver: Waker,
}

/// The other end is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// A queue of up to `bound` items from the thread of `giver` to that of `taker`.
pub(super) fn queue<T>(bound: usize, giver: Waker, taker: Waker) -> (Outlet<T>, Inlet<T>) {
    let (sender, receiver) = sync_channel(bound);
    let wants_room = Arc::new(AtomicBool::new(false));
    let outlet =
        Outlet { sender, kept: VecDeque::new(), wants_room: Arc::clone(&wants_room), taker };
    (outlet, Inlet { receiver, wants_room, giver })
}

impl<T> Clone for Outlet<T> {
    fn clone(&self) -> Self {
        let (sender, wants_room) = (self.sender.clone(), Arc::clone(&self.wants_room));
        Self { sender, kept: VecDeque::new(), wants_room, taker: self.taker.clone() }
    }
}

impl<T> Outlet<T> {
    /// Gives an item, and wakes the other end if it sleeps.
    pub fn give(&mut self, item: T) -> Result<(), Gone> {
        self.kept.push_back(item);
        self.retry()
    }

    /// Gives the kept items, as far as there is room now.
    pub fn retry(&mut self) -> Result<(), Gone> {
        let mut given = false;
        let mut asked = false;
        let result = loop {
            let Some(item) = self.kept.pop_front() else { break Ok(()) };
            match self.sender.try_send(item) {
                Ok(()) => given = true,
                Err(TrySendError::Full(item)) => {
                    self.kept.push_front(item);
                    // The flag is set before the second try, so that room made later is reported.
                    if core::mem::replace(&mut asked, true) {
                        break Ok(());
                    }
                    self.wants_room.store(true, Ordering::SeqCst);
                }
                Err(TrySendError::Disconnected(_)) => {
                    self.kept.clear();
                    break Err(Gone);
                }
            }
        };
        if given {
            self.taker.wake();
        }
        result
    }

    /// Whether items are kept that did not fit.
    pub fn is_blocked(&self) -> bool {
        !self.kept.is_empty()
    }
}

impl<T> Inlet<T> {
    /// The next item, if there is one now.
    pub fn take(&self) -> Result<Option<T>, Gone> {
        let taken = match self.receiver.try_recv() {
            Ok(item) => Ok(Some(item)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Gone),
        };
        // The giver is woken when the queue is empty, and not for each item.
        if !matches!(taken, Ok(Some(_))) && self.wants_room.swap(false, Ordering::SeqCst) {
            self.giver.wake();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::PollFlags;

    fn ends(bound: usize) -> (Outlet<u32>, Inlet<u32>, Waker, Waker) {
        let (giver, taker) = (Waker::new().unwrap(), Waker::new().unwrap());
        let (outlet, inlet) = queue(bound, giver.clone(), taker.clone());
        (outlet, inlet, giver, taker)
    }

    #[test]
    fn items_that_do_not_fit_are_kept_in_order_and_the_giver_is_woken_when_there_is_room() {
        let (mut outlet, inlet, giver, _) = ends(2);
        for item in 0..5 {
            outlet.give(item).unwrap();
        }
        assert!(outlet.is_blocked() && giver.may_sleep());
        assert!(!giver.slept(PollFlags::empty()));
        let mut seen: Vec<u32> = Vec::new();
        while seen.len() < 5 {
            while let Some(item) = inlet.take().unwrap() {
                seen.push(item);
            }
            assert!(
                seen.len() == 5 && !outlet.is_blocked() || !giver.may_sleep(),
                "nobody told of room"
            );
            outlet.retry().unwrap();
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert!(!outlet.is_blocked());
    }

    #[test]
    fn the_taker_is_woken_and_each_end_sees_the_other_go() {
        let (mut outlet, inlet, _, taker) = ends(2);
        assert!(taker.may_sleep());
        outlet.give(1).unwrap();
        assert!(taker.slept(PollFlags::IN));
        let mut other = outlet.clone();
        drop(outlet);
        other.give(2).unwrap();
        drop(other);
        assert_eq!(inlet.take(), Ok(Some(1)));
        assert_eq!(inlet.take(), Ok(Some(2)));
        assert_eq!(inlet.take(), Err(Gone));
        let (mut outlet, inlet, ..) = ends(2);
        drop(inlet);
        assert_eq!(outlet.give(1), Err(Gone));
        assert!(!outlet.is_blocked());
    }
}
