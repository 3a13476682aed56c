//! The flags that name a running node of this machine by its status socket.

use skyhaul_exit::{Exit, Failure};
use std::path::PathBuf;

/// Which node is asked.
#[derive(clap::Args)]
pub struct NodeArguments {
    /// The node's configuration, which names its socket.
    #[arg(long, value_name = "FILE", required_unless_present = "socket")]
    config: Option<PathBuf>,
    /// The path of the node's socket.
    #[arg(long, alias = "node", value_name = "PATH", conflicts_with = "config")]
    socket: Option<PathBuf>,
}

impl NodeArguments {
    /// The node with this socket, or with that of this configuration.
    pub const fn of(config: Option<PathBuf>, socket: Option<PathBuf>) -> Self {
        Self { config, socket }
    }

    /// Where it is asked.
    ///
    /// # Errors
    /// The configuration is wrong.
    pub fn socket(&self) -> Result<PathBuf, Failure> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        let Some(file) = &self.config else {
            return Err(Failure::new(Exit::Usage, "no node is named", "give --config or --socket"));
        };
        Ok(skyhaul_config::load(file)?.node.status_socket())
    }
}
