//! The library's functions and structures as its headers declare them.
#![allow(unsafe_code, reason = "functions of a library that is loaded at run time")]

use super::Hid;
use libloading::Library as Loaded;
use std::ffi::{c_char, c_int, c_uint, c_void};

pub(super) type Walk = unsafe extern "C" fn(c_uint, *const ErrorEntry, *mut c_void) -> c_int;

/// `H5E_error2_t`
#[repr(C)]
pub(super) struct ErrorEntry {
    class: Hid,
    major: Hid,
    minor: Hid,
    line: c_uint,
    function: *const c_char,
    file: *const c_char,
    pub description: *const c_char,
}

/// `H5G_info_t`
#[repr(C)]
#[derive(Default)]
pub(super) struct GroupInfo {
    storage: c_int,
    pub links: u64,
    max_order: i64,
    mounted: c_uint,
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions by their own names.
        #[allow(non_snake_case, reason = "the library's names")]
        pub(super) struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// # Safety
            /// `library` is an HDF5 library, of version 1.10 or later, that is not unloaded while
            /// this lives.
            pub unsafe fn find(library: &Loaded) -> Result<Self, String> {
                // SAFETY: the caller says whose functions they are; their types are those of the
                // library's headers.
                unsafe {
                    Ok(Self {
                        $($name: *library
                            .get(stringify!($name))
                            .map_err(|error| words(&error))?,)*
                    })
                }
            }
        }
    };
}

functions! {
    H5open() -> c_int;
    H5get_libversion(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
    H5Eset_auto2(Hid, *const c_void, *mut c_void) -> c_int;
    H5Eclear2(Hid) -> c_int;
    H5Ewalk2(Hid, c_int, Walk, *mut c_void) -> c_int;
    H5Idec_ref(Hid) -> c_int;
    H5Fcreate(*const c_char, c_uint, Hid, Hid) -> Hid;
    H5Fopen(*const c_char, c_uint, Hid) -> Hid;
    H5Fflush(Hid, c_int) -> c_int;
    H5Gcreate2(Hid, *const c_char, Hid, Hid, Hid) -> Hid;
    H5Gget_info(Hid, *mut GroupInfo) -> c_int;
    H5Lget_name_by_idx(Hid, *const c_char, c_int, c_int, u64, *mut c_char, usize, Hid) -> isize;
    H5Lexists(Hid, *const c_char, Hid) -> c_int;
    H5Oopen(Hid, *const c_char, Hid) -> Hid;
    H5Pcreate(Hid) -> Hid;
    H5Pset_obj_track_times(Hid, c_uint) -> c_int;
    H5Screate_simple(c_int, *const u64, *const u64) -> Hid;
    H5Sget_simple_extent_npoints(Hid) -> i64;
    H5Dcreate2(Hid, *const c_char, Hid, Hid, Hid, Hid, Hid) -> Hid;
    H5Dget_space(Hid) -> Hid;
    H5Dwrite(Hid, Hid, Hid, Hid, Hid, *const c_void) -> c_int;
    H5Dread(Hid, Hid, Hid, Hid, Hid, *mut c_void) -> c_int;
    H5Dvlen_reclaim(Hid, Hid, Hid, *mut c_void) -> c_int;
    H5Rcreate(*mut c_void, Hid, *const c_char, c_int, Hid) -> c_int;
    H5Acreate2(Hid, *const c_char, Hid, Hid, Hid, Hid) -> Hid;
    H5Aexists(Hid, *const c_char) -> c_int;
    H5Aopen(Hid, *const c_char, Hid) -> Hid;
    H5Aget_space(Hid) -> Hid;
    H5Aget_type(Hid) -> Hid;
    H5Awrite(Hid, Hid, *const c_void) -> c_int;
    H5Aread(Hid, Hid, *mut c_void) -> c_int;
    H5Tcopy(Hid) -> Hid;
    H5Tset_size(Hid, usize) -> c_int;
    H5Tset_strpad(Hid, c_int) -> c_int;
    H5Tget_class(Hid) -> c_int;
    H5Tget_size(Hid) -> usize;
    H5Tis_variable_str(Hid) -> c_int;
}

/// The system's message; where it has none, what was tried.
pub(super) fn words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
