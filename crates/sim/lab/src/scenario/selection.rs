//! Some of a scenario's cells, by the labels of their axes.

use super::axis::Axis;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Cells whose label on each named axis is one of those given; axes that are not named do not
/// matter.
///
/// In TOML `{ loss = ["0 %", "1 %"], controller = "line" }`; on a command line
/// `loss=0%,loss=1%,controller=line`. Blanks and case do not count in labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, OneOrMore>")]
pub struct CellSelection(BTreeMap<String, Vec<String>>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl From<BTreeMap<String, OneOrMore>> for CellSelection {
    fn from(axes: BTreeMap<String, OneOrMore>) -> Self {
        let list = |labels| match labels {
            OneOrMore::One(label) => vec![label],
            OneOrMore::More(labels) => labels,
        };
        Self(axes.into_iter().map(|(axis, labels)| (axis, list(labels))).collect())
    }
}

/// A filter that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not select cells; write AXIS=LABEL, several with commas: loss=1%,controller=line"
)]
pub struct CellSelectionError(String);

impl core::str::FromStr for CellSelection {
    type Err = CellSelectionError;
    fn from_str(text: &str) -> Result<Self, CellSelectionError> {
        let refuse = || CellSelectionError(text.to_owned());
        let mut axes = BTreeMap::<String, Vec<String>>::new();
        let mut newest = None;
        for part in text.split(',') {
            let (axis, label) = match part.split_once('=') {
                Some((axis, label)) => (axis.trim(), label.trim().to_owned()),
                // A label may hold a comma: what has no `=` belongs to the label before it.
                None => {
                    let axis = newest.ok_or_else(refuse)?;
                    let before = axes.get_mut(axis).and_then(Vec::pop).ok_or_else(refuse)?;
                    (axis, format!("{before},{part}"))
                }
            };
            if axis.is_empty() || label.is_empty() || part.trim().is_empty() {
                return Err(refuse());
            }
            axes.entry(axis.to_owned()).or_default().push(label);
            newest = Some(axis);
        }
        Ok(Self(axes))
    }
}

impl CellSelection {
    /// Whether it holds a cell with these labels, one for each axis; an axis that the scenario does
    /// not have holds nothing.
    pub fn holds(&self, axes: &[Axis], labels: &[String]) -> bool {
        self.0.iter().all(|(axis, wanted)| {
            let at = axes.iter().position(|known| known.name == *axis);
            let label = at.and_then(|at| labels.get(at));
            label.is_some_and(|label| wanted.iter().any(|wanted| is_same(wanted, label)))
        })
    }

    /// The first axis or label that the scenario does not have, and what it has instead.
    pub fn unknown(&self, axes: &[Axis]) -> Option<(String, String)> {
        self.0.iter().find_map(|(axis, wanted)| {
            let Some(known) = axes.iter().find(|known| known.name == *axis) else {
                let names: Vec<_> = axes.iter().map(|axis| format!("`{}`", axis.name)).collect();
                return Some((
                    format!("no axis is called `{axis}`"),
                    format!("the axes are {}", names.join(", ")),
                ));
            };
            let label = wanted
                .iter()
                .find(|wanted| !known.labels.iter().any(|label| is_same(wanted, label)))?;
            let labels: Vec<_> = known.labels.iter().map(|label| format!("`{label}`")).collect();
            Some((
                format!("axis `{axis}` has no `{label}`"),
                format!("it has {}", labels.join(", ")),
            ))
        })
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let plain =
        |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        let axis = |name: &str, labels: &[&str]| Axis {
            name: name.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        vec![axis("line", &["93 Mbit/s, 160 ms", "50 Mbit/s"]), axis("loss", &["0 %", "1 %"])]
    }

    #[test]
    fn labels_are_compared_without_blanks_and_case() {
        let selection: CellSelection = "loss=1%,line=93mbit/s, 160ms".parse().unwrap();
        let labels = |line: &str, loss: &str| vec![line.to_owned(), loss.to_owned()];
        assert!(selection.holds(&axes(), &labels("93 Mbit/s, 160 ms", "1 %")));
        assert!(!selection.holds(&axes(), &labels("93 Mbit/s, 160 ms", "0 %")));
        assert!(CellSelection::default().holds(&axes(), &labels("50 Mbit/s", "0 %")));
        assert_eq!(selection.unknown(&axes()), None);
    }

    #[test]
    fn what_the_scenario_does_not_have_is_named() {
        let of = |text: &str| text.parse::<CellSelection>().unwrap().unknown(&axes()).unwrap();
        assert_eq!(of("rate=1").1, "the axes are `line`, `loss`");
        assert_eq!(of("loss=2%").1, "it has `0 %`, `1 %`");
        assert!(
            ["", "loss", "loss=", "=1", ",", "loss=1%,,"]
                .iter()
                .all(|text| text.parse::<CellSelection>().is_err())
        );
    }
}
