//! Memory that is shared with Python and not copied: the data of Python objects that is sent, and
//! our data that Python reads.
//!
//! A buffer of a Python object is held until the block made of it has an outcome and nothing here
//! refers to it, so that nobody frees or resizes it. The program must not change its bytes before
//! that (docs/how-to/python.md). The memory that we lend is read-only, and lives as long as the
//! object that lends it, which the borrower holds.
#![allow(unsafe_code, reason = "the buffer protocol is made of pointers")]

use crate::errors::BlockError;
use crate::keeper::{Errand, send};
use bytes::Bytes;
use core::ffi::{c_int, c_void};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use skyhaul::IncomingBlock;

/// A buffer of Python that is held.
struct Held(Option<PyUntypedBuffer>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        let Some(buffer) = self.0.as_ref().filter(|buffer| buffer.len_bytes() > 0) else {
            return &[];
        };
        // SAFETY: the exporter keeps `len_bytes` contiguous bytes there until the buffer is
        // released, which `drop` alone does. That nobody writes to them meanwhile is the program's
        // promise.
        unsafe { core::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|buffer| send(Errand::Release(buffer)));
    }
}

/// The bytes of any object with a buffer, where they are.
///
/// # Errors
/// It has none, or one with holes or without a shape.
pub fn shared(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let buffer = PyUntypedBuffer::get(object).map_err(|error| {
        let py = object.py();
        if !error.is_instance_of::<PyBufferError>(py) {
            return error;
        }
        BlockError::new_err(format!(
            "the data's buffer cannot be shared ({}): give bytes(data)",
            error.value(py)
        ))
    })?;
    if !buffer.is_c_contiguous() {
        let what = "the data has holes between its elements: give numpy.ascontiguousarray(data), \
                   or bytes(data)";
        return Err(BlockError::new_err(what));
    }
    Ok(Bytes::from_owner(Held(Some(buffer))))
}

/// Lends `bytes`, which belong to `lender`.
///
/// # Safety
///
/// `view` is the argument of `__getbuffer__` of `lender`, which keeps the bytes in place as long as
/// it lives.
unsafe fn lend(
    lender: Bound<'_, PyAny>,
    bytes: &[u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let len = ffi::Py_ssize_t::try_from(bytes.len())
        .map_err(|_| PyBufferError::new_err("it is too long"))?;
    let start = bytes.as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: as the caller says. The view takes a reference to the lender, and is read-only.
    let filled = unsafe { ffi::PyBuffer_FillInfo(view, lender.as_ptr(), start, len, 1, flags) };
    if filled == 0 { Ok(()) } else { Err(PyErr::fetch(lender.py())) }
}

/// A received block. It is a buffer: `memoryview(block)` and `numpy.frombuffer(block, …)` copy
/// nothing. It counts against the receive window while anything refers to it.
#[pyclass(frozen, module = "skyhaul")]
pub struct Received(IncomingBlock);

impl Received {
    pub const fn new(incoming: IncomingBlock) -> Self {
        Self(incoming)
    }
}

#[pymethods]
impl Received {
    /// Its name.
    #[getter]
    fn id(&self) -> crate::sent::BlockId {
        self.0.id.into()
    }

    /// When it left, in nanoseconds since 1970 by the far end's clock.
    #[getter]
    fn sent_ns(&self) -> i64 {
        self.0.timing.sent.as_nanos()
    }

    /// The delay that losses caused, in seconds: from its last symbol that was not retransmitted to
    /// its delivery.
    #[getter]
    fn held(&self) -> f64 {
        self.0.timing.delivered.since(self.0.timing.last_original).as_secs_f64()
    }

    /// Whether a retransmission or FEC repair was needed.
    #[getter]
    fn repaired(&self) -> bool {
        self.0.timing.repaired
    }

    fn __len__(&self) -> usize {
        self.0.bytes.len()
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let lender = slf.clone().into_any();
        // SAFETY: Python calls this with a view; the bytes are never exchanged for others.
        unsafe { lend(lender, &slf.get().0.bytes, view, flags) }
    }

    fn __repr__(&self) -> String {
        format!("Received({} bytes of flow {})", self.0.bytes.len(), self.0.id.flow)
    }
}

/// A column of a table: numbers as in memory, and NumPy's name of their type.
#[pyclass(frozen, module = "skyhaul")]
pub struct Column {
    bytes: Vec<u8>,
    #[pyo3(get)]
    dtype: &'static str,
}

impl Column {
    pub const fn new(dtype: &'static str, bytes: Vec<u8>) -> Self {
        Self { bytes, dtype }
    }
}

#[pymethods]
impl Column {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let lender = slf.clone().into_any();
        // SAFETY: Python calls this with a view; the bytes are never exchanged for others.
        unsafe { lend(lender, &slf.get().bytes, view, flags) }
    }
}
