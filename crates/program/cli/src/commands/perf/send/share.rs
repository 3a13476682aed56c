//! Several senders on one line, each under its own class: which of them hands over the next block,
//! and when.

use super::super::message::DATA;
use skyhaul_exit::{Exit, Failure};
use skyhaul_transport::{ClassConfig, ClassId, ClassTree, ClassesConfig, FlowId};
use skyhaul_units::Duration;
use std::str::FromStr;

/// A sender under one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassLoad {
    pub class: ClassConfig,
    /// Its sender begins so long after the measurement.
    pub from: Duration,
    /// It ends then, or with the measurement.
    pub until: Option<Duration>,
}

impl FromStr for ClassLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, keys) = text.split_once(':').unwrap_or((text, ""));
        let class = ClassConfig { name: name.trim().to_owned(), ..ClassConfig::default() };
        let mut load = Self { class, from: Duration::ZERO, until: None };
        for pair in keys.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) =
                pair.split_once('=').ok_or(format!("`{pair}` has no value; {FORM}"))?;
            load.set(key.trim(), value.trim())?;
        }
        match load.until.is_some_and(|until| until <= load.from) {
            true => {
                Err(format!("class `{name}` ends before it begins; give an `until` after `from`"))
            }
            false => Ok(load),
        }
    }
}

impl ClassLoad {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let class = &mut self.class;
        match key {
            "guarantee" => class.guarantee = Some(read(key, value)?),
            "ceiling" => class.ceiling = Some(read(key, value)?),
            "priority" => class.priority = Some(read(key, value)?),
            "quantum" => class.quantum = Some(read(key, value)?),
            "from" => self.from = read(key, value)?,
            "until" => self.until = Some(read(key, value)?),
            _ => return Err(format!("`{key}` is not known; {FORM}")),
        }
        Ok(())
    }
}

fn read<T: FromStr<Err: core::fmt::Display>>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("`{key}`: {error}"))
}

/// The senders of a run.
#[derive(Debug, Clone)]
pub struct Shares {
    senders: Vec<Sender>,
    tree: ClassTree,
    /// Who hands over next, so that no sender waits for another.
    turn: usize,
}

#[derive(Debug, Clone)]
struct Sender {
    load: ClassLoad,
    class: ClassId,
    /// Bytes of blocks that were handed over and have not come to their end.
    under_way: u64,
}

/// Who hands over next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A block in this flow, under this class.
    Block(FlowId, ClassId),
    /// None before this time of the measurement, or before a block has an outcome.
    At(Duration),
    /// None before a block has an outcome.
    Wait,
}

impl Shares {
    /// A sender for each load; `None` without any.
    ///
    /// # Errors
    /// The classes contradict each other, or are too many.
    pub fn of(loads: &[ClassLoad]) -> Result<Option<Self>, Failure> {
        if loads.is_empty() {
            return Ok(None);
        }
        if loads.len() > LOADS_MAX {
            let what = format!("{} classes are above the limit", loads.len());
            return Err(Failure::new(Exit::Usage, &what, &format!("give {LOADS_MAX} at the most")));
        }
        let classes = loads.iter().map(|load| load.class.clone()).collect();
        let config = ClassesConfig { classes, ..ClassesConfig::default() };
        let tree = ClassTree::new(&config)
            .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
        let senders = loads.iter().map(|load| Sender {
            class: tree.find(&load.class.name).unwrap_or_default(),
            load: load.clone(),
            under_way: 0,
        });
        Ok(Some(Self { senders: senders.collect(), tree, turn: 0 }))
    }

    /// How the line is shared.
    pub const fn tree(&self) -> &ClassTree {
        &self.tree
    }

    pub const fn count(&self) -> usize {
        self.senders.len()
    }

    /// The names of the classes.
    pub fn loads(&self) -> impl Iterator<Item = &ClassLoad> {
        self.senders.iter().map(|sender| &sender.load)
    }

    /// The sender that hands over the next block, `since` the beginning of the measurement, if no
    /// sender has more than `ahead` bytes under way.
    pub fn next(&self, since: Duration, ahead: u64) -> Next {
        let count = self.senders.len();
        let order = (0..count).map(|step| (self.turn + step) % count);
        let mut begins = None;
        for place in order {
            let sender = &self.senders[place];
            if since < sender.load.from {
                begins = Some(
                    begins.map_or(sender.load.from, |least: Duration| least.min(sender.load.from)),
                );
            } else if sender.load.until.is_none_or(|until| since < until)
                && sender.under_way < ahead
            {
                return Next::Block(flow(place), sender.class);
            }
        }
        begins.map_or(Next::Wait, Next::At)
    }

    /// A block of `bytes` was handed over in `of`.
    pub fn handed(&mut self, of: FlowId, bytes: usize) {
        if let Some(place) = place(of).filter(|place| *place < self.senders.len()) {
            self.senders[place].under_way += bytes as u64;
            self.turn = (place + 1) % self.senders.len();
        }
    }

    /// A block of `bytes` in flow `of` has an outcome.
    pub fn settled(&mut self, of: FlowId, bytes: usize) {
        if let Some(sender) = place(of).and_then(|place| self.senders.get_mut(place)) {
            sender.under_way = sender.under_way.saturating_sub(bytes as u64);
        }
    }
}

/// The flow of the sender at `place`.
fn flow(place: usize) -> FlowId {
    FlowId(DATA.0 + u32::try_from(place).unwrap_or(u32::MAX - DATA.0))
}

/// Whose flow it is.
pub fn place(flow: FlowId) -> Option<usize> {
    flow.0.checked_sub(DATA.0).map(|place| place as usize)
}

/// The most senders of a run: as many as a drawing can distinguish.
pub const LOADS_MAX: usize = 16;

const FORM: &str = "write it like science:guarantee=30mbit,priority=3,from=10s,until=20s \
                    (guarantee, ceiling, priority, quantum, from, until)";

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Rate;

    fn load(text: &str) -> ClassLoad {
        text.parse().unwrap()
    }

    #[test]
    fn a_class_is_a_name_and_what_it_has() {
        let read = load("science:guarantee=30mbit,priority=2,from=10s,until=20s");
        assert_eq!((read.class.name.as_str(), read.class.priority), ("science", Some(2)));
        assert_eq!(read.class.guarantee, Some(Rate::from_mbps(30)));
        assert_eq!(
            (read.from, read.until),
            (Duration::from_secs(10), Some(Duration::from_secs(20)))
        );
        assert_eq!(load("bulk").class.guarantee, None);
        for (text, part) in [
            ("a:guarantee", "has no value"),
            ("a:rate=3mbit", "`rate` is not known"),
            ("a:priority=x", "`priority`:"),
            ("a:from=3s,until=3s", "ends before it begins"),
        ] {
            let error = text.parse::<ClassLoad>().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn classes_that_contradict_each_other_are_refused() {
        assert!(Shares::of(&[]).unwrap().is_none());
        for (loads, part) in [
            (vec![load("a"), load("a")], "class `a` is there twice"),
            (vec![load("a:priority=9")], "priority 9 is not one of"),
            (vec![load(""); 1], "a class has no name"),
            (vec![load("a"); LOADS_MAX + 1], "are above the limit"),
        ] {
            let error = Shares::of(&loads).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn senders_take_turns_in_their_time_and_wait_for_what_is_under_way() {
        let secs = Duration::from_secs;
        let mut shares = Shares::of(&[load("a"), load("b:from=10s,until=20s")]).unwrap().unwrap();
        let of = |next: Next| match next {
            Next::Block(flow, _) => place(flow),
            Next::At(_) | Next::Wait => None,
        };
        assert_eq!(of(shares.next(secs(0), 100)), Some(0));
        shares.handed(flow(0), 100);
        assert_eq!(shares.next(secs(0), 100), Next::At(secs(10)));
        assert_eq!(of(shares.next(secs(10), 100)), Some(1));
        shares.handed(flow(1), 100);
        assert_eq!(shares.next(secs(10), 100), Next::Wait);
        shares.settled(flow(0), 40);
        shares.settled(flow(1), 40);
        assert_eq!(of(shares.next(secs(11), 100)), Some(0), "the other one has had its turn");
        assert_eq!(of(shares.next(secs(20), 100)), Some(0));
        shares.handed(flow(0), 60);
        assert_eq!(shares.next(secs(20), 100), Next::Wait, "the second one's time is over");
    }
}
