//! `[[class]]`, a share of the line, and the order of blocks within a class.

use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_transport::{ClassConfig, ClassesConfig, PolicyConfig};
use skyhaul_units::{ByteCount, Rate};
use std::str::FromStr;

section! {
    /// A share of the line with guarantee and ceiling, for the channels, forwards, mirrors, streams
    /// and destinations of products that name it. Classes stand side by side or in a tree (as in
    /// `htb` of the Linux kernel). Without classes all traffic shares the line equally. Each node
    /// applies its own classes to the data that it sends. A forward uses the class of this name at
    /// each end, or the first leaf class if there is none of this name.
    "[[class]]" Class applies at_once {
        /// The name that channels, forwards, mirrors, streams and child classes refer to.
        name: Name => required,
        /// The parent class. Default: none, the class is at the top. Channels use leaf classes,
        /// which are classes without children.
        parent: Name => optional,
        /// The rate that it gets whenever it has data, before other classes borrow. Default: the
        /// sum of its children's guarantees, or nothing.
        guarantee: Rate => optional,
        /// The rate that it never exceeds. Default: limited only by its parent.
        ceiling: Rate => optional,
        /// Its priority among classes that borrow, 0 (first) to 7. Default: that of its parent, 3
        /// at the top.
        priority: u8 => optional,
        /// The amount that it sends in a turn. This sets its share among classes of the same
        /// priority.
        quantum: ByteCount => "3 kB",
    }
}

/// Which block goes next within a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicyName(pub(super) PolicyConfig);

/// The classes in the form of the transport.
pub(super) fn classes(classes: &[Class]) -> ClassesConfig {
    let class = |class: &Class| ClassConfig {
        name: class.name.to_string(),
        parent: class.parent.as_ref().map(Name::to_string),
        guarantee: class.guarantee,
        ceiling: class.ceiling,
        priority: class.priority,
        quantum: Some(class.quantum),
        burst: None,
    };
    ClassesConfig { classes: classes.iter().map(class).collect(), ..ClassesConfig::default() }
}

impl FromStr for PolicyName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, policy)| Self(policy())).ok_or_else(|| {
            format!("`{text}` is not a policy; write urgency, draft, strict, earliest or fifo")
        })
    }
}

impl std::fmt::Display for PolicyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.0 {
            PolicyConfig::Urgency(_) => "urgency",
            PolicyConfig::Draft(_) => "draft",
            PolicyConfig::Strict {} => "strict",
            PolicyConfig::Earliest {} => "earliest",
            PolicyConfig::Fifo {} => "fifo",
        };
        f.write_str(name)
    }
}

from_text!(PolicyName);

/// A policy with its name.
type Named = (&'static str, fn() -> PolicyConfig);

const NAMES: [Named; 5] = [
    ("urgency", PolicyConfig::default),
    ("draft", || PolicyConfig::Draft(Default::default())),
    ("strict", || PolicyConfig::Strict {}),
    ("earliest", || PolicyConfig::Earliest {}),
    ("fifo", || PolicyConfig::Fifo {}),
];
