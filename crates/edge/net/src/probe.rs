//! The probe on sockets: its serving end, its measuring end, what the host's system counts, and
//! what this machine can do.

mod calibration;
mod far;
mod host;
mod near;
mod socket;

pub use calibration::{HostCapacity, calibrate};
pub use far::{ServeError, Server};
pub use host::HostFiles;
pub use near::SocketLine;
pub use socket::ProbeSocket;

use std::io;

/// A number that nobody else knows.
///
/// # Errors
/// The system has no randomness.
pub fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
