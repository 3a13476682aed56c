//! `[[class]]`, and how a channel's contacts are sent: who gets how much of the line, and what is
//! urgent.

use super::channel::Channel;
use super::error::ConfigError;
use super::name::{Name, from_text};
use super::section::section;
use super::station::StationConfig;
use skyhaul_transport::{ClassConfig, ClassError, ClassId, ClassTree, ClassesConfig, PolicyConfig};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::path::Path;
use std::str::FromStr;

section! {
    /// A share of the line with guarantee and ceiling, for the channels, forwards, mirrors and
    /// streams that name it. Classes stand side by side or in a tree (as in `htb` of the Linux
    /// kernel). Without classes all traffic shares the line equally. Each node applies its own
    /// classes to the data that it sends. A forward uses the class of this name at each end, or the
    /// first leaf class if there is none of this name.
    "[[class]]" Class {
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
pub struct PolicyName(PolicyConfig);

/// How the contacts of a channel are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Delivery {
    /// Under which leaf of the class tree.
    pub class: ClassId,
    /// 0 is the most important.
    pub priority: u8,
    /// How long after its capture data should be at the centre; it is sent afterwards too.
    pub deadline: Option<Duration>,
}

/// How a station shares its line.
#[derive(Debug, Clone)]
pub struct LineSharing {
    /// The classes as they are written, to tell whether they have changed.
    classes: ClassesConfig,
    /// The classes.
    pub tree: ClassTree,
    /// Which block goes next within one.
    pub policy: PolicyConfig,
    /// How contacts are sent, by their channel's name.
    pub channels: Vec<(String, Delivery)>,
}

/// What the blocks of refills are sent as, in place of a channel's name: none has a space in it.
pub const REFILL: &str = "frames asked for";

impl Default for LineSharing {
    /// One class for all.
    fn default() -> Self {
        Self {
            classes: ClassesConfig::default(),
            tree: ClassTree::default(),
            policy: PolicyConfig::default(),
            channels: Vec::new(),
        }
    }
}

impl PartialEq for LineSharing {
    fn eq(&self, other: &Self) -> bool {
        (&self.classes, &self.policy, &self.channels)
            == (&other.classes, &other.policy, &other.channels)
    }
}

impl LineSharing {
    /// How contacts of a channel are sent; as those of one that says nothing, where it is not in
    /// the configuration any more.
    pub fn of(&self, channel: &str) -> Delivery {
        let known = self.channels.iter().find(|(name, _)| name == channel);
        known.map_or_else(|| self.usual(), |(_, delivery)| *delivery)
    }

    /// How contacts of a channel are sent that says nothing of it.
    pub fn usual(&self) -> Delivery {
        Delivery {
            class: self.tree.default_leaf(),
            priority: skyhaul_transport::PRIORITY_NORMAL,
            deadline: None,
        }
    }
}

impl StationConfig {
    /// The class tree, the policy and the channels' places in them.
    pub fn sharing(&self) -> LineSharing {
        let tree = self.tree().expect("the tree was checked when the configuration was read");
        let leaf = |class: Option<&Name>| {
            class.and_then(|class| tree.find(class.as_str())).unwrap_or_else(|| tree.default_leaf())
        };
        let of = |channel: &Channel| {
            let class = leaf(channel.class.as_ref());
            let delivery =
                Delivery { class, priority: channel.priority, deadline: channel.deadline };
            (channel.name.to_string(), delivery)
        };
        let refill = Delivery {
            class: leaf(self.refill.class.as_ref()),
            priority: self.refill.priority,
            deadline: None,
        };
        let channels = self.channel.iter().map(of).chain([(REFILL.to_owned(), refill)]).collect();
        LineSharing { classes: self.classes(), channels, policy: self.line.policy.0, tree }
    }

    pub(super) fn check_sharing(&self, text: &str, file: &Path) -> Result<(), ConfigError> {
        let tree = self.tree().map_err(|error| ConfigError::class(text, file, &error))?;
        let channels = self.channel.iter().enumerate();
        let channels =
            channels.map(|(nth, channel)| (("[[channel]]", nth, "class"), &channel.class));
        for (at, class) in channels.chain([(("[refill]", 0, "class"), &self.refill.class)]) {
            if let Some(class) = class
                && tree.find(class.as_str()).is_none()
            {
                let leaves: Vec<&str> = tree.leaves().map(|(_, name)| name).collect();
                let user = if at.0 == "[refill]" { "refills" } else { "a channel" };
                return Err(ConfigError::no_class(
                    (text, file),
                    at,
                    (class.as_str(), user),
                    &leaves,
                ));
            }
        }
        let nodes = [self.centre.name.to_string()];
        super::forwards::check((text, file), &self.forward, (&nodes, "[centre]"), &tree)?;
        super::mirrors::check((text, file), &self.mirror, &tree)?;
        super::streams::check((text, file), &self.stream, &tree)
    }

    fn tree(&self) -> Result<ClassTree, ClassError> {
        ClassTree::new(&self.classes())
    }

    fn classes(&self) -> ClassesConfig {
        classes(&self.class)
    }
}

/// The classes as the transport takes them.
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
