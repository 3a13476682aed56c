//! From a received bit stream to CCSDS frames, packets and their times.

pub mod account;
pub mod capture;
pub mod count;
pub mod decode;
pub mod extract;
pub mod frame;
pub mod generate;
pub mod id;
pub mod identify;
pub mod mission;
pub mod packet;
pub mod quality;
pub mod record;
pub mod sync;
pub mod time;
