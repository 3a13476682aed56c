//! Destinations that are no nodes: folders, SFTP, FTPS, HTTPS and S3.
//!
//! A [`RemotePlace`] says where a destination is, a [`RemoteAccess`] how it is entered, and
//! [`open`] gives the connection to it, a [`RemoteSink`]. Whatever the protocol, a sink keeps the
//! same promises:
//!
//! - A file is visible under its final name only when it is whole, wherever the far side can
//!   rename or shows whole files only ([`Abilities`] says so).
//! - A file of other content is never replaced. A file with the same content is placed already.
//! - An attempt goes on where an earlier one stopped, as far as the protocol allows: the caller
//!   keeps the [`ResumeNote`].
//! - Each wait is bounded, and no file is in memory as a whole.
//! - A failure names its place, who must act, and the other side's words; no text has a secret.
//!
//! ```
//! use skyhaul_remote::{
//!     GoOn, OutgoingFile, Placing, ReadBack, RemoteAccess, ResumeNote, open,
//! };
//! use skyhaul_units::ByteCount;
//! # let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! # let path = here.path().join("P1.PDS");
//! # std::fs::write(&path, "abc")?;
//! # let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
//! # let byte = |at: usize| u8::from_str_radix(&digest[2 * at..2 * at + 2], 16).unwrap_or(0);
//! # let sha256 = core::array::from_fn(byte);
//! # let to = format!("folder:{}", there.path().display());
//!
//! let mut sink = open(&to.parse()?, &RemoteAccess::default(), None)?;
//! let file = OutgoingFile {
//!     path,
//!     name: "2026/P1.PDS".to_owned(),
//!     size: ByteCount::new(3),
//!     sha256,
//!     md5: None,
//!     read_back: ReadBack::Always,
//! };
//! let placed = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue)?;
//! assert!(matches!(placed, Placing::Placed(_)));
//! sink.write("2026/P1.PDR", b"the record goes last")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it leaves out: which file goes where and when (`skyhaul-dispatch`), and keeping notes. A
//! sink has one connection and sends one file at a time; the worker threads of a destination have
//! one each and share its [`DeliveryPace`].

mod access;
mod connect;
mod failure;
mod folder;
mod ftps;
mod http;
mod name;
mod open;
mod pace;
mod place;
mod post;
mod s3;
mod sftp;
mod sink;
mod source;
mod webdav;

pub use access::{RemoteAccess, S3Access};
pub use open::open;
pub use pace::DeliveryPace;
pub use place::{PlaceError, RemotePlace, RemoteServer};
pub use post::{HttpPost, PostDocument, PostUrl, PostUrlError};
pub use sink::{
    Abilities, GoOn, MOST_LISTED, OutgoingFile, PartNote, PlaceProgress, Placing, PublishWay,
    ReadBack, RemoteEntry, RemoteFound, RemoteSink, ResumeNote, ResumeStep, SMALL, StoreCheck,
    UploadNote, UploadedPart,
};
