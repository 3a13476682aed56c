//! The text form of a destination.

use skyhaul_units::printable;
use std::path::PathBuf;

/// Where a destination is. Its text has no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemotePlace {
    /// `folder:PATH`: a folder of this machine, or one that is mounted here.
    Folder(PathBuf),
    /// `sftp://user@host[:port]/dir`. `/~/dir` begins in the user's home folder.
    Sftp(RemoteServer),
    /// `ftps://user@host[:port]/dir`: FTP with TLS, which the client asks for (`AUTH TLS`).
    Ftps(RemoteServer),
    /// `https://[user@]host[:port]/dir`: PUT, and WebDAV where the server has it.
    Https(RemoteServer),
    /// `s3://bucket[/prefix]`; the endpoint is in [`crate::S3Access`].
    S3 {
        /// The bucket.
        bucket: String,
        /// What stands before each name, without a slash at either end.
        prefix: String,
    },
}

/// A folder of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteServer {
    /// Who logs in.
    pub user: Option<String>,
    /// Its name or address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The folder; it begins with a slash, and ends with none unless it is the root.
    pub folder: String,
}

/// A text that is no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlaceError(String);

impl core::str::FromStr for RemotePlace {
    type Err = PlaceError;
    fn from_str(text: &str) -> Result<Self, PlaceError> {
        if text.chars().any(char::is_control) {
            return Err(wrong(text, "has a control character"));
        }
        if let Some(path) = text.strip_prefix("folder:") {
            return folder(text, path);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong(text, "is no destination"));
        };
        match scheme {
            "sftp" => server(text, rest, 22).and_then(with_user(text)).map(Self::Sftp),
            "ftps" => server(text, rest, 21).and_then(with_user(text)).map(Self::Ftps),
            "https" => server(text, rest, 443).map(Self::Https),
            "s3" => bucket(text, rest),
            _ => Err(wrong(text, "has an unknown scheme")),
        }
    }
}

impl core::fmt::Display for RemotePlace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "folder:{}", path.display()),
            Self::Sftp(server) => server.write(f, "sftp", 22),
            Self::Ftps(server) => server.write(f, "ftps", 21),
            Self::Https(server) => server.write(f, "https", 443),
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

impl RemoteServer {
    fn write(
        &self,
        f: &mut core::fmt::Formatter<'_>,
        scheme: &str,
        usual: u16,
    ) -> core::fmt::Result {
        write!(f, "{scheme}://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}", self.host_text())?;
        if self.port != usual {
            write!(f, ":{}", self.port)?;
        }
        write!(f, "{}", self.folder)
    }

    /// Its folder. `/~` is where the user begins: names without a slash in front are relative to
    /// it.
    pub(crate) fn folder_or_home(&self) -> String {
        match self.folder.strip_prefix("/~") {
            Some("") => ".".to_owned(),
            Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
            _ => self.folder.clone(),
        }
    }

    /// Its host as a part of a URL.
    pub(crate) fn host_text(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

fn folder(text: &str, path: &str) -> Result<RemotePlace, PlaceError> {
    match path.starts_with('/') {
        true => Ok(RemotePlace::Folder(PathBuf::from(path))),
        false => Err(wrong(text, "has no path that begins with `/`")),
    }
}

fn server(text: &str, rest: &str, usual: u16) -> Result<RemoteServer, PlaceError> {
    let (authority, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, address) = match authority.rsplit_once('@') {
        Some((user, address)) => (Some(user), address),
        None => (None, authority),
    };
    if user.is_some_and(|user| user.contains(':')) {
        // The text is not repeated: it has a password.
        let help = "a password does not belong into a destination; write it into a file, and \
                    name that file";
        return Err(PlaceError(help.to_owned()));
    }
    if user == Some("") {
        return Err(wrong(text, "has no user before the `@`"));
    }
    let (host, port) = host_and_port(address, usual)
        .ok_or_else(|| wrong(text, "has no host, or a port that is no number from 1 to 65535"))?;
    if folder.split('/').any(|part| part == "..") {
        return Err(wrong(text, "has a folder `..`"));
    }
    Ok(RemoteServer {
        user: user.map(str::to_owned),
        host,
        port,
        folder: format!("/{}", folder.trim_end_matches('/')),
    })
}

fn with_user(text: &str) -> impl Fn(RemoteServer) -> Result<RemoteServer, PlaceError> {
    let text = text.to_owned();
    move |server| match server.user {
        Some(_) => Ok(server),
        None => Err(wrong(&text, "has no user")),
    }
}

/// The parts of `host`, `host:port`, `[address]` or `[address]:port`.
pub fn host_and_port(address: &str, usual: u16) -> Option<(String, u16)> {
    let (host, rest) = match address.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
        None if rest.is_empty() => usual,
        None => return None,
    };
    let is_good =
        !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || "/@".contains(c));
    is_good.then(|| (host.to_owned(), port))
}

fn bucket(text: &str, rest: &str) -> Result<RemotePlace, PlaceError> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_good = (3..=63).contains(&bucket.len())
        && bucket
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-".contains(&b));
    if !is_good {
        let what = "has no bucket: 3 to 63 lower-case letters, digits, dots and hyphens";
        return Err(wrong(text, what));
    }
    let prefix = prefix.trim_matches('/').to_owned();
    Ok(RemotePlace::S3 { bucket: bucket.to_owned(), prefix })
}

fn wrong(text: &str, what: &str) -> PlaceError {
    let text = printable(text, 200);
    PlaceError(format!(
        "`{text}` {what}; write \"folder:/path\", \"sftp://user@host/dir\", \
         \"ftps://user@host/dir\", \"https://host/dir\" or \"s3://bucket/prefix\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_the_same_after_writing() {
        for text in [
            "folder:/out/lance a",
            "sftp://skyhaul@lance-a.example.org/in",
            "sftp://a@[2001:db8::1]:2022/~/in",
            "ftps://a@b.example/",
            "https://host.example:8443/dav/x",
            "https://me@host.example/",
            "s3://bucket-1",
            "s3://bucket-1/a/b",
        ] {
            assert_eq!(text.parse::<RemotePlace>().unwrap().to_string(), text);
        }
        let place: RemotePlace = "sftp://a@h:22/in/".parse().unwrap();
        assert_eq!(place.to_string(), "sftp://a@h/in");
    }

    #[test]
    fn what_is_no_place_is_refused_with_what_to_write_and_without_its_password() {
        for text in [
            "",
            "/out",
            "folder:out",
            "ftp://a@b/c",
            "sftp://host/dir",
            "sftp://@host/dir",
            "sftp://a@/dir",
            "sftp://a@h:0/dir",
            "sftp://a@h/../etc",
            "s3://B/x",
            "https://h h/x",
        ] {
            let error = text.parse::<RemotePlace>().unwrap_err().to_string();
            assert!(error.contains("write \"folder:/path\""), "{text}: {error}");
        }
        let error = "sftp://me:geheim@host/x".parse::<RemotePlace>().unwrap_err().to_string();
        assert!(error.contains("into a file") && !error.contains("geheim"), "{error}");
    }
}
