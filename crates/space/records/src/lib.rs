//! Contact records: frames as they are stored and sent.
//!
//! A station writes each frame as a [`record`], gathers records into a block, whose head and layout
//! [`payload`] has, and makes the block smaller with [`pack`] where that pays. A centre reads them
//! back from the contact's log. A node that passes a contact on adds to each block where it came
//! from ([`hops`]).

pub mod hops;
pub mod pack;
pub mod payload;
pub mod record;

pub use record::{
    Close, InputReport, MAX_CLOSE_CHANNELS, Open, Record, RecordError, RecordReader, RecordWriter,
    ends_contact,
};
