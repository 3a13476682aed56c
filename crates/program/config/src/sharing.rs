//! How a node shares its line: the class tree, the policy, and how contacts are sent to one
//! destination.

use crate::destination::Destination;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::Name;
use crate::station::StationConfig;
use crate::subscription::{ContactLabel, ContactRoute, SubscriptionEntry, deciding, route};
use skyhaul_transport::{ClassError, ClassId, ClassTree, ClassesConfig, PolicyConfig};
use skyhaul_units::Duration;

/// How the blocks of a contact are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SendingTerms {
    /// Under which leaf of the class tree.
    pub class: ClassId,
    /// 0 is the most important.
    pub priority: u8,
    /// How long after its capture data should be at the destination; it is sent afterwards too.
    pub deadline: Option<Duration>,
}

/// How a node shares its line, and sends contacts to one destination.
#[derive(Debug, Clone)]
pub struct LineSharing {
    /// The classes as configured, to detect changes.
    classes: ClassesConfig,
    /// The classes.
    pub tree: ClassTree,
    /// Which block goes next within one.
    pub policy: PolicyConfig,
    /// The deliveries that contacts may have.
    rules: SharingRules,
}

/// How contacts are sent to one destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharingRules {
    /// The name of this node.
    pub own: String,
    /// What decides first comes first: the subscriptions of the destination.
    pub subscriptions: Vec<(SubscriptionEntry, SendingTerms)>,
    /// Frames that the destination asked for.
    pub refill: SendingTerms,
    /// The backlog after an absence.
    pub catch_up: Option<CatchUp>,
}

/// How the backlog is sent that a destination comes back to, so that live contacts go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchUp {
    /// Its class; that of the contact where none is declared.
    pub class: Option<ClassId>,
    /// Contacts that are closed and whose newest block is older than this when the session begins
    /// are backlog.
    pub after: Duration,
}

impl CatchUp {
    /// How a contact is sent as backlog that is sent as `live` otherwise.
    pub fn of(&self, live: SendingTerms) -> SendingTerms {
        SendingTerms {
            class: self.class.unwrap_or(live.class),
            priority: LAST_PRIORITY,
            deadline: None,
        }
    }
}

/// The last priority of a class.
const LAST_PRIORITY: u8 = 7;

/// What the blocks of refills are sent as, in place of a channel's name: none has a space in it.
pub const REFILL: &str = "frames asked for";

impl Default for LineSharing {
    /// One class for all.
    fn default() -> Self {
        Self {
            classes: ClassesConfig::default(),
            tree: ClassTree::default(),
            policy: PolicyConfig::default(),
            rules: SharingRules::default(),
        }
    }
}

impl PartialEq for LineSharing {
    fn eq(&self, other: &Self) -> bool {
        (&self.classes, &self.policy, &self.rules) == (&other.classes, &other.policy, &other.rules)
    }
}

impl LineSharing {
    /// These classes, and these rules in them.
    ///
    /// # Errors
    /// The classes contradict each other.
    pub fn new(
        classes: ClassesConfig,
        policy: PolicyConfig,
        rules: SharingRules,
    ) -> Result<Self, ClassError> {
        let tree = ClassTree::new(&classes)?;
        Ok(Self { classes, tree, policy, rules })
    }

    /// The delivery of the contacts with a label; the default where no subscription takes them.
    pub fn of(&self, label: &ContactLabel) -> SendingTerms {
        if label.channel == REFILL {
            return self.rules.refill;
        }
        let mut rules = self.rules.subscriptions.iter();
        let found = rules.find(|(entry, _)| entry.takes(label, &self.rules.own));
        found.map_or_else(|| self.usual(), |(_, delivery)| *delivery)
    }

    /// The name of this node.
    pub fn own(&self) -> &str {
        &self.rules.own
    }

    /// The default delivery.
    pub fn usual(&self) -> SendingTerms {
        SendingTerms {
            class: self.tree.default_leaf(),
            priority: skyhaul_transport::PRIORITY_NORMAL,
            deadline: None,
        }
    }

    /// How the backlog is sent.
    pub const fn catch_up(&self) -> Option<CatchUp> {
        self.rules.catch_up
    }

    /// Every delivery that a contact may have, each once.
    pub fn deliveries(&self) -> Vec<SendingTerms> {
        let written = self.rules.subscriptions.iter().map(|(_, delivery)| *delivery);
        let live: Vec<SendingTerms> = written.chain([self.rules.refill, self.usual()]).collect();
        let backlog = self
            .rules
            .catch_up
            .iter()
            .flat_map(|catch_up| live.iter().map(|delivery| catch_up.of(*delivery)));
        let mut all: Vec<SendingTerms> = backlog.chain(live.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl StationConfig {
    /// The class tree, the policy, and how contacts are sent to the destination at `place`.
    pub fn sharing(&self, place: usize) -> LineSharing {
        let classes = self.classes();
        let tree = self.tree().expect("the tree was checked when the configuration was read");
        let leaf = |class: Option<&Name>| {
            class.and_then(|class| tree.find(class.as_str())).unwrap_or_else(|| tree.default_leaf())
        };
        let delivery = |entry: &SubscriptionEntry| SendingTerms {
            class: leaf(entry.class.as_ref()),
            priority: entry.priority,
            deadline: entry.deadline,
        };
        let destination = &self.destinations[place];
        let is_here =
            |entry: &&SubscriptionEntry| destination.entry.shadow || entry.is_to(destination);
        let named = self.subscription.iter().filter(is_here);
        let catch_up_class = destination.entry.catch_up_class.as_ref();
        let rules = SharingRules {
            own: self.node.name.to_string(),
            subscriptions: named.map(|entry| (entry.clone(), delivery(entry))).collect(),
            refill: SendingTerms {
                class: leaf(self.refill.class.as_ref()),
                priority: self.refill.priority,
                deadline: None,
            },
            catch_up: Some(CatchUp {
                class: catch_up_class.map(|class| leaf(Some(class))),
                after: destination.entry.catch_up_after,
            }),
        };
        LineSharing { classes, policy: self.line.policy.0, rules, tree }
    }

    /// Where the contacts with this label go.
    pub fn route(&self, label: &ContactLabel) -> ContactRoute {
        route(&self.subscription, &self.destinations, label, self.node.name.as_str())
    }

    /// The subscription that decides how the destination at `place` gets the contacts with this
    /// label; none where that is the default.
    pub fn deciding(&self, place: usize, label: &ContactLabel) -> Option<&SubscriptionEntry> {
        let destination: &Destination = &self.destinations[place];
        deciding(&self.subscription, destination, label, self.node.name.as_str())
    }

    pub(super) fn check_sharing(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let tree = self.tree().expect("the file's classes were checked");
        let places = crate::subscription::contact_places(config);
        let subscriptions = self.subscription.iter().zip(places).map(|(entry, nth)| {
            let place = KeyPlace { heading: "[[subscription]]", nth, key: "class" };
            (place, "a subscription", &entry.class)
        });
        let places =
            config.places("destination", "to", |to| to.starts_with("node:") && !to.contains('/'));
        let catching_up = self.destinations.iter().zip(places).map(|(destination, nth)| {
            let place = KeyPlace { heading: "[[destination]]", nth, key: "catch_up_class" };
            (place, "a destination's backlog", &destination.entry.catch_up_class)
        });
        let refill = KeyPlace { heading: "[refill]", nth: 0, key: "class" };
        let users =
            subscriptions.chain(catching_up).chain([(refill, "refills", &self.refill.class)]);
        for (place, user, class) in users {
            if let Some(class) = class
                && tree.find(class.as_str()).is_none()
            {
                return Err(ConfigError::no_class(config, place, class.as_str(), user, &tree));
            }
        }
        crate::folders::check(config, &self.folders.dropped, &self.channel, &tree)?;
        crate::mirrors::check(config, &self.folders.mirrored, &tree)?;
        crate::streams::check(config, &self.stream, &tree)?;
        self.check_ways(config)
    }

    fn tree(&self) -> Result<ClassTree, ClassError> {
        ClassTree::new(&self.classes())
    }

    fn classes(&self) -> ClassesConfig {
        crate::sending::classes(&self.class)
    }
}
