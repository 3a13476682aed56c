//! Transmission over a path without return, sealed and paced, and files over it. No IO.
//!
//! `skyhaul_transport::oneway` codes blocks for a path of which nothing is ever heard. Here each of
//! its datagrams is sealed with a key that both ends have, and goes out at the declared rate
//! ([`Transmitter`]); at the other end what is forged or sent again is dropped before anything else
//! sees it, and each session of a sender gets a receiver of its own ([`Listener`]). [`mod@file`]
//! cuts files into blocks and puts them together again.
//!
//! ```
//! use skyhaul_identity::OneWayKey;
//! use skyhaul_oneway::{Assumptions, Listener, TransmitSession, Transmitter};
//! use skyhaul_transport::oneway::{Event, ReceiverConfig, SenderConfig};
//! use skyhaul_transport::{Block, FlowId};
//! use skyhaul_units::{Instant, Rate, Utc};
//!
//! let key = OneWayKey::from_bytes([7; 32]);
//! let session = TransmitSession { key: key.clone(), began: Utc::default(), salt: [1; 8] };
//! let assumptions = Assumptions::over(Rate::from_mbps(20));
//! let mut now = Instant::ZERO;
//! let mut transmitter = Transmitter::new(now, session, &assumptions, SenderConfig::default())?;
//! let mut listener = Listener::new(key, ReceiverConfig::default());
//! transmitter.sender().send(now, Block::reliable(FlowId(0), "one block".into()))?;
//! transmitter.sender().finish();
//! let mut found = None;
//! while found.is_none() {
//!     match transmitter.poll(now) {
//!         Some(datagram) => listener.datagram(now, datagram),
//!         None => now = transmitter.next_timeout(now).expect("it has not ended").max(now),
//!     }
//!     while let Some((_, event)) = listener.poll_event() {
//!         if let Event::Block(block) = event {
//!             found = Some(block.bytes);
//!         }
//!     }
//! }
//! assert_eq!(found.as_deref(), Some(&b"one block"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it leaves out: sockets and clocks, which the caller has.

pub mod file;
mod listener;
mod transmitter;

pub use listener::{Listener, ListenerCounters};
pub use skyhaul_transport::oneway::Assumptions;
pub use transmitter::{HEADERS_IPV4, HEADERS_IPV6, TransmitSession, Transmitter, assumptions_for};
