//! Streams of a constant rate: VDIF and Mark 5B frames, and their transport over a line with loss.
//!
//! A [`FrameHead`] is a frame's header, checked when it is read. A [`FrameFinder`] finds frames in
//! bytes that begin anywhere. A [`FrameSequence`] knows which frame comes next, so that the frame
//! that replaces a lost one has the header of the lost one. On the line frames go in groups
//! ([`wire`]): a [`Departure`] makes them, an [`StreamReceiver`] gives frames out in order, with an
//! invalid one in the place of each that is not there in time, and counts. Frames of an RTP stream
//! have no header here: a [`MediaClock`] finds their times, and each goes out at its own. Sans-IO:
//! time and bytes are arguments.
//!
//! ```
//! use skyhaul_streams::{NextBytes, FrameFinder, StreamFormat, Synthesis};
//!
//! let mut synthesis = Synthesis::new(5_000, 2, 1_600).expect("5000 bytes make a frame");
//! let mut bytes = b"something else".to_vec();
//! (0..4).for_each(|_| synthesis.frame(&mut bytes));
//!
//! let mut finder = FrameFinder::new(Some(StreamFormat::Vdif));
//! finder.push(&bytes);
//! assert_eq!(finder.next(), Some(NextBytes::Skipped(14)));
//! let Some(NextBytes::Frame(head, frame)) = finder.next() else { panic!("a frame") };
//! assert_eq!((head.place().thread, head.place().number, frame.len()), (0, 0, 5_032));
//! ```
//!
//! What it leaves out: samples. It neither decodes nor changes what was recorded.

mod account;
mod arrival;

mod departure;
mod fields;
mod find;
mod frame_time;
mod head;
mod hold;
mod mark5b;
mod media_clock;
mod sequence;
mod synthesis;
mod transit;
mod vdif;
pub mod wire;

pub use account::{Counters, LossMap, LossRuns, Missing, signal_to_noise};
pub use arrival::{SinkFrames, StreamReceiver};
pub use departure::{Departure, FrameGrouping, FrameRole, Parcel};
pub use find::{FrameFinder, NextBytes};
pub use frame_time::{FRAME_MAX, FrameTime, HeadError};
pub use head::{FILL, FormatError, FrameHead, StreamFormat};
pub use mark5b::Mark5bHeader;
pub use media_clock::{MediaClock, MediaTime};
pub use sequence::{Exception, FrameSequence};
pub use synthesis::Synthesis;
pub use vdif::VdifHeader;
