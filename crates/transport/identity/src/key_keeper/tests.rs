//! Each state and what each event makes of it.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;

/// What is on a disk, and how it fails.
#[derive(Debug, Clone)]
pub(super) struct MemoryDisk {
    pub current: Identity,
    pub next: Option<Identity>,
    pub former: Option<Identity>,
    pub record: KeyRecord,
    pub fault: Fault,
}

/// How the next call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// As it should.
    None,
    /// It is refused, and nothing is changed; so is each one after it.
    Refused,
    /// So many calls succeed. The one after them changes the disk and ends in an error, or only
    /// ends in one; and each one after it is refused: the process has been killed.
    Killed { after: u32, is_done: bool },
}

/// A store that tests look into.
#[derive(Debug, Clone)]
pub(super) struct MemoryStore(pub Rc<RefCell<MemoryDisk>>);

impl MemoryStore {
    pub fn new(current: Identity) -> Self {
        let (next, former, record) = (None, None, KeyRecord::default());
        Self(Rc::new(RefCell::new(MemoryDisk {
            current,
            next,
            former,
            record,
            fault: Fault::None,
        })))
    }

    pub fn open(&self, now: Utc) -> KeyKeeper<Self> {
        let (keys, record) = {
            let disk = self.0.borrow();
            let (current, next) = (disk.current.clone(), disk.next.clone());
            (StoredKeys { current, since: at(0), next }, disk.record.clone())
        };
        KeyKeeper::open(self.clone(), keys, record, now)
    }

    fn call(&self, change: impl FnOnce(&mut MemoryDisk)) -> Result<(), String> {
        let mut disk = self.0.borrow_mut();
        match disk.fault {
            Fault::None => change(&mut disk),
            Fault::Refused => return Err("the disk is full".to_owned()),
            Fault::Killed { after: 0, is_done } => {
                if is_done {
                    change(&mut disk);
                }
                disk.fault = Fault::Refused;
                return Err("killed".to_owned());
            }
            Fault::Killed { after, is_done } => {
                disk.fault = Fault::Killed { after: after - 1, is_done };
                change(&mut disk);
            }
        }
        Ok(())
    }
}

impl KeyStore for MemoryStore {
    fn save(&mut self, record: &KeyRecord) -> Result<(), String> {
        self.call(|disk| disk.record = record.clone())
    }
    fn write_next(&mut self, next: &Identity) -> Result<(), String> {
        self.call(|disk| disk.next = Some(next.clone()))
    }
    fn install(&mut self) -> Result<(), String> {
        self.call(|disk| {
            if let Some(next) = disk.next.take() {
                disk.former = Some(core::mem::replace(&mut disk.current, next));
            }
        })
    }
    fn clean(&mut self) -> Result<(), String> {
        self.call(|disk| (disk.next, disk.former) = (None, None))
    }
}

pub(super) fn key(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

pub(super) fn at(seconds: i64) -> Utc {
    Utc::from_micros(seconds * 1_000_000)
}

fn peers() -> BTreeSet<String> {
    ["centre".to_owned()].into()
}

/// A node with the key 1, which is to be followed by 2.
struct Bench {
    store: MemoryStore,
    keeper: KeyKeeper<MemoryStore>,
}

impl Bench {
    fn new() -> Self {
        let store = MemoryStore::new(key(1));
        let keeper = store.open(at(1));
        Self { store, keeper }
    }

    fn noted(&mut self, stage: KeyStage, of: u8) {
        let talk = KeyTalk::Noted(stage, key(of).fingerprint());
        self.keeper.take("centre", key(9).fingerprint(), &talk, at(3)).unwrap();
    }

    fn restart(&mut self) {
        self.keeper = self.store.open(at(4));
    }

    fn state(&self) -> String {
        let name = |key: &Identity| {
            let seeds = [1, 2, 3];
            let seed = seeds.into_iter().find(|seed| {
                Identity::from_seed(&[*seed; 32]).unwrap().fingerprint() == key.fingerprint()
            });
            seed.map_or("new".to_owned(), |seed| seed.to_string())
        };
        let disk = self.store.0.borrow();
        let file = |key: &Option<Identity>| key.as_ref().map_or("-".to_owned(), name);
        let rotation = self.keeper.record().rotation.as_ref();
        let stage = rotation.map_or("Steady".to_owned(), |rotation| {
            format!("{:?} {:?}", rotation.stage, rotation.noted.get("centre"))
        });
        let (uses, stuck) = (name(&self.keeper.own().current()), self.keeper.stuck());
        let files = [name(&disk.current), file(&disk.next), file(&disk.former)].join(" ");
        let stuck = stuck.map_or(String::new(), |reason| format!(", stuck: {reason}"));
        assert_eq!(disk.record, *self.keeper.record(), "what is shown is durable");
        format!("{stage}, uses {uses}, files {files}{stuck}")
    }
}

/// Something named that is done to a node.
type Act = (&'static str, fn(&mut Bench));

/// The states: how they come about.
const STATES: [Act; 5] = [
    ("steady", |_| {}),
    ("staged", |bench| bench.keeper.rotate(key(2), at(2)).unwrap()),
    ("staged, noted", |bench| {
        bench.keeper.rotate(key(2), at(2)).unwrap();
        bench.noted(KeyStage::Staged, 2);
    }),
    ("switched", |bench| {
        bench.keeper.rotate(key(2), at(2)).unwrap();
        bench.keeper.force(&peers(), at(2)).unwrap();
    }),
    ("switched, noted", |bench| {
        bench.keeper.rotate(key(2), at(2)).unwrap();
        bench.keeper.force(&peers(), at(2)).unwrap();
        bench.noted(KeyStage::Switched, 2);
    }),
];

/// The events.
const EVENTS: [Act; 13] = [
    ("rotate", |bench| _ = bench.keeper.rotate(key(3), at(5))),
    ("advance", |bench| bench.keeper.advance(&peers(), at(5))),
    ("advance, nobody must know", |bench| bench.keeper.advance(&BTreeSet::new(), at(5))),
    ("force", |bench| _ = bench.keeper.force(&peers(), at(5))),
    ("noted staged", |bench| bench.noted(KeyStage::Staged, 2)),
    ("noted switched", |bench| bench.noted(KeyStage::Switched, 2)),
    ("noted another key", |bench| bench.noted(KeyStage::Staged, 3)),
    ("the disk refuses, force", |bench| {
        bench.store.0.borrow_mut().fault = Fault::Refused;
        let _ = bench.keeper.force(&peers(), at(5));
    }),
    ("revoke the own key", |bench| {
        let own = bench.keeper.own().fingerprint();
        assert_eq!(bench.keeper.revoke(own, "", at(5)), Err(KeyOrderError::Own));
    }),
    ("restart", Bench::restart),
    ("restart with the next key in place", |bench| {
        bench.store.0.borrow_mut().current = key(2);
        bench.restart();
    }),
    ("restart with a key from elsewhere", |bench| {
        bench.store.0.borrow_mut().current = key(3);
        bench.restart();
    }),
    ("restart without the next key", |bench| {
        bench.store.0.borrow_mut().next = None;
        bench.restart();
    }),
];

#[test]
fn each_state_and_what_each_event_makes_of_it() {
    let mut table = String::new();
    for (state, begin) in STATES {
        for (event, happen) in EVENTS {
            let mut bench = Bench::new();
            begin(&mut bench);
            while bench.keeper.poll().is_some() {}
            happen(&mut bench);
            let mut news = Vec::new();
            while let Some(one) = bench.keeper.poll() {
                let said = format!("{one:?}");
                news.push(said.split('(').next().unwrap_or_default().to_owned());
            }
            let news = if news.is_empty() { String::new() } else { format!(" {news:?}") };
            table.push_str(&format!("{state} | {event} => {}{news}\n", bench.state()));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_node_that_cannot_keep_its_next_key_does_not_announce_it() {
    for after in 0..2 {
        let mut bench = Bench::new();
        bench.store.0.borrow_mut().fault = Fault::Killed { after, is_done: false };
        assert!(bench.keeper.rotate(key(2), at(2)).is_err());
        assert_eq!(bench.keeper.announcement(), None);
    }
}

#[test]
fn what_is_said_in_a_session_is_noted_before_it_is_answered() {
    let mut bench = Bench::new();
    let (old, new) = (key(5), key(6));
    let succession = Succession::make(&old, &new).unwrap();
    let talk = KeyTalk::Follows(KeyStage::Staged, succession);
    bench.store.0.borrow_mut().fault = Fault::Refused;
    assert!(bench.keeper.take("centre", old.fingerprint(), &talk, at(2)).is_err());
    assert_eq!(bench.keeper.record().known.accepted(old.fingerprint()), [old.fingerprint()]);
    bench.store.0.borrow_mut().fault = Fault::None;
    let answer = bench.keeper.take("centre", old.fingerprint(), &talk, at(2)).unwrap();
    assert_eq!(answer, Some(KeyTalk::Noted(KeyStage::Staged, new.fingerprint())));
    bench.restart();
    assert_eq!(
        bench.keeper.record().known.accepted(old.fingerprint()),
        [new.fingerprint(), old.fingerprint()]
    );
}
