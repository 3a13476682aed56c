//! Cancels a transfer from outside, whatever its threads wait for.

use skyhaul::Wait;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

/// A cancellation that all threads of a transfer see.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    set: bool,
    /// One for each thread that waits.
    waiting: Vec<Waker>,
}

impl Cancel {
    /// Ends the transfer.
    pub fn set(&self) {
        let mut state = self.state();
        state.set = true;
        state.waiting.drain(..).for_each(Waker::wake);
    }

    /// Whether the transfer is cancelled.
    pub fn is_set(&self) -> bool {
        self.state().set
    }

    /// Waits for `future` on this thread; `None` where the transfer is cancelled.
    pub fn or<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            let mut state = self.state();
            if state.set {
                return Poll::Ready(None);
            }
            state.waiting.push(context.waker().clone());
            drop(state);
            let polled = future.as_mut().poll(context).map(Some);
            if polled.is_ready() {
                self.state().waiting.retain(|waiting| !waiting.will_wake(context.waker()));
            }
            polled
        })
        .wait()
    }

    /// Whether both belong to the same transfer.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no holder of this lock panics")
    }
}
