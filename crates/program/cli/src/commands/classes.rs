//! The class tree of a command's session, which is read from a file, and the class flags.

use super::forward::file;
use skyhaul_exit::{Exit, Failure};
use skyhaul_transport::{ClassId, ClassTree, PRIORITY_NORMAL};
use std::path::PathBuf;

/// How what this end sends shares the session.
#[derive(clap::Args)]
pub struct Classes {
    /// The file with the classes of the data that this end sends (`[[class]]` tables with
    /// guarantees, ceilings, priorities).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The class and the priority of the data that a command sends.
#[derive(clap::Args)]
pub struct ClassFlags {
    /// The class of the data: one of those in the --config of the sending end.
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    #[command(flatten)]
    classes: Classes,
    /// The priority of the data within its class; 0 is the most important.
    #[arg(long, value_name = "N", default_value_t = PRIORITY_NORMAL)]
    pub priority: u8,
}

impl ClassFlags {
    /// The tree of this end.
    ///
    /// # Errors
    /// See [`Classes::tree`].
    pub fn tree(&self) -> Result<ClassTree, Failure> {
        self.classes.tree()
    }

    /// The class in `tree` of what this end sends for `user`; without --class, the default one.
    ///
    /// # Errors
    /// See [`known`].
    pub fn find(&self, tree: &ClassTree, user: &str) -> Result<ClassId, Failure> {
        self.class.as_ref().map_or(Ok(tree.default_leaf()), |class| known(tree, class, user))
    }
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
