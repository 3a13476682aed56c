//! Sockets and real time for the sans-IO core.
//!
//! [`relay`] is a UDP relay that behaves like a long, thin, lossy line, for tests, demonstrations and rehearsals
//! on machines where the kernel's own emulation would need root.

pub mod relay;
