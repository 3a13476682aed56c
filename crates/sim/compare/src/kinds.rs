//! The kinds of experiment, and which one a file describes.

use crate::ability::LoopbackAbility;
use crate::experiment::{self, BUILTIN, PublishedExperiment};
use crate::goodput;
use crate::requirement::{Requirements, Requiring};
use crate::results::Results;
use crate::sharing::{Sharers, Sharing};
use crate::spacing::{Spacing, SpacingSweep};
use crate::study::Study;
use skyhaul_exit::Failure;
use skyhaul_units::Rate;

/// An experiment of one of the kinds. Each kind has a table in its file that no other kind has.
#[derive(Debug, Clone)]
pub enum StudyKind {
    /// `[[cell]]`: the goodput of tools, one after the other.
    Goodput(PublishedExperiment),
    /// `[spacing]`: the reception of datagrams at many spacings.
    Spacing(Spacing),
    /// `[[requirement]]`: up to which loss tools keep blocks in time.
    Requirements(Requirements),
    /// `[sharing]`: two missions on one line.
    Sharing(Sharing),
}

impl StudyKind {
    /// One that the program holds, or the user's file.
    pub fn find(name: &str) -> Result<Self, Failure> {
        let text = experiment::text_of(name)?;
        // A file that is not TOML fails below, in the first parser, with its line.
        let has = |table: &str| {
            toml::from_str::<toml::Table>(&text).is_ok_and(|read| read.contains_key(table))
        };
        if has("spacing") {
            return Ok(Self::Spacing(Spacing::parse(&text, name)?));
        }
        if has("requirement") {
            return Ok(Self::Requirements(Requirements::parse(&text, name)?));
        }
        if has("sharing") {
            return Ok(Self::Sharing(Sharing::parse(&text, name)?));
        }
        Ok(Self::Goodput(PublishedExperiment::parse(&text, name)?))
    }

    /// Every experiment that the program holds: its name and what it shows.
    pub fn list() -> Result<Vec<(&'static str, String)>, Failure> {
        BUILTIN.iter().map(|(name, _)| Ok((*name, Self::find(name)?.title().to_owned()))).collect()
    }

    fn title(&self) -> &str {
        match self {
            Self::Goodput(experiment) => &experiment.title,
            Self::Spacing(experiment) => &experiment.title,
            Self::Requirements(file) => &file.title,
            Self::Sharing(experiment) => &experiment.title,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Goodput(experiment) => &experiment.name,
            Self::Spacing(experiment) => &experiment.name,
            Self::Requirements(file) => &file.name,
            Self::Sharing(experiment) => &experiment.name,
        }
    }

    /// What its links carry together.
    pub fn needs(&self) -> Rate {
        match self {
            Self::Goodput(experiment) => experiment.needs(),
            Self::Spacing(experiment) => experiment.needs(),
            Self::Requirements(file) => file.needs(),
            Self::Sharing(experiment) => experiment.rate(),
        }
    }

    /// Slows down the line if it adapts to the machine. Returns a note if the machine cannot
    /// emulate it.
    pub fn fit(&mut self, ability: &LoopbackAbility) -> Option<String> {
        match self {
            Self::Goodput(experiment) => goodput::fit(experiment, ability),
            Self::Spacing(experiment) => ability.shortfall(experiment.needs()),
            Self::Requirements(file) => file.shortfall(ability),
            Self::Sharing(experiment) => ability.shortfall(experiment.rate()),
        }
    }

    /// The experiment, before its measurement.
    pub fn study(
        &self,
        ability: Option<LoopbackAbility>,
        notes: Vec<String>,
    ) -> Box<dyn Study + '_> {
        match self {
            Self::Goodput(experiment) => Box::new(Results::new(experiment, ability, notes)),
            Self::Spacing(experiment) => Box::new(SpacingSweep::new(experiment, notes)),
            Self::Requirements(file) => Box::new(Requiring::new(file, notes)),
            Self::Sharing(experiment) => Box::new(Sharers::new(experiment, notes)),
        }
    }
}
