//! Reasons of refusals: one word for programs, one sentence for people.

use core::fmt;

/// For programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// The configuration of the far end does not permit it.
    NotAllowed,
    /// It lies outside the folder that the far end serves.
    Outside,
    /// There is nothing of that name.
    Absent,
    /// The disk is full, or a quota is used up.
    NoSpace,
    /// The user that the program runs as has no permission.
    NoPermission,
    /// The file system is mounted read-only.
    ReadOnly,
    /// Something of another kind has that name.
    InTheWay,
    /// The system does not take the name.
    Name,
    /// Another transfer writes it.
    Busy,
    /// It was changed while it was read.
    Changed,
    /// It existed and is gone.
    Vanished,
    /// What arrived, or was there from before, does not have the hash of what was sent.
    Differs,
    /// Neither file nor folder nor symbolic link.
    Special,
    /// More than this version keeps in mind.
    TooMany,
    /// The far end uses another version.
    Version,
    /// Another error of the operating system.
    Failed,
    /// A file with other contents has that name, and none is to be replaced.
    Exists,
}

/// Who must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedBy {
    /// The operator of the end that reports it.
    Environment,
    /// The program or user that changes the source.
    Source,
}

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRefusal {
    /// For programs.
    pub reason: RefusalReason,
    /// For people: what, and why; then `; ` and what to do.
    pub sentence: String,
}

/// The longest sentence, in bytes.
pub const SENTENCE_MAX: usize = 1024;

impl RefusalReason {
    const ALL: [Self; 17] = [
        Self::NotAllowed,
        Self::Outside,
        Self::Absent,
        Self::NoSpace,
        Self::NoPermission,
        Self::ReadOnly,
        Self::InTheWay,
        Self::Name,
        Self::Busy,
        Self::Changed,
        Self::Vanished,
        Self::Differs,
        Self::Special,
        Self::TooMany,
        Self::Version,
        Self::Failed,
        Self::Exists,
    ];

    pub(crate) fn number(self) -> u8 {
        Self::ALL.iter().position(|reason| *reason == self).unwrap_or(0) as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// For events and receipts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAllowed => "not-allowed",
            Self::Outside => "outside",
            Self::Absent => "absent",
            Self::NoSpace => "no-space",
            Self::NoPermission => "no-permission",
            Self::ReadOnly => "read-only",
            Self::InTheWay => "in-the-way",
            Self::Name => "name",
            Self::Busy => "busy",
            Self::Changed => "changed",
            Self::Vanished => "vanished",
            Self::Differs => "differs",
            Self::Special => "special",
            Self::TooMany => "too-many",
            Self::Version => "version",
            Self::Failed => "failed",
            Self::Exists => "exists",
        }
    }

    /// Who must act.
    pub const fn who(self) -> RefusedBy {
        match self {
            Self::Changed | Self::Vanished | Self::Differs | Self::Special => RefusedBy::Source,
            _ => RefusedBy::Environment,
        }
    }
}

impl TransferRefusal {
    /// With a sentence, which is cut where it is too long.
    pub fn new(reason: RefusalReason, sentence: &str) -> Self {
        let end = sentence.floor_char_boundary(SENTENCE_MAX);
        Self { reason, sentence: sentence[..end].to_owned() }
    }
}

impl fmt::Display for TransferRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
