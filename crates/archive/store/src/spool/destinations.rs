//! The rules of a spool with several destinations: who must have a record, when it may be freed,
//! and what gives way first when the disk nears its end.
//!
//! Each flow has a cursor for each destination that it goes to: the first place that this
//! destination has not receipted. What follows from the cursors of a flow:
//!
//! | of a record | gives way |
//! |---|---|
//! | every destination has it | first; also without need, once its retention is over |
//! | all that count have it, a shadow has not | second |
//! | the flow's [`Settle`] is met, a destination that counts lacks it | third |
//! | the flow's [`Settle`] is not met | never |
//!
//! Without need nothing gives way that a destination lacks: one that is away costs disk, and holds
//! up no other. Memory: 32 bytes a live flow and destination, at most [`MAX_DESTINATIONS`] of them.

use crate::Seq;
use skyhaul_units::ByteCount;

/// Destinations of one spool.
pub const MAX_DESTINATIONS: usize = 16;

/// A destination of one spool. A number is never given twice: a destination that is removed and
/// added again has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationId(pub u32);

impl DestinationId {
    /// The destination that a new spool begins with: a station's centre.
    pub const FIRST: Self = Self(0);
}

/// When a record of a flow may be freed, as far as the destinations that count are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Settle {
    /// Each of them has receipted it.
    #[default]
    All,
    /// One of them has.
    Any,
    /// The one that the flow names first has; where that is removed, the next.
    First,
}

/// Whether a destination's receipts decide when a record may be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DestinationRole {
    /// They do.
    #[default]
    Counted,
    /// It gets everything and decides nothing: a new release that is tried on live data.
    Shadow,
}

/// With which flows a new destination begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Since {
    /// With those that are opened afterwards.
    #[default]
    Now,
    /// With all of which the spool still keeps anything.
    Kept,
}

/// A destination as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolDestination {
    /// Its name, which the state file keeps: letters, digits, `.`, `_`, `-`, at most 64 of them.
    pub name: String,
    /// Whether its receipts decide.
    pub role: DestinationRole,
    /// Where it begins when it is new to the spool.
    pub since: Since,
}

/// Where a flow goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRoute {
    /// When its records may be freed.
    pub settle: Settle,
    /// Its destinations; for [`Settle::First`] in this order. Those that the spool has not are
    /// passed over.
    pub to: Vec<DestinationId>,
}

/// Why a spool cannot have these destinations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// Too many.
    #[error(
        "{count} destinations are declared, and a spool has at most {MAX_DESTINATIONS}: remove \
        some, or let one pass the data on to others"
    )]
    TooMany {
        /// So many.
        count: usize,
    },
    /// None at all.
    #[error("no destination is declared: name at least one, or nothing of the spool is sent")]
    None,
    /// One name twice.
    #[error("destination `{name}` is declared twice: give each a name of its own")]
    Twice {
        /// The name.
        name: String,
    },
    /// A name that cannot be kept.
    #[error(
        "`{name}` cannot name a destination: use letters, digits, `.`, `_`, `-`, at most 64 of \
        them, not a leading `.`"
    )]
    Name {
        /// The name.
        name: String,
    },
}

/// What a record's place among the cursors of its flow means when the disk nears its end, in the
/// order of giving way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GivesWay {
    /// Every destination has it.
    Kept,
    /// Only shadows lack it.
    Shadows,
    /// It is settled, and a destination that counts lacks it.
    Settled,
    /// It must stay.
    Never,
}

/// What gave way before a destination had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GaveWay {
    /// Records; exact.
    pub blocks: u64,
    /// Payload bytes; of a segment that the destination had begun, by its share of records.
    pub bytes: ByteCount,
}

/// How far one destination is in one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    pub to: DestinationId,
    pub role: DestinationRole,
    /// The first place that it has not receipted.
    pub custody: Seq,
    /// Below this place records were not here any more when it would have needed them;
    /// [`Seq::FINISHED`] where not even the flow's end is known.
    pub gone: Seq,
}

impl Cursor {
    /// Of a destination that has nothing of the flow yet.
    pub const fn new(to: DestinationId, role: DestinationRole) -> Self {
        Self { to, role, custody: Seq::FIRST, gone: Seq::FIRST }
    }
}

/// The destinations of one flow, in the order in which they were named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cursors {
    pub settle: Settle,
    list: Vec<Cursor>,
}

impl Cursors {
    /// At most [`MAX_DESTINATIONS`] are taken, each once.
    pub fn new(settle: Settle, list: impl IntoIterator<Item = Cursor>) -> Self {
        let mut cursors = Self { settle, list: Vec::new() };
        list.into_iter().for_each(|cursor| cursors.add(cursor));
        cursors
    }

    pub fn add(&mut self, cursor: Cursor) {
        if self.list.len() < MAX_DESTINATIONS && self.of(cursor.to).is_none() {
            self.list.push(cursor);
        }
    }

    pub fn of(&self, to: DestinationId) -> Option<&Cursor> {
        self.list.iter().find(|cursor| cursor.to == to)
    }

    pub fn of_mut(&mut self, to: DestinationId) -> Option<&mut Cursor> {
        self.list.iter_mut().find(|cursor| cursor.to == to)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Cursor> {
        self.list.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cursor> {
        self.list.iter_mut()
    }

    /// Whether the flow is one that was forgotten, and of which only what the log has is known.
    pub fn is_end_unknown(&self) -> bool {
        self.list.iter().any(|cursor| cursor.gone == Seq::FINISHED)
    }

    pub fn retain(&mut self, keep: impl Fn(&Cursor) -> bool) {
        self.list.retain(keep);
    }

    fn counted(&self) -> impl Iterator<Item = Seq> {
        let counts = |cursor: &&Cursor| cursor.role == DestinationRole::Counted;
        self.list.iter().filter(counts).map(|cursor| cursor.custody)
    }

    /// Every destination has what is below this place; `end` where there is none.
    pub fn had_by_all(&self, end: Seq) -> Seq {
        self.list.iter().map(|cursor| cursor.custody).min().unwrap_or(end)
    }

    /// Every destination that counts has what is below this place; `end` where none counts.
    pub fn had_by_counted(&self, end: Seq) -> Seq {
        self.counted().min().unwrap_or(end)
    }

    /// What is below this place is settled; `end` where no destination counts.
    pub fn settled(&self, end: Seq) -> Seq {
        match self.settle {
            Settle::All => self.counted().min(),
            Settle::Any => self.counted().max(),
            Settle::First => self.counted().next(),
        }
        .unwrap_or(end)
    }

    /// The furthest that any destination has receipted.
    pub fn furthest(&self) -> Seq {
        self.list.iter().map(|cursor| cursor.custody).max().unwrap_or(Seq::FIRST)
    }

    /// What the record at `last` and all before it mean when room is needed.
    pub fn gives_way(&self, last: Seq, end: Seq) -> GivesWay {
        if last < self.had_by_all(end) {
            GivesWay::Kept
        } else if last < self.had_by_counted(end) {
            GivesWay::Shadows
        } else if last < self.settled(end) {
            GivesWay::Settled
        } else {
            GivesWay::Never
        }
    }
}

/// Which of the declared destinations the spool has, and which are new to it.
pub(super) fn check(wanted: &[SpoolDestination]) -> Result<(), DestinationError> {
    let count = wanted.len();
    if count == 0 {
        return Err(DestinationError::None);
    }
    if count > MAX_DESTINATIONS {
        return Err(DestinationError::TooMany { count });
    }
    for (at, SpoolDestination { name, .. }) in wanted.iter().enumerate() {
        if !crate::publish::is_plain_name(name, NAME_MAX) {
            return Err(DestinationError::Name { name: name.clone() });
        }
        if wanted[..at].iter().any(|other| other.name == *name) {
            return Err(DestinationError::Twice { name: name.clone() });
        }
    }
    Ok(())
}

/// The longest name of a destination, in bytes.
pub(super) const NAME_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cursors(settle: Settle, of: &[(DestinationRole, u64)]) -> Cursors {
        let list = of.iter().enumerate().map(|(at, (role, custody))| Cursor {
            custody: Seq(*custody),
            ..Cursor::new(DestinationId(at as u32), *role)
        });
        Cursors::new(settle, list)
    }

    use DestinationRole::{Counted, Shadow};
    use GivesWay::{Kept, Never, Settled, Shadows};

    #[test]
    fn what_gives_way_follows_from_who_has_it_and_how_the_flow_settles() {
        let of = [(Counted, 6), (Shadow, 2), (Counted, 4)];
        let ways = |settle| (0..8).map(move |at| cursors(settle, &of).gives_way(Seq(at), Seq(8)));
        let all = [Kept, Kept, Shadows, Shadows, Never, Never, Never, Never];
        assert!(ways(Settle::All).eq(all));
        let once = [Kept, Kept, Shadows, Shadows, Settled, Settled, Never, Never];
        assert!(ways(Settle::Any).eq(once));
        assert!(ways(Settle::First).eq(once), "the first that counts is the one with six");
        let mut next = cursors(Settle::First, &of);
        next.retain(|cursor| cursor.to != DestinationId(0));
        assert_eq!(next.gives_way(Seq(4), Seq(8)), Never, "the next one decides now");
    }

    #[test]
    fn a_shadow_never_counts_and_without_destinations_nothing_is_held() {
        let shadow = cursors(Settle::All, &[(Shadow, 0)]);
        assert_eq!(shadow.gives_way(Seq(7), Seq(8)), Shadows);
        assert_eq!(Cursors::default().gives_way(Seq(7), Seq(8)), Kept);
    }

    #[test]
    fn names_are_checked_with_a_sentence() {
        let named = |name: &str| SpoolDestination {
            name: name.to_owned(),
            role: Counted,
            since: Since::Now,
        };
        assert_eq!(check(&[named("a"), named("b-2.x")]), Ok(()));
        assert_eq!(check(&[]), Err(DestinationError::None));
        for name in ["", ".a", "a b", "a/b", &"a".repeat(65)] {
            assert!(matches!(check(&[named(name)]), Err(DestinationError::Name { .. })), "{name}");
        }
        let twice = check(&[named("a"), named("a")]).unwrap_err();
        assert!(twice.to_string().contains("`a` is declared twice"), "{twice}");
        let many: Vec<_> = (0..17).map(|at| named(&format!("d{at}"))).collect();
        assert_eq!(check(&many), Err(DestinationError::TooMany { count: 17 }));
    }

    proptest! {
        /// The same rules, told of each record by itself.
        #[test]
        fn a_record_gives_way_by_what_each_destination_has(
            of in prop::collection::vec((any::<bool>(), 0u64..6), 0..6),
            settle in prop::sample::select(vec![Settle::All, Settle::Any, Settle::First]),
            at in 0u64..6,
        ) {
            let of: Vec<(DestinationRole, u64)> = of
                .into_iter()
                .map(|(counts, custody)| (if counts { Counted } else { Shadow }, custody))
                .collect();
            let has: Vec<(DestinationRole, bool)> = of.iter().map(|(s, c)| (*s, at < *c)).collect();
            let counted: Vec<bool> =
                has.iter().filter(|(s, _)| *s == Counted).map(|(_, has)| *has).collect();
            let is_settled = counted.is_empty() || match settle {
                Settle::All => counted.iter().all(|has| *has),
                Settle::Any => counted.contains(&true),
                Settle::First => counted[0],
            };
            let expected = if has.iter().all(|(_, has)| *has) {
                Kept
            } else if counted.iter().all(|has| *has) {
                Shadows
            } else if is_settled {
                Settled
            } else {
                Never
            };
            prop_assert_eq!(cursors(settle, &of).gives_way(Seq(at), Seq(6)), expected);
        }
    }
}
