//! Application channels multiplexed onto one session.
//!
//! [`links`] gives each channel a slot of flows and a flow-control window. A session that carries
//! several services has a [`FlowRange`] for each, and each service has a [`Share`] of the send
//! buffer. Sockets and threads are in `channels-io`.

mod flow_range;
pub mod links;
mod share;

pub use flow_range::{FIRST_GUEST, FlowRange};
pub use share::Share;
