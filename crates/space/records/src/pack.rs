//! Blocks of contact records made smaller, and back, bit by bit.
//!
//! What a downlink repeats stands far apart in it: the headers of packets of one application
//! process, the fields of its housekeeping, the same detector in the next scan. [`Packer::pack`]
//! takes a block of records apart and lays side by side what is alike:
//!
//! - what stands between frames, and the frames' headers and trailers, by virtual channel;
//! - the packets of each virtual channel, whose pieces lie in several frames, by application
//!   process and length;
//! - where it pays, packets of one length byte by byte with the same byte of the packet before
//!   taken off: a field that hardly changes becomes a row of zeros;
//!
//! and leaves the rest to zstd (RFC 8878). Fill frames, whose content repeats, shrink to almost
//! nothing. What does not shrink is kept as it is. [`unpack`] knows nothing of frames or packets:
//! the packed block says how it was taken apart, so that whatever went in comes out, well formed or
//! not. A packed block is readable by itself.
//!
//! | field | size | what |
//! |---|---|---|
//! | sections | 4 × (u8, u32, u32) | method (0 as it is, 1 zstd), length unpacked, length packed: layout, plain, columns, kept |
//! | content | to the end | the sections |
//!
//! The layout section holds a count u32, so many words u32 (the first byte of each, then the
//! second, and so on), then the bytes between the frames, then the frames' headers and trailers by
//! virtual channel, as columns with differences. The words:
//!
//! | words | what |
//! |---|---|
//! | 6 | bytes of a frame before its packet zone, in it, and behind it; frames; channels; groups |
//! | 2 a frame, then 1 | bytes before it (and at last those behind all), and its channel |
//! | 2 a group | length of its packets, 0 where each has its own; where they lie: 0 plain, 1 columns, 2 kept |
//! | for each channel | pieces; then for each its group, and its length where the group has none |
//!
//! ```
//! use skyhaul_records::pack::{Effort, Packer, unpack};
//! # use skyhaul_ccsds::mission::{FrameCheck, FrameFormat, FrameKind, FrameLengths};
//! # let format = FrameFormat {
//! #     kind: FrameKind::Aos,
//! #     length: 892,
//! #     lengths: FrameLengths::Fixed,
//! #     wide_scid: false,
//! #     fhec: false,
//! #     insert_zone: 0,
//! #     ocf: false,
//! #     fecf: FrameCheck::None,
//! # };
//! let records = vec![0x5A; 10_000];
//! let packed = Packer::new().pack(&records, &[], &format, Effort::Normal).expect("it repeats");
//! assert!(packed.len() < 100);
//! assert_eq!(unpack(&packed, 10_000)?, records);
//! # Ok::<(), skyhaul_records::pack::UnpackError>(())
//! ```

mod columns;
mod error;
mod groups;
mod packer;
mod sections;
mod split;
mod unpacker;

pub use error::UnpackError;
pub use packer::{Effort, Packer};
pub use unpacker::unpack;
