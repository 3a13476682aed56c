//! Waiting for futures: a thread that blocks without holding the interpreter and checks for Ctrl-C,
//! or a future of asyncio.

use crate::arguments::duration;
use crate::keeper::{Errand, send};
use core::pin::Pin;
use core::task::{Context, Poll};
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;
use skyhaul::{Duration, Wait};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// Makes the caller's result, when the future is ready.
type Answer = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
/// The future that a caller waits for.
pub type PendingCall = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Between two checks for Ctrl-C: too short to be noticed.
const SLICE: Duration = Duration::from_millis(50);

/// Waits for `future`; `answer` converts its output to the caller's result.
pub fn job<T, A>(future: impl Future<Output = T> + Send + 'static, answer: A) -> PendingCall
where
    T: Send + 'static,
    A: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    Box::pin(async move {
        let output = future.await;
        let answer: Answer = Box::new(move |py| answer(py, output));
        answer
    })
}

/// Blocks the calling thread for at most `timeout` seconds. Other threads of Python go on.
pub fn wait(
    py: Python<'_>,
    mut job: PendingCall,
    timeout: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let mut left = timeout.map(duration).transpose()?;
    loop {
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        if let Some(answer) = py.detach(|| job.as_mut().wait_for(slice)) {
            return answer(py);
        }
        py.check_signals()?;
        if let Some(left) = &mut left {
            *left = left.saturating_sub(slice);
            if *left == Duration::ZERO {
                return Err(PyTimeoutError::new_err("it did not happen in the time given"));
            }
        }
    }
}

/// A job that an event loop of asyncio polls.
pub struct Task {
    /// `None` when it is done or was cancelled.
    job: Mutex<Option<PendingCall>>,
    future: Py<PyAny>,
    event_loop: Py<PyAny>,
    /// It is in the keeper's queue, and the event loop has not polled it since.
    is_woken: AtomicBool,
}

/// A future of asyncio, of the event loop that runs on this thread.
pub fn awaitable(py: Python<'_>, job: PendingCall) -> PyResult<Py<PyAny>> {
    let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
    let future = event_loop.call_method0("create_future")?;
    let task = Arc::new(Task {
        job: Mutex::new(Some(job)),
        future: future.clone().unbind(),
        event_loop: event_loop.unbind(),
        is_woken: AtomicBool::new(false),
    });
    future.call_method1("add_done_callback", (Done(Arc::clone(&task)),))?;
    task.look(py)?;
    Ok(future.unbind())
}

impl Task {
    /// Makes the event loop poll it; from any thread.
    fn call_soon(self: &Arc<Self>, py: Python<'_>) {
        // Nobody waits on a closed loop.
        let _ = self
            .event_loop
            .bind(py)
            .call_method1("call_soon_threadsafe", (Look(Arc::clone(self)),));
    }

    /// Polls the job, on the event loop's thread.
    fn look(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.is_woken.store(false, Ordering::Release);
        let mut slot = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(job) = slot.as_mut() else { return Ok(()) };
        let waker = Arc::clone(self).into();
        let Poll::Ready(answer) = job.as_mut().poll(&mut Context::from_waker(&waker)) else {
            return Ok(());
        };
        let over = slot.take();
        drop(slot);
        drop(over);
        let future = self.future.bind(py);
        if future.call_method0("done")?.is_truthy()? {
            return Ok(());
        }
        match answer(py) {
            Ok(value) => future.call_method1("set_result", (value,))?,
            Err(error) => future.call_method1("set_exception", (error.into_value(py),))?,
        };
        Ok(())
    }

    fn give_up(&self) {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(job);
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            send(Errand::Wake(Box::new(move |py| self.call_soon(py))));
        }
    }
}

/// What the event loop calls.
#[pyclass(frozen)]
struct Look(Arc<Task>);

#[pymethods]
impl Look {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        self.0.look(py)
    }
}

/// What the future calls when it is done, or was cancelled.
#[pyclass(frozen)]
struct Done(Arc<Task>);

#[pymethods]
impl Done {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        self.0.give_up();
    }
}
