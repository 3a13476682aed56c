//! The module `skyhaul._skyhaul`: the part of the Python package `skyhaul` that is written in Rust.
//!
//! `python/skyhaul/` is the package, with the classes that are plain data, the exceptions and the
//! tables. This crate has the classes that hold Rust values. `node`, `local`, `session` and `sent`
//! are the library's classes; `waiting` blocks a thread or bridges to asyncio; `keeper` is the one
//! thread that ever waits for the interpreter; `buffer` shares memory with it. `captures`,
//! `packets` and `gaps` read files as `columns`.
//!
//! Left out: whatever is one command away (`skyhaul cp`, nodes with configuration files). NumPy is
//! not linked to: columns are buffers, which it takes as they are.

mod arguments;
mod buffer;
mod captures;
mod columns;
mod errors;
mod gaps;
mod identity;
mod keeper;
mod local;
mod mission;
mod node;
mod packets;
mod row_data;
mod sent;
mod session;
mod waiting;

#[pyo3::pymodule]
mod _skyhaul {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::buffer::{Column, Received};
    #[pymodule_export]
    use crate::captures::decode;
    #[pymodule_export]
    use crate::gaps::ledger;
    #[pymodule_export]
    use crate::identity::Identity;
    #[pymodule_export]
    use crate::local::ServiceNode;
    #[pymodule_export]
    use crate::node::Node;
    #[pymodule_export]
    use crate::packets::packets;
    #[pymodule_export]
    use crate::sent::{BlockId, Sent};
    #[pymodule_export]
    use crate::session::Session;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::keeper::end_with_the_interpreter(module.py())
    }
}
