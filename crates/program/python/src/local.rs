//! This host's node, by its block service.

use crate::errors::{ClosedError, of_local, of_session};
use crate::session::local_session;
use crate::waiting::{PendingCall, awaitable, job, wait};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// This host's node, by its block service. Closing it closes its sessions.
#[pyclass(frozen, module = "skyhaul", name = "LocalNode")]
pub struct ServiceNode {
    /// `None` when it is closed.
    node: Mutex<Option<Arc<skyhaul::LocalNode>>>,
}

impl ServiceNode {
    fn node(&self) -> PyResult<Arc<skyhaul::LocalNode>> {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner).clone();
        node.ok_or_else(|| ClosedError::new_err("the local node was closed here"))
    }

    fn connect_job(&self, peer: String, program: String) -> PyResult<PendingCall> {
        let node = self.node()?;
        Ok(job(async move { node.connect(&peer, &program).await }, move |py, link| {
            Ok(Py::new(py, local_session(link.map_err(of_session)?))?.into_any())
        }))
    }

    fn accept_job(&self) -> PyResult<PendingCall> {
        let node = self.node()?;
        Ok(job(async move { node.accept().await }, move |py, link| match link {
            Some(link) => Ok(Py::new(py, local_session(link))?.into_any()),
            None => Ok(py.None()),
        }))
    }
}

#[pymethods]
impl ServiceNode {
    #[new]
    fn new(py: Python<'_>, socket: PathBuf, name: &str) -> PyResult<Self> {
        let node = py.detach(|| skyhaul::LocalNode::at(&socket, name)).map_err(of_local)?;
        Ok(Self { node: Mutex::new(Some(Arc::new(node))) })
    }

    /// Connects to the program that listens as `program` at the node's peer of this name. While the
    /// line to the peer is down, it waits.
    #[pyo3(signature = (peer, program, timeout=None))]
    fn connect(
        &self,
        py: Python<'_>,
        peer: String,
        program: String,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        wait(py, self.connect_job(peer, program)?, timeout)
    }

    /// The same for asyncio.
    fn connect_async(&self, py: Python<'_>, peer: String, program: String) -> PyResult<Py<PyAny>> {
        awaitable(py, self.connect_job(peer, program)?)
    }

    /// Takes sessions of far programs under this program's name from now on.
    fn listen(&self, py: Python<'_>) -> PyResult<()> {
        let node = self.node()?;
        py.detach(|| node.listen()).map_err(of_local)
    }

    /// Waits for a far program to connect. Returns its session; None when the service has stopped.
    #[pyo3(signature = (timeout=None))]
    fn accept(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        wait(py, self.accept_job()?, timeout)
    }

    /// The same for asyncio.
    fn accept_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, self.accept_job()?)
    }

    /// Ends its sessions at once.
    fn close(&self, py: Python<'_>) {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(node));
    }

    const fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, job(async {}, |_, ()| Ok(slf.into_any())))
    }

    #[pyo3(signature = (*_error))]
    fn __aexit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.close(py);
        awaitable(py, job(async {}, |py, ()| Ok(py.None())))
    }
}
