//! Sockets and real time for the sans-IO core.
//!
//! A [`Driver`] runs a session manager, whose sessions have paths of QUIC over UDP and of TLS over
//! TCP.

mod busy;
mod clock;
mod driver;
pub mod drops;
mod endpoint;
mod interface;
mod lane;
mod left_socket;
pub mod one_way;
pub mod option;
mod random;
mod refusals;
mod rest;
mod shortage;
mod socket;
mod stream;
mod threads;
mod turn;
mod waker;

pub use busy::BusyClock;
pub use clock::{Clock, at_once};
pub use driver::{Driver, LastWord, Service};
pub use endpoint::{AnyEndpoint, TcpConfig, TcpEndpoint, UdpEndpoint};
pub use interface::interfaces;
pub use lane::ThreadedEndpoint;
pub use left_socket::LeftSocket;
pub use random::random;
pub use refusals::{AddressBlock, Merged, Refusals, RefusedCaller};
pub use shortage::Shortage;
pub use socket::{Buffers, OutgoingDatagrams, ReceivedBatch, Socket};
pub use stream::{TcpPathListener, TcpPathStream};
pub use threads::{Thread, ThreadTimes};
pub use waker::Waker;

/// A session manager over the endpoints of a driver.
pub type SessionManager = skyhaul_sessions::SessionManager<AnyEndpoint>;
