//! The request of the calling end.

use super::VERSION;
use crate::fields::put_short;
use crate::path::RelPath;
use crate::select::{Rule, Selection};
use skyhaul_units::wire::ByteReader;
use skyhaul_units::{Duration, Rate};

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferDirection {
    /// The calling end sends, the called one keeps.
    Put,
    /// The called end sends.
    Get,
    /// The calling end asks about single files of the called one.
    Ask,
}

/// Under which name what is copied stands at the receiving end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// Under its own, in the folder that is named.
    #[default]
    Into,
    /// Under the one that is named: it is one file, and no folder has that name.
    As,
}

/// What both ends keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Nothing is changed; it is only told what would be.
    pub dry_run: bool,
    /// A file that is there is compared by its contents, not by length and time.
    pub checksum: bool,
    /// What the sending end does not have is removed, as [`super::Message::Only`] tells.
    pub delete: bool,
    /// A file that is there stays: one with the same contents counts as copied, and one with others
    /// is refused ([`crate::RefusalReason::Exists`]).
    pub keep: bool,
    /// Bytes of files go no faster.
    pub limit: Option<Rate>,
    /// By when a block is wanted at the receiving end.
    pub deadline: Option<Duration>,
    /// As in a block: 0 is the most important.
    pub priority: u8,
}

/// The first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferHello {
    /// Who sends.
    pub direction: TransferDirection,
    /// What both ends keep to.
    pub options: Options,
    /// The class that blocks of the sending end are sent under; empty is the default one.
    pub class: String,
    /// What the called end is to find out: [`Naming::As`] where the one source may take the name of
    /// the target. Its
    /// [`super::Message::Welcome`] says which it is.
    pub naming: Naming,
    /// Where the called end puts what comes; of [`TransferDirection::Get`] with [`Naming::As`], the
    /// name that its source may take.
    pub target: RelPath,
    /// What the called end is to send, patterns among them; [`TransferDirection::Get`].
    pub sources: Vec<RelPath>,
    /// What takes part of it; [`TransferDirection::Get`], and what is not removed at a
    /// [`super::Message::Only`].
    pub rules: Vec<Rule>,
}

impl Naming {
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Into => 0,
            Self::As => 1,
        }
    }

    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Into),
            1 => Some(Self::As),
            _ => None,
        }
    }
}

impl TransferHello {
    /// The request of an end that asks about single files.
    pub fn asking() -> Self {
        Self {
            direction: TransferDirection::Ask,
            options: Options::default(),
            class: String::new(),
            naming: Naming::Into,
            target: RelPath::here(),
            sources: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// The longest name of a class, in bytes.
    pub const CLASS_MAX: usize = 255;
    /// Sources in one call, at most.
    pub const SOURCES_MAX: usize = 1024;

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let Options { dry_run, checksum, delete, keep, limit, deadline, priority } = self.options;
        out.extend(VERSION.to_be_bytes());
        let direction = match self.direction {
            TransferDirection::Put => 0,
            TransferDirection::Get => 1,
            TransferDirection::Ask => ASK,
        };
        out.push(
            direction
                | u8::from(dry_run) << 1
                | u8::from(checksum) << 2
                | u8::from(delete) << 3
                | self.naming.number() << 4
                | u8::from(keep) << 5,
        );
        out.push(priority);
        out.extend(limit.map_or(0, Rate::as_bps).to_be_bytes());
        // One that is shorter than a millisecond is one of a millisecond, and none is 0.
        let millis = deadline.map_or(0, |deadline| deadline.as_millis().max(1));
        out.extend(u32::try_from(millis).unwrap_or(u32::MAX).to_be_bytes());
        put_short(out, self.class.as_bytes());
        put_short(out, self.target.as_bytes());
        out.extend((self.sources.len() as u16).to_be_bytes());
        self.sources.iter().for_each(|source| put_short(out, source.as_bytes()));
        for rule in &self.rules {
            out.push(u8::from(rule.include));
            put_short(out, rule.pattern.as_bytes());
        }
    }

    pub(super) fn take(mut fields: ByteReader<'_>) -> Option<Self> {
        let flags = fields.u8().filter(|flags| *flags < 128)?;
        let priority = fields.u8()?;
        let limit = fields.u64()?;
        let millis = fields.u32()?;
        let class = skyhaul_units::printable(&fields.text16(Self::CLASS_MAX)?, Self::CLASS_MAX);
        let target = RelPath::new(fields.bytes16()?).ok()?;
        let count = usize::from(fields.u16()?);
        if count > Self::SOURCES_MAX {
            return None;
        }
        let mut sources = Vec::new();
        for _ in 0..count {
            sources.push(RelPath::new(fields.bytes16()?).ok()?);
        }
        let rules = fields.all(|fields| {
            let include = fields.u8().filter(|flag| *flag < 2)? == 1;
            Some(Rule { include, pattern: fields.text16(Selection::PATTERN_MAX)? })
        })?;
        let options = Options {
            dry_run: flags & 2 != 0,
            checksum: flags & 4 != 0,
            delete: flags & 8 != 0,
            keep: flags & 32 != 0,
            limit: (limit > 0).then(|| Rate::from_bps(limit)),
            deadline: (millis > 0).then(|| Duration::from_millis(millis.into())),
            priority,
        };
        let direction = match flags & (ASK | 1) {
            0 => TransferDirection::Put,
            1 => TransferDirection::Get,
            ASK => TransferDirection::Ask,
            _ => return None,
        };
        (rules.len() <= Selection::RULES_MAX).then_some(Self {
            direction,
            options,
            class,
            naming: Naming::from_number(flags >> 4 & 1)?,
            target,
            sources,
            rules,
        })
    }
}

/// The flag of [`TransferDirection::Ask`].
const ASK: u8 = 64;
