//! Futures for programs without an executor.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

/// Waiting for a future on this thread.
pub trait Wait: Future + Sized {
    /// Blocks this thread until the future is ready. Not for use within an executor, whose thread it would hold.
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
}

impl<F: Future> Wait for F {}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
