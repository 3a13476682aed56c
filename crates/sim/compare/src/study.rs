//! The interface of experiments of all kinds.

use crate::bench::Site;
use crate::quiet::Conditions;
use serde_json::Value;
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Duration;

/// How many bars were judged, and how many of them are missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bars {
    pub judged: usize,
    pub missed: usize,
}

/// One experiment of any kind: it is measured once, and then gives its results.
pub trait Study {
    fn name(&self) -> &str;

    /// Each thing that is not there, and why.
    fn skipped(&self) -> Vec<String> {
        Vec::new()
    }

    /// About how long it takes to measure.
    fn estimate(&self) -> Duration;

    /// Measures on separate lines, until done or interrupted. Figures measured before an
    /// interruption are kept.
    fn measure(&mut self, site: &Site<'_>) -> Result<(), Failure>;

    /// For people at a terminal.
    fn text(&self) -> String;

    /// One JSON object.
    fn json(&self) -> Value;

    /// A section of a documentation, with its heading; its pictures are in `folder`.
    fn markdown(&self, folder: &str) -> String;

    /// Every drawing by the name of its picture, without an ending.
    fn drawings(&self) -> Vec<(String, String)>;

    /// A section of a page, with its heading and drawings.
    fn html(&self) -> String;

    fn bars(&self) -> Bars;

    /// Under what conditions it was measured.
    fn conditions(&self) -> &Conditions;
}

/// A file that is not what its kind of experiment is.
pub fn refused(text: &str, place: &str, error: &toml::de::Error) -> Failure {
    let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
    let what = error.message().replace('\n', " ");
    Failure::new(Exit::Usage, &what, "docs/how-to/compare.md shows every key")
        .at(&format!("{place}:{line}"))
}
