//! `[[mirror]]` and `[peer.files]`: folders of a station that centres get, over the sessions that
//! they have, and what peers may read and write.

use crate::destination_names::DestinationNames;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::section::section;
use skyhaul_files::wire::{Naming, Options, TransferDirection, TransferHello};
use skyhaul_files::{RelPath, Rule, Selection};
use skyhaul_transport::ClassTree;
use skyhaul_units::{Duration, Rate};
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// A folder that the station mirrors to the centre, as `skyhaul sync` does. The centre's
    /// `[peer.files]` sets the place. Up to 16, counted once for each destination.
    "[[mirror]]" MirrorEntry checked by MirrorEntry::check {
        /// The folder at this station.
        source: PathBuf => required,
        /// The destinations that get the folder, one name or a list, as in `[[subscription]]`; also
        /// written `node:NAME`. Each gets it by itself: one that is away holds up no other.
        /// Default: the first destination.
        to: DestinationNames => optional,
        /// The folder at the centre, within the folder that the centre has for this station; `.` is
        /// that folder itself. It is created if it does not exist.
        into: FarFolder => required,
        /// Removes files at the centre that the station does not have. Files that `exclude` matches
        /// stay.
        delete: bool => "false",
        /// Copies changes continuously. Otherwise the station copies once after each start.
        watch: bool => "true",
        /// Patterns of files to include, tried before `exclude`. With `include` alone, all other
        /// files are left out.
        include: Patterns => "[]",
        /// Patterns of files to leave out.
        exclude: Patterns => "[]",
        /// Compares existing files by contents, not by length and time.
        checksum: bool => "false",
        /// The highest rate of file contents. Default: limited only by the line.
        limit: Rate => optional,
        /// Its class. Default: the first leaf class.
        class: String => optional,
        /// Its priority within the class, 0 (the most important) to 255: live data goes first.
        priority: u8 => "7",
        /// The time after reading by which a block should be at the centre. Earlier deadlines are
        /// sent first. Default: none.
        deadline: Duration => optional,
    }
}

section! {
    /// The rights of the peer above to files of this node, whichever of the two calls the other.
    /// Without this table it has none.
    "[peer.files]" FilesEntry checked by FilesEntry::check {
        /// The folder that the peer cannot leave. The node creates it if it does not exist.
        root: PathBuf => required,
        /// The peer may write files there: mirrors, files of drop folders, products.
        write: bool => "true",
        /// The peer may read files from there, and the notices to products that it delivered.
        read: bool => "false",
    }
}

/// A folder below the one that the centre has for the station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarFolder(pub RelPath);

/// Patterns of names.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Patterns(pub Vec<String>);

impl FromStr for FarFolder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        RelPath::written(text.as_bytes()).map(Self).map_err(|error| {
            format!("`{text}` is not a folder of the centre ({error}); write it without `..`")
        })
    }
}

crate::name::from_text!(FarFolder);

impl FromStr for Patterns {
    type Err = &'static str;

    /// The default of a key alone: a file writes an array.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "[]" { Ok(Self::default()) } else { Err("an array of patterns") }
    }
}

impl MirrorEntry {
    fn check(&self) -> Result<(), String> {
        if self.limit == Some(Rate::ZERO) {
            return Err("a limit of 0 bit/s copies nothing; write it like \"20 Mbit/s\"".to_owned());
        }
        Selection::new(self.rules()).map(drop).map_err(|error| error.to_string())
    }

    fn rules(&self) -> Vec<Rule> {
        let rule = |include| move |pattern: &String| Rule { include, pattern: pattern.clone() };
        let included = self.include.0.iter().map(rule(true));
        included.chain(self.exclude.0.iter().map(rule(false))).collect()
    }

    /// The first message of a transfer to the centre.
    pub fn hello(&self) -> TransferHello {
        let options = Options {
            dry_run: false,
            checksum: self.checksum,
            delete: self.delete,
            keep: false,
            limit: self.limit,
            deadline: self.deadline,
            priority: self.priority,
        };
        TransferHello {
            direction: TransferDirection::Put,
            options,
            class: self.class.clone().unwrap_or_default(),
            naming: Naming::Into,
            target: self.into.0.clone(),
            sources: Vec::new(),
            rules: self.rules(),
        }
    }
}

impl FilesEntry {
    fn check(&self) -> Result<(), String> {
        if self.read || self.write {
            return Ok(());
        }
        Err("[peer.files] lets the station neither write nor read; remove the table, or one `false`"
            .to_owned())
    }
}

/// Checks that each mirror names a class that exists.
pub(super) fn check(
    config: ConfigText<'_>,
    mirrors: &[MirrorEntry],
    tree: &ClassTree,
) -> Result<(), ConfigError> {
    if mirrors.len() > MAX_MIRRORS {
        return Err(ConfigError::many(config, HEADING, mirrors.len(), MAX_MIRRORS));
    }
    for (nth, mirror) in mirrors.iter().enumerate() {
        if let Some(class) = mirror.class.as_ref().filter(|class| tree.find(class).is_none()) {
            let place = KeyPlace { heading: HEADING, nth, key: "class" };
            return Err(ConfigError::no_class(config, place, class, "a mirror", tree));
        }
    }
    Ok(())
}

const HEADING: &str = "[[mirror]]";
/// Each has a thread and a channel of a session for each destination.
pub(super) const MAX_MIRRORS: usize = 16;
