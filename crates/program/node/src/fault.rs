//! Faults: why a node or a tool around it cannot go on, who must act, and what to do.

use skyhaul_exit::{Exit, Failure};

/// Who must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Responsible {
    /// The author of the configuration.
    Configuration,
    /// The administrator of this machine: a file, folder, disk or port.
    Environment,
    /// The operator of the other end.
    Peer,
}

/// Why a node cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}, {place}; help: {help}")]
pub struct Fault {
    /// Who must act.
    pub who: Responsible,
    /// What is wrong.
    pub what: String,
    /// Where: a file, an address.
    pub place: String,
    /// What to do.
    pub help: String,
}

impl Fault {
    /// This machine refused.
    pub fn environment(
        what: impl Into<String>,
        place: impl ToString,
        help: impl Into<String>,
    ) -> Self {
        Self {
            who: Responsible::Environment,
            what: what.into(),
            place: place.to_string(),
            help: help.into(),
        }
    }

    /// The configuration asks for something impossible.
    pub fn configuration(
        what: impl Into<String>,
        place: impl ToString,
        help: impl Into<String>,
    ) -> Self {
        Self {
            who: Responsible::Configuration,
            what: what.into(),
            place: place.to_string(),
            help: help.into(),
        }
    }

    /// The other end refused, or is not what it should be.
    pub fn peer(what: impl Into<String>, place: impl ToString, help: impl Into<String>) -> Self {
        Self {
            who: Responsible::Peer,
            what: what.into(),
            place: place.to_string(),
            help: help.into(),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let exit = match fault.who {
            Responsible::Configuration => Exit::Usage,
            Responsible::Environment => Exit::Environment,
            Responsible::Peer => Exit::Peer,
        };
        Self::new(exit, &fault.what, &fault.help).at(&fault.place)
    }
}
