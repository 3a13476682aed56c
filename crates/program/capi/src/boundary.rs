//! Everything that is taken on trust from a caller in C: that a pointer which is not null points to
//! what its type says, for as long as the call takes, and that an object was not ended before. What
//! can be checked is: null, UTF-8, room.
//!
//! The other files hold calls to these functions, and no pointer is followed anywhere else.
#![allow(unsafe_code, reason = "a caller in C hands over pointers")]

use crate::error::Fault;
use std::ffi::{CStr, c_char};
use std::time::Duration as StdDuration;

/// The most elements of an array of a caller: more means that the length was never set.
const MOST_ELEMENTS: usize = 1 << 16;

/// What `pointer` points to.
///
/// # Safety
/// It is null, or points to a `T` that lives as long as `'a`.
pub unsafe fn object<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Fault> {
    // SAFETY: as the caller says; null gives none.
    unsafe { pointer.as_ref() }.ok_or_else(|| {
        Fault::misused(format!("`{name}` is NULL; give what it is to be called for"))
    })
}

/// The text at `pointer`.
///
/// # Safety
/// It is null, or points to a zero-terminated text that lives as long as `'a`.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Fault> {
    // SAFETY: as the caller says, and not null.
    unsafe { optional_text(pointer, name) }?
        .ok_or_else(|| Fault::misused(format!("`{name}` is NULL; give a text")))
}

/// The text at `pointer`, none where that is null.
///
/// # Safety
/// As [`text`].
pub unsafe fn optional_text<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Fault> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says, and not null.
    let text = unsafe { CStr::from_ptr(pointer) };
    let text =
        text.to_str().map_err(|_| Fault::misused(format!("`{name}` is not UTF-8; write it so")))?;
    Ok(Some(text))
}

/// The array of `count` elements at `pointer`.
///
/// # Safety
/// `count` is 0, or `pointer` is null, or points to `count` elements that live as long as `'a`.
pub unsafe fn array<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || count > MOST_ELEMENTS {
        let what =
            format!("`{name}` has {count} elements and is NULL, or has more than {MOST_ELEMENTS}");
        return Err(Fault::misused(format!("{what}; give an array and its length")));
    }
    // SAFETY: as the caller says, and not null.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// A copy of the `len` bytes at `pointer`.
///
/// # Safety
/// `len` is 0, or `pointer` is null, or points to `len` bytes.
pub unsafe fn bytes(pointer: *const u8, len: usize) -> Result<Vec<u8>, Fault> {
    let most = skyhaul::MAX_BLOCK;
    if len == 0 || len > most {
        let what = format!("a block of {len} bytes cannot be sent");
        return Err(Fault::misused(format!(
            "{what}; divide what is to be sent into blocks of 1 to {most} bytes"
        )));
    }
    if pointer.is_null() {
        return Err(Fault::misused("`data` of the block is NULL; give its bytes"));
    }
    // SAFETY: as the caller says, and not null.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) }.to_vec())
}

/// Writes `value` to `out`.
///
/// # Safety
/// `out` is null, or a `T` may be written there.
pub unsafe fn put<T>(out: *mut T, value: T) -> Result<(), Fault> {
    if out.is_null() {
        return Err(Fault::misused("`out` is NULL; give a place for what comes out"));
    }
    // SAFETY: as the caller says, and not null. What was there is plain data, or was never set.
    unsafe { out.write(value) };
    Ok(())
}

/// Gives `value` out as an object of the caller's.
///
/// # Safety
/// As [`put`].
pub unsafe fn give<T>(out: *mut *mut T, value: T) -> Result<(), Fault> {
    if out.is_null() {
        // Not made an object first: nobody would end it.
        return Err(Fault::misused("`out` is NULL; give a place for what comes out"));
    }
    // SAFETY: as the caller says, and not null.
    unsafe { put(out, Box::into_raw(Box::new(value))) }
}

/// Takes an object back, to end it.
///
/// # Safety
/// It is null, or [`give`] gave it out, it was not taken back, and nobody else uses it.
pub unsafe fn take<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: it is a box that was given out, as the caller says.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

/// Writes `text` and a zero to the `size` bytes at `out`.
///
/// # Safety
/// `out` is null, or `size` bytes may be written there.
pub unsafe fn write_text(text: &str, out: *mut c_char, size: usize) -> Result<(), Fault> {
    let needed = text.len() + 1;
    if out.is_null() || size < needed {
        return Err(Fault::misused(format!(
            "the text needs {needed} bytes; give an array of that size"
        )));
    }
    // SAFETY: `needed` bytes may be written there, and the text is not within what it is written
    // to.
    unsafe {
        out.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes as many of `values` as fit into the `room` elements at `out`.
///
/// # Safety
/// `room` is 0, or `out` is null, or `room` elements may be written there.
pub unsafe fn write_array<T>(values: Vec<T>, out: *mut T, room: usize) -> Result<(), Fault> {
    if room > 0 && out.is_null() {
        return Err(Fault::misused("`out` is NULL; give an array, or no room"));
    }
    for (place, value) in values.into_iter().enumerate().take(room) {
        // SAFETY: `place` is below `room`.
        unsafe { out.add(place).write(value) };
    }
    Ok(())
}

/// What a future gives within `millis` (for as long as it takes where negative).
pub fn within<T>(future: impl Future<Output = T>, millis: i64) -> Result<T, Fault> {
    use skyhaul::{Duration, Wait};
    match u64::try_from(millis) {
        Err(_) => Ok(future.wait()),
        Ok(millis) => {
            let time = Duration::from_std(StdDuration::from_millis(millis));
            future.wait_for(time).ok_or(Fault::TIMED_OUT)
        }
    }
}
