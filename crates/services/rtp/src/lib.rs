//! RTP streams as blocks, and back to packets. No IO.
//!
//! [`RtpEntrance`] takes the packets of one RTP stream (RFC 3550), puts them in order, and makes a
//! [`RtpFrame`] of those with one time stamp. The headers of H.264 (RFC 6184) and H.265 (RFC 7798)
//! say whether a frame stands alone or depends on the one before ([`RtpFrameKind`]). A frame is the
//! content of one block ([`RtpFrame::encode`]); the far end takes the packets out of it as they
//! were, byte for byte ([`RtpFrame::packets_in`]). The times at which they go out there are the
//! business of `skyhaul-streams`.
//!
//! ```
//! use bytes::Bytes;
//! use skyhaul_rtp::{RtpEntrance, RtpFrame, RtpRules};
//! use skyhaul_units::Instant;
//!
//! let mut entrance = RtpEntrance::new(RtpRules::default());
//! // Version 2, marker, payload type 96, sequence number 7, time stamp 0, source 1.
//! let packet = [0x80, 0xe0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, b'x'];
//! entrance.take(Instant::ZERO, Bytes::copy_from_slice(&packet))?;
//! let frame = entrance.poll().ok_or("no frame")?;
//! let packets = RtpFrame::packets_in(&frame.encode())?;
//! assert_eq!(packets[0].bytes()[..], packet);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entrance;
mod frame;
mod nal;
mod packet;
mod timestamp;

pub use entrance::{RtpCounters, RtpEntrance, RtpRules};
pub use frame::{FRAME_BYTES_MAX, FRAME_PACKETS_MAX, RtpFrame, RtpFrameError};
pub use nal::{RtpFrameKind, VideoCodec};
pub use packet::{RtpPacket, RtpPacketError};
