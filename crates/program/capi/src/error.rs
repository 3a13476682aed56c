//! Errors, as a code and a sentence.
#![allow(unsafe_code, reason = "functions with C names; none of them follows a pointer")]

use std::cell::RefCell;
use std::ffi::{CString, c_char};

/// The result of a call, by who must act.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The call succeeded.
    Done = 0,
    /// The time ran out; nothing was changed.
    TimedOut = 1,
    /// The session or the node has ended, or the far end did not answer or refused.
    Closed = 2,
    /// An argument is wrong: the sentence names it.
    Misused = 3,
    /// The host failed: a socket, memory, random numbers.
    Host = 4,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub code: ErrorCode,
    pub sentence: String,
}

impl Fault {
    pub const TIMED_OUT: Self = Self { code: ErrorCode::TimedOut, sentence: String::new() };

    pub fn misused(sentence: impl Into<String>) -> Self {
        Self { code: ErrorCode::Misused, sentence: sentence.into() }
    }

    pub fn closed(sentence: impl Into<String>) -> Self {
        Self { code: ErrorCode::Closed, sentence: sentence.into() }
    }
}

impl From<skyhaul::SessionError> for Fault {
    fn from(error: skyhaul::SessionError) -> Self {
        match error {
            skyhaul::SessionError::Closed(_) => Self::closed(error.to_string()),
            skyhaul::SessionError::Block(_) => Self::misused(error.to_string()),
        }
    }
}

impl From<skyhaul::LocalError> for Fault {
    fn from(error: skyhaul::LocalError) -> Self {
        let code = match error {
            skyhaul::LocalError::Socket { .. } | skyhaul::LocalError::Thread(_) => ErrorCode::Host,
            skyhaul::LocalError::Refused(_) => ErrorCode::Closed,
            skyhaul::LocalError::Name(_) => ErrorCode::Misused,
        };
        Self { code, sentence: error.to_string() }
    }
}

impl From<skyhaul::StartError> for Fault {
    fn from(error: skyhaul::StartError) -> Self {
        let code = match error {
            skyhaul::StartError::Socket(_) => ErrorCode::Host,
            skyhaul::StartError::Config(_) => ErrorCode::Misused,
        };
        Self { code, sentence: error.to_string() }
    }
}

thread_local! {
    /// The last error on this thread.
    static SENTENCE: RefCell<CString> = RefCell::default();
}

/// The code of a result; keeps its sentence.
pub(crate) fn code(outcome: Result<(), Fault>) -> ErrorCode {
    let Err(Fault { code, sentence }) = outcome else { return ErrorCode::Done };
    if code != ErrorCode::TimedOut {
        // A text of the far end may hold a zero, which would end the sentence.
        let sentence = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
        SENTENCE.with_borrow_mut(|last| *last = sentence);
    }
    code
}

/// The last error on this thread, in a sentence; empty if there was none. Valid until the next call
/// on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_error() -> *const c_char {
    SENTENCE.with_borrow(|last| last.as_ptr())
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
