//! Sessions.

use crate::arguments::duration;
use crate::buffer::{Received, shared};
use crate::errors::{BlockError, ClosedError, of_hint, of_session};
use crate::sent::{BlockId, Sent};
use crate::waiting::{PendingCall, awaitable, job, wait};
use pyo3::exceptions::{PyStopAsyncIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use skyhaul::{
    Block, ClassTree, FlowId, HintError, MAX_BLOCK, Mode, PathId, Session as AppChannel,
    SessionConfig,
};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

/// A session with another node.
#[pyclass(frozen, module = "skyhaul")]
pub struct Session {
    /// `None` when it is closed here.
    link: Mutex<Option<Arc<AppChannel>>>,
    classes: Arc<ClassTree>,
}

/// `skyhaul.Block`
#[derive(FromPyObject)]
struct BlockArgument<'py> {
    data: Bound<'py, PyAny>,
    flow: u32,
    deadline: Option<Bound<'py, PyAny>>,
    expendable: bool,
    priority: u8,
    depends_on: Option<BlockId>,
    useful_alone: bool,
    class_name: Option<String>,
    redundant: bool,
}

impl Session {
    pub fn new(link: AppChannel, classes: Arc<ClassTree>) -> Self {
        Self { link: Mutex::new(Some(Arc::new(link))), classes }
    }

    fn link(&self) -> PyResult<Arc<AppChannel>> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        link.ok_or_else(|| ClosedError::new_err("it was closed here"))
    }
}

/// A session through the block service, which says which classes there are.
pub fn local_session(link: AppChannel) -> Session {
    let classes = link.classes().unwrap_or_else(|| SessionConfig::default().classes);
    Session::new(link, Arc::new(classes))
}

#[pymethods]
impl Session {
    /// Passes a block to the session as soon as there is room for it.
    #[pyo3(signature = (block, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        block: &Bound<'_, PyAny>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        wait(py, send_job(self, block)?, timeout)
    }

    /// The same for asyncio.
    fn send_async(&self, py: Python<'_>, block: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        awaitable(py, send_job(self, block)?)
    }

    /// Waits for the next received block. Returns None when the session has ended and all blocks
    /// were taken.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        wait(py, recv_job(self, |py| Ok(py.None()))?, timeout)
    }

    /// The same for asyncio.
    fn recv_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, recv_job(self, |py| Ok(py.None()))?)
    }

    const fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = wait(py, recv_job(self, |py| Ok(py.None()))?, None)?;
        Ok(Some(next).filter(|next| !next.is_none(py)))
    }

    const fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, recv_job(self, |_| Err(PyStopAsyncIteration::new_err(())))?)
    }

    /// A descriptor for select and poll: readable when a block has arrived, the outcome of a block
    /// is known, or the session has ended.
    fn fileno(&self) -> PyResult<i32> {
        let link = self.link()?;
        let descriptor = link.descriptor().map_err(PyErr::from)?;
        Ok(descriptor.as_raw_fd())
    }

    /// The counters of the session since it began, by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.link()?.stats();
        let all = PyDict::new(py);
        for (name, value) in [
            ("blocks_taken", stats.sent.blocks_taken),
            ("blocks_reported", stats.sent.blocks_reported),
            ("bytes_reported", stats.sent.bytes_reported),
            ("blocks_given_up", stats.sent.blocks_given_up),
            ("blocks_cancelled", stats.sent.blocks_cancelled),
            ("blocks_delivered", stats.received.blocks_delivered),
            ("blocks_repaired", stats.received.blocks_repaired),
            ("blocks_expired", stats.received.blocks_expired),
            ("blocks_in_flight", stats.received.blocks_in_flight),
            ("bytes_delivered", stats.received.bytes_delivered),
            ("symbols_sent", stats.sent.symbols_sent),
            ("symbols_repeated", stats.sent.symbols_repeated),
            ("symbols_lost", stats.sent.symbols_lost),
            ("symbols_received", stats.received.symbols_received),
            ("symbols_recovered", stats.received.symbols_recovered),
            ("send_buffer", stats.sent.buffer),
        ] {
            all.set_item(name, value)?;
        }
        Ok(all)
    }

    /// The paths of the session and their states.
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let kind = py.import("skyhaul.blocks")?.getattr("PathStatus")?;
        let paths = self.link()?.paths().into_iter().map(|(id, status)| {
            let estimate = status.estimate;
            let (rtt, min_rtt) = (estimate.rtt.as_secs_f64(), estimate.min_rtt.as_secs_f64());
            let counts =
                (status.stats.symbols_sent, status.stats.symbols_lost, status.stats.repair_sent);
            let loss = status.loss.as_f64();
            kind.call1((
                id.0,
                status.state.name(),
                rtt,
                min_rtt,
                estimate.rate.as_bps(),
                loss,
                counts.0,
                counts.1,
                counts.2,
            ))
        });
        paths.collect()
    }

    /// Says which rate a path of the session has from now on, counted in IP packets. For `lasts`
    /// seconds the path gets no more; None sets no such limit. The paths of a session of a
    /// LocalNode are numbered as the node's status shows them, from 0, and the node must allow
    /// hints of this program.
    #[pyo3(signature = (path, rate, lasts=None))]
    fn hint_rate(
        &self,
        py: Python<'_>,
        path: u8,
        rate: &Bound<'_, PyAny>,
        lasts: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (rate, lasts) = (crate::arguments::rate(rate)?, lasts.map(duration).transpose()?);
        let link = self.link()?;
        hinted(py, async move { link.hint_rate(PathId(path), rate, lasts).await })
    }

    /// Says which share of its datagrams, 0 to 1, a path of the session loses at least, for `lasts`
    /// seconds: FEC repair is sized for it.
    fn hint_loss(
        &self,
        py: Python<'_>,
        path: u8,
        loss: f64,
        lasts: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (loss, lasts) = (crate::arguments::share(loss)?, duration(lasts)?);
        let link = self.link()?;
        hinted(py, async move { link.hint_loss(PathId(path), loss, lasts).await })
    }

    /// Withdraws what this program said of a path of the session.
    fn withdraw_hints(&self, py: Python<'_>, path: u8) -> PyResult<()> {
        let link = self.link()?;
        hinted(py, async move { link.withdraw_hints(PathId(path)).await })
    }

    /// The paths that could not be set up, each with the reason.
    fn refused_paths(&self) -> PyResult<Vec<String>> {
        Ok(self.link()?.refused_paths())
    }

    /// The name that the far end gives itself.
    #[getter]
    fn peer_name(&self) -> PyResult<String> {
        Ok(self.link()?.peer_name())
    }

    /// The fingerprint of the key that the far end proved to have.
    #[getter]
    fn peer(&self) -> PyResult<Option<String>> {
        Ok(self.link()?.peer().map(|key| key.to_string()))
    }

    /// Why the session has ended. None while it is open.
    #[getter]
    fn closed(&self) -> Option<String> {
        self.link().map_or_else(|_| Some("it was closed here".to_owned()), |link| link.closed())
    }

    /// Closes the session when all blocks that were passed to it have an outcome.
    fn close(&self) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(link);
    }

    const fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, job(async {}, |_, ()| Ok(slf.into_any())))
    }

    #[pyo3(signature = (*_error))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        _error: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        self.close();
        awaitable(py, job(async {}, |py, ()| Ok(py.None())))
    }
}

/// The block of a `skyhaul.Block`.
fn block_of(classes: &ClassTree, block: &Bound<'_, PyAny>) -> PyResult<Block> {
    let block: BlockArgument<'_> = block.extract()?;
    let bytes = shared(&block.data)?;
    if bytes.is_empty() || bytes.len() > MAX_BLOCK {
        let what = format!("a block of {} bytes cannot be sent", bytes.len());
        return Err(BlockError::new_err(format!(
            "{what}; divide the data into blocks of 1 to {MAX_BLOCK} bytes"
        )));
    }
    if block.expendable && block.deadline.is_none() {
        return Err(BlockError::new_err("an expendable block needs a deadline; give it one"));
    }
    let class = match &block.class_name {
        None => classes.default_leaf(),
        Some(name) => classes.find(name).ok_or_else(|| {
            let leaves: Vec<&str> = classes.leaves().map(|(_, name)| name).collect();
            PyValueError::new_err(format!(
                "no class `{name}` takes blocks; name one of {}",
                leaves.join(", ")
            ))
        })?,
    };
    Ok(Block {
        class,
        priority: block.priority,
        deadline: block.deadline.as_ref().map(duration).transpose()?,
        depends_on: block.depends_on.map(Into::into),
        useful_alone: block.useful_alone,
        mode: if block.expendable { Mode::Expendable } else { Mode::Reliable },
        redundant: block.redundant,
        ..Block::reliable(FlowId(block.flow), bytes)
    })
}

fn send_job(session: &Session, block: &Bound<'_, PyAny>) -> PyResult<PendingCall> {
    let (link, block) = (session.link()?, block_of(&session.classes, block)?);
    Ok(job(async move { link.send(block).await }, |py, sent| {
        Ok(Py::new(py, Sent::new(sent.map_err(of_session)?))?.into_any())
    }))
}

/// The next block; `end` makes the result when there are no more.
fn recv_job(
    session: &Session,
    end: fn(Python<'_>) -> PyResult<Py<PyAny>>,
) -> PyResult<PendingCall> {
    let link = session.link()?;
    Ok(job(async move { link.recv().await }, move |py, incoming| match incoming {
        Some(incoming) => Ok(Py::new(py, Received::new(incoming))?.into_any()),
        None => end(py),
    }))
}

/// Waits for the answer to a hint: at once in a session of this process, soon from a node.
fn hinted(
    py: Python<'_>,
    answer: impl Future<Output = Result<(), HintError>> + Send + 'static,
) -> PyResult<()> {
    let answer = job(answer, |py, answer| answer.map(|()| py.None()).map_err(of_hint));
    wait(py, answer, None).map(drop)
}
