//! Blocks that were passed to a session.

use crate::errors::ClosedError;
use crate::waiting::{PendingCall, awaitable, job, wait};
use pyo3::prelude::*;
use skyhaul::{FlowId, Outcome, Seq};
use std::sync::Arc;

/// The name of a block within its session.
#[pyclass(frozen, eq, hash, get_all, from_py_object, module = "skyhaul")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockId {
    /// Its flow.
    flow: u32,
    /// Its number within the flow.
    seq: u64,
}

#[pymethods]
impl BlockId {
    #[new]
    const fn new(flow: u32, seq: u64) -> Self {
        Self { flow, seq }
    }

    fn __repr__(&self) -> String {
        format!("BlockId(flow={}, seq={})", self.flow, self.seq)
    }
}

impl From<skyhaul::BlockId> for BlockId {
    fn from(id: skyhaul::BlockId) -> Self {
        Self { flow: id.flow.0, seq: id.seq.0 }
    }
}

impl From<BlockId> for skyhaul::BlockId {
    fn from(id: BlockId) -> Self {
        Self { flow: FlowId(id.flow), seq: Seq(id.seq) }
    }
}

/// A block that was passed to a session. Await it, or call `wait`, to get its outcome. The block is
/// sent even if this object is dropped.
#[pyclass(frozen, module = "skyhaul")]
pub struct Sent(Arc<skyhaul::Sent>);

impl Sent {
    pub fn new(sent: skyhaul::Sent) -> Self {
        Self(Arc::new(sent))
    }

    fn outcome_job(&self) -> PendingCall {
        let sent = Arc::clone(&self.0);
        job(async move { sent.outcome().await }, |py, outcome| {
            let name = match outcome {
                // Over sessions there is always a way back.
                Some(Outcome::Delivered | Outcome::Sent) => "delivered",
                Some(Outcome::Expired) => "expired",
                Some(Outcome::Cancelled) => "cancelled",
                None => {
                    return Err(ClosedError::new_err(
                        "the session ended before the block's fate was known",
                    ));
                }
            };
            let kinds = py.import("skyhaul.blocks")?.getattr("Outcome")?;
            Ok(kinds.call1((name,))?.unbind())
        })
    }

    fn name_job(&self) -> PendingCall {
        let sent = Arc::clone(&self.0);
        job(async move { sent.name().await }, |py, name| {
            Ok(name.map(BlockId::from).into_pyobject(py)?.into_any().unbind())
        })
    }
}

#[pymethods]
impl Sent {
    /// Waits for the outcome of the block.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        wait(py, self.outcome_job(), timeout)
    }

    /// Waits for the name that the session gives to the block when it accepts the block. Returns
    /// None if the session did not accept it.
    #[pyo3(signature = (timeout=None))]
    fn name(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        wait(py, self.name_job(), timeout)
    }

    /// The same for asyncio.
    fn name_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, self.name_job())
    }

    fn __await__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, self.outcome_job())?.call_method0(py, "__await__")
    }
}
