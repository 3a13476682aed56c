//! The one thread that waits for the interpreter.
//!
//! The thread of a node must never wait for the interpreter. It holds locks for which a Python
//! thread may wait while that thread has the interpreter: both would wait for ever. A busy
//! interpreter would also delay the line. So the node's thread leaves its calls into Python (wake
//! an event loop, release a buffer) to the keeper.
//!
//! The queue is bounded: it holds each task at most once, and no more buffers than there are blocks
//! in flight.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Work that needs the interpreter.
pub enum Errand {
    /// Call this, to wake an event loop.
    Wake(Box<dyn FnOnce(Python<'_>) + Send>),
    /// Release the buffer, which is not needed any more.
    Release(PyUntypedBuffer),
    /// End: the interpreter ends.
    End,
}

struct Keeper {
    errands: Sender<Errand>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

static KEEPER: OnceLock<Keeper> = OnceLock::new();
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Queues work for the keeper.
pub fn send(errand: Errand) {
    if IS_OVER.load(Ordering::Acquire) {
        // The interpreter is gone, and the process ends: its memory goes with it.
        return core::mem::forget(errand);
    }
    let keeper = KEEPER.get_or_init(|| {
        let (errands, received) = channel();
        let thread = std::thread::Builder::new()
            .name("skyhaul-python".to_owned())
            .spawn(move || keep(&received));
        // Without a thread nobody receives: errands are forgotten below.
        Keeper { errands, thread: Mutex::new(thread.ok()) }
    });
    if let Err(unsent) = keeper.errands.send(errand) {
        core::mem::forget(unsent.0);
    }
}

fn keep(errands: &Receiver<Errand>) {
    while let Ok(errand) = errands.recv() {
        // All queued errands are done at once: attaching to the interpreter is the costly part.
        let is_over = Python::try_attach(|py| {
            let mut next = Some(errand);
            while let Some(errand) = next {
                match errand {
                    Errand::Wake(wake) => wake(py),
                    Errand::Release(buffer) => drop(buffer),
                    Errand::End => return true,
                }
                next = errands.try_recv().ok();
            }
            false
        });
        if is_over.unwrap_or(true) {
            return;
        }
    }
}

/// Ends the keeper before the interpreter ends.
pub fn end_with_the_interpreter(py: Python<'_>) -> PyResult<()> {
    let last = |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| end(arguments.py());
    let end = PyCFunction::new_closure(py, None, None, last)?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

fn end(py: Python<'_>) {
    if let Some(keeper) = KEEPER.get() {
        send(Errand::End);
        IS_OVER.store(true, Ordering::Release);
        let thread = keeper.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It may need the interpreter once more.
        py.detach(|| thread.map(JoinHandle::join));
    }
    IS_OVER.store(true, Ordering::Release);
}
