//! Tables as columns: one array for each kind of value, with one entry for each row.
//!
//! This module does not use NumPy. A column is the bytes of its numbers and NumPy's name of their
//! type. Words that repeat are a column of indices and a list of the words.
//! `python/skyhaul/tables.py` makes arrays of both.

use crate::buffer::Column;
use core::marker::PhantomData;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use skyhaul_units::Utc;

/// A number that a column may hold.
pub trait Number: Copy {
    /// NumPy's name of the type.
    const DTYPE: &'static str;
    /// Appends its bytes as in memory.
    fn put(self, bytes: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($type:ty: $dtype:literal),*) => {
        $(impl Number for $type {
            const DTYPE: &'static str = $dtype;
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }
        })*
    };
}

numbers!(u8: "u1", i8: "i1", i16: "i2", i32: "i4", u32: "u4", i64: "i8", u64: "u8");

impl Number for bool {
    const DTYPE: &'static str = "?";
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }
}

/// A time in nanoseconds; none is NumPy's `NaT`.
#[derive(Clone, Copy)]
pub struct Time(pub Option<Utc>);

impl Number for Time {
    const DTYPE: &'static str = "M8[ns]";
    fn put(self, bytes: &mut Vec<u8>) {
        self.0.map_or(i64::MIN, Utc::as_nanos).put(bytes);
    }
}

/// The numbers of a column, so far.
pub struct Numbers<T: Number>(Vec<u8>, PhantomData<T>);

impl<T: Number> Default for Numbers<T> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<T: Number> Numbers<T> {
    /// The next row's.
    pub fn push(&mut self, number: T) {
        number.put(&mut self.0);
    }

    /// The column.
    pub fn column(self) -> Column {
        Column::new(T::DTYPE, self.0)
    }
}

/// A table for Python: columns by name. A column of words is a pair: a column of numbers, and the
/// words that they stand for.
pub struct Table<'py>(Bound<'py, PyDict>);

impl<'py> Table<'py> {
    pub fn new(py: Python<'py>) -> Self {
        Self(PyDict::new(py))
    }

    /// Adds a column of numbers.
    pub fn numbers<T: Number>(self, name: &str, numbers: Numbers<T>) -> PyResult<Self> {
        self.0.set_item(name, numbers.column())?;
        Ok(self)
    }

    /// Adds a column of words, each an index into `words`.
    pub fn words(self, name: &str, places: Numbers<u8>, words: &[String]) -> PyResult<Self> {
        self.0.set_item(name, (places.column(), words))?;
        Ok(self)
    }

    /// Adds a column of bytes, if there is one.
    pub fn bytes(self, name: &str, rows: Option<Vec<bytes::Bytes>>) -> PyResult<Self> {
        let Some(rows) = rows else { return Ok(self) };
        let rows = PyList::new(self.0.py(), rows.iter().map(|row| PyBytes::new(self.0.py(), row)))?;
        self.0.set_item(name, rows)?;
        Ok(self)
    }

    pub fn finish(self) -> Bound<'py, PyDict> {
        self.0
    }
}

/// The words that a column's numbers stand for.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
