//! Emulated links for any program.
//!
//! Two network namespaces, the places `a` and `b`, are joined by one or several links. Programs run
//! in either as they are (`ip netns exec`); what they send over a link goes through the same model
//! of rate, queue, delay, jitter, loss and outages that stands behind the lab's virtual time
//! ([`skyhaul_link`]).
//!
//! Each end of a link is a TUN device that leaves segmentation to us, so that endpoints work as
//! with a good network card: the kernel gives up to 64 KiB at once, the link sees the packets that
//! it stands for ([`packet`]), and what arrives together goes back together. One thread with
//! real-time priority carries them; departures are never early.
//!
//! Flows can be spread over several links by their addresses and ports, as routers spread them over
//! equal routes.
//!
//! [`proxy`] is a UDP proxy with the same model, which needs no root.
//!
//! The rest needs root, for namespaces and devices, and the command `ip`. It leaves out bridges and
//! routers between the places; a link is one hop.

mod control;
mod description;
mod device;
mod emulation;
mod error;
mod lab_folder;
mod lab_name;
pub mod offload;
mod order;
pub mod packet;
mod place;
pub mod proxy;
mod status;

pub use control::ControlSocket;
pub use description::{
    LabDescription, LabDescriptionError, LinkDescription, MAX_LINKS, MAX_MTU, MIN_MTU,
};
pub use emulation::{Emulation, Handle};
pub use error::EmulatorError;
pub use lab_folder::{LabFolder, ProgramsLeft};
pub use lab_name::{DEFAULT_LAB, lab_name};
pub use order::{EmulatorOrder, OrderAnswer};
pub use place::{LinkEnd, Namespace};
pub use status::{
    DirectionStatus, EmulatedDirection, LinkStatus, QueueDelays, SpreadStatus, Status,
};
