//! RTP streams as blocks, and back to packets. No IO.
//!
//! [`RtpEntrance`] takes the packets of one RTP stream (RFC 3550), puts them in order, and makes a
//! [`RtpFrame`] of those with one time stamp. The headers of H.264 (RFC 6184) and H.265 (RFC 7798)
//! say whether a frame stands alone or depends on the one before ([`RtpFrameKind`]). A frame is the
//! content of one block ([`RtpFrame::encode`]). [`RtpPlayout`] takes the blocks at the far end and
//! gives out the packets as they were, byte for byte, at the times that their time stamps say.
//!
//! ```
//! use bytes::Bytes;
//! use skyhaul_rtp::{RtpEntrance, RtpFrame, RtpPlayout, RtpRules};
//! use skyhaul_units::{Duration, Instant};
//!
//! let rules = RtpRules::default();
//! let mut entrance = RtpEntrance::new(rules);
//! // Version 2, marker, payload type 96, sequence number 7, time stamp 0, source 1.
//! let packet = [0x80, 0xe0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, b'x'];
//! let now = Instant::ZERO;
//! entrance.take(now, Bytes::copy_from_slice(&packet))?;
//! let frame = entrance.poll().ok_or("no frame")?;
//! let mut playout = RtpPlayout::new(rules.clock_rate, Duration::from_millis(100));
//! playout.take(now, RtpFrame::decode(&frame.encode())?);
//! assert_eq!(playout.poll(now), None);
//! let at = playout.next_timeout().ok_or("nothing to play")?;
//! assert_eq!(playout.poll(at).as_deref(), Some(&packet[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entrance;
mod frame;
mod nal;
mod packet;
mod playout;
mod timestamp;

pub use entrance::{RtpCounters, RtpEntrance, RtpRules};
pub use frame::{FRAME_BYTES_MAX, FRAME_PACKETS_MAX, RtpFrame, RtpFrameError};
pub use nal::{RtpFrameKind, VideoCodec};
pub use packet::{RtpPacket, RtpPacketError};
pub use playout::{PlayoutCounters, RtpPlayout};
