//! Names below a folder. They are bytes: not every name is UTF-8.

use core::fmt;

/// The path of an entry below the folder that it belongs in: parts divided by `/`, none of them
/// empty, `.` or `..`. The folder itself is the empty path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RelPath(Vec<u8>);

/// Why bytes are not such a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It would lead out of the folder.
    #[error("a part of the path is empty, `.` or `..`")]
    Leads,
    /// A byte that no name has.
    #[error("the path contains a zero byte")]
    Nul,
    /// It is longer than operating systems allow.
    #[error("the path has more than 4096 bytes, or a name in it more than 255")]
    TooLong,
}

impl RelPath {
    /// The longest path, in bytes.
    pub const MAX: usize = 4096;
    /// The longest name, in bytes.
    pub const NAME_MAX: usize = 255;

    /// The folder itself.
    pub const fn here() -> Self {
        Self(Vec::new())
    }

    /// From bytes as they are on the wire.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.is_empty() {
            return Ok(Self::here());
        }
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        if bytes.len() > Self::MAX {
            return Err(PathError::TooLong);
        }
        for part in bytes.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." | b".." => return Err(PathError::Leads),
                long if long.len() > Self::NAME_MAX => return Err(PathError::TooLong),
                _ => {}
            }
        }
        Ok(Self(bytes.to_owned()))
    }

    /// From what a user writes: a `/` in front or behind, several in a row and `.` mean nothing
    /// here.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn written(bytes: &[u8]) -> Result<Self, PathError> {
        let parts = bytes.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
        Self::new(&parts.collect::<Vec<_>>().join(&b'/'))
    }

    /// The path of `name` in this folder.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn join(&self, name: &[u8]) -> Result<Self, PathError> {
        if self.0.is_empty() {
            return Self::new(name);
        }
        Self::new(&[&self.0, name].join(&b'/'))
    }

    /// The folder that it is in, and its name there; `None` of the folder itself.
    pub fn split(&self) -> Option<(Self, &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        Some(match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (Self(self.0[..at].to_owned()), &self.0[at + 1..]),
            None => (Self::here(), &self.0),
        })
    }

    /// Its parts, from the outermost.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
    }

    /// As on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is the folder itself.
    pub const fn is_here(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str(".") } else { f.write_str(&shown(&self.0)) }
    }
}

/// A name for people: bytes that are no UTF-8, and control characters, stand as `\x1b`.
pub fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for part in name.utf8_chunks() {
        for character in part.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                control if control.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in control.encode_utf8(&mut bytes).bytes() {
                        text.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                plain => text.push(plain),
            }
        }
        for byte in part.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Whether a written path is a pattern: it has `*`, `?` or `[`.
pub fn is_pattern(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_path_leads_out_of_its_folder() {
        for bytes in [&b".."[..], b"a/..", b"../a", b"/a", b"a/", b"a//b", b"./a", b"a/./b"] {
            assert_eq!(RelPath::new(bytes), Err(PathError::Leads), "{}", shown(bytes));
        }
        assert_eq!(RelPath::new(b"a\0b"), Err(PathError::Nul));
        assert_eq!(RelPath::new(&[b'a'; 256]), Err(PathError::TooLong));
        assert_eq!(RelPath::new(&b"abc/".repeat(1025)[..4099]), Err(PathError::TooLong));
        assert!(RelPath::new(b"..a/...").is_ok());
    }

    #[test]
    fn what_a_user_writes_is_tidied_and_never_leads_up() {
        assert_eq!(RelPath::written(b"/a//./b/").unwrap().as_bytes(), b"a/b");
        assert!(RelPath::written(b".").unwrap().is_here());
        assert_eq!(RelPath::written(b"a/../../b"), Err(PathError::Leads));
    }

    #[test]
    fn names_that_are_no_text_are_shown_as_bytes() {
        assert_eq!(shown(b"caf\xe9\x1b[0m\xc3\xa9"), "caf\\xe9\\x1b[0mé");
    }

    proptest! {
        #[test]
        fn a_path_is_the_path_of_its_folder_and_its_name(
            bytes in proptest::collection::vec(prop_oneof![Just(b'/'), any::<u8>()], 1..40),
        ) {
            if let Ok(path) = RelPath::new(&bytes) {
                let (folder, name) = path.split().unwrap();
                prop_assert_eq!(folder.join(name), Ok(path.clone()));
                prop_assert!(path.parts().all(|part| part != b".." && !part.is_empty()));
            }
        }
    }
}
