//! The class tree of a command's session, read from a file.

use super::forward::file;
use skyhaul_exit::{Exit, Failure};
use skyhaul_transport::{ClassId, ClassTree};
use std::path::PathBuf;

/// How what this end sends shares the session.
#[derive(clap::Args)]
pub struct Classes {
    /// The file with the classes of the data that this end sends (`[[class]]` tables with
    /// guarantees, ceilings, priorities).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Classes {
    /// The tree; without a file, one class for everything.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong somewhere.
    pub fn tree(&self) -> Result<ClassTree, Failure> {
        self.config
            .as_deref()
            .map_or_else(|| Ok(ClassTree::default()), |path| file::tree(&file::read_classes(path)?))
    }
}

/// The class of this name in `tree`, which is for `user`.
///
/// # Errors
/// There is none.
pub fn known(tree: &ClassTree, class: &str, user: &str) -> Result<ClassId, Failure> {
    tree.find(class).ok_or_else(|| {
        let names: Vec<&str> = tree.leaves().map(|(_, name)| name).collect();
        let what = format!("there is no class `{class}` for {user}");
        let help = format!(
            "add a [[class]] table of this name to the file of --config, or use one of {}",
            names.join(", ")
        );
        Failure::new(Exit::Usage, &what, &help)
    })
}
