//! Volumes of products as bags (RFC 8493): what their tag files say. No IO.

use core::fmt::Write;
use skyhaul_units::Utc;

/// A file of a bag, with its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BagEntry {
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its path below the bag, such as `data/a.PDS`.
    pub path: String,
}

/// What `bag-info.txt` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BagInfo {
    /// The name of the volume.
    pub name: String,
    /// The node that wrote it.
    pub node: String,
    /// When.
    pub made: Utc,
    /// The bytes of the payload.
    pub octets: u64,
    /// The files of the payload.
    pub files: u64,
}

/// A manifest that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BagError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// The file `bagit.txt` (RFC 8493 2.1.1).
pub const BAG_DECLARATION: &str = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
/// Entries of one manifest: a volume of 100 TB in files of 100 MB.
pub const BAG_ENTRIES_MAX: usize = 1_000_000;

impl BagInfo {
    /// The file `bag-info.txt` (RFC 8493 2.2.2).
    pub fn text(&self) -> String {
        let Self { name, node, made, octets, files } = self;
        let day = made.to_string().chars().take(10).collect::<String>();
        format!(
            "Source-Organization: {node}\nExternal-Identifier: {name}\nBagging-Date: {day}\n\
             Bag-Software-Agent: skyhaul\nPayload-Oxum: {octets}.{files}\n"
        )
    }
}

/// A manifest or tag manifest (RFC 8493 2.1.3).
pub fn bag_manifest(entries: &[BagEntry]) -> String {
    let mut text = String::new();
    for BagEntry { sha256, path } in entries {
        for byte in sha256 {
            let _ = write!(text, "{byte:02x}");
        }
        let path = path.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D");
        let _ = writeln!(text, "  {path}");
    }
    text
}

/// Reads a manifest of SHA-256 digests. Paths stay below the bag.
///
/// # Errors
/// [`BagError`] says what is wrong, and where.
pub fn parse_bag_manifest(text: &str) -> Result<Vec<BagEntry>, BagError> {
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let wrong = |what| BagError { line, what };
        if text.is_empty() {
            continue;
        }
        if entries.len() >= BAG_ENTRIES_MAX {
            return Err(wrong("there are more than a million files"));
        }
        let (digest, path) =
            text.split_once([' ', '\t']).ok_or(wrong("it is no digest and a path"))?;
        let sha256 = digest_of(digest).ok_or(wrong("it begins with no SHA-256"))?;
        let path = path.trim_start_matches([' ', '\t']).trim_start_matches('*');
        let path = path.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%");
        let is_below = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !path.split('/').all(is_below) {
            return Err(wrong("the path leaves the bag"));
        }
        entries.push(BagEntry { sha256, path });
    }
    Ok(entries)
}

fn digest_of(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tag_files_say_what_the_standard_asks_for() {
        let made = Utc::from_micros(1_764_000_000_000_000);
        let (name, node) = ("c-1".to_owned(), "c".to_owned());
        let text = BagInfo { name, node, made, octets: 279_164, files: 1_198 }.text();
        assert!(text.contains("Bagging-Date: 2025-11-24\n"), "{text}");
        assert!(text.ends_with("Payload-Oxum: 279164.1198\n"), "{text}");
    }

    #[test]
    fn what_is_no_manifest_is_refused_with_its_line() {
        let digest = "0".repeat(64);
        for (text, what) in [
            ("abc".to_owned(), "no digest and a path"),
            (format!("{}  data/a", &digest[1..]), "no SHA-256"),
            (format!("{digest}  ../a"), "leaves the bag"),
            (format!("{digest}  /etc/passwd"), "leaves the bag"),
            (format!("{digest}  data//a"), "leaves the bag"),
        ] {
            let error = parse_bag_manifest(&format!("{digest} *data/ok\n{text}\n")).unwrap_err();
            assert!(error.line == 2 && error.what.contains(what), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            paths in prop::collection::vec("data/[a-z %\r\n]{1,20}", 0..9),
        ) {
            let entries: Vec<BagEntry> = paths
                .into_iter()
                .map(|path| BagEntry { sha256: [7; 32], path })
                .collect();
            prop_assert_eq!(parse_bag_manifest(&bag_manifest(&entries)), Ok(entries));
        }

        #[test]
        fn any_text_is_a_manifest_or_none(text in "\\PC{0,200}") {
            let _ = parse_bag_manifest(&text);
        }
    }
}
