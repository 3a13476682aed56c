//! VITA 49 (ANSI/VITA 49.0-2015, 49.2-2017) and DIFI (IEEE-ISTO 4900-2021) packets, as far as
//! symbols of a downlink come in them: header, class, stream, time stamps, the first context
//! indicator field, payload format and trailer, and of one stream the symbols in order.
//!
//! ```
//! use skyhaul_units::Utc;
//! use skyhaul_vita49::{Depacketiser, SymbolForm};
//!
//! // Signal data with stream id 7, second of UTC 1,730,419,200 and 0 ps, two words of payload.
//! let packet: [u8; 28] = [
//!     // The prologue.
//!     0x10, 0x60, 0x00, 0x07, 0, 0, 0, 7, 0x67, 0x24, 0x1A, 0x00, 0, 0, 0, 0, 0, 0, 0, 0,
//!     0x1A, 0xCF, 0xFC, 0x1D, 1, 2, 3, 4,
//! ];
//! let mut stream = Depacketiser::new();
//! let symbols = stream.push(Utc::from_micros(0), &packet)?;
//! let symbols = symbols.expect("the first stream is the one that is taken");
//! assert_eq!(symbols.form, SymbolForm::Hard);
//! assert_eq!(symbols.bytes[..4], [0x1A, 0xCF, 0xFC, 0x1D]);
//! assert_eq!(symbols.received, Utc::from_micros(1_730_419_200_000_000));
//! # Ok::<(), skyhaul_vita49::Refused>(())
//! ```
//!
//! What it leaves out: command packets, the further context indicator fields (kept apart, not
//! read), samples: those need a demodulator in front.

mod context;
mod error;
mod packet;
mod stream;
mod time;
mod word;

pub use context::{Context, ItemFormat, PayloadFormat, SampleKind};
pub use error::PacketError;
pub use packet::{Contents, PacketClassId, PacketKind, Trailer, Vita49Packet};
pub use stream::{DatagramSymbols, Depacketiser, Refused, StreamCounters, SymbolForm};
pub use time::{FractionalTime, IntegerTime, Timestamp};
