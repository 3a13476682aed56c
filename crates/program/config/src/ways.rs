//! Which destinations folders, mirrors and streams go to.

use crate::destination::Destination;
use crate::destination_names::DestinationNames;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::folders::{FolderEntry, MAX_FOLDERS};
use crate::mirrors::{MAX_MIRRORS, MirrorEntry};
use crate::name::Name;
use crate::station::StationConfig;
use crate::streams::StreamEntry;

impl FolderEntry {
    /// The indexes of the destinations that get its files.
    pub fn destinations(&self, all: &[Destination]) -> Vec<usize> {
        indexes(self.to.as_ref().map(DestinationNames::iter), all)
    }
}

impl MirrorEntry {
    /// The indexes of the destinations that get it.
    pub fn destinations(&self, all: &[Destination]) -> Vec<usize> {
        indexes(self.to.as_ref().map(DestinationNames::iter), all)
    }
}

impl StreamEntry {
    /// The index of the destination that gets it.
    pub fn place(&self, all: &[Destination]) -> usize {
        let named = self.destination.as_ref().map(|name| [name].into_iter());
        indexes(named, all).first().copied().unwrap_or_default()
    }
}

impl StationConfig {
    /// Checks that folders, mirrors and streams name destinations that exist.
    pub(super) fn check_ways(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        self.check_folders(config)?;
        let mut copies = 0;
        for (nth, mirror) in self.folders.mirrored.iter().enumerate().take(MAX_MIRRORS) {
            let place = KeyPlace { heading: "[[mirror]]", nth, key: "to" };
            let named = mirror.to.iter().flat_map(DestinationNames::iter);
            check(config, place, "a mirror", named, &self.destinations)?;
            copies += mirror.destinations(&self.destinations).len();
            if copies > MAX_MIRRORS {
                let what = "the mirrors have too many destinations".to_owned();
                let help = format!("write at most {MAX_MIRRORS}, counted once for each mirror");
                return Err(ConfigError::at(config, place, what, &help));
            }
        }
        for (nth, stream) in self.stream.iter().enumerate() {
            let place = KeyPlace { heading: "[[stream]]", nth, key: "destination" };
            check(config, place, "a stream", stream.destination.iter(), &self.destinations)?;
        }
        Ok(())
    }

    /// Checks that each folder names destinations that exist, of which one at least counts.
    fn check_folders(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let mut ways = 0;
        for (nth, folder) in self.folders.dropped.iter().enumerate().take(MAX_FOLDERS) {
            let place = KeyPlace { heading: "[[folder]]", nth, key: "to" };
            let named = folder.to.iter().flat_map(DestinationNames::iter);
            check(config, place, "a folder", named, &self.destinations)?;
            let to = folder.destinations(&self.destinations);
            let is_shadow = |index: &usize| self.destinations[*index].entry.shadow;
            if folder.to.is_some() && to.iter().all(is_shadow) {
                let what = format!("folder `{}` goes to shadows alone", folder.name);
                let help = "name a destination that counts: a file is handed over when that has it";
                return Err(ConfigError::at(config, place, what, help));
            }
            ways += to.len();
            if ways > MAX_FOLDERS {
                let what = "the folders have too many destinations".to_owned();
                let help = format!("write at most {MAX_FOLDERS}, counted once for each folder");
                return Err(ConfigError::at(config, place, what, &help));
            }
        }
        Ok(())
    }
}

/// The indexes of these destinations; the first one of the node where none is named.
fn indexes<'a>(
    named: Option<impl Iterator<Item = &'a Name>>,
    destinations: &[Destination],
) -> Vec<usize> {
    let Some(names) = named else { return vec![0] };
    let index = |name: &Name| destinations.iter().position(|one| one.peer.name == *name);
    names.filter_map(index).collect()
}

/// Checks that each of the names is one of a destination. `place` is the key; `user` says what has
/// it, as in `a mirror`.
fn check<'a>(
    config: ConfigText<'_>,
    place: KeyPlace<'_>,
    user: &str,
    mut named: impl Iterator<Item = &'a Name>,
    destinations: &[Destination],
) -> Result<(), ConfigError> {
    let is_unknown = |name: &&Name| !destinations.iter().any(|one| one.peer.name == **name);
    let Some(name) = named.find(is_unknown) else { return Ok(()) };
    let what = format!("there is no destination `{name}` for {user}");
    let known: Vec<&str> = destinations.iter().map(Destination::name).collect();
    let help = format!("write one of {}", known.join(", "));
    Err(ConfigError::at(config, place, what, &help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(tables: &str) -> Result<StationConfig, ConfigError> {
        let destination = |name: &str, digit: char, keys: &str| {
            let key = digit.to_string().repeat(64);
            format!(
                "[[peer]]\nname = \"{name}\"\naddresses = [\"192.0.2.1:4700\"]\nfingerprints = \
                 [\"SHA256:{key}\"]\n[[destination]]\nto = \"node:{name}\"\n{keys}"
            )
        };
        let text = format!(
            "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"st\"\n{}{}{}{tables}",
            destination("oper", 'a', ""),
            destination("backup", 'b', ""),
            destination("trial", 'c', "shadow = true\n")
        );
        Ok(*crate::parse(&text, "node.toml".as_ref())?.station.unwrap())
    }

    #[test]
    fn mirrors_folders_and_streams_go_to_the_destinations_that_they_name_or_to_the_first() {
        let config = station(
            "[[mirror]]\nsource = \"a\"\ninto = \".\"\n[[mirror]]\nsource = \"b\"\ninto = \
             \".\"\nto = [\"trial\", \"oper\"]\n[[folder]]\nname = \"f\"\npath = \"f\"\nas = \
             \"files\"\nto = \"node:backup\"\n[[stream]]\nfrom = \"udp://127.0.0.1:1\"\nto = \
             \"null\"\n[[stream]]\nfrom = \"udp://127.0.0.1:2\"\nto = \"null\"\ndestination = \
             \"backup\"\n",
        );
        let config = config.unwrap();
        let all = &config.destinations;
        let mirrors: Vec<_> =
            config.folders.mirrored.iter().map(|mirror| mirror.destinations(all)).collect();
        assert_eq!(mirrors, [vec![0], vec![2, 0]]);
        assert_eq!(config.folders.dropped[0].destinations(all), [1]);
        let streams: Vec<_> = config.stream.iter().map(|stream| stream.place(all)).collect();
        assert_eq!(streams, [0, 1]);
    }

    #[test]
    fn destinations_that_cannot_be_are_refused_with_their_line_and_what_to_write() {
        let folder = "[[folder]]\nname = \"f\"\npath = \"f\"\nas = \"files\"\n";
        let mirror = |nth: usize, to: &str| {
            format!("[[mirror]]\nsource = \"m{nth}\"\ninto = \".\"\nto = {to}\n")
        };
        let many = (0..6).map(|nth| mirror(nth, "[\"oper\", \"backup\", \"trial\"]"));
        for (tables, words) in [
            (mirror(0, "\"opr\""), "no destination `opr` for a mirror"),
            (format!("{folder}to = [\"oper\", \"x\"]\n"), "no destination `x` for a folder"),
            (
                "[[stream]]\nfrom = \"udp://127.0.0.1:1\"\nto = \"null\"\ndestination = \"y\"\n"
                    .to_owned(),
                "no destination `y` for a stream",
            ),
            (format!("{folder}to = \"trial\"\n"), "folder `f` goes to shadows alone"),
            (many.collect(), "the mirrors have too many destinations"),
            (
                "[[channel]]\nname = \"x\"\ninput = \"folder\"\n[[folder]]\nname = \"f\"\npath = \
                 \"f\"\nas = \"contacts\"\nchannel = \"x\"\nto = \"oper\"\n"
                    .to_owned(),
                "`to` has no effect",
            ),
        ] {
            let refused = station(&tables).unwrap_err();
            assert!(refused.to_string().contains(words), "{tables}: {refused}");
            assert!(refused.line().is_some(), "{tables}: {refused}");
        }
    }
}
