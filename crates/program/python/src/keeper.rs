//! The one thread that waits for the interpreter.
//!
//! A node's thread must never do so: it holds locks that a Python thread may wait for while it has
//! the interpreter, and a busy interpreter would hold up the line. Whatever has to be told to
//! Python from there (an event loop is to be woken, a buffer is not needed any more) is handed to
//! the keeper, which takes its time.
//!
//! What waits for it is bounded: a task is in the queue once, however often it is woken, and there
//! are no more buffers than blocks on their way.

use crate::waiting::Task;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Something that has to be told to the interpreter.
pub enum Errand {
    /// The task's event loop is to look after it.
    Wake(Arc<Task>),
    /// Nothing of the buffer is needed any more.
    Release(PyUntypedBuffer),
    /// The interpreter ends.
    End,
}

struct Keeper {
    errands: Sender<Errand>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

static KEEPER: OnceLock<Keeper> = OnceLock::new();
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Has the keeper see to it.
pub fn send(errand: Errand) {
    if IS_OVER.load(Ordering::Acquire) {
        // Nobody may ask the interpreter for anything now: the process ends, and its memory with
        // it.
        return core::mem::forget(errand);
    }
    let keeper = KEEPER.get_or_init(|| {
        let (errands, received) = channel();
        let thread = std::thread::Builder::new()
            .name("skyhaul-python".to_owned())
            .spawn(move || keep(&received));
        // Without a thread nobody receives, and what is sent is forgotten below.
        Keeper { errands, thread: Mutex::new(thread.ok()) }
    });
    if let Err(unsent) = keeper.errands.send(errand) {
        core::mem::forget(unsent.0);
    }
}

fn keep(errands: &Receiver<Errand>) {
    while let Ok(errand) = errands.recv() {
        // All that has come is seen to at once: getting hold of the interpreter costs more than the
        // rest.
        let is_over = Python::try_attach(|py| {
            let mut next = Some(errand);
            while let Some(errand) = next {
                match errand {
                    Errand::Wake(task) => task.call_soon(py),
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

/// Has the keeper end before the interpreter does.
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
