//! `[[folder]]`: folders whose files are handed over, each once, as contacts or as files.

use crate::channel::Channel;
use crate::destination_names::DestinationNames;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::input::Input;
use crate::mirrors::{FarFolder, Patterns};
use crate::name::{Name, from_text};
use crate::section::section;
use crate::subscription::SettleName;
use skyhaul_files::drop_folder::Leaving;
use skyhaul_files::wire::{Naming, Options, TransferDirection, TransferHello};
use skyhaul_files::{RelPath, Rule, Selection};
use skyhaul_transport::ClassTree;
use skyhaul_units::{Duration, Rate};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

section! {
    /// A drop folder: each file that appears in it whole is handed over once, as a contact or as a
    /// file, also after a restart. A file that is renamed or touched later is not handed over
    /// again; one with other contents is. Hidden files, names that end in `.part`, `.partial`,
    /// `.filepart`, `.crdownload`, `.tmp` or `~`, links and subfolders are left alone. A file that
    /// cannot be read is moved to `failed` in the folder, with the reason in `NAME.reason.txt`. Up
    /// to 16, counted once for each destination.
    "[[folder]]" FolderEntry checked by FolderEntry::check {
        /// Its name in status output and in the name of its ledger, `folder-NAME.ledger` in the
        /// state folder: with another name, all files in the folder are handed over again.
        name: Name => required,
        /// The folder. A folder that is missing, or whose file system is not mounted, raises an
        /// alarm; nothing is forgotten.
        path: PathBuf => required,
        /// `contacts`: each file is a capture, and becomes a contact of the `channel`. `files`:
        /// each file is sent to the destination, whose `[peer.files]` sets the place.
        r#as: FolderUse => required,
        /// With `contacts`: the `[[channel]]` with `input = "folder"` that says what the captures
        /// are and how they are sent.
        channel: Name => optional,
        /// With `files`: the destinations that get each file, one name or a list, as in
        /// `[[subscription]]`; also written `node:NAME`. Each gets the files by itself, and has a
        /// ledger of its own, `folder-NAME@DESTINATION.ledger`: one that is away holds up no other.
        /// Default: the first destination.
        to: DestinationNames => optional,
        /// With `files`: the folder at the destination, within the folder that it has for this
        /// node. It is created if it does not exist. Default: that folder itself.
        into: FarFolder => optional,
        /// What becomes of a file that was handed over: a capture whose contact is in the spool, a
        /// file that is on the disks of all its destinations; a shadow is not waited for. `keep`:
        /// it stays, and is remembered. `delete`: it is removed. `move:DIR`: it is renamed into
        /// DIR, which is on the same file system.
        done: AfterHandover => "keep",
        /// With `files`, and `done` other than `keep`: when a file may leave for room on the file
        /// system of the folder, as in `[[subscription]]`: `all`, every destination has it; `any`,
        /// one of them has; `first`, the first one of `to` has. A file that a destination lacks
        /// leaves only while less than a twentieth of that file system is free.
        settle: SettleName => "all",
        /// A file is whole when its size and modification time stand still for so long, or at once
        /// when it is renamed into the folder on a local file system. Two seconds are longer than
        /// programs pause while they write.
        quiet: Duration => "2 s",
        /// Patterns of files to take, tried before `exclude`. With `include` alone, all other
        /// files are left alone.
        include: Patterns => "[]",
        /// Patterns of files to leave alone.
        exclude: Patterns => "[]",
        /// With `files`: the highest rate of file contents. Default: limited only by the line.
        limit: Rate => optional,
        /// With `files`: the class. Default: the first leaf class.
        class: String => optional,
        /// With `files`: the priority within the class, 0 (the most important) to 255. Default: 7,
        /// live data goes first.
        priority: u8 => optional,
        /// With `files`: the time after reading by which a block should be at the destination.
        /// Default: none.
        deadline: Duration => optional,
    }
}

/// What a folder's files become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderUse {
    /// Contacts.
    Contacts,
    /// Files at the destination.
    Files,
}

/// What becomes of a file that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterHandover {
    /// It stays.
    Keep,
    /// It is removed.
    Delete,
    /// It is renamed into this folder.
    Move(PathBuf),
}

impl FolderEntry {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if self.quiet > LONGEST_QUIET {
            return Err(format!(
                "folder `{name}` has a quiet of {}; write at most {LONGEST_QUIET}: every file \
                waits that long",
                self.quiet
            ));
        }
        if self.limit == Some(Rate::ZERO) {
            return Err("a limit of 0 bit/s copies nothing; write it like \"20 Mbit/s\"".to_owned());
        }
        if let AfterHandover::Move(dir) = &self.done
            && *dir == self.path
        {
            return Err(format!(
                "folder `{name}` would move its files into itself; write another folder after \
                move:, or done = \"keep\""
            ));
        }
        if self.settle != SettleName::All && self.leaving() == Leaving::Stays {
            return Err(format!(
                "folder `{name}` keeps its files, for which `settle` has no effect; remove it, or \
                write done = \"delete\" or \"move:DIR\""
            ));
        }
        let of_files = [
            ("to", self.to.is_some()),
            ("settle", self.settle != SettleName::All),
            ("into", self.into.is_some()),
            ("limit", self.limit.is_some()),
            ("class", self.class.is_some()),
            ("priority", self.priority.is_some()),
            ("deadline", self.deadline.is_some()),
        ];
        match (self.r#as, &self.channel) {
            (FolderUse::Contacts, None) => {
                return Err(format!(
                    "folder `{name}` makes contacts and names no channel; add channel = \"NAME\", \
                    and a [[channel]] of that name with input = \"folder\""
                ));
            }
            (FolderUse::Files, Some(_)) => {
                return Err(format!(
                    "folder `{name}` sends files and names a channel; remove `channel`, or write \
                    as = \"contacts\""
                ));
            }
            (FolderUse::Contacts, Some(channel)) => {
                if let Some((key, _)) = of_files.iter().find(|(_, is_written)| *is_written) {
                    return Err(format!(
                        "folder `{name}` makes contacts, for which `{key}` has no effect; remove \
                        it, and write what you need in the [[channel]] `{channel}`"
                    ));
                }
            }
            (FolderUse::Files, None) => {}
        }
        Selection::new(self.rules()).map(drop).map_err(|error| error.to_string())
    }

    fn rules(&self) -> Vec<Rule> {
        let rule = |include| move |pattern: &String| Rule { include, pattern: pattern.clone() };
        let included = self.include.0.iter().map(rule(true));
        included.chain(self.exclude.0.iter().map(rule(false))).collect()
    }

    /// Which files take part.
    pub fn selection(&self) -> Selection {
        Selection::new(self.rules()).expect("the patterns were checked when the file was read")
    }

    /// Whether files stay in the folder.
    pub const fn leaving(&self) -> Leaving {
        match self.done {
            AfterHandover::Keep => Leaving::Stays,
            AfterHandover::Delete | AfterHandover::Move(_) => Leaving::Leaves,
        }
    }

    /// The first message of a transfer to the destination.
    pub fn hello(&self) -> TransferHello {
        let options = Options {
            dry_run: false,
            checksum: false,
            delete: false,
            keep: false,
            limit: self.limit,
            deadline: self.deadline,
            priority: self.priority.unwrap_or(PRIORITY),
        };
        TransferHello {
            direction: TransferDirection::Put,
            options,
            class: self.class.clone().unwrap_or_default(),
            naming: Naming::Into,
            target: self.into.as_ref().map_or_else(RelPath::here, |into| into.0.clone()),
            sources: Vec::new(),
            rules: Vec::new(),
        }
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        crate::from_base(base, &mut self.path);
        if let AfterHandover::Move(dir) = &mut self.done {
            crate::from_base(base, dir);
        }
    }
}

/// Checks the folders against the channels and classes of the file.
pub(super) fn check(
    config: ConfigText<'_>,
    folders: &[FolderEntry],
    channels: &[Channel],
    tree: &ClassTree,
) -> Result<(), ConfigError> {
    if folders.len() > MAX_FOLDERS {
        return Err(ConfigError::many(config, HEADING, folders.len(), MAX_FOLDERS));
    }
    let (mut names, mut paths, mut used) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (nth, folder) in folders.iter().enumerate() {
        let place = |key| KeyPlace { heading: HEADING, nth, key };
        if !names.insert(&folder.name) {
            let ConfigText { text, file } = config;
            return Err(ConfigError::twice(text, file, "folder", folder.name.as_str()));
        }
        if !paths.insert(&folder.path) {
            let what = format!("the folder {} is given twice", folder.path.display());
            let help = "give each folder once: two would hand over each other's files";
            return Err(ConfigError::at(config, place("path"), what, help));
        }
        if let Some(class) = folder.class.as_ref().filter(|class| tree.find(class).is_none()) {
            return Err(ConfigError::no_class(config, place("class"), class, "a folder", tree));
        }
        let Some(name) = &folder.channel else { continue };
        let channel = channels.iter().find(|channel| channel.name == *name);
        if channel.is_none_or(|channel| channel.input != Some(Input::Folder)) {
            let what = format!("there is no [[channel]] `{name}` with input = \"folder\"");
            let help = "add it: it says what the captures are and how they are sent";
            return Err(ConfigError::at(config, place("channel"), what, help));
        }
        if !used.insert(name) {
            let what = format!("two folders name the channel `{name}`");
            let help = "give each folder a [[channel]] of its own";
            return Err(ConfigError::at(config, place("channel"), what, help));
        }
    }
    let is_idle =
        |channel: &&Channel| channel.input == Some(Input::Folder) && !used.contains(&channel.name);
    if let Some(channel) = channels.iter().find(is_idle) {
        let nth = channels.iter().position(|other| other.name == channel.name).unwrap_or_default();
        let place = KeyPlace { heading: "[[channel]]", nth, key: "input" };
        let what = format!("no [[folder]] names the channel `{}`", channel.name);
        let help = format!("add channel = \"{}\" to a [[folder]] with its path", channel.name);
        return Err(ConfigError::at(config, place, what, &help));
    }
    Ok(())
}

impl FromStr for FolderUse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "contacts" => Ok(Self::Contacts),
            "files" => Ok(Self::Files),
            _ => Err(format!("`{text}` is not what a file can become; write contacts or files")),
        }
    }
}

impl FromStr for AfterHandover {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("move:")) {
            ("keep", _) => Ok(Self::Keep),
            ("delete", _) => Ok(Self::Delete),
            (_, Some(dir)) if !dir.is_empty() => Ok(Self::Move(PathBuf::from(dir))),
            _ => Err(format!("`{text}` does not say what is done; write keep, delete or move:DIR")),
        }
    }
}

from_text!(FolderUse, AfterHandover);

const HEADING: &str = "[[folder]]";
/// Each has a thread for each destination.
pub(super) const MAX_FOLDERS: usize = 16;
/// Behind live data, as mirrors.
const PRIORITY: u8 = 7;
/// A file that pauses longer is no longer being written.
const LONGEST_QUIET: Duration = Duration::from_secs(24 * 3_600);

#[cfg(test)]
mod tests {
    use crate::{AfterHandover, ConfigError, FolderUse, StationConfig, parse};
    use std::path::Path;

    const STATION: &str = "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"state\"\n[[peer]]\nname = \
                          \"c\"\n\
        addresses = [\"192.0.2.1:4700\"]\n\
        fingerprints = [\
        \"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n\
        [[destination]]\nto = \"node:c\"\n";
    const CHANNEL: &str = "[[channel]]\nname = \"x\"\ninput = \"folder\"\n";

    fn read(tables: &str) -> Result<StationConfig, ConfigError> {
        let config = parse(&format!("{STATION}{tables}"), "/etc/skyhaul/node.toml".as_ref())?;
        Ok(*config.station.unwrap())
    }

    #[test]
    fn folders_are_read_with_their_channels_and_places() {
        let config = read(&format!(
            "{CHANNEL}[[folder]]\nname = \"captures\"\npath = \"drop\"\nas = \"contacts\"\nchannel \
             = \"x\"\ndone = \"move:taken\"\n[[folder]]\nname = \"out\"\npath = \"/out\"\nas = \
             \"files\"\ninto = \"in\"\ninclude = [\"*.h5\"]\n"
        ));
        let config = config.unwrap();
        let [captures, out] = &config.folders.dropped[..] else { panic!() };
        assert_eq!((captures.r#as, out.r#as), (FolderUse::Contacts, FolderUse::Files));
        assert_eq!(captures.path, Path::new("/etc/skyhaul/drop"));
        assert_eq!(captures.done, AfterHandover::Move("/etc/skyhaul/taken".into()));
        assert_eq!(out.done, AfterHandover::Keep);
        assert_eq!(
            (out.hello().target.to_string(), out.hello().options.priority),
            ("in".into(), 7)
        );
        assert!(config.has_guests());
        assert!(config.channel[0].is_files() && config.channel[0].sources() == "folder");
    }

    #[test]
    fn folders_that_cannot_work_are_refused_in_words_with_their_line() {
        let folder = |keys: &str| format!("[[folder]]\nname = \"a\"\npath = \"drop\"\n{keys}\n");
        let contacts = folder("as = \"contacts\"\nchannel = \"x\"");
        for (tables, words) in [
            (folder(""), "the key `as` is missing"),
            (folder("as = \"products\""), "write contacts or files"),
            (folder("as = \"contacts\""), "names no channel"),
            (contacts.clone(), "no [[channel]] `x` with input"),
            (format!("{}{contacts}", CHANNEL.replace("folder", "stdin")), "no [[channel]] `x`"),
            (CHANNEL.to_owned(), "no [[folder]] names the channel `x`"),
            (
                format!("{CHANNEL}{}", folder("as = \"contacts\"\nchannel = \"x\"\nclass = \"b\"")),
                "`class` has no effect",
            ),
            (folder("as = \"files\"\nchannel = \"x\""), "sends files and names a channel"),
            (folder("as = \"files\"\nclass = \"b\""), "no class `b` for a folder"),
            (folder("as = \"files\"\nsettle = \"any\""), "for which `settle` has no effect"),
            (
                folder("as = \"files\"\ndone = \"delete\"\nsettle = \"some\""),
                "write all, any or first",
            ),
            (folder("as = \"files\"\ndone = \"burn\""), "write keep, delete or move:DIR"),
            (folder("as = \"files\"\ndone = \"move:drop\""), "into itself"),
            (folder("as = \"files\"\nquiet = \"2 d\""), "write at most"),
            (folder("as = \"files\"\nlimit = \"0 bit/s\""), "copies nothing"),
            (folder("as = \"files\"\ninclude = [\"[\"]"), "is not a pattern"),
            (folder("as = \"files\"\ninto = \"../x\""), "write it without `..`"),
            (folder("as = \"files\"\nsource = \"x\""), "unknown key `source`"),
            (folder("as = \"files\"").repeat(2), "folder `a` is defined twice"),
            (format!("{CHANNEL}record_raw = true\n{contacts}"), "record_raw"),
            (
                format!(
                    "{}{contacts}",
                    CHANNEL.replace("input = \"folder\"", "inputs = [\"folder\"]")
                ),
                "only as `input`",
            ),
        ] {
            let refused = read(&tables).unwrap_err();
            assert!(refused.to_string().contains(words), "{tables}: {refused}");
            assert!(refused.line().is_some(), "{tables}: {refused}");
        }
        let same = format!(
            "{}{}",
            folder("as = \"files\""),
            folder("as = \"files\"").replace("\"a\"", "\"b\"")
        );
        assert!(read(&same).unwrap_err().to_string().contains("given twice"));
        let many: String = (0..17)
            .map(|n| format!("[[folder]]\nname = \"f{n}\"\npath = \"d{n}\"\nas = \"files\"\n"))
            .collect();
        assert!(read(&many).unwrap_err().to_string().contains("17 [[folder]] tables"));
        let alone = "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"state\"\n[[listen]]\nbind = \
                     \"0.0.0.0:4700\"\n[[folder]]\nname = \"a\"\npath = \"d\"\nas = \"files\"\n";
        let refused = parse(alone, "node.toml".as_ref()).unwrap_err();
        assert!(refused.to_string().contains("no effect without a [[destination]]"), "{refused}");
    }
}
