//! Finding and loading the library.

use crate::error::LoadError;
use crate::sys::{Api, LibrarySession};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The HDF5 library. There is one for the whole process; it stays loaded.
#[derive(Clone, Copy)]
pub struct Library {
    api: &'static Api,
}

/// The library, once it is loaded. A failure is not kept: the library may be installed while the
/// process runs.
static LOADED: Mutex<Option<&'static Api>> = Mutex::new(None);

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("version", &self.version()).finish()
    }
}

impl Library {
    /// Loads the library from `given`, or looks for it by its usual names. Where one is loaded
    /// already, that is it.
    ///
    /// # Errors
    /// [`LoadError::Missing`] where there is none; [`LoadError::Unfit`] where it is too old, or
    /// something else.
    pub fn load(given: Option<&Path>) -> Result<Self, LoadError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(api) = *loaded {
            return Ok(Self { api });
        }
        let names: Vec<&OsStr> = match given {
            Some(path) => vec![path.as_os_str()],
            None => NAMES.iter().map(OsStr::new).collect(),
        };
        let mut why = String::new();
        for name in &names {
            match Api::open(name) {
                Ok(api) => {
                    let api = api.map_err(|why| LoadError::Unfit {
                        name: name.display().to_string(),
                        why,
                    })?;
                    // It is never unloaded: the library registers functions that run when the
                    // process ends.
                    let api: &'static Api = Box::leak(Box::new(api));
                    *loaded = Some(api);
                    return Ok(Self { api });
                }
                Err(said) => why = said,
            }
        }
        Err(LoadError::Missing {
            tried: names.iter().map(|name| name.display().to_string()).collect(),
            why,
        })
    }

    /// Its version: major, minor, release.
    pub const fn version(self) -> (u32, u32, u32) {
        self.api.version()
    }

    /// The right to call it, which one thread has at a time.
    pub(crate) fn session(self) -> LibrarySession {
        self.api.session()
    }
}

/// Names by which systems have the library: with its interface's number where only running, not
/// building, was installed for. 103 is 1.10, 200 is 1.12, 310 is 1.14, 320 is 2.0.
#[cfg(not(any(target_os = "macos", windows)))]
const NAMES: &[&str] = &[
    "libhdf5_serial.so.320",
    "libhdf5.so.320",
    "libhdf5_serial.so.310",
    "libhdf5.so.310",
    "libhdf5_serial.so.200",
    "libhdf5.so.200",
    "libhdf5_serial.so.103",
    "libhdf5.so.103",
    "libhdf5_serial.so",
    "libhdf5.so",
];
/// Homebrew's folders are not searched by themselves.
#[cfg(target_os = "macos")]
const NAMES: &[&str] =
    &["libhdf5.dylib", "/opt/homebrew/lib/libhdf5.dylib", "/usr/local/lib/libhdf5.dylib"];
#[cfg(windows)]
const NAMES: &[&str] = &["hdf5.dll"];
