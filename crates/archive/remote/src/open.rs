//! Opens the sink of a place.

use crate::access::RemoteAccess;
use crate::folder::FolderSink;
use crate::ftps::FtpsSink;
use crate::place::RemotePlace;
use crate::s3::S3Sink;
use crate::sftp::SftpSink;
use crate::sink::{Abilities, RemoteSink};
use crate::webdav::WebSink;
use skyhaul_dispatch::DeliveryFailure;

/// A sink for a place. It connects with its first call. What an earlier one found out about the
/// far side saves the trial; how the access wants files published goes before what was found.
///
/// # Errors
/// A file that says how the place is entered cannot be read.
pub fn open(
    place: &RemotePlace,
    access: &RemoteAccess,
    known: Option<&Abilities>,
) -> Result<Box<dyn RemoteSink>, DeliveryFailure> {
    let known = known
        .cloned()
        .map(|known| Abilities { publish: access.publish.unwrap_or(known.publish), ..known });
    Ok(match place {
        RemotePlace::Folder(path) => Box::new(FolderSink::new(path.clone(), access.clone())),
        RemotePlace::S3 { bucket, prefix } => Box::new(S3Sink::new(bucket, prefix, access, known)?),
        RemotePlace::Sftp(server) => Box::new(SftpSink::new(server, access, known)?),
        RemotePlace::Https(server) => Box::new(WebSink::new(server, access, known)?),
        RemotePlace::Ftps(server) => Box::new(FtpsSink::new(server, access, known)?),
    })
}
