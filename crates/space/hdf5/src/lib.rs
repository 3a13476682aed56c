//! Raw Data Record files through the HDF5 library, which is loaded when it is asked for.
//!
//! The program does not need the library until a file is to be written or read: [`Library::load`]
//! looks for it then, and says which names it tried where there is none. Versions 1.10 and later
//! serve. The library is one for the whole process and does not bear several threads at once: every
//! call is made under one lock.
//!
//! [`File`] is what this project needs of HDF5 (groups, runs of bytes, references, attributes);
//! [`RdrWriter`] and
//! [`RdrReader`] are JPSS Raw Data Records on top of it. What stands in granules and attributes is
//! [`skyhaul_level0::rdr`]'s.
//!
//! Chosen over the bindings that link the library when the program is built: with those nothing of
//! the program would run where the library is not installed. Identifiers are closed when they are
//! dropped, on every path.
//!
//! ```
//! use skyhaul_hdf5::{Library, LoadError};
//! match Library::load(Some("no-such-library.so".as_ref())) {
//!     Err(error @ LoadError::Missing { .. }) => {
//!         assert!(error.to_string().contains("no-such-library.so"));
//!     }
//!     other => panic!("{other:?}"),
//! }
//! ```

mod error;
mod file;
mod library;
mod rdr;
mod sys;

pub use error::{Error, LoadError};
pub use file::File;
pub use library::Library;
pub use rdr::{RdrReader, RdrWriter};
