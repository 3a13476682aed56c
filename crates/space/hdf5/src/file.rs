//! An HDF5 file: what of HDF5 a Raw Data Record needs.

use crate::error::Error;
use crate::library::Library;
use crate::sys::{ElementType, Elements, Hid, LibraryError, LibrarySession, ObjectHandle};
use skyhaul_level0::rdr::Value;
use std::ffi::CString;
use std::path::Path;

/// An open HDF5 file. Objects within it are named by paths, `/All_Data/VIIRS-SCIENCE-RDR_All`.
#[derive(Debug)]
pub struct File {
    hdf5: Library,
    id: Hid,
    name: String,
}

impl File {
    /// Creates a file, in place of one that is there.
    ///
    /// # Errors
    /// [`Error::Library`] with what the library, or the system through it, says.
    pub fn create(library: Library, path: &Path) -> Result<Self, Error> {
        Self::begin(library, path, "create", LibrarySession::create)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`Self::create`]: the file is not there, or no HDF5 file.
    pub fn open(library: Library, path: &Path) -> Result<Self, Error> {
        Self::begin(library, path, "open", LibrarySession::open)
    }

    fn begin(
        library: Library,
        path: &Path,
        what: &'static str,
        begin: fn(&LibrarySession, &std::ffi::CStr) -> Result<Hid, LibraryError>,
    ) -> Result<Self, Error> {
        let name = path.display().to_string();
        let bytes = CString::new(path.as_os_str().as_encoded_bytes());
        let bytes = bytes.map_err(|_| Error::content(&name, "is no path: it has a zero byte"))?;
        match begin(&library.session(), &bytes) {
            Ok(id) => Ok(Self { hdf5: library, id, name }),
            Err(LibraryError(said)) => Err(Error::Library { what, place: name, said }),
        }
    }

    /// Makes a group. The group that it lies in is there.
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn group(&self, path: &str) -> Result<(), Error> {
        self.at("create", path, |session, name| session.create_group(self.id, name).map(drop))
    }

    /// Makes a dataset of bytes, with one dimension.
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn bytes(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        self.at("write", path, |session, name| session.create_bytes(self.id, name, bytes))
    }

    /// Makes a dataset that refers to the object `target`.
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn object_reference(&self, path: &str, target: &str) -> Result<(), Error> {
        let target = text(target)?;
        self.at("write", path, |session, name| {
            session.create_object_reference(self.id, name, &target)
        })
    }

    /// Makes a dataset that refers to all elements of the dataset `target`.
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn region_reference(&self, path: &str, target: &str) -> Result<(), Error> {
        let target = text(target)?;
        self.at("write", path, |session, name| {
            session.create_region_reference(self.id, name, &target)
        })
    }

    /// Gives the object `path` an attribute, with its values one below the other: [n, 1].
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn attribute(&self, path: &str, name: &str, value: &Value) -> Result<(), Error> {
        let name = text(name)?;
        self.at("write an attribute of", path, |session, path| {
            let object = session.object(self.id, path)?;
            let known = session.known();
            let (stored, native, count, bytes) = match value {
                Value::Text(texts) => {
                    let width = texts.iter().map(String::len).max().unwrap_or(0).max(1);
                    let of = session.text_type(width)?;
                    let padded = |text: &String| {
                        text.bytes().chain(std::iter::repeat(0)).take(width).collect::<Vec<_>>()
                    };
                    let bytes: Vec<u8> = texts.iter().flat_map(padded).collect();
                    let of = ElementType { stored: of.value(), native: of.value() };
                    let elements = Elements { count: texts.len(), bytes: &bytes };
                    return session.create_attribute(object.value(), &name, of, elements);
                }
                Value::U32(numbers) => (
                    known.u32_stored,
                    known.u32_native,
                    numbers.len(),
                    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>(),
                ),
                Value::U64(numbers) => (
                    known.u64_stored,
                    known.u64_native,
                    numbers.len(),
                    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect(),
                ),
                Value::F32(numbers) => (
                    known.f32_stored,
                    known.f32_native,
                    numbers.len(),
                    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect(),
                ),
            };
            let (of, elements) =
                (ElementType { stored, native }, Elements { count, bytes: &bytes });
            session.create_attribute(object.value(), &name, of, elements)
        })
    }

    /// Whether there is something at `path`.
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        let mut before = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            before = format!("{before}/{part}");
            if !self.at("look for", &before, |session, name| session.exists(self.id, name))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Names of what lies in a group, by the alphabet; at most [`Self::MOST_MEMBERS`] are given.
    ///
    /// # Errors
    /// [`Error::Library`]: there is no such group.
    pub fn members(&self, path: &str) -> Result<Vec<String>, Error> {
        self.at("list", path, |session, name| {
            let group = session.object(self.id, name)?;
            session.members(group.value(), Self::MOST_MEMBERS)
        })
    }

    /// Members of a group that are listed.
    pub const MOST_MEMBERS: u64 = 65_536;

    /// The elements of a dataset as bytes.
    ///
    /// # Errors
    /// [`Error::Library`]: there is no such dataset; [`Error::Content`]: it has more than `most`
    /// elements.
    pub fn read_bytes(&self, path: &str, most: usize) -> Result<Vec<u8>, Error> {
        let read = self.at("read", path, |session, name| {
            let dataset = session.object(self.id, name)?;
            session.read_bytes(dataset.value(), most)
        });
        let too_many =
            |len| Error::content(path, format!("has {len} bytes; at most {most} are read"));
        read?.map_err(too_many)
    }

    /// An attribute of the object `path`: texts without their padding, whole numbers with 32 or 64
    /// bits, fractions. `None` where it has none of this name.
    ///
    /// # Errors
    /// [`Error::Library`]; [`Error::Content`]: it is of another kind, or too large.
    pub fn read_attribute(&self, path: &str, name: &str) -> Result<Option<Value>, Error> {
        let called = text(name)?;
        let value = self.at("read an attribute of", path, |session, path| {
            let object = session.object(self.id, path)?;
            let Some(attribute) = session.attribute(object.value(), &called)? else {
                return Ok(Some(None));
            };
            read_value(session, &attribute).map(|value| value.map(Some))
        })?;
        value.ok_or_else(|| {
            Error::content(&format!("attribute {name} of {path}"), "is of a kind that is not read")
        })
    }

    /// Writes what is not written yet, and closes the file.
    ///
    /// # Errors
    /// [`Error::Library`]: the disk is full, or fails.
    pub fn close(mut self) -> Result<(), Error> {
        let closed = self.hdf5.session().close(std::mem::replace(&mut self.id, CLOSED));
        let place = std::mem::take(&mut self.name);
        closed.map_err(|LibraryError(said)| Error::Library { what: "finish", place, said })
    }

    /// Does something with the library at a path of the file.
    fn at<T>(
        &self,
        what: &'static str,
        path: &str,
        act: impl FnOnce(&LibrarySession, &std::ffi::CStr) -> Result<T, LibraryError>,
    ) -> Result<T, Error> {
        let name = text(path)?;
        let place = || format!("{path} of {}", self.name);
        act(&self.hdf5.session(), &name).map_err(|LibraryError(said)| Error::Library {
            what,
            place: place(),
            said,
        })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.id != CLOSED {
            // Read only, or given up half-way: nothing of it counts.
            let _ = self.hdf5.session().close(self.id);
        }
    }
}

/// `None` for kinds that are not read.
fn read_value(
    session: &LibrarySession,
    attribute: &ObjectHandle<'_>,
) -> Result<Option<Value>, LibraryError> {
    let (of, points) = attribute.shape()?;
    let Some(count) = usize::try_from(points).ok().filter(|count| *count <= MOST_VALUES) else {
        return Ok(None);
    };
    let known = session.known();
    let read = |of: Hid| attribute.read_elements(of, count);
    let value = match of.class()? {
        INTEGERS if session.size(of.value())? <= 4 => {
            let bytes = read(known.u32_native)?;
            Value::U32(bytes.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect())
        }
        INTEGERS => {
            let bytes = read(known.u64_native)?;
            Value::U64(bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect())
        }
        FRACTIONS => {
            let bytes = read(known.f32_native)?;
            Value::F32(bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect())
        }
        TEXTS if of.is_variable_text()? => Value::Text(attribute.read_texts(&of, count)?),
        TEXTS => {
            let width = session.size(of.value())?;
            if width > LONGEST_TEXT {
                return Ok(None);
            }
            Value::Text(read(of.value())?.chunks_exact(width).map(unpadded).collect())
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

/// Without the zeros or spaces that fill it up.
fn unpadded(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned()
}

fn text(text: &str) -> Result<CString, Error> {
    CString::new(text)
        .map_err(|_| Error::content(&text.replace('\0', "?"), "has a zero byte in its name"))
}

/// Of a file that was closed: no identifier.
const CLOSED: Hid = -1;
const INTEGERS: i32 = 0;
const FRACTIONS: i32 = 1;
const TEXTS: i32 = 3;
/// Values of an attribute that are read; a sensor has some hundred kinds of packets.
const MOST_VALUES: usize = 4_096;
/// Bytes of a text that are read.
const LONGEST_TEXT: usize = 4_096;
