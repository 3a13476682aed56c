//! How a destination is entered: names of files with secrets, and what is expected of the server.

use crate::failure::failed;
use crate::pace::DeliveryPace;
use crate::sink::PublishWay;
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use skyhaul_units::ByteCount;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What is needed to enter a destination. It holds the names of files with secrets, and no secret.
#[derive(Debug, Clone)]
pub struct RemoteAccess {
    /// A private key for SFTP, as OpenSSH writes it, without a passphrase.
    pub key_file: Option<PathBuf>,
    /// A file with the password of the user in its first line; of an HTTPS destination without a
    /// user it is a bearer token.
    pub password_file: Option<PathBuf>,
    /// The keys that an SFTP server may have, as `SHA256:…`. One of them must match.
    pub host_keys: Vec<String>,
    /// The certificates (PEM) that vouch for a server; without it, those of this machine.
    pub ca_file: Option<PathBuf>,
    /// The same for an object store.
    pub s3: S3Access,
    /// How files get their final names; none is as the far side can.
    pub publish: Option<PublishWay>,
    /// The rate limit that all connections of the destination share.
    pub pace: Option<Arc<DeliveryPace>>,
    /// Who tries what the far side can, such as node and destination: the names of trial files come
    /// from it. The next trial by the same overwrites and removes what one left that was cut short.
    pub tried_by: String,
    /// The longest time in which nothing moves: 60 s, longer than any pause of a server at work
    /// that answers a request.
    pub stall: Duration,
}

/// What is needed to enter an object store.
#[derive(Debug, Clone)]
pub struct S3Access {
    /// `https://host[:port]`; `http://` for a store of a closed network. Without it, Amazon's.
    pub endpoint: Option<String>,
    /// The region, by which requests are signed; `us-east-1` without it.
    pub region: Option<String>,
    /// A file with keys, as the command line of Amazon writes it (`credentials`).
    pub profile_file: Option<PathBuf>,
    /// The profile in it; `default` without it.
    pub profile: Option<String>,
    /// A longer file is sent in parts of at least this length. 64 MiB: at 100 Mbit/s a connection
    /// that breaks costs five seconds. Stores take no less than 5 MiB.
    pub least_part: ByteCount,
}

impl Default for S3Access {
    fn default() -> Self {
        let (endpoint, region, profile_file, profile) = (None, None, None, None);
        Self { endpoint, region, profile_file, profile, least_part: ByteCount::mib(64) }
    }
}

impl Default for RemoteAccess {
    fn default() -> Self {
        Self {
            key_file: None,
            password_file: None,
            host_keys: Vec::new(),
            ca_file: None,
            s3: S3Access::default(),
            publish: None,
            pace: None,
            tried_by: String::new(),
            stall: Duration::from_secs(60),
        }
    }
}

/// A text that neither errors nor logs show.
#[derive(Clone)]
pub struct Secret(pub String);

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl RemoteAccess {
    /// The password, where a file has one.
    ///
    /// # Errors
    /// The file cannot be read, or its first line is empty.
    pub(crate) fn password(&self, place: &str) -> Result<Option<Secret>, DeliveryFailure> {
        let Some(path) = &self.password_file else { return Ok(None) };
        let text = secret_file(place, path)?;
        match text.0.lines().next().unwrap_or_default().trim_end() {
            "" => {
                let what = format!("the first line of {} has no password", path.display());
                Err(failed(FailureKind::Access, place, what))
            }
            line => Ok(Some(Secret(line.to_owned()))),
        }
    }
}

/// The keys of an object store.
#[derive(Debug, Clone)]
pub struct S3Keys {
    /// Names the account.
    pub id: String,
    /// Signs.
    pub secret: Secret,
    /// Goes with keys for a time.
    pub token: Option<Secret>,
}

impl S3Access {
    /// The keys of the profile.
    ///
    /// # Errors
    /// There is no file, no such profile, or no key in it.
    pub(crate) fn keys(&self, place: &str) -> Result<S3Keys, DeliveryFailure> {
        let Some(path) = &self.profile_file else {
            let what = "no file with keys is named; name the file and the profile";
            return Err(failed(FailureKind::Access, place, what));
        };
        let text = secret_file(place, path)?;
        let profile = self.profile.as_deref().unwrap_or("default");
        parse_keys(&text.0, profile).ok_or_else(|| {
            let what = format!(
                "{} has no aws_access_key_id and aws_secret_access_key under [{profile}]",
                path.display()
            );
            failed(FailureKind::Access, place, what)
        })
    }
}

fn parse_keys(text: &str, profile: &str) -> Option<S3Keys> {
    let (mut is_within, mut id, mut secret, mut token) = (false, None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_within = section.trim() == profile;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_within) {
            let value = value.trim().to_owned();
            match key.trim() {
                "aws_access_key_id" => id = Some(value),
                "aws_secret_access_key" => secret = Some(Secret(value)),
                "aws_session_token" => token = Some(Secret(value)),
                _ => {}
            }
        }
    }
    Some(S3Keys { id: id?, secret: secret?, token })
}

/// A small file with a secret.
pub fn secret_file(place: &str, path: &Path) -> Result<Secret, DeliveryFailure> {
    std::fs::read_to_string(path).map(Secret).map_err(|error| {
        failed(FailureKind::Access, place, format!("{} cannot be read: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_among_others_and_its_secret_does_not_show() {
        let text = "[default]\naws_access_key_id = A\n# x\n[two]\naws_access_key_id=B\n\
                    aws_secret_access_key = geheim=\naws_session_token=t\n";
        assert!(parse_keys(text, "default").is_none());
        let keys = parse_keys(text, "two").unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.0.as_str()), ("B", "geheim="));
        assert!(!format!("{keys:?}").contains("geheim"));
    }
}
