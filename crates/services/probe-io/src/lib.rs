//! The probe on sockets: its serving end, its measuring end, what the host's system counts, and
//! what this machine can do.

mod calibration;
mod far;
mod host;
mod near;
mod processors;
mod socket;

pub use calibration::{HostCapacity, calibrate};
pub use far::{ServeError, Server};
pub use host::HostFiles;
pub use near::SocketLine;
pub use processors::Processors;
pub use socket::ProbeSocket;
