//! How a station shares its line: the class tree, the policy, and how each channel's contacts are
//! sent.

use crate::channel::Channel;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::Name;
use crate::station::StationConfig;
use skyhaul_transport::{ClassError, ClassId, ClassTree, ClassesConfig, PolicyConfig};
use skyhaul_units::Duration;

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
    /// The classes as configured, to detect changes.
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
    /// The delivery of a channel's contacts; the default where the channel is not in the
    /// configuration any more.
    pub fn of(&self, channel: &str) -> Delivery {
        let known = self.channels.iter().find(|(name, _)| name == channel);
        known.map_or_else(|| self.usual(), |(_, delivery)| *delivery)
    }

    /// The default delivery.
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

    pub(super) fn check_sharing(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let tree = self.tree().expect("the file's classes were checked");
        let channels = self.channel.iter().enumerate().map(|(nth, channel)| {
            let place = KeyPlace { heading: "[[channel]]", nth, key: "class" };
            (place, "a channel", &channel.class)
        });
        let refill = KeyPlace { heading: "[refill]", nth: 0, key: "class" };
        let users = channels.chain([(refill, "refills", &self.refill.class)]);
        for (place, user, class) in users {
            if let Some(class) = class
                && tree.find(class.as_str()).is_none()
            {
                return Err(ConfigError::no_class(config, place, class.as_str(), user, &tree));
            }
        }
        crate::mirrors::check(config, &self.mirror, &tree)?;
        crate::streams::check(config, &self.stream, &tree)
    }

    fn tree(&self) -> Result<ClassTree, ClassError> {
        ClassTree::new(&self.classes())
    }

    fn classes(&self) -> ClassesConfig {
        crate::sending::classes(&self.class)
    }
}
