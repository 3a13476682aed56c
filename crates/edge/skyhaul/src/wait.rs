//! Futures for programs without an executor.

use skyhaul_units::Duration;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::Instant;

/// Waits for a future on this thread.
pub trait Wait: Future + Sized {
    /// Blocks this thread until the future is ready. Do not use it within an executor, whose thread
    /// it would block.
    fn wait(self) -> Self::Output {
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut future = pin!(self);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    /// Blocks this thread for `time` at most; `None` if the future was not ready by then. The
    /// future is dropped then, together with a block that it was to send. To continue later, wait
    /// for `as_mut()` of a pinned future.
    #[allow(clippy::disallowed_methods, reason = "the thread waits by the host's clock")]
    fn wait_for(self, time: Duration) -> Option<Self::Output> {
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut future = pin!(self);
        let began = Instant::now();
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(output);
            }
            let left = time.to_std().saturating_sub(began.elapsed());
            if left.is_zero() {
                return None;
            }
            std::thread::park_timeout(left);
        }
    }
}

impl<F: Future> Wait for F {}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
