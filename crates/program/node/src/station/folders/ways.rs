//! The destinations of one folder: each gets the files by itself, and a file leaves the folder when
//! all that count have it, or for room when the folder's rule lets it go (`settle`).

use super::ledger::LedgerName;
use skyhaul_config::{FolderEntry, FolderUse, SettleName, StationConfig};
use skyhaul_files::RelPath;
use skyhaul_files::drop_folder::{DropFolder, DroppedFile, Leaving, LedgerLine};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One destination of a folder.
#[derive(Debug, Clone)]
pub struct FolderWay {
    /// Its index in the status.
    pub index: usize,
    /// The index of the destination.
    pub place: usize,
    /// The name of the destination, where the configuration names it.
    pub to: Option<String>,
    /// The name of its ledger.
    pub ledger: LedgerName,
    /// Its index among those of the folder.
    nth: usize,
    /// When a file that a destination lacks may leave for room.
    settle: SettleName,
    tallies: Arc<Mutex<Vec<WayTally>>>,
}

/// What one destination has of a folder.
#[derive(Debug)]
struct WayTally {
    /// A shadow is not waited for.
    counts: bool,
    /// The files that it has, as its ledger says: as many as [`DropFolder`] remembers.
    has: BTreeMap<RelPath, DroppedFile>,
    /// Files that another one made leave: to be forgotten.
    left: Vec<DroppedFile>,
}

impl FolderWay {
    /// The ways of all folders of a configuration.
    pub fn all(config: &StationConfig) -> Vec<(&FolderEntry, Self)> {
        let first = config.destinations.first().map(|one| one.name()).unwrap_or_default();
        let mut found = Vec::new();
        for folder in &config.folders.dropped {
            let to = folder.destinations(&config.destinations);
            let tallies = to.iter().map(|place| WayTally {
                counts: to.len() == 1 || !config.destinations[*place].entry.shadow,
                has: BTreeMap::new(),
                left: Vec::new(),
            });
            let tallies = Arc::new(Mutex::new(tallies.collect()));
            for (nth, place) in to.into_iter().enumerate() {
                let destination = config.destinations[place].name();
                let to = folder.to.is_some().then(|| destination.to_owned());
                let sent = (folder.r#as == FolderUse::Files).then_some(first);
                let ledger = match &to {
                    Some(to) => LedgerName::to(folder.name.as_str(), to, first),
                    None => LedgerName::alone(folder.name.as_str(), sent),
                };
                let (index, tallies) = (found.len(), Arc::clone(&tallies));
                let settle = folder.settle;
                found.push((folder, Self { index, place, to, ledger, nth, settle, tallies }));
            }
        }
        found
    }

    fn tallies(&self) -> MutexGuard<'_, Vec<WayTally>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the files go to this destination only.
    pub fn is_alone(&self) -> bool {
        self.tallies().len() == 1
    }

    /// Takes up what the ledger of this destination says.
    pub fn begin(&self, folder: &DropFolder, leaving: Leaving) {
        if leaving == Leaving::Leaves {
            folder.lines().for_each(|line| self.noted(&line));
        }
    }

    /// A line is in the ledger of this destination.
    pub fn noted(&self, line: &LedgerLine) {
        let mut tallies = self.tallies();
        if tallies.len() == 1 {
            return;
        }
        let has = &mut tallies[self.nth].has;
        match line {
            LedgerLine::Done(handed) => {
                has.insert(handed.file.name.clone(), handed.file.clone());
            }
            LedgerLine::Forgotten(name) => {
                has.remove(name);
            }
            LedgerLine::Taken(_) => {}
        }
    }

    /// Whether a file that this destination has may leave: each one that counts has it.
    pub fn may_leave(&self, file: &DroppedFile) -> bool {
        let tallies = self.tallies();
        let is_alone = tallies.len() == 1;
        let has = |one: &WayTally| {
            one.has.get(&file.name).is_some_and(|there| there.is_same_version(file))
        };
        is_alone || tallies.iter().filter(|one| one.counts).all(has)
    }

    /// Whether a file that this destination has may leave where there is no room, although another
    /// one that counts lacks it.
    pub fn gives_way(&self, file: &DroppedFile) -> bool {
        let tallies = self.tallies();
        let has = |one: &WayTally| {
            one.has.get(&file.name).is_some_and(|there| there.is_same_version(file))
        };
        let mut counting = tallies.iter().filter(|one| one.counts);
        match self.settle {
            SettleName::All => false,
            SettleName::Any => counting.any(has),
            SettleName::First => counting.next().is_some_and(has),
        }
    }

    /// A file has left the folder: the other destinations forget it too. Returns the indexes in the
    /// status of those that count and do not get it any more.
    pub fn left(&self, file: &DroppedFile) -> Vec<usize> {
        let first = self.index - self.nth;
        let mut lacking = Vec::new();
        for (nth, other) in self.tallies().iter_mut().enumerate() {
            let there = other.has.get(&file.name);
            if other.counts && !there.is_some_and(|there| there.is_same_version(file)) {
                lacking.push(first + nth);
            }
            if nth != self.nth && there.is_some() {
                other.left.push(file.clone());
            }
        }
        // A folder with one destination has no tallies: it left because that one has it.
        lacking.retain(|index| *index != self.index);
        lacking
    }

    /// The files that this destination is to forget because another one made them leave. One that
    /// came anew since then stays known.
    pub fn take_left(&self) -> Vec<LedgerLine> {
        let tally = &mut self.tallies()[self.nth];
        let left = core::mem::take(&mut tally.left);
        let is_it = |file: &DroppedFile| {
            tally.has.get(&file.name).is_some_and(|there| there.is_same_version(file))
        };
        left.into_iter().filter(is_it).map(|file| LedgerLine::Forgotten(file.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_files::Hash;
    use skyhaul_files::drop_folder::HandedFile;

    fn ways(keys: &str) -> Vec<FolderWay> {
        let peer = |name: &str, digit: char| {
            let key = digit.to_string().repeat(64);
            format!(
                "[[peer]]\nname = \"{name}\"\naddresses = [\"192.0.2.1:4700\"]\nfingerprints = \
                 [\"SHA256:{key}\"]\n[[destination]]\nto = \"node:{name}\"\n"
            )
        };
        let text = format!(
            "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"st\"\n{}{}{}shadow = true\n[[folder]]\n\
             name = \"out\"\npath = \"d\"\nas = \"files\"\n{keys}",
            peer("oper", 'a'),
            peer("backup", 'b'),
            peer("trial", 'c')
        );
        let config = skyhaul_config::parse(&text, "node.toml".as_ref()).unwrap().station.unwrap();
        FolderWay::all(&config).into_iter().map(|(_, way)| way).collect()
    }

    fn file(version: u64) -> DroppedFile {
        let name = RelPath::new(b"f").unwrap();
        DroppedFile { name, size: 1, modified_ns: 1, inode: version }
    }

    fn done(version: u64) -> LedgerLine {
        LedgerLine::Done(HandedFile { file: file(version), hash: Hash::from_bytes([1; 32]) })
    }

    #[test]
    fn a_file_leaves_when_all_that_count_have_this_version() {
        let all = ways("to = [\"oper\", \"backup\", \"trial\"]\n");
        let [oper, backup, trial] = &all[..] else { panic!("{all:?}") };
        assert_eq!((oper.place, trial.to.as_deref()), (0, Some("trial")));
        oper.noted(&done(1));
        trial.noted(&done(1));
        assert!(!oper.may_leave(&file(1)), "backup lacks it");
        backup.noted(&done(2));
        assert!(!oper.may_leave(&file(1)), "backup has another version");
        backup.noted(&done(1));
        trial.noted(&LedgerLine::Forgotten(file(1).name));
        assert!(oper.may_leave(&file(1)), "the shadow is not waited for");
    }

    #[test]
    fn for_room_a_file_leaves_as_the_rule_says_and_those_that_lack_it_are_named() {
        let to = "to = [\"trial\", \"oper\", \"backup\"]\ndone = \"delete\"\n";
        let rule = |settle: &str| ways(&format!("{to}settle = \"{settle}\"\n"));
        for (settle, has, wanted) in [
            ("all", &[1][..], false),
            ("any", &[], false),
            ("any", &[0], false),
            ("any", &[2], true),
            ("first", &[0], false),
            ("first", &[2], false),
            ("first", &[1], true),
        ] {
            let all = rule(settle);
            has.iter().for_each(|nth: &usize| all[*nth].noted(&done(1)));
            assert!(!all[1].may_leave(&file(1)), "{settle} {has:?}");
            assert_eq!(all[1].gives_way(&file(1)), wanted, "{settle} {has:?}");
        }
        let all = rule("any");
        all[1].noted(&done(1));
        all[2].noted(&done(2));
        assert!(!all[1].gives_way(&file(3)), "of another version");
        // The second that counts has an older version; the shadow lacks it too, and does not count.
        assert_eq!(all[1].left(&file(1)), [2]);
    }

    #[test]
    fn the_others_forget_a_file_that_left_and_not_one_that_came_anew() {
        let all = ways("to = [\"oper\", \"backup\"]\n");
        for way in &all {
            way.noted(&done(1));
        }
        all[0].left(&file(1));
        all[0].noted(&LedgerLine::Forgotten(file(1).name));
        assert_eq!(all[1].take_left(), [LedgerLine::Forgotten(file(1).name)]);
        assert_eq!(all[1].take_left(), []);
        all[1].noted(&done(1));
        all[0].left(&file(1));
        all[1].noted(&done(2));
        assert_eq!(all[1].take_left(), []);
    }

    #[test]
    fn a_folder_with_one_destination_waits_for_nobody_even_where_that_is_a_shadow() {
        let all = ways("");
        assert!(all[0].is_alone() && all[0].to.is_none() && all[0].may_leave(&file(1)));
    }
}
