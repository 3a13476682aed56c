//! Why a run has no figure.

use skyhaul_emulator::EmulatorError;
use skyhaul_exit::{Exit, Failure};

/// Why a run has no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gone {
    /// The user ended it.
    Interrupted,
    /// The tool did not.
    Failed(String),
}

impl Gone {
    /// As the failure of the command.
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Interrupted => {
                let help = "nothing is left behind; run it again";
                Failure::new(Exit::Interrupted, "interrupted before the end", help)
            }
            Self::Failed(why) => Failure::new(Exit::Environment, &why, "run it again"),
        }
    }
}

impl From<EmulatorError> for Gone {
    fn from(error: EmulatorError) -> Self {
        Self::Failed(error.to_string())
    }
}
