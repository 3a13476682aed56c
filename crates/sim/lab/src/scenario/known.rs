//! What the names in a scenario file refer to: figures, axes, cells.

use super::axis::Axis;
use super::error::{ScenarioError, Source};
use super::kind::Kind;
use super::metric::{Metric, OF_PUBLISHED, PUBLISHED};
use super::selection::CellSelection;
use toml::Spanned;

/// What names in the file may refer to.
pub(super) struct Known<'a> {
    pub source: &'a Source<'a>,
    pub kind: &'static dyn Kind,
    pub axes: &'a [Axis],
    /// Figures of others stand beside ours.
    pub is_compared: bool,
}

impl Known<'_> {
    pub fn metric(&self, key: &Spanned<String>) -> Result<&'static Metric, ScenarioError> {
        let compared: &[&'static Metric] =
            if self.is_compared { &[&PUBLISHED, &OF_PUBLISHED] } else { &[] };
        let mut metrics = self.kind.metrics().iter().chain(compared);
        metrics.clone().find(|metric| metric.key == key.get_ref()).copied().ok_or_else(|| {
            let what =
                format!("`{}` experiments have no figure `{}`", self.kind.name(), key.get_ref());
            let keys: Vec<_> = metrics.by_ref().map(|metric| format!("`{}`", metric.key)).collect();
            self.source.refuse(
                key.span().start,
                what,
                format!("the figures are {}", keys.join(", ")),
            )
        })
    }

    pub fn selection(&self, cells: &Spanned<CellSelection>) -> Result<(), ScenarioError> {
        match cells.get_ref().unknown(self.axes) {
            None => Ok(()),
            Some((what, help)) => Err(self.source.refuse(cells.span().start, what, help)),
        }
    }

    /// The axis of a name.
    pub fn axis(&self, name: &Spanned<String>) -> Result<usize, ScenarioError> {
        self.axes.iter().position(|axis| axis.name == *name.get_ref()).ok_or_else(|| {
            let names: Vec<_> = self.axes.iter().map(|axis| format!("`{}`", axis.name)).collect();
            let what = format!("no axis is called `{}`", name.get_ref());
            self.refuse(name.span().start, &what, &format!("the axes are {}", names.join(", ")))
        })
    }

    pub fn refuse(&self, at: usize, what: &str, help: &str) -> ScenarioError {
        self.source.refuse(at, what, help)
    }
}
