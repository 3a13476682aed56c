//! Experiments with a `[sharing]`: two missions on one line, the second for part of the time, with
//! guarantees or priorities. Compares Skyhaul with the kernel's hierarchical token bucket (HTB) on
//! the same tree.

mod course;
mod draw;
mod judge;
mod kernel;
mod ours;

use crate::bench::{Bench, Site};
use crate::gone::Gone;
use crate::notes::note;
use crate::quiet::Conditions;
use crate::sheet::Sheet;
use crate::study::{Bars, Study, refused};
use crate::tool::Tool;
use crate::tool_run::version;
use course::RateSeries;
use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_emulator::LabDescription;
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::{Duration, Rate};
use std::collections::BTreeMap;

/// A file of this kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sharing {
    pub name: String,
    pub title: String,
    /// Where the line and the question come from.
    pub source: String,
    pub line: LabDescription,
    pub sharing: SharingPlan,
}

/// Who shares the line, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharingPlan {
    /// How long each of three phases is: the first mission alone, both, the first alone again.
    pub phase: Duration,
    /// Congestion control of the kernel's TCP.
    #[serde(default = "bbr")]
    pub control: String,
    #[serde(rename = "tree")]
    pub trees: Vec<Tree>,
}

/// The classes of the two missions below one root, which has the line's rate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    pub label: String,
    pub first: MissionClass,
    pub second: MissionClass,
}

/// One mission's class. It may borrow up to the line's rate.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissionClass {
    pub guarantee: Rate,
    /// Whose turn comes first among those that borrow: 0 (first) to 7.
    #[serde(default)]
    pub priority: u8,
}

/// What shares the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharer {
    /// One session of ours with two classes.
    Ours,
    /// Two TCP connections under the kernel's htb.
    Kernel,
}

impl Sharer {
    pub const ALL: [Self; 2] = [Self::Ours, Self::Kernel];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Kernel => "htb",
        }
    }
}

fn bbr() -> String {
    "bbr".to_owned()
}

impl Tree {
    /// The share of the line of the second mission while both have data: its guarantee, and the
    /// rest of the line if its priority is higher.
    pub fn second_part(&self, line: Rate) -> f64 {
        let of = |rate: Rate| rate.as_bps() as f64 / line.as_bps().max(1) as f64;
        match self.first.priority.cmp(&self.second.priority) {
            std::cmp::Ordering::Greater => 1.0 - of(self.first.guarantee),
            std::cmp::Ordering::Less => of(self.second.guarantee),
            // What is over is shared as the guarantees are: that is what the quanta are for.
            std::cmp::Ordering::Equal => {
                let (first, second) = (of(self.first.guarantee), of(self.second.guarantee));
                second / (first + second)
            }
        }
    }

    /// What the first and the second send in a turn: as their guarantees are to each other.
    pub fn quanta(&self) -> [u64; 2] {
        let guarantees = [self.first, self.second].map(|class| class.guarantee.as_bps());
        let least = guarantees[0].min(guarantees[1]).max(1);
        let quantum = |rate: u64| u128::from(rate) * u128::from(QUANTUM) / u128::from(least);
        guarantees.map(|rate| u64::try_from(quantum(rate)).unwrap_or(u64::MAX).min(QUANTUM_MAX))
    }
}

impl Sharing {
    /// Parses `text`, which comes from `place`.
    pub fn parse(text: &str, place: &str) -> Result<Self, Failure> {
        let read: Self = toml::from_str(text).map_err(|error| refused(text, place, &error))?;
        read.contradiction().map_or(Ok(read), |what| {
            Err(Failure::new(Exit::Usage, &what, "docs/how-to/compare.md shows every key")
                .at(&format!("{place}:1")))
        })
    }

    fn contradiction(&self) -> Option<String> {
        let plan = &self.sharing;
        let [link] = &self.line.links[..] else { return Some("it needs one link".to_owned()) };
        let Some(line) = link.up.rate else { return Some("its link needs a rate".to_owned()) };
        if plan.phase < SHORTEST || plan.phase > LONGEST {
            return Some(format!("a phase is {SHORTEST} to {LONGEST} long"));
        }
        if plan.trees.is_empty() {
            return Some("it needs a tree".to_owned());
        }
        let name = plan.control.as_str();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Some(format!("`{name}` is no congestion control"));
        }
        plan.trees.iter().find_map(|tree| {
            let (first, second) = (tree.first.guarantee, tree.second.guarantee);
            let both = first.as_bps().saturating_add(second.as_bps());
            let label = &tree.label;
            if first == Rate::ZERO || second == Rate::ZERO {
                return Some(format!("tree `{label}`: htb knows no class without a guarantee"));
            }
            if both > line.as_bps() {
                return Some(format!("tree `{label}`: guarantees are more than the line's {line}"));
            }
            (tree.first.priority.max(tree.second.priority) > 7)
                .then(|| format!("tree `{label}`: priorities are 0 to 7"))
        })
    }

    /// The rate of its link.
    pub fn rate(&self) -> Rate {
        self.line.links.first().and_then(|link| link.up.rate).unwrap_or(Rate::ZERO)
    }

    /// All three phases.
    fn span(&self) -> Duration {
        self.sharing.phase.scaled(3, 1)
    }

    /// About how long it takes.
    pub fn estimate(&self) -> Duration {
        let runs = self.sharing.trees.len() as u64 * Sharer::ALL.len() as u64;
        (self.span() + AROUND).scaled(runs, 1)
    }
}

/// The measurement of one such experiment.
pub struct Sharers<'a> {
    pub experiment: &'a Sharing,
    /// By the tree's place and who shared it.
    pub courses: BTreeMap<(usize, Sharer), RateSeries>,
    /// What is missing, and why.
    skipped: Vec<String>,
    failures: Vec<String>,
    versions: Vec<String>,
    /// Notes beside it.
    notes: Vec<String>,
    conditions: Conditions,
}

impl<'a> Sharers<'a> {
    pub fn new(experiment: &'a Sharing, notes: Vec<String>) -> Self {
        let mut skipped = Vec::new();
        let mut versions = vec![format!("skyhaul {}", env!("CARGO_PKG_VERSION"))];
        let tcp = version(&Tool::Tcp(experiment.sharing.control.clone()));
        match tcp.and_then(|tcp| Ok([tcp, kernel::version()?])) {
            Ok(kernel) => versions.extend(kernel),
            Err(why) => skipped.push(format!("htb: {why}")),
        }
        let (courses, failures, conditions) = (BTreeMap::new(), Vec::new(), Conditions::default());
        Self { experiment, courses, skipped, failures, versions, notes, conditions }
    }

    fn run(&self, site: &Site<'_>, at: usize, sharer: Sharer) -> Result<RateSeries, Gone> {
        let experiment = self.experiment;
        let bench = Bench::over(site, experiment.line.clone(), experiment.span())?;
        let tree = &experiment.sharing.trees[at];
        match sharer {
            Sharer::Ours => ours::run(&bench, experiment, tree),
            Sharer::Kernel => kernel::run(&bench, experiment, tree),
        }
    }

    /// Takes the result of a run. A feature that the kernel lacks is skipped; other failures are
    /// kept.
    fn take(
        &mut self,
        at: usize,
        sharer: Sharer,
        outcome: Result<RateSeries, Gone>,
    ) -> Result<(), Failure> {
        match outcome {
            Ok(course) => drop(self.courses.insert((at, sharer), course)),
            Err(Gone::Interrupted) => return Err(Gone::Interrupted.into_failure()),
            Err(Gone::Failed(why)) if why.starts_with(kernel::NO_HTB) => {
                self.skipped.push(format!("{}: {why}", sharer.name()));
            }
            Err(Gone::Failed(why)) => {
                let label = &self.experiment.sharing.trees[at].label;
                self.failures.push(format!("{} at {label}: {why}", sharer.name()));
            }
        }
        Ok(())
    }

    fn sheet(&self) -> Sheet {
        let experiment = self.experiment;
        let mut remarks: Vec<String> =
            self.failures.iter().map(|why| format!("failed: {why}")).collect();
        remarks.extend(self.skipped.iter().map(|what| format!("skipped: {what}")));
        remarks.extend(self.notes.iter().map(|note| format!("note: {note}")));
        remarks.push(format!("machine: {}", self.conditions.words()));
        remarks.push(format!("versions: {}", self.versions.join("; ")));
        Sheet {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            source: experiment.source.clone(),
            tables: judge::tables(self),
            verdicts: judge::verdicts(self),
            remarks,
            drawings: draw::drawings(self),
        }
    }
}

impl Study for Sharers<'_> {
    fn name(&self) -> &str {
        &self.experiment.name
    }

    fn skipped(&self) -> Vec<String> {
        self.skipped.clone()
    }

    fn estimate(&self) -> Duration {
        self.experiment.estimate()
    }

    fn measure(&mut self, site: &Site<'_>) -> Result<(), Failure> {
        let experiment = self.experiment;
        for (at, tree) in experiment.sharing.trees.iter().enumerate() {
            for sharer in Sharer::ALL {
                if sharer == Sharer::Kernel && !self.skipped.is_empty() {
                    continue;
                }
                let (name, span) = (&experiment.name, experiment.span());
                let what = format!("{name}: {}, {}", tree.label, sharer.name());
                note(&format!("{what}, {span} …"));
                let mut conditions = core::mem::take(&mut self.conditions);
                let outcome = site
                    .watch
                    .run(site.stop, &what, &mut conditions, || self.run(site, at, sharer));
                self.conditions = conditions;
                self.take(at, sharer, outcome)?;
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        self.sheet().text()
    }

    fn json(&self) -> Value {
        let experiment = self.experiment;
        let trees = experiment.sharing.trees.iter().enumerate().map(|(at, tree)| {
            let sharers = Sharer::ALL.into_iter().filter_map(|sharer| {
                let course = self.courses.get(&(at, sharer))?;
                Some(json!({
                    "sharer": sharer.name(),
                        "found": judge::SharerResult::of(experiment, tree, course),
                    "tenths_bps": { "first": course.first, "second": course.second },
                }))
            });
            let second_part = tree.second_part(experiment.rate());
            json!({ "tree": tree.label, "second_part": second_part,
                "sharers": sharers.collect::<Vec<_>>() })
        });
        let bars = judge::verdicts(self).into_iter();
        let bars = bars.map(|bar| json!({ "bar": bar.words, "reached": bar.is_reached }));
        json!({
            "name": experiment.name, "title": experiment.title, "source": experiment.source,
            "machine": self.conditions.words(),
            "conditions": self.conditions.json(),
            "versions": self.versions, "skipped": self.skipped, "failures": self.failures,
                "notes": self.notes,
            "line_bps": experiment.rate().as_bps(),
                "phase_s": experiment.sharing.phase.as_secs_f64(),
            "trees": trees.collect::<Vec<_>>(), "bars": bars.collect::<Vec<_>>(),
        })
    }

    fn markdown(&self, folder: &str) -> String {
        self.sheet().markdown(folder)
    }

    fn drawings(&self) -> Vec<(String, String)> {
        draw::drawings(self).into_iter().map(|drawing| (drawing.name, drawing.svg)).collect()
    }

    fn html(&self) -> String {
        self.sheet().html()
    }

    fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    fn bars(&self) -> Bars {
        let verdicts = judge::verdicts(self);
        // A figure that could not be measured counts as a missed bar.
        let missed =
            verdicts.iter().filter(|verdict| !verdict.is_reached).count() + self.failures.len();
        Bars { judged: verdicts.len() + self.failures.len(), missed }
    }
}

/// The lesser of two quanta: two datagrams, as a class of ours has it by itself.
const QUANTUM: u64 = 3_000;

/// The most that htb takes.
const QUANTUM_MAX: u64 = 200_000;

/// Below this not even a line without delay comes to rest within a phase.
const SHORTEST: Duration = Duration::from_secs(1);

/// Three of them are a minute and a half: the tools keep every tenth of a second.
const LONGEST: Duration = Duration::from_secs(30);

/// Of a run beside its phases: the line, both programs, and their end.
const AROUND: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::text_of;

    #[test]
    fn the_built_in_experiments_can_be_read_and_are_short() {
        let experiment = Sharing::parse(&text_of("qos").unwrap(), "qos").unwrap();
        assert!(experiment.estimate() <= Duration::from_secs(240), "{}", experiment.estimate());
        let parts = experiment.sharing.trees.iter().map(|tree| tree.second_part(experiment.rate()));
        assert!(parts.into_iter().all(|part| (0.5..1.0).contains(&part)));
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_fault() {
        let text = text_of("qos").unwrap();
        for (from, to, part) in [
            ("phase = \"10 s\"", "phase = \"500 ms\"", "a phase is 1 s to 30 s"),
            (
                "guarantee = \"13500 kbit/s\"",
                "guarantee = \"25 Mbit/s\"",
                "more than the line's 50 Mbit/s",
            ),
            ("guarantee = \"13500 kbit/s\"", "guarantee = \"0 bit/s\"", "without a guarantee"),
            ("phase = ", "stage = ", "unknown field `stage`"),
        ] {
            let wrong = text.replacen(from, to, 1);
            assert_ne!(wrong, text, "{from}");
            let error = Sharing::parse(&wrong, "mine.toml").unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("mine.toml:"), "{error}");
        }
    }
}
