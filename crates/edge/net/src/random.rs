//! Random bytes of the operating system.

use std::io;

/// 32 secret random bytes.
///
/// # Errors
/// The system has no random source.
pub fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
