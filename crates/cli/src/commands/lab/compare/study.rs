//! The kinds of experiment: what a file of each measures, and what all of them give.

use super::experiment::{self, BUILTIN, Experiment};
use super::results::Results;
use super::{page, table};
use crate::failure::Failure;
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// An experiment of one of the kinds. A file says which by a table that only this kind has.
#[derive(Debug, Clone)]
pub enum Kind {
    /// `[[cell]]`: the goodput of tools, one after the other.
    Goodput(Experiment),
}

/// How many bars were judged, and how many of them are missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bars {
    pub judged: usize,
    pub missed: usize,
}

/// One experiment of any kind: it is measured once, and then says what came out.
pub trait Study {
    /// Measures on a line of its own in `lab`, until done or until the user wants to end. What was measured before is kept.
    fn measure(&mut self, lab: &str, stop: &AtomicBool) -> Result<(), Failure>;

    /// For people at a terminal.
    fn text(&self) -> String;

    /// One JSON object.
    fn json(&self) -> Value;

    /// A section of a documentation, with its heading.
    fn markdown(&self) -> String;

    /// A section of a page, with its heading and drawings.
    fn html(&self) -> String;

    fn bars(&self) -> Bars;
}

impl Kind {
    /// One that the program holds, or the user's file.
    pub fn find(name: &str) -> Result<Self, Failure> {
        let text = experiment::text_of(name)?;
        Ok(Self::Goodput(Experiment::parse(&text, name)?))
    }

    /// Every experiment that the program holds: its name and what it shows.
    pub fn list() -> Result<Vec<(&'static str, String)>, Failure> {
        BUILTIN.iter().map(|(name, _)| Ok((*name, Self::find(name)?.title().to_owned()))).collect()
    }

    fn title(&self) -> &str {
        match self {
            Self::Goodput(experiment) => &experiment.title,
        }
    }

    /// What is to be measured, and nothing measured yet.
    pub fn study(&self) -> Box<dyn Study + '_> {
        match self {
            Self::Goodput(experiment) => Box::new(Results::new(experiment)),
        }
    }
}

impl Study for Results<'_> {
    fn measure(&mut self, lab: &str, stop: &AtomicBool) -> Result<(), Failure> {
        super::measure(self, lab, stop)
    }

    fn text(&self) -> String {
        table::text(self)
    }

    fn json(&self) -> Value {
        self.json()
    }

    fn markdown(&self) -> String {
        table::section(self)
    }

    fn html(&self) -> String {
        page::section(self)
    }

    fn bars(&self) -> Bars {
        let verdicts = self.verdicts();
        let missed = verdicts.iter().filter(|verdict| !verdict.is_reached()).count();
        Bars { judged: verdicts.len(), missed }
    }
}
