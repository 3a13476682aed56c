//! Destinations that are no nodes: folders, SFTP, FTPS, HTTPS and S3.

mod access;
mod failure;
mod folder;
mod ftps;
mod http;
mod name;
mod open;
mod pace;
mod place;
mod s3;
mod sftp;
mod sink;
mod source;
mod webdav;

pub use access::{RemoteAccess, S3Access};
pub use open::open;
pub use pace::Pace;
pub use place::{PlaceError, RemotePlace, RemoteServer};
pub use sink::{
    Abilities, GoOn, MOST_LISTED, OutgoingFile, PartNote, PlaceProgress, Placing, PublishWay,
    ReadBack, RemoteEntry, RemoteFound, RemoteSink, ResumeNote, ResumeStep, StoreCheck, UploadNote,
    UploadedPart,
};
use skyhaul_units::ByteCount;

/// Files of up to 16 MiB are read back to compare them: less than two seconds at 100 Mbit/s.
pub const SMALL: ByteCount = ByteCount::mib(16);
