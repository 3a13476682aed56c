//! Names at a destination.

use crate::failure::failed;
use crate::source::hex;
use sha2::{Digest, Sha256};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};

/// Checks a name that is written at a destination.
///
/// # Errors
/// The sentence says what is wrong with it.
pub fn check(place: &str, name: &str) -> Result<(), DeliveryFailure> {
    let refuse = |what: &str| {
        let name = skyhaul_units::printable(name, 300);
        Err(failed(FailureKind::Refused, place, format!("the name {name:?} {what}")))
    };
    if name.is_empty() {
        return refuse("is empty; name the file");
    }
    if name.len() > LONGEST_NAME {
        return refuse("has more than 900 bytes; shorten it");
    }
    if name.chars().any(|letter| letter.is_control() || letter == '\\') {
        return refuse("has a control character or a backslash; rename the file");
    }
    for component in name.split('/') {
        if ["", ".", ".."].contains(&component) {
            return refuse("has an empty folder, `.` or `..`; write folders and file only");
        }
        if component.len() > LONGEST_COMPONENT {
            return refuse("has a component of more than 249 bytes; shorten it");
        }
    }
    Ok(())
}

/// The folder of a name, empty where it has none, and the name within it.
pub fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

/// The name of a trial file. Several nodes, or several destinations of one, may try one place at a
/// time; one of them has the same name each time, so that a trial that was cut short leaves nothing
/// for longer than until the next one.
pub fn trial(by: &str) -> String {
    let digest = Sha256::digest(by.as_bytes());
    format!(".skyhaul-trial-{}", hex(&digest[..TRIAL_BYTES]))
}

/// The name under which a file is written before it is whole.
pub fn part(name: &str) -> String {
    let (folder, last) = split(name);
    join(folder, &format!(".{last}.part"))
}

/// A name in a folder.
pub fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", name) => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) if folder.ends_with('/') => format!("{folder}{name}"),
        (folder, name) => format!("{folder}/{name}"),
    }
}

/// The folders that a name needs, outermost first.
pub fn folders(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(at, _)| &name[..at])
}

/// Of the digest in the name of a trial file.
const TRIAL_BYTES: usize = 8;
/// S3 takes keys of 1,024 bytes; a prefix of a destination takes some of them.
const LONGEST_NAME: usize = 900;
/// File systems take 255 bytes; a part's name adds six.
const LONGEST_COMPONENT: usize = 249;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leaves_its_folder_or_cannot_be_written_is_refused() {
        for bad in ["", "/a", "a/", "a//b", "../a", "a/./b", "a\nb", "a\\b", &"x".repeat(250)] {
            let failure = check("folder:/x", bad).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Refused, "{bad:?}");
        }
        for good in ["a", "2026/330/a.PDS", "Åre", "..a"] {
            check("folder:/x", good).unwrap();
        }
    }

    #[test]
    fn a_trial_has_the_same_name_each_time_and_another_at_another_destination() {
        assert_eq!(trial("oper/lance"), trial("oper/lance"));
        assert_ne!(trial("oper/lance"), trial("oper/modaps"));
        assert_eq!(trial("oper/lance").len(), ".skyhaul-trial-".len() + 16);
    }

    #[test]
    fn a_part_stands_beside_its_file() {
        assert_eq!(part("a/b/c.PDS"), "a/b/.c.PDS.part");
        assert_eq!(part("c"), ".c.part");
        assert_eq!(folders("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
