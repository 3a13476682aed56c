//! The library's C interface: the only place with calls into it.
//!
//! [`LibrarySession`] makes the calls safe. It is there once at a time, so that the library is
//! never entered twice; texts are zero-terminated; every buffer is measured against what the
//! library says it will read or write. Identifiers need no proof: the library looks each up and
//! refuses those that it did not give out.
#![allow(unsafe_code, reason = "a library that is loaded at run time is called through pointers")]

mod functions;

use functions::{ErrorEntry, Functions, GroupInfo, words};
use libloading::Library as Loaded;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An identifier that the library gave out; 64 bits since version 1.10.
pub type Hid = i64;

/// Where to write a reference, and its size: `hobj_ref_t` and `hdset_reg_ref_t`.
const OBJECT_REFERENCE: usize = 8;
const REGION_REFERENCE: usize = 12;

/// Identifiers of types and classes that the library has from its start.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pub byte: Hid,
    pub u32_stored: Hid,
    pub u64_stored: Hid,
    pub f32_stored: Hid,
    pub u32_native: Hid,
    pub u64_native: Hid,
    pub f32_native: Hid,
    pub text: Hid,
    object_reference: Hid,
    region_reference: Hid,
    dataset_creation: Hid,
    file_creation: Hid,
    group_creation: Hid,
}

/// The loaded library.
pub struct Api {
    functions: Functions,
    known: Known,
    version: (u32, u32, u32),
    /// Unloaded last, which does not happen: the value is leaked.
    _library: Loaded,
}

/// Elements of a dataset or attribute.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    pub count: usize,
    /// The elements one behind the other.
    pub bytes: &'a [u8],
}

/// The type of an attribute's elements.
#[derive(Debug, Clone, Copy)]
pub struct ElementType {
    /// In the file.
    pub stored: Hid,
    /// In memory.
    pub native: Hid,
}

/// What the library said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryError(pub String);

/// The right to call the library.
pub struct LibrarySession {
    api: &'static Api,
    _lock: MutexGuard<'static, ()>,
}

/// An identifier, closed when it is dropped.
pub struct ObjectHandle<'s> {
    session: &'s LibrarySession,
    id: Hid,
}

static LOCK: Mutex<()> = Mutex::new(());

impl Api {
    /// Loads the library called `name`. The outer error says why there is none, the inner one why
    /// it does not serve.
    pub fn open(name: &OsStr) -> Result<Result<Self, String>, String> {
        // SAFETY: loading runs the library's own start-up code, which HDF5 has none of that asks
        // anything of its user. That the name leads to HDF5 is what whoever installed or named it
        // says.
        let library = unsafe { Loaded::new(name) }.map_err(|error| words(&error))?;
        Ok(Self::start(library))
    }

    fn start(library: Loaded) -> Result<Self, String> {
        // SAFETY: a library with all these names is HDF5; its version is asked before anything that
        // older ones have with other types. It lives in the same value as the functions.
        let functions = unsafe { Functions::find(&library)? };
        let mut version = (0, 0, 0);
        // SAFETY: three numbers to write to.
        let status = unsafe {
            (functions.H5get_libversion)(&raw mut version.0, &raw mut version.1, &raw mut version.2)
        };
        if status < 0 || version < OLDEST {
            return Err(format!("its version is {}.{}.{}", version.0, version.1, version.2));
        }
        // SAFETY: no arguments. The library may be called, because no value of this type is out
        // yet.
        if unsafe { (functions.H5open)() } < 0 {
            return Err("it does not start".to_owned());
        }
        let known = |name: &str| -> Result<Hid, String> {
            // SAFETY: these names are variables of type `hid_t`, set by `H5open`.
            unsafe {
                let variable = library.get::<*const Hid>(name).map_err(|error| words(&error))?;
                Ok(**variable)
            }
        };
        let known = Known {
            byte: known("H5T_STD_U8BE_g")?,
            u32_stored: known("H5T_STD_U32BE_g")?,
            u64_stored: known("H5T_STD_U64BE_g")?,
            f32_stored: known("H5T_IEEE_F32BE_g")?,
            u32_native: known("H5T_NATIVE_UINT32_g")?,
            u64_native: known("H5T_NATIVE_UINT64_g")?,
            f32_native: known("H5T_NATIVE_FLOAT_g")?,
            text: known("H5T_C_S1_g")?,
            object_reference: known("H5T_STD_REF_OBJ_g")?,
            region_reference: known("H5T_STD_REF_DSETREG_g")?,
            dataset_creation: known("H5P_CLS_DATASET_CREATE_ID_g")?,
            file_creation: known("H5P_CLS_FILE_CREATE_ID_g")?,
            group_creation: known("H5P_CLS_GROUP_CREATE_ID_g")?,
        };
        Ok(Self { functions, known, version, _library: library })
    }

    pub const fn version(&self) -> (u32, u32, u32) {
        self.version
    }

    /// Waits until no other thread has the right to call the library, then has it.
    pub fn session(&'static self) -> LibrarySession {
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let session = LibrarySession { api: self, _lock: lock };
        // SAFETY: null switches off the printing of errors for this thread; they are read from the
        // stack instead.
        unsafe {
            (session.api.functions.H5Eset_auto2)(DEFAULT, std::ptr::null(), std::ptr::null_mut());
            (session.api.functions.H5Eclear2)(DEFAULT);
        }
        session
    }
}

impl LibrarySession {
    pub const fn known(&self) -> Known {
        self.api.known
    }

    const fn call(&self) -> &Functions {
        &self.api.functions
    }

    fn id(&self, id: Hid) -> Result<ObjectHandle<'_>, LibraryError> {
        if id < 0 { Err(self.said()) } else { Ok(ObjectHandle { session: self, id }) }
    }

    fn done(&self, status: c_int) -> Result<(), LibraryError> {
        if status < 0 { Err(self.said()) } else { Ok(()) }
    }

    /// The words of the innermost error of the stack, which is then empty.
    fn said(&self) -> LibraryError {
        let mut words: Vec<String> = Vec::new();
        // SAFETY: the function gets the list that it is told of, and is not called after the walk.
        unsafe {
            (self.call().H5Ewalk2)(DEFAULT, INNERMOST_FIRST, collect, (&raw mut words).cast());
            (self.call().H5Eclear2)(DEFAULT);
        }
        LibraryError(
            words.into_iter().next().unwrap_or_else(|| "the library does not say why".to_owned()),
        )
    }

    /// Creates a file, over one that is there.
    pub fn create(&self, path: &CStr) -> Result<Hid, LibraryError> {
        let properties = self.timeless(self.known().file_creation)?;
        let create = self.call().H5Fcreate;
        // SAFETY: a text, and identifiers that are looked up.
        let file = unsafe { create(path.as_ptr(), OVER_WHAT_IS_THERE, properties.id, DEFAULT) };
        self.id(file).map(ObjectHandle::keep)
    }

    /// Properties with which objects of a class are created. No time is kept with them, so that the
    /// same content makes the same file.
    fn timeless(&self, class: Hid) -> Result<ObjectHandle<'_>, LibraryError> {
        // SAFETY: identifiers are looked up.
        let properties = self.id(unsafe { (self.call().H5Pcreate)(class) })?;
        // SAFETY: a bool and an integer of value 0 are passed alike.
        self.done(unsafe { (self.call().H5Pset_obj_track_times)(properties.id, 0) })?;
        Ok(properties)
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &CStr) -> Result<Hid, LibraryError> {
        // SAFETY: a text.
        self.id(unsafe { (self.call().H5Fopen)(path.as_ptr(), READ_ONLY, DEFAULT) })
            .map(ObjectHandle::keep)
    }

    /// Closes a kept identifier, of a file after writing what it holds.
    pub fn close(&self, id: Hid) -> Result<(), LibraryError> {
        // SAFETY: identifiers are looked up.
        unsafe {
            let flushed = self.done((self.call().H5Fflush)(id, THE_WHOLE_FILE));
            flushed.and(self.done((self.call().H5Idec_ref)(id)))
        }
    }

    /// Whether `name` leads somewhere from `from`; all but its last part has to be there.
    pub fn exists(&self, from: Hid, name: &CStr) -> Result<bool, LibraryError> {
        // SAFETY: a text.
        let found = unsafe { (self.call().H5Lexists)(from, name.as_ptr(), DEFAULT) };
        self.done(found).map(|()| found > 0)
    }

    pub fn object(&self, from: Hid, name: &CStr) -> Result<ObjectHandle<'_>, LibraryError> {
        // SAFETY: a text.
        self.id(unsafe { (self.call().H5Oopen)(from, name.as_ptr(), DEFAULT) })
    }

    pub fn create_group(&self, from: Hid, name: &CStr) -> Result<ObjectHandle<'_>, LibraryError> {
        let properties = self.timeless(self.known().group_creation)?;
        let create = self.call().H5Gcreate2;
        // SAFETY: a text, and identifiers that are looked up.
        self.id(unsafe { create(from, name.as_ptr(), DEFAULT, properties.id, DEFAULT) })
    }

    /// Names within a group, by the alphabet, `most` at most.
    pub fn members(&self, group: Hid, most: u64) -> Result<Vec<String>, LibraryError> {
        let mut info = GroupInfo::default();
        // SAFETY: a structure to write to.
        self.done(unsafe { (self.call().H5Gget_info)(group, &raw mut info) })?;
        let mut names = Vec::new();
        for place in 0..info.links.min(most) {
            let mut name = [0u8; LONGEST_NAME];
            // SAFETY: a text, and a buffer with its length.
            let len = unsafe {
                let to = name.as_mut_ptr().cast();
                (self.call().H5Lget_name_by_idx)(
                    group,
                    c".".as_ptr(),
                    0,
                    0,
                    place,
                    to,
                    LONGEST_NAME,
                    DEFAULT,
                )
            };
            self.done(if len < 0 { -1 } else { 0 })?;
            let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
            names.push(text.to_string_lossy().into_owned());
        }
        Ok(names)
    }

    /// A dataset with one dimension and `bytes` in it.
    pub fn create_bytes(&self, from: Hid, name: &CStr, bytes: &[u8]) -> Result<(), LibraryError> {
        self.create_dataset(from, name, self.known().byte, Elements { count: bytes.len(), bytes })
    }

    /// A dataset with a reference to an object.
    pub fn create_object_reference(
        &self,
        from: Hid,
        name: &CStr,
        target: &CStr,
    ) -> Result<(), LibraryError> {
        let mut reference = [0u8; OBJECT_REFERENCE];
        // SAFETY: a buffer of the size of this kind of reference, and a text.
        self.done(unsafe {
            (self.call().H5Rcreate)(reference.as_mut_ptr().cast(), from, target.as_ptr(), 0, -1)
        })?;
        self.create_dataset(
            from,
            name,
            self.known().object_reference,
            Elements { count: 1, bytes: &reference },
        )
    }

    /// A dataset with a reference to the whole of a dataset.
    pub fn create_region_reference(
        &self,
        from: Hid,
        name: &CStr,
        target: &CStr,
    ) -> Result<(), LibraryError> {
        let dataset = self.object(from, target)?;
        // SAFETY: identifiers are looked up.
        let space = self.id(unsafe { (self.call().H5Dget_space)(dataset.id) })?;
        let mut reference = [0u8; REGION_REFERENCE];
        let to = reference.as_mut_ptr().cast();
        // SAFETY: a buffer of the size of this kind of reference, and a text.
        self.done(unsafe { (self.call().H5Rcreate)(to, from, target.as_ptr(), 1, space.id) })?;
        self.create_dataset(
            from,
            name,
            self.known().region_reference,
            Elements { count: 1, bytes: &reference },
        )
    }

    /// A dataset of elements of one type.
    fn create_dataset(
        &self,
        from: Hid,
        name: &CStr,
        of: Hid,
        elements: Elements<'_>,
    ) -> Result<(), LibraryError> {
        let Elements { count, bytes } = elements;
        let space = self.space(&[count])?;
        let properties = self.timeless(self.known().dataset_creation)?;
        let create = self.call().H5Dcreate2;
        // SAFETY: a text.
        let dataset = self.id(unsafe {
            create(from, name.as_ptr(), of, space.id, DEFAULT, properties.id, DEFAULT)
        })?;
        self.measured(bytes, of, count)?;
        // SAFETY: the bytes are those of the elements, as was just measured.
        self.done(unsafe {
            (self.call().H5Dwrite)(dataset.id, of, DEFAULT, DEFAULT, DEFAULT, bytes.as_ptr().cast())
        })
    }

    /// The bytes of a dataset, unless they are more than `most`: then their number.
    pub fn read_bytes(
        &self,
        dataset: Hid,
        most: usize,
    ) -> Result<Result<Vec<u8>, i64>, LibraryError> {
        // SAFETY: identifiers are looked up.
        let space = self.id(unsafe { (self.call().H5Dget_space)(dataset) })?;
        let points = space.points()?;
        let Some(len) = usize::try_from(points).ok().filter(|len| *len <= most) else {
            return Ok(Err(points));
        };
        let mut bytes = vec![0u8; len];
        // SAFETY: the elements are converted to a byte each, and there is a byte for each.
        let status = unsafe {
            let to = bytes.as_mut_ptr().cast();
            (self.call().H5Dread)(dataset, self.known().byte, DEFAULT, DEFAULT, DEFAULT, to)
        };
        self.done(status).map(|()| Ok(bytes))
    }

    /// An attribute with two dimensions, [n, 1].
    pub fn create_attribute(
        &self,
        object: Hid,
        name: &CStr,
        of: ElementType,
        elements: Elements<'_>,
    ) -> Result<(), LibraryError> {
        let (ElementType { stored, native }, Elements { count, bytes }) = (of, elements);
        let space = self.space(&[count, 1])?;
        let create = self.call().H5Acreate2;
        // SAFETY: a text.
        let attribute =
            self.id(unsafe { create(object, name.as_ptr(), stored, space.id, DEFAULT, DEFAULT) })?;
        self.measured(bytes, native, count)?;
        // SAFETY: the bytes are those of the elements, as was just measured.
        self.done(unsafe { (self.call().H5Awrite)(attribute.id, native, bytes.as_ptr().cast()) })
    }

    pub fn attribute(
        &self,
        object: Hid,
        name: &CStr,
    ) -> Result<Option<ObjectHandle<'_>>, LibraryError> {
        // SAFETY: a text.
        let exists = unsafe { (self.call().H5Aexists)(object, name.as_ptr()) };
        self.done(exists)?;
        if exists == 0 {
            return Ok(None);
        }
        // SAFETY: a text.
        self.id(unsafe { (self.call().H5Aopen)(object, name.as_ptr(), DEFAULT) }).map(Some)
    }

    /// The type of texts with this many bytes, padded with zeros.
    pub fn text_type(&self, width: usize) -> Result<ObjectHandle<'_>, LibraryError> {
        // SAFETY: identifiers are looked up.
        unsafe {
            let of = self.id((self.call().H5Tcopy)(self.known().text))?;
            self.done((self.call().H5Tset_size)(of.id, width))?;
            self.done((self.call().H5Tset_strpad)(of.id, PADDED_WITH_ZEROS))?;
            Ok(of)
        }
    }

    /// Bytes of an element of a type.
    pub fn size(&self, of: Hid) -> Result<usize, LibraryError> {
        // SAFETY: identifiers are looked up.
        let size = unsafe { (self.call().H5Tget_size)(of) };
        if size == 0 { Err(self.said()) } else { Ok(size) }
    }

    /// Refuses bytes that are fewer than `count` elements of a type.
    fn measured(&self, bytes: &[u8], of: Hid, count: usize) -> Result<(), LibraryError> {
        match count.checked_mul(self.size(of)?) {
            Some(len) if len <= bytes.len() => Ok(()),
            _ => Err(LibraryError("the elements are longer than this version expects".to_owned())),
        }
    }

    fn space(&self, dimensions: &[usize]) -> Result<ObjectHandle<'_>, LibraryError> {
        let dimensions: Vec<u64> = dimensions.iter().map(|len| *len as u64).collect();
        let rank = c_int::try_from(dimensions.len()).expect("there are one or two dimensions");
        // SAFETY: as many lengths as dimensions.
        self.id(unsafe {
            (self.call().H5Screate_simple)(rank, dimensions.as_ptr(), std::ptr::null())
        })
    }
}

impl ObjectHandle<'_> {
    /// Type of an attribute's elements and their number.
    pub fn shape(&self) -> Result<(ObjectHandle<'_>, i64), LibraryError> {
        // SAFETY: identifiers are looked up.
        let (of, space) = unsafe {
            let of = self.session.id((self.session.call().H5Aget_type)(self.id))?;
            (of, self.session.id((self.session.call().H5Aget_space)(self.id))?)
        };
        let points = space.points()?;
        Ok((of, points))
    }

    /// An attribute's elements as type `of`, `count` of them.
    pub fn read_elements(&self, of: Hid, count: usize) -> Result<Vec<u8>, LibraryError> {
        let mut bytes = vec![0u8; count * self.session.size(of)?];
        if self.shape()?.1 != count as i64 {
            return Err(LibraryError("the attribute has another number of elements".to_owned()));
        }
        // SAFETY: there is room for all elements, as was just measured.
        self.session.done(unsafe {
            (self.session.call().H5Aread)(self.id, of, bytes.as_mut_ptr().cast())
        })?;
        Ok(bytes)
    }

    /// An attribute's texts of any length, `count` of them.
    pub fn read_texts(
        &self,
        of: &ObjectHandle<'_>,
        count: usize,
    ) -> Result<Vec<String>, LibraryError> {
        // SAFETY: identifiers are looked up.
        let space = self.session.id(unsafe { (self.session.call().H5Aget_space)(self.id) })?;
        if space.points()? != count as i64 || !of.is_variable_text()? {
            return Err(LibraryError(
                "the attribute has another number or kind of elements".to_owned(),
            ));
        }
        let mut texts: Vec<*mut c_char> = vec![std::ptr::null_mut(); count];
        // SAFETY: there is room for a pointer for each element; what they point at is the library's
        // until it is given back, and is not used after that.
        unsafe {
            self.session.done((self.session.call().H5Aread)(
                self.id,
                of.id,
                texts.as_mut_ptr().cast(),
            ))?;
            let copy = |text: &*mut c_char| {
                if text.is_null() {
                    String::new()
                } else {
                    CStr::from_ptr(*text).to_string_lossy().into_owned()
                }
            };
            let copies = texts.iter().map(copy).collect();
            self.session.done((self.session.call().H5Dvlen_reclaim)(
                of.id,
                space.id,
                DEFAULT,
                texts.as_mut_ptr().cast(),
            ))?;
            Ok(copies)
        }
    }

    /// Class of a type: 0 integers, 1 fractions, 3 texts.
    pub fn class(&self) -> Result<c_int, LibraryError> {
        // SAFETY: identifiers are looked up.
        let class = unsafe { (self.session.call().H5Tget_class)(self.id) };
        self.session.done(class).map(|()| class)
    }

    pub fn is_variable_text(&self) -> Result<bool, LibraryError> {
        // SAFETY: identifiers are looked up.
        let is_variable = unsafe { (self.session.call().H5Tis_variable_str)(self.id) };
        self.session.done(is_variable).map(|()| is_variable > 0)
    }

    /// Elements of a dataspace.
    fn points(&self) -> Result<i64, LibraryError> {
        // SAFETY: identifiers are looked up.
        let points = unsafe { (self.session.call().H5Sget_simple_extent_npoints)(self.id) };
        if points < 0 { Err(self.session.said()) } else { Ok(points) }
    }

    pub const fn value(&self) -> Hid {
        self.id
    }

    /// Leaves it open; who has it closes it.
    const fn keep(self) -> Hid {
        let id = self.id;
        std::mem::forget(self);
        id
    }
}

impl Drop for ObjectHandle<'_> {
    fn drop(&mut self) {
        // SAFETY: identifiers are looked up. What was to be written was written before, and said
        // so.
        unsafe { (self.session.call().H5Idec_ref)(self.id) };
    }
}

/// Takes down what one entry of the error stack says.
///
/// # Safety
/// `entry` is one of the stack, and `words` a list of texts that nobody else uses now.
unsafe extern "C" fn collect(_: c_uint, entry: *const ErrorEntry, words: *mut c_void) -> c_int {
    // SAFETY: as the caller says; a description is a text or null.
    unsafe {
        let words = &mut *words.cast::<Vec<String>>();
        let description = (*entry).description;
        if words.len() < DEEPEST && !description.is_null() {
            words.push(CStr::from_ptr(description).to_string_lossy().trim().to_owned());
        }
    }
    0
}

/// `H5P_DEFAULT`, `H5E_DEFAULT` and `H5S_ALL`.
const DEFAULT: Hid = 0;
/// `H5F_ACC_TRUNC`
const OVER_WHAT_IS_THERE: c_uint = 2;
/// `H5F_ACC_RDONLY`
const READ_ONLY: c_uint = 0;
/// `H5F_SCOPE_LOCAL`
const THE_WHOLE_FILE: c_int = 0;
/// `H5E_WALK_UPWARD`
const INNERMOST_FIRST: c_int = 0;
/// `H5T_STR_NULLPAD`
const PADDED_WITH_ZEROS: c_int = 1;
/// Before this, identifiers had 32 bits.
const OLDEST: (u32, u32, u32) = (1, 10, 0);
/// Names of members in bytes; longer ones are cut.
const LONGEST_NAME: usize = 256;
/// Entries of an error stack that are kept.
const DEEPEST: usize = 32;
