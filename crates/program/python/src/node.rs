//! The node of this host.

use crate::arguments::{classes, parsed, paths, rate};
use crate::errors::{ClosedError, of_session, of_start};
use crate::identity::Identity;
use crate::session::Session;
use crate::waiting::{PendingCall, awaitable, job, wait};
use core::net::SocketAddr;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use skyhaul::{ByteCount, ClassTree, Fingerprint, NodeBuilder, SessionConfig};
use std::sync::{Arc, Mutex, PoisonError};

/// A node with its sockets. Closing it closes its sessions.
#[pyclass(frozen, module = "skyhaul")]
pub struct Node {
    /// `None` when it is closed.
    node: Mutex<Option<Arc<skyhaul::Node>>>,
    addresses: Vec<SocketAddr>,
    classes: Arc<ClassTree>,
}

/// The options of a node; unknown ones are refused.
const OPTIONS: [&str; 6] = ["bind", "trust", "line", "packet", "window", "classes"];

impl Node {
    fn node(&self) -> PyResult<Arc<skyhaul::Node>> {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner).clone();
        node.ok_or_else(|| ClosedError::new_err("the node was closed here"))
    }

    fn connect_job(&self, to: &Bound<'_, PyAny>, peer: &str) -> PyResult<PendingCall> {
        let (node, paths, peer) = (self.node()?, paths(to)?, parsed::<Fingerprint>(peer)?);
        let classes = Arc::clone(&self.classes);
        Ok(job(async move { node.connect(paths, peer).await }, move |py, link| {
            Ok(Py::new(py, Session::new(link.map_err(of_session)?, classes))?.into_any())
        }))
    }

    fn accept_job(&self) -> PyResult<PendingCall> {
        let (node, classes) = (self.node()?, Arc::clone(&self.classes));
        Ok(job(async move { node.accept().await }, move |py, link| match link {
            Some(link) => Ok(Py::new(py, Session::new(link, classes))?.into_any()),
            None => Ok(py.None()),
        }))
    }
}

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (name, key, **options))]
    fn new(
        py: Python<'_>,
        name: &str,
        key: &Bound<'_, Identity>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut builder = skyhaul::Node::named(name, key.get().0.clone());
        let mut session = SessionConfig::default();
        for (option, value) in options.into_iter().flatten() {
            builder = set(builder, &mut session, option.cast()?, &value)?;
        }
        let classes = Arc::new(session.classes.clone());
        let node = py.detach(|| builder.sessions(session).start()).map_err(of_start)?;
        let addresses = node.addresses().to_vec();
        Ok(Self { node: Mutex::new(Some(Arc::new(node))), addresses, classes })
    }

    /// The addresses of its sockets, in the order of `bind`.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.addresses.iter().map(SocketAddr::to_string).collect()
    }

    /// Connects to the node with the key `peer` over `paths`.
    #[pyo3(signature = (paths, peer, timeout=None))]
    fn connect(
        &self,
        py: Python<'_>,
        paths: &Bound<'_, PyAny>,
        peer: &str,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        wait(py, self.connect_job(paths, peer)?, timeout)
    }

    /// The same for asyncio.
    fn connect_async(
        &self,
        py: Python<'_>,
        paths: &Bound<'_, PyAny>,
        peer: &str,
    ) -> PyResult<Py<PyAny>> {
        awaitable(py, self.connect_job(paths, peer)?)
    }

    /// Waits for a node to connect. Returns its session; None when this node has stopped.
    #[pyo3(signature = (timeout=None))]
    fn accept(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        wait(py, self.accept_job()?, timeout)
    }

    /// The same for asyncio.
    fn accept_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        awaitable(py, self.accept_job()?)
    }

    /// Stops the node and its sessions at once.
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

fn set(
    mut builder: NodeBuilder,
    session: &mut SessionConfig,
    option: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<NodeBuilder> {
    let option = option.to_string();
    if !OPTIONS.contains(&option.as_str()) {
        let what = format!("a node has no `{option}`; it may be told {}", OPTIONS.join(", "));
        return Err(PyTypeError::new_err(what));
    }
    if value.is_none() {
        return Ok(builder);
    }
    match option.as_str() {
        "bind" => {
            for address in texts(value)? {
                builder = builder.bind(parsed(&address)?);
            }
        }
        "trust" => {
            for key in texts(value)? {
                builder = builder.trust(parsed(&key)?);
            }
        }
        "line" => builder = builder.line(rate(value)?),
        "packet" => builder = builder.packet(ByteCount::new(value.extract()?)),
        "window" => {
            session.receive_window = ByteCount::new(value.extract()?);
            session.send_buffer = session.receive_window;
        }
        _ => session.classes = classes(value)?,
    }
    Ok(builder)
}

/// A text, or several.
fn texts(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if value.is_instance_of::<PyString>() {
        return Ok(vec![value.extract()?]);
    }
    value.try_iter()?.map(|each| each?.extract()).collect()
}
