//! From a received bit stream to CCSDS frames, packets and their times.
//!
//! [`capture`] is the pipeline from bytes to frames: [`identify`] finds out what an input is,
//! [`sync`] finds blocks in bits, [`decode`] makes frames of blocks. [`extract`] reassembles
//! packets, [`packet`] and [`time`] read them, [`account`] counts frames and packets. [`select`]
//! joins the frames of several inputs. [`scan`] finds the packets of a file that may be damaged,
//! [`survey`] counts them. [`mission`] describes a spacecraft's downlink as data. [`generate`]
//! makes downlinks out of real or synthetic packets.
//!
//! Demodulation, order across channels, duplicates and products are left out: they belong to the
//! receiver and to Level-0.
//!
//! ```
//! use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
//! use skyhaul_ccsds::mission::MissionSet;
//! use skyhaul_units::Utc;
//!
//! let bits = include_bytes!("../../../../testdata/cadu/snpp_synchronized_cadus.dat");
//! let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
//! capture.push(Utc::from_micros(0), bits);
//! capture.finish();
//! let mut frames = 0;
//! while let Some(event) = capture.poll() {
//!     match event {
//!         CaptureEvent::Identified(found) => assert_eq!(found.mission.name(), "suomi-npp"),
//!         CaptureEvent::Frame(frame) => frames += u32::from(frame.is_good()),
//!         _ => {}
//!     }
//! }
//! assert_eq!(frames, 65);
//! ```

pub mod account;
pub mod capture;
pub mod continuity;
pub mod count;
pub mod decode;
mod delimit;
mod end_of_input;
pub mod extract;
pub mod frame;
pub mod generate;
pub mod id;
pub mod identify;
pub mod inner;
mod likeness;
pub mod margin;
pub mod mission;
pub mod packet;
pub mod quality;
pub mod scan;
pub mod select;
pub mod survey;
pub mod sync;
pub mod time;

pub use end_of_input::EndOfInput;
