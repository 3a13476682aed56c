//! Why links could not be made or run.

use crate::lab_name::lab_flag;
use skyhaul_exit::{Exit, Failure};
use std::io;
use std::path::PathBuf;

/// Why links could not be made or run.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The system refused something; most need root.
    #[error(
        "cannot {what} ({source}); run it as root, on a kernel with network namespaces and TUN \
        devices"
    )]
    System {
        /// What it refused.
        what: String,
        /// How it said so.
        source: io::Error,
    },
    /// The command `ip` failed.
    #[error(
        "`{command}` failed ({said}); run it as root, and `skyhaul lab down` if a lab was left over"
    )]
    Refused {
        /// The command.
        command: String,
        /// What it wrote.
        said: String,
    },
    /// There is no command `ip`.
    #[error("there is no command `ip`; install the package iproute2")]
    NoIproute,
    /// No emulation answers.
    #[error(
        "the lab does not answer ({0}); see `skyhaul lab status`, and start it with `skyhaul lab \
        up`"
    )]
    NoAnswer(io::Error),
    /// The lab refused an order.
    #[error("{0}")]
    Order(String),
    /// This user is not root.
    #[error(
        "emulated links for any program need root; run it with sudo; `skyhaul emulate` emulates a \
        line for UDP programs without"
    )]
    NotRoot,
    /// No lab of this name is up.
    #[error("the lab `{lab}` is not up; make it with `skyhaul lab up{} LINE.toml`", lab_flag(.lab))]
    NotUp {
        /// Its name.
        lab: String,
    },
    /// A lab of this name is up.
    #[error(
        "the lab `{lab}` is up already; end it with `skyhaul lab down{}`, or give --lab another \
        name",
        lab_flag(.lab)
    )]
    UpAlready {
        /// Its name.
        lab: String,
    },
    /// Programs run in the namespaces of a lab whose process has ended.
    #[error(
        "programs still run in what a lab `{lab}` left behind: {}; end them, or `skyhaul lab \
        down{} --kill`",
        listed(.programs),
        lab_flag(.lab)
    )]
    ProgramsRun {
        /// Its name.
        lab: String,
        /// Identifiers of their processes.
        programs: Vec<u32>,
    },
    /// The folder of a lab cannot be written.
    #[error("the lab's folder cannot be written ({source}), {}; free /run", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// How the system said so.
        source: io::Error,
    },
}

impl EmulatorError {
    pub(super) fn system(what: &str, source: io::Error) -> Self {
        Self::System { what: what.to_owned(), source }
    }
}

impl From<EmulatorError> for Failure {
    fn from(error: EmulatorError) -> Self {
        let exit =
            if matches!(error, EmulatorError::Order(_)) { Exit::Usage } else { Exit::Environment };
        Self::from_sentence(exit, &error.to_string())
    }
}

/// Identifiers of processes, with commas between.
fn listed(programs: &[u32]) -> String {
    programs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_separates_what_is_wrong_from_what_to_do() {
        let lab = || "mine".to_owned();
        let failures = [
            (
                EmulatorError::NotUp { lab: "lab".to_owned() },
                "error: the lab `lab` is not up; help: make it with `skyhaul lab up LINE.toml`",
            ),
            (
                EmulatorError::UpAlready { lab: lab() },
                "error: the lab `mine` is up already; help: end it with `skyhaul lab down --lab \
                 mine`, or give --lab another name",
            ),
            (
                EmulatorError::ProgramsRun { lab: lab(), programs: vec![7, 8] },
                "error: programs still run in what a lab `mine` left behind: 7, 8; help: end \
                 them, or `skyhaul lab down --lab mine --kill`",
            ),
        ];
        for (error, sentence) in failures {
            let failure = Failure::from(error);
            assert_eq!(failure.to_string(), sentence);
            assert_eq!(failure.exit(), Exit::Environment);
        }
        let wrong = Failure::from(EmulatorError::Order("no link `x`; see the status".to_owned()));
        assert_eq!(wrong.exit(), Exit::Usage);
    }
}
