//! Waits for a future on this thread, with a time-out.

use skyhaul_net::Clock;
use skyhaul_units::Duration;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Waits on the thread that made it.
#[derive(Debug)]
pub struct Waiter {
    waker: Waker,
    clock: Clock,
}

impl Waiter {
    /// For this thread.
    pub fn new(clock: Clock) -> Self {
        Self { waker: Arc::new(Unpark(std::thread::current())).into(), clock }
    }

    /// The result of `future`; `None` after `limit`.
    pub fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let until = self.clock.now() + limit;
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&self.waker))
            {
                return Some(output);
            }
            let left = self.clock.until(until);
            if left == Duration::ZERO {
                return None;
            }
            std::thread::park_timeout(left.to_std());
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
