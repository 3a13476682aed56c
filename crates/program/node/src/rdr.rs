//! Raw Data Record files out of packet files: of a contact at the centre, or of any files by hand.
//!
//! Two passes: the first finds out which granule each packet belongs to
//! ([`skyhaul_level0::rdr::PacketIndex`]), the second reads the packets of one granule at a time.
//! Memory holds some 40 bytes for each packet and one granule. Which packets lie where changes
//! nothing in the result; the same packets and creation time give the same bytes.

mod error;
mod make;
mod source;

pub use error::RdrError;
pub use make::{GranuleReport, Made, MadeCollection, MadeFile, RdrJob, make};

#[cfg(test)]
mod tests;
