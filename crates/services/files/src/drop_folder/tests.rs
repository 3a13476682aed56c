//! A folder under a virtual clock: files come, change, are renamed and go, and the program is
//! killed between any two steps.

use super::*;
use proptest::prelude::*;

const QUIET: Duration = Duration::from_secs(2);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn named(name: &str) -> RelPath {
    RelPath::new(name.as_bytes()).unwrap()
}

fn file(name: &str, size: u64, inode: u64) -> DroppedFile {
    DroppedFile { name: named(name), size, modified_ns: 7, inode }
}

fn hash(content: u64) -> Hash {
    blake3::hash(&content.to_be_bytes())
}

fn list(folder: &mut DropFolder, millis: u64, files: &[DroppedFile], arrival: Arrival) {
    folder.begin_scan(at(millis));
    files.iter().for_each(|file| folder.see(file.clone(), arrival));
    folder.end_scan();
}

fn hand_over(folder: &mut DropFolder, file: &DroppedFile, content: u64) {
    let ReadOutcome::New(handed) = folder.was_read(file, hash(content), Some(file)) else {
        panic!("{file:?} is not new");
    };
    folder.note(LedgerLine::Taken(handed.clone()));
    folder.note(LedgerLine::Done(handed));
}

#[test]
fn a_file_is_whole_when_it_stood_still_or_was_renamed_into_the_folder() {
    let mut folder = DropFolder::new(QUIET, Leaving::Stays);
    let growing = |size| [file("a", size, 1)];
    list(&mut folder, 0, &growing(1), Arrival::Unknown);
    list(&mut folder, 1_900, &growing(2), Arrival::Unknown);
    list(&mut folder, 3_800, &growing(2), Arrival::Unknown);
    assert_eq!(folder.next(at(3_800)), None, "it stood still for 1.9 s only");
    // Time alone makes nothing whole: it may have changed since it was last seen.
    assert_eq!(folder.next(at(9_000)), None);
    list(&mut folder, 9_000, &growing(2), Arrival::Unknown);
    assert_eq!(folder.next(at(9_000)), Some(DropErrand::Read(file("a", 2, 1))));
    let mut folder = DropFolder::new(QUIET, Leaving::Stays);
    list(&mut folder, 0, &growing(1), Arrival::Renamed);
    assert_eq!(folder.next(at(0)), Some(DropErrand::Read(file("a", 1, 1))));
    list(&mut folder, 100, &growing(2), Arrival::Unknown);
    assert_eq!(folder.next(at(100)), None, "one that changes after the rename is not whole");
}

#[test]
fn a_file_that_changes_while_it_is_read_is_looked_at_again() {
    let mut folder = DropFolder::new(QUIET, Leaving::Stays);
    let first = file("a", 1, 1);
    list(&mut folder, 0, core::slice::from_ref(&first), Arrival::Renamed);
    let after = file("a", 2, 1);
    assert_eq!(folder.was_read(&first, hash(1), Some(&after)), ReadOutcome::Changed);
    assert_eq!(folder.was_read(&first, hash(1), None), ReadOutcome::Changed);
    assert_eq!(folder.next(at(0)), None);
    list(&mut folder, 1, core::slice::from_ref(&after), Arrival::Unknown);
    list(&mut folder, 2_001, core::slice::from_ref(&after), Arrival::Unknown);
    assert_eq!(folder.next(at(2_001)), Some(DropErrand::Read(after)));
}

#[test]
fn a_renamed_or_touched_file_is_not_handed_over_again_and_other_contents_are() {
    let mut folder = DropFolder::new(Duration::ZERO, Leaving::Stays);
    let first = file("a", 1, 1);
    list(&mut folder, 0, core::slice::from_ref(&first), Arrival::Unknown);
    hand_over(&mut folder, &first, 10);
    // Renamed: known without being read.
    let renamed = file("b", 1, 1);
    list(&mut folder, 1, core::slice::from_ref(&renamed), Arrival::Unknown);
    let Some(DropErrand::Note(lines)) = folder.next(at(1)) else { panic!("it is known") };
    lines.into_iter().for_each(|line| folder.note(line));
    assert_eq!((folder.next(at(1)), folder.remembered()), (None, 1));
    // Touched: read, and found to be the same.
    let touched = DroppedFile { modified_ns: 8, ..renamed.clone() };
    list(&mut folder, 2, core::slice::from_ref(&touched), Arrival::Unknown);
    assert_eq!(folder.next(at(2)), Some(DropErrand::Read(touched.clone())));
    let known = folder.was_read(&touched, hash(10), Some(&touched));
    let ReadOutcome::Known(lines) = known else { panic!("{known:?}") };
    lines.into_iter().for_each(|line| folder.note(line));
    // Renamed and touched.
    let both = DroppedFile { modified_ns: 9, ..first };
    list(&mut folder, 3, core::slice::from_ref(&both), Arrival::Unknown);
    assert_eq!(folder.next(at(3)), Some(DropErrand::Read(both.clone())));
    let known = folder.was_read(&both, hash(10), Some(&both));
    let ReadOutcome::Known(lines) = known else { panic!("{known:?}") };
    lines.into_iter().for_each(|line| folder.note(line));
    assert_eq!(folder.remembered(), 1);
    // Other contents under the same name, and a copy under another one.
    let copy = DroppedFile { inode: 2, ..file("c", 1, 2) };
    list(&mut folder, 4, &[both.clone(), copy.clone()], Arrival::Unknown);
    hand_over(&mut folder, &copy, 10);
    let other = DroppedFile { modified_ns: 11, ..both };
    list(&mut folder, 5, &[other.clone(), copy], Arrival::Unknown);
    hand_over(&mut folder, &other, 11);
}

#[test]
fn files_that_are_rotated_are_handed_over_once() {
    // `new` has its first contents, and `old` those that `new` had: in either order of the names,
    // renamed alone or touched too.
    for (new, old) in [("data", "data.1"), ("now", "before")] {
        for touched_ns in [7, 9] {
            let mut folder = DropFolder::new(Duration::ZERO, Leaving::Stays);
            let first = file(new, 1, 1);
            list(&mut folder, 0, core::slice::from_ref(&first), Arrival::Unknown);
            hand_over(&mut folder, &first, 10);
            let renamed = DroppedFile { modified_ns: touched_ns, ..file(old, 1, 1) };
            let second = file(new, 1, 2);
            list(&mut folder, 1, &[renamed, second.clone()], Arrival::Unknown);
            let mut handed = Vec::new();
            while let Some(errand) = folder.next(at(1)) {
                let lines = match errand {
                    DropErrand::Note(lines) => lines,
                    DropErrand::Leave(file) => panic!("{file:?} is to stay"),
                    DropErrand::Read(file) => {
                        let content = if file.inode == 1 { 10 } else { 11 };
                        match folder.was_read(&file, hash(content), Some(&file)) {
                            ReadOutcome::Changed => panic!("{file:?} did not change"),
                            ReadOutcome::Known(lines) => lines,
                            ReadOutcome::New(new) => {
                                handed.push(new.file.clone());
                                vec![LedgerLine::Done(new)]
                            }
                        }
                    }
                };
                lines.into_iter().for_each(|line| folder.note(line));
            }
            assert_eq!(handed, [second], "{new} became {old}");
            assert_eq!((folder.remembered(), folder.displaced.len()), (2, 0));
        }
    }
}

#[test]
fn two_files_that_change_names_are_known_and_the_ledger_says_so_when_it_is_written_anew() {
    let mut folder = DropFolder::new(Duration::ZERO, Leaving::Stays);
    let before = [file("a", 1, 1), file("b", 1, 2)];
    list(&mut folder, 0, &before, Arrival::Unknown);
    hand_over(&mut folder, &before[0], 10);
    hand_over(&mut folder, &before[1], 11);
    let after = [file("a", 1, 2), file("b", 1, 1)];
    list(&mut folder, 1, &after, Arrival::Unknown);
    let mut notes = 0;
    while let Some(errand) = folder.next(at(1)) {
        let DropErrand::Note(lines) = errand else { panic!("{errand:?} of a file that is known") };
        lines.into_iter().for_each(|line| folder.note(line));
        notes += 1;
        // Killed between the two.
        let mut again = DropFolder::new(Duration::ZERO, Leaving::Stays);
        folder.lines().for_each(|line| again.note(line));
        list(&mut again, 2, &after, Arrival::Unknown);
        folder = again;
    }
    assert_eq!((notes, folder.remembered()), (2, 2));
    // What is displaced is forgotten with the first listing that lacks it.
    let third = file("a", 1, 3);
    list(&mut folder, 3, &[third.clone(), after[1].clone()], Arrival::Unknown);
    hand_over(&mut folder, &third, 12);
    assert_eq!(folder.displaced.len(), 1);
    list(&mut folder, 4, &[], Arrival::Unknown);
    assert_eq!(folder.displaced.len(), 1, "a file system may not be mounted");
    list(&mut folder, 5, &[third, after[1].clone()], Arrival::Unknown);
    assert_eq!(folder.displaced.len(), 0);
}

#[test]
fn a_folder_that_looks_empty_is_not_forgotten() {
    let mut folder = DropFolder::new(Duration::ZERO, Leaving::Stays);
    let first = file("a", 1, 1);
    list(&mut folder, 0, core::slice::from_ref(&first), Arrival::Unknown);
    hand_over(&mut folder, &first, 10);
    list(&mut folder, 1, &[], Arrival::Unknown);
    list(&mut folder, 2, &[first], Arrival::Unknown);
    assert_eq!((folder.next(at(2)), folder.remembered()), (None, 1));
}

#[test]
fn a_file_that_is_to_leave_is_removed_until_it_is_gone_and_may_come_again() {
    let mut folder = DropFolder::new(Duration::ZERO, Leaving::Leaves);
    let first = file("a", 1, 1);
    list(&mut folder, 0, core::slice::from_ref(&first), Arrival::Unknown);
    hand_over(&mut folder, &first, 10);
    assert!(!folder.is_done(), "it has not left");
    list(&mut folder, 1, core::slice::from_ref(&first), Arrival::Unknown);
    assert_eq!(folder.next(at(1)), Some(DropErrand::Leave(first.clone())));
    assert!(!folder.is_done());
    folder.postpone_leaving(at(60));
    list(&mut folder, 2, core::slice::from_ref(&first), Arrival::Unknown);
    assert_eq!(folder.next(at(2)), None, "it could not be removed, and is tried again later");
    list(&mut folder, 60, core::slice::from_ref(&first), Arrival::Unknown);
    assert_eq!(folder.next(at(60)), Some(DropErrand::Leave(first.clone())));
    folder.note(LedgerLine::Forgotten(first.name.clone()));
    assert!(folder.is_done());
    list(&mut folder, 61, core::slice::from_ref(&first), Arrival::Unknown);
    assert_eq!(folder.next(at(61)), Some(DropErrand::Read(first)));
}

#[test]
fn what_waits_and_what_is_remembered_is_bounded() {
    let mut folder = DropFolder::new(Duration::ZERO, Leaving::Stays);
    let many: Vec<_> = (0..100_000).map(|n| file(&format!("f{n}"), 1, n)).collect();
    list(&mut folder, 0, &many, Arrival::Unknown);
    assert_eq!((folder.waiting.len(), folder.waiting()), (DropFolder::WAITING_MAX, 100_000));
    for n in 0..DropFolder::REMEMBERED_MAX as u64 {
        let handed = HandedFile { file: file(&format!("f{n}"), 1, n), hash: hash(n) };
        folder.note(LedgerLine::Done(handed));
    }
    assert!(folder.is_full(), "all of them are in the folder");
    let next = file("new", 1, u64::MAX);
    list(&mut folder, 1, &[many.clone(), vec![next.clone()]].concat(), Arrival::Unknown);
    let Some(DropErrand::Note(lines)) = folder.next(at(1)) else { panic!("some are absent") };
    assert_eq!(lines.len(), DropFolder::FORGOTTEN_AT_ONCE);
    lines.into_iter().for_each(|line| folder.note(line));
    assert_eq!(folder.next(at(1)), Some(DropErrand::Read(next)));
}

#[test]
fn names_under_which_programs_write_are_left_alone() {
    for name in ["pass.dat", "tmp", "a.b.h5", "part"] {
        assert!(is_dropped_name(name.as_bytes()), "{name}");
    }
    for name in [".hidden", "a.part", "A.TMP", "x.dat~", "b.filepart", ".pass.dat.skyhaul-part"] {
        assert!(!is_dropped_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn a_ledger_of_another_version_is_refused_and_a_cut_one_is_read() {
    let line = LedgerLine::Forgotten(named("a b%\n\u{e9}"));
    let text = format!("{}{line}", FolderLedger::head());
    assert!(text.ends_with("forgotten a%20b%25%0a%c3%a9\n"), "{text}");
    for cut in 0..text.len() {
        let read = FolderLedger::read(&text.as_bytes()[..cut]).unwrap();
        assert_eq!((read.lines.len(), read.damaged), (0, 0), "at {cut}");
    }
    let twice = format!("{text}{}\n{line}", &line.to_string()[..20]);
    let read = FolderLedger::read(twice.as_bytes()).unwrap();
    assert_eq!((read.lines, read.damaged), (vec![line.clone(), line], 1));
    let later = FolderLedger::read(b"skyhaul-folder 2\nwhatever\n");
    assert_eq!(later, Err(FolderLedgerError::Version(2)));
    let what = later.unwrap_err().to_string();
    assert!(what.contains("version 2") && what.contains("move the ledger away"), "{what}");
    assert_eq!(FolderLedger::read(b"a file"), Err(FolderLedgerError::Foreign));
}

/// What a person or a program does to the folder, or to the node.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Other contents under a name: written into the file, or as a new file in its place.
    Write(u8),
    Replace(u8),
    Touch(u8),
    Rename(u8, u8),
    /// A copy with contents and times: another inode.
    Copy(u8, u8),
    Remove(u8),
    Wait,
    /// The node lists the folder and runs this many steps.
    Run(u8),
    /// It is killed.
    Kill,
    /// The file system is not mounted during the next listing.
    Unmount,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let name = 0u8..4;
    let act = prop_oneof![
        name.clone().prop_map(Act::Write),
        name.clone().prop_map(Act::Replace),
        name.clone().prop_map(Act::Touch),
        (name.clone(), name.clone()).prop_map(|(from, to)| Act::Rename(from, to)),
        (name.clone(), name.clone()).prop_map(|(from, to)| Act::Copy(from, to)),
        name.prop_map(Act::Remove),
        Just(Act::Wait),
        (0u8..12).prop_map(Act::Run),
        (0u8..12).prop_map(Act::Run),
        Just(Act::Kill),
        Just(Act::Unmount),
    ];
    proptest::collection::vec(act, 1..80)
}

/// A folder, its node, and what was handed over.
struct World {
    files: BTreeMap<u8, (DroppedFile, u64)>,
    clock: u64,
    inodes: u64,
    contents: u64,
    ledger: Vec<u8>,
    node: DropFolder,
    leaving: Leaving,
    unmounted: bool,
    handed: BTreeMap<u64, u64>,
    /// How often contents came under a name or inode of their own.
    copies: BTreeMap<u64, u64>,
}

impl World {
    fn new(leaving: Leaving) -> Self {
        Self {
            files: BTreeMap::new(),
            clock: 0,
            inodes: 0,
            contents: 0,
            ledger: FolderLedger::head().into_bytes(),
            node: DropFolder::new(QUIET, leaving),
            leaving,
            unmounted: false,
            handed: BTreeMap::new(),
            copies: BTreeMap::new(),
        }
    }

    fn write(&mut self, name: u8, inode: Option<u64>) {
        self.contents += 1;
        let inode = inode.unwrap_or_else(|| {
            self.inodes += 1;
            self.inodes
        });
        let modified_ns = i64::try_from(self.clock).unwrap();
        let file = DroppedFile { name: named(&name.to_string()), size: 5, modified_ns, inode };
        self.files.insert(name, (file, self.contents));
        self.copies.insert(self.contents, 1);
    }

    fn act(&mut self, act: Act) {
        self.clock += 1;
        match act {
            Act::Write(name) => {
                let inode = self.files.get(&name).map(|(file, _)| file.inode);
                self.write(name, inode);
            }
            Act::Replace(name) => self.write(name, None),
            Act::Touch(name) => {
                let now = i64::try_from(self.clock).unwrap();
                if let Some((file, _)) = self.files.get_mut(&name) {
                    file.modified_ns = now;
                }
            }
            Act::Rename(from, to) => {
                if let Some((mut file, content)) = self.files.remove(&from) {
                    file.name = named(&to.to_string());
                    self.files.insert(to, (file, content));
                }
            }
            Act::Copy(from, to) if from != to => {
                if let Some((mut file, content)) = self.files.get(&from).cloned() {
                    self.inodes += 1;
                    (file.name, file.inode) = (named(&to.to_string()), self.inodes);
                    self.files.insert(to, (file, content));
                    *self.copies.get_mut(&content).unwrap() += 1;
                }
            }
            Act::Copy(..) => {}
            Act::Remove(name) => drop(self.files.remove(&name)),
            Act::Wait => self.clock += 2_000,
            Act::Run(steps) => self.run(steps),
            Act::Kill => self.restart(),
            Act::Unmount => self.unmounted = true,
        }
    }

    fn restart(&mut self) {
        self.node = DropFolder::new(QUIET, self.leaving);
        let ledger = FolderLedger::read(&self.ledger).unwrap();
        assert_eq!(ledger.damaged, 0);
        ledger.lines.into_iter().for_each(|line| self.node.note(line));
        // What was being handed over is handed over to its end.
        let taken: Vec<_> = self.node.taken().cloned().collect();
        taken.into_iter().for_each(|handed| self.finish(handed));
    }

    fn durable(&mut self, line: LedgerLine) {
        self.ledger.extend(line.to_string().bytes());
        self.node.note(line);
    }

    fn finish(&mut self, handed: HandedFile) {
        let content = (1..=self.contents).find(|content| hash(*content) == handed.hash).unwrap();
        *self.handed.entry(content).or_default() += 1;
        self.durable(LedgerLine::Done(handed));
    }

    fn content(&self, file: &DroppedFile) -> Option<(u64, DroppedFile)> {
        let found = self.files.values().find(|(found, _)| found.name == file.name)?;
        Some((found.1, found.0.clone()))
    }

    fn run(&mut self, steps: u8) {
        self.node.begin_scan(at(self.clock));
        if !core::mem::take(&mut self.unmounted) {
            for (file, _) in self.files.values() {
                self.node.see(file.clone(), Arrival::Unknown);
            }
        }
        self.node.end_scan();
        for _ in 0..steps {
            match self.node.next(at(self.clock)) {
                None => return,
                Some(DropErrand::Note(lines)) => {
                    lines.into_iter().for_each(|line| self.durable(line));
                }
                Some(DropErrand::Leave(file)) => {
                    self.files.retain(|_, (found, _)| *found != file);
                    self.durable(LedgerLine::Forgotten(file.name));
                }
                Some(DropErrand::Read(file)) => {
                    // It was not there in this listing alone, where it was not mounted.
                    let Some((content, after)) = self.content(&file) else { continue };
                    match self.node.was_read(&file, hash(content), Some(&after)) {
                        ReadOutcome::Changed => {}
                        ReadOutcome::Known(lines) => {
                            lines.into_iter().for_each(|line| self.durable(line));
                        }
                        ReadOutcome::New(handed) => {
                            self.durable(LedgerLine::Taken(handed.clone()));
                            if steps.is_multiple_of(2) {
                                self.finish(handed);
                            } else {
                                // Killed in the middle of it.
                                self.restart();
                                return;
                            }
                        }
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn all_contents_that_stay_are_handed_over_and_none_more_often_than_they_came(
        acts in acts(),
        leaves in any::<bool>(),
    ) {
        let leaving = if leaves { Leaving::Leaves } else { Leaving::Stays };
        let mut world = World::new(leaving);
        for act in acts {
            world.act(act);
            prop_assert!(world.node.waiting.len() <= 4 && world.node.by_inode.len() <= 4 * 80);
            for (content, count) in &world.handed {
                let came = world.copies[content];
                prop_assert!(*count <= came, "{content} came {came} times, went {count} times");
            }
        }
        let staying: Vec<u64> = world.files.values().map(|(_, content)| *content).collect();
        for _ in 0..4 {
            world.act(Act::Wait);
            world.act(Act::Run(40));
        }
        for content in staying {
            prop_assert!(world.handed.contains_key(&content), "{content} was not handed over");
        }
        if leaves {
            prop_assert!(world.files.is_empty(), "{:?} did not leave", world.files);
        }
    }

    #[test]
    fn a_ledger_line_is_read_as_it_was_written_and_damage_to_it_is_noticed(
        name in proptest::collection::vec(1u8..=255, 1..40),
        numbers in any::<(u64, i64, u64, u64)>(),
        flip in any::<(usize, u8)>(),
    ) {
        let name: Vec<u8> = name.into_iter().filter(|byte| *byte != b'/').collect();
        let Ok(name) = RelPath::new(&name) else { return Ok(()) };
        prop_assume!(!name.is_here());
        let (size, modified_ns, inode, content) = numbers;
        let file = DroppedFile { name, size, modified_ns, inode };
        let line = LedgerLine::Done(HandedFile { file, hash: hash(content) });
        let text = format!("{}{line}", FolderLedger::head());
        let read = FolderLedger::read(text.as_bytes()).unwrap();
        prop_assert_eq!(&read.lines, core::slice::from_ref(&line));
        let mut damaged = text.into_bytes();
        let head = FolderLedger::head().len();
        let place = head + flip.0 % (damaged.len() - head);
        prop_assume!(flip.1 != 0);
        damaged[place] ^= flip.1;
        let read = FolderLedger::read(&damaged).unwrap();
        prop_assert!(read.lines.is_empty(), "{:?}", read);
    }

    #[test]
    fn any_bytes_are_read_as_a_ledger_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = FolderLedger::read(&bytes);
        let _ = FolderLedger::read(&[FolderLedger::head().as_bytes(), &bytes].concat());
    }
}
