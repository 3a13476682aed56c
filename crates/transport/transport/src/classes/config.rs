//! The class tree as an operator writes it, and the reading of it into nodes that cannot be wrong.
//!
//! ```toml
//! rate = "93 Mbit/s"        # of everything together; left out: what the paths carry
//! default = "bulk"          # where blocks go that name no class; left out: the first leaf
//!
//! [[class]]
//! name = "telemetry"
//! guarantee = "2 Mbit/s"
//! priority = 0
//!
//! [[class]]
//! name = "science"
//! guarantee = "60 Mbit/s"
//!
//! [[class]]
//! name = "level0"
//! parent = "science"
//! guarantee = "40 Mbit/s"
//!
//! [[class]]
//! name = "bulk"
//! parent = "science"
//! ceiling = "80 Mbit/s"
//! ```

use super::bucket::{Bucket, DEPTH};
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Rate};
use std::collections::BTreeMap;

/// The class tree of a session. The default is one class without limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassesConfig {
    /// Ceiling of everything together, over all paths. Left out: what the paths carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The leaf of blocks that name no class. Left out: the first leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The classes, in any order. None: one leaf named `default`.
    #[serde(rename = "class", skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassConfig>,
}

/// One class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// How blocks and children name it.
    pub name: String,
    /// The class it is a part of. Left out: it stands at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it gets whenever it has data, before anyone borrows. Left out: the sum of its
    /// children's, none for a leaf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Rate>,
    /// What it never exceeds. Left out: its parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Rate>,
    /// Whose turn comes first among those at the same level of borrowing: 0 (first) to 7.
    /// Left out: its parent's, 3 at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Share among leaves of one priority: each sends this much in its turn. Default 3000 bytes for
    /// every class, which is equal shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<ByteCount>,
    /// How much may leave at once after a pause, against the guarantee and against the ceiling.
    /// Default: 20 ms of the rate in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<ByteCount>,
}

/// What is wrong with a class tree, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(
    missing_docs,
    reason = "each message says what its variant means; the fields are its words"
)]
pub enum ClassError {
    #[error("a class has no name: give it one")]
    Nameless,
    #[error("class `{0}` is there twice: rename one of them")]
    Twice(String),
    #[error("class `{class}`: there is no class `{parent}`: correct `parent`, or add that class")]
    NoParent { class: String, parent: String },
    #[error("class `{0}` is its own ancestor: let one class of the circle stand at the top")]
    Circle(String),
    #[error(
        "class `{0}`: a ceiling of zero lets nothing through: give it a rate, or leave the class \
        out"
    )]
    Closed(String),
    #[error("class `{0}`: a quantum of zero gives it no turn: give it at least a datagram's size")]
    NoTurn(String),
    #[error("class `{class}`: priority {priority} is not one of 0 (first) to {LAST_PRIORITY}")]
    Priority { class: String, priority: u8 },
    #[error(
        "class `{class}`: its guarantee of {guarantee} is above its ceiling of {ceiling}: lower \
        the guarantee"
    )]
    AboveCeiling { class: String, guarantee: Rate, ceiling: Rate },
    #[error(
        "class `{class}`: its ceiling of {ceiling} is above the {outer} around it: lower it, or \
        leave it out"
    )]
    CeilingAboveOuter { class: String, ceiling: Rate, outer: Rate },
    #[error(
        "{class}: its children are promised {promised} in all, but it has {own}: lower their \
        guarantees"
    )]
    Oversubscribed { class: String, promised: Rate, own: Rate },
    #[error("the default class `{0}` is not a leaf of the tree: name one that has no children")]
    DefaultNotALeaf(String),
    #[error("there are {0} leaves: at most {MAX_LEAVES} are possible")]
    TooManyLeaves(usize),
    #[error("there are {0} classes: at most {MAX_CLASSES} are possible")]
    TooManyClasses(usize),
}

/// Most leaves of a tree: their number is one byte.
pub const MAX_LEAVES: usize = 256;

/// Most classes of a tree: as many inner ones as a tree of [`MAX_LEAVES`] with some depth wants,
/// and few enough to be looked through for each datagram.
pub const MAX_CLASSES: usize = 1024;

/// The last of the priorities; as many as the Linux kernel's htb has.
const LAST_PRIORITY: u8 = 7;

/// Priority at the top: as many levels before as after it.
const DEFAULT_PRIORITY: u8 = 3;

/// Two datagrams: turns stay short, and every turn has room for one.
const DEFAULT_QUANTUM: ByteCount = ByteCount::new(3_000);

/// A place in the tree with its buckets.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Place of the parent; the root is its own.
    pub(super) parent: usize,
    /// Steps from the root.
    pub(super) depth: usize,
    pub(super) guarantee: Option<Bucket>,
    pub(super) ceiling: Option<Bucket>,
    /// Whether a leaf here or below had data when last asked.
    pub(super) wanted: bool,
}

/// What only leaves have.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) priority: u8,
    pub(super) quantum: ByteCount,
}

/// A tree that was found right.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The inner nodes, parents before children, the root first; then one for each leaf, in the
    /// leaves' order.
    pub(super) nodes: Vec<Node>,
    pub(super) leaves: Vec<Leaf>,
    /// Place of the default leaf among the leaves.
    pub(super) default: usize,
}

/// A class with what it inherits.
#[derive(Clone, Copy)]
struct Resolved {
    guarantee: Rate,
    /// The lowest ceiling on the way to the root.
    ceiling: Option<Rate>,
    priority: u8,
    depth: usize,
}

impl Plan {
    pub(super) fn new(config: &ClassesConfig) -> Result<Self, ClassError> {
        let alone = [ClassConfig { name: "default".to_owned(), ..ClassConfig::default() }];
        let classes: &[ClassConfig] =
            if config.classes.is_empty() { &alone } else { &config.classes };
        let family = Family::new(classes)?;
        let resolved = resolve(config.rate, classes, &family)?;
        let (leaves, inner): (Vec<usize>, Vec<usize>) =
            family.order.iter().partition(|class| family.children[**class] == 0);
        // Leaves keep the order in which they are written, whatever the shape of the tree.
        let mut leaves = leaves;
        leaves.sort_unstable();
        if leaves.len() > MAX_LEAVES {
            return Err(ClassError::TooManyLeaves(leaves.len()));
        }
        let all = credit(classes, &family, &resolved);
        let mut place = vec![0; classes.len()];
        let root = config.rate.and_then(|rate| Bucket::new(rate, None));
        let mut nodes =
            vec![Node { parent: 0, depth: 0, guarantee: None, ceiling: root, wanted: false }];
        for class in inner.iter().chain(&leaves).copied() {
            place[class] = nodes.len();
            let (config, resolved) = (&classes[class], &resolved[class]);
            nodes.push(Node {
                parent: family.parents[class].map_or(0, |parent| place[parent]),
                depth: resolved.depth,
                guarantee: Bucket::new(resolved.guarantee, config.burst)
                    .map(|bucket| bucket.keeping(all)),
                ceiling: config.ceiling.and_then(|ceiling| Bucket::new(ceiling, config.burst)),
                wanted: false,
            });
        }
        let leaf = |class: &usize| Leaf {
            name: classes[*class].name.clone(),
            priority: resolved[*class].priority,
            quantum: classes[*class].quantum.unwrap_or(DEFAULT_QUANTUM),
        };
        let leaves: Vec<Leaf> = leaves.iter().map(leaf).collect();
        let default = match &config.default {
            None => 0,
            Some(name) => leaves
                .iter()
                .position(|leaf| leaf.name == *name)
                .ok_or_else(|| ClassError::DefaultNotALeaf(name.clone()))?,
        };
        Ok(Self { nodes, leaves, default })
    }
}

/// The most that can be sent by right before somebody who waits has a turn: everybody's burst and
/// turn. One who waits keeps that much credit, or its guarantee would not hold among many.
fn credit(classes: &[ClassConfig], family: &Family, resolved: &[Resolved]) -> ByteCount {
    let leaves = (0..classes.len()).filter(|class| family.children[*class] == 0);
    let of = |class: usize| {
        let config = &classes[class];
        config.burst.unwrap_or(resolved[class].guarantee * DEPTH)
            + config.quantum.unwrap_or(DEFAULT_QUANTUM)
    };
    leaves.map(of).sum()
}

/// Who is whose child.
struct Family {
    parents: Vec<Option<usize>>,
    /// How many children each has.
    children: Vec<usize>,
    /// Parents before children.
    order: Vec<usize>,
}

impl Family {
    fn new(classes: &[ClassConfig]) -> Result<Self, ClassError> {
        if classes.len() > MAX_CLASSES {
            return Err(ClassError::TooManyClasses(classes.len()));
        }
        let mut names = BTreeMap::new();
        for (index, class) in classes.iter().enumerate() {
            if class.name.trim().is_empty() {
                return Err(ClassError::Nameless);
            }
            if names.insert(class.name.as_str(), index).is_some() {
                return Err(ClassError::Twice(class.name.clone()));
            }
        }
        let mut parents = Vec::with_capacity(classes.len());
        let mut children = vec![0; classes.len()];
        for class in classes {
            let parent = match &class.parent {
                None => None,
                Some(parent) => Some(*names.get(parent.as_str()).ok_or_else(|| {
                    ClassError::NoParent { class: class.name.clone(), parent: parent.clone() }
                })?),
            };
            if let Some(parent) = parent {
                children[parent] += 1;
            }
            parents.push(parent);
        }
        let order = parents_first(classes, &parents)?;
        Ok(Self { parents, children, order })
    }
}

/// The classes by their depth. One that the root doesn't reach is in a circle.
fn parents_first(
    classes: &[ClassConfig],
    parents: &[Option<usize>],
) -> Result<Vec<usize>, ClassError> {
    let mut depths = Vec::with_capacity(classes.len());
    for (index, class) in classes.iter().enumerate() {
        let way = std::iter::successors(Some(index), |class| parents[*class]);
        let depth = way.take(classes.len() + 1).count();
        if depth > classes.len() {
            return Err(ClassError::Circle(class.name.clone()));
        }
        depths.push((depth, index));
    }
    depths.sort_unstable();
    Ok(depths.into_iter().map(|(_, index)| index).collect())
}

fn resolve(
    rate: Option<Rate>,
    classes: &[ClassConfig],
    family: &Family,
) -> Result<Vec<Resolved>, ClassError> {
    if rate == Some(Rate::ZERO) {
        return Err(ClassError::Closed("(all together)".to_owned()));
    }
    let nothing =
        Resolved { guarantee: Rate::ZERO, ceiling: rate, priority: DEFAULT_PRIORITY, depth: 0 };
    let mut resolved = vec![nothing; classes.len()];
    // What is promised to the children of each, and of the root at the end.
    let mut promised = vec![Rate::ZERO; classes.len() + 1];
    for class in family.order.iter().rev().copied() {
        let own = guarantee(&classes[class], promised[class])?;
        let parent = family.parents[class].unwrap_or(classes.len());
        promised[parent] = Rate::from_bps(promised[parent].as_bps().saturating_add(own.as_bps()));
        resolved[class].guarantee = own;
    }
    if let Some(own) = rate.filter(|rate| *rate < promised[classes.len()]) {
        let class = "all classes together".to_owned();
        return Err(ClassError::Oversubscribed { class, promised: promised[classes.len()], own });
    }
    for class in family.order.iter().copied() {
        let outer = family.parents[class].map_or(nothing, |parent| resolved[parent]);
        resolved[class] = inherit(&classes[class], resolved[class].guarantee, outer)?;
    }
    Ok(resolved)
}

/// The guarantee of `class`, whose children are promised `promised`.
fn guarantee(class: &ClassConfig, promised: Rate) -> Result<Rate, ClassError> {
    let own = class.guarantee.unwrap_or(promised);
    if own < promised {
        let class = format!("class `{}`", class.name);
        return Err(ClassError::Oversubscribed { class, promised, own });
    }
    Ok(own)
}

/// What `class` is within `outer`.
fn inherit(class: &ClassConfig, guarantee: Rate, outer: Resolved) -> Result<Resolved, ClassError> {
    let name = || class.name.clone();
    let priority = class.priority.unwrap_or(outer.priority);
    if priority > LAST_PRIORITY {
        return Err(ClassError::Priority { class: name(), priority });
    }
    if class.quantum == Some(ByteCount::ZERO) {
        return Err(ClassError::NoTurn(name()));
    }
    if class.ceiling == Some(Rate::ZERO) {
        return Err(ClassError::Closed(name()));
    }
    if let (Some(ceiling), Some(outer)) = (class.ceiling, outer.ceiling)
        && ceiling > outer
    {
        return Err(ClassError::CeilingAboveOuter { class: name(), ceiling, outer });
    }
    let ceiling = class.ceiling.or(outer.ceiling);
    if let Some(ceiling) = ceiling.filter(|ceiling| guarantee > *ceiling) {
        return Err(ClassError::AboveCeiling { class: name(), guarantee, ceiling });
    }
    Ok(Resolved { guarantee, ceiling, priority, depth: outer.depth + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Plan, String> {
        let config: ClassesConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        Plan::new(&config).map_err(|error| error.to_string())
    }

    const FULL: &str = r#"
        rate = "93 Mbit/s"
        default = "bulk"
        class = [
            { name = "bulk", parent = "science", ceiling = "80 Mbit/s", quantum = "6 kB", burst = "64 KiB" },
            { name = "telemetry", guarantee = "2 Mbit/s", priority = 0 },
            { name = "science", priority = 5 },
            { name = "level0", parent = "science", guarantee = "40 Mbit/s" },
        ]
    "#;

    #[test]
    fn a_tree_is_read_in_any_order_and_written_back() {
        let plan = read(FULL).unwrap();
        let leaves: Vec<_> =
            plan.leaves.iter().map(|leaf| (leaf.name.as_str(), leaf.priority)).collect();
        assert_eq!(leaves, [("bulk", 5), ("telemetry", 0), ("level0", 5)]);
        let depths: Vec<_> = plan.nodes.iter().map(|node| (node.parent, node.depth)).collect();
        assert_eq!(depths, [(0, 0), (0, 1), (1, 2), (0, 1), (1, 2)]);
        assert_eq!(plan.default, 0);
        // The inner class is guaranteed what its children are.
        assert!(plan.nodes[1].guarantee.is_some() && plan.nodes[1].ceiling.is_none());
        let config: ClassesConfig = toml::from_str(FULL).unwrap();
        let again: ClassesConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn nothing_written_is_one_class_without_limits() {
        let plan = read("").unwrap();
        assert_eq!(plan.leaves[0].name, "default");
        assert!(plan.nodes.iter().all(|node| node.guarantee.is_none() && node.ceiling.is_none()));
    }

    #[test]
    fn what_cannot_hold_is_refused_by_name_with_what_to_do() {
        let cases = [
            (r#"class = [{ name = "" }]"#, "give it one"),
            (r#"class = [{ name = "a" }, { name = "a" }]"#, "class `a` is there twice"),
            (r#"class = [{ name = "a", parent = "b" }]"#, "class `a`: there is no class `b`"),
            (
                r#"class = [{ name = "a", parent = "b" }, { name = "b", parent = "a" }]"#,
                "own ancestor",
            ),
            (r#"class = [{ name = "a", parent = "a" }]"#, "class `a` is its own ancestor"),
            (r#"class = [{ name = "a", ceiling = "0 bit/s" }]"#, "class `a`: a ceiling of zero"),
            (r#"rate = "0 bit/s""#, "a ceiling of zero"),
            (r#"class = [{ name = "a", quantum = "0 B" }]"#, "class `a`: a quantum of zero"),
            (
                r#"class = [{ name = "a", priority = 8 }]"#,
                "priority 8 is not one of 0 (first) to 7",
            ),
            (
                r#"class = [{ name = "a", ceiling = "1 Mbit/s", guarantee = "2 Mbit/s" }]"#,
                "lower the guarantee",
            ),
            (
                "rate = \"1 Mbit/s\"\nclass = [{ name = \"a\", ceiling = \"2 Mbit/s\" }]",
                "above the 1 Mbit/s",
            ),
            (
                "rate = \"1 Mbit/s\"\nclass = [{ name = \"a\", guarantee = \"2 Mbit/s\" }]",
                "promised 2 Mbit/s",
            ),
            (
                r#"class = [{ name = "a", guarantee = "1 Mbit/s" },
                            { name = "b", parent = "a", guarantee = "2 Mbit/s" }]"#,
                "class `a`: its children are promised 2 Mbit/s in all, but it has 1 Mbit/s",
            ),
            ("default = \"b\"\nclass = [{ name = \"a\" }]", "default class `b` is not a leaf"),
            (r#"class = [{ name = "a", weight = 2 }]"#, "unknown field `weight`"),
            (r#"class = [{ name = "a", guarantee = "2 ms" }]"#, "unit"),
        ];
        for (text, reason) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_number_of_classes_is_bounded() {
        let class =
            |number: usize| ClassConfig { name: number.to_string(), ..ClassConfig::default() };
        let tree = |count| ClassesConfig {
            classes: (0..count).map(class).collect(),
            ..ClassesConfig::default()
        };
        assert!(Plan::new(&tree(256)).is_ok());
        assert_eq!(Plan::new(&tree(257)).unwrap_err(), ClassError::TooManyLeaves(257));
        assert_eq!(Plan::new(&tree(1025)).unwrap_err(), ClassError::TooManyClasses(1025));
    }
}
