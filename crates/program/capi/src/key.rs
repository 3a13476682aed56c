//! Keys: a private one for each node, and its fingerprint for other nodes.
#![allow(unsafe_code, reason = "functions with C names, for callers in C")]

use crate::boundary::{text, write_text};
use crate::error::{ErrorCode, Fault, code};
use skyhaul::Identity;
use std::ffi::c_char;

/// Bytes that are enough for a private key as text.
pub const SKYHAUL_KEY_SIZE: usize = 512;

/// Bytes that are enough for a fingerprint.
pub const SKYHAUL_FINGERPRINT_SIZE: usize = 72;

/// Makes a private key and writes it to `pem` as text, as `skyhaul keygen` does to a file. Keep it
/// secret.
///
/// # Safety
/// `size` bytes may be written at `pem`; SKYHAUL_KEY_SIZE is enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_key_generate(pem: *mut c_char, size: usize) -> ErrorCode {
    let made = Identity::generate();
    let made = made.map_err(|error| Fault { code: ErrorCode::Host, sentence: error.to_string() });
    // SAFETY: as the caller says.
    code(made.and_then(|key| unsafe { write_text(&key.to_pem(), pem, size) }))
}

/// Writes the fingerprint of the private key `pem`, which the other end trusts and calls.
///
/// # Safety
/// `pem` is a text, and `size` bytes may be written at `fingerprint`; SKYHAUL_FINGERPRINT_SIZE is
/// enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_key_fingerprint(
    pem: *const c_char,
    fingerprint: *mut c_char,
    size: usize,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let key = unsafe { text(pem, "pem") }.and_then(identity);
    // SAFETY: as the caller says.
    code(
        key.and_then(|key| unsafe {
            write_text(&key.fingerprint().to_string(), fingerprint, size)
        }),
    )
}

/// The key of a text.
pub(crate) fn identity(pem: &str) -> Result<Identity, Fault> {
    Identity::from_pem(pem).map_err(|error| Fault::misused(error.to_string()))
}
