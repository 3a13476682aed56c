//! The forwards of the command line and of a file, converted for the forwarder.

use super::file::{self, ForwardTable};
use crate::commands::classes::known;
use skyhaul_exit::{Exit, Failure};
use skyhaul_forward::{Carriage, Entrance, Forward, What};
use skyhaul_forward_io::{ForwardNode, Forwarding};
use skyhaul_transport::{ClassTree, ClassesConfig};
use skyhaul_units::Duration;
use std::path::PathBuf;

/// The forwards.
#[derive(clap::Args)]
#[group(id = "forwards", required = true, multiple = true,
    args = ["local", "remote", "socks", "transparent", "config"])]
pub struct ForwardPlan {
    /// Forwards connections to the local PORT, through the far node, to HOST:PORT; can be repeated.
    /// Put a local address before the port to listen at other addresses than loopback, and `udp:`
    /// before it to forward datagrams. `unix:/path` is a socket file, at either side.
    #[arg(short = 'L', long = "local", value_name = "PORT=NODE:HOST:PORT")]
    local: Vec<Forward>,
    /// The opposite direction: forwards connections to PORT at the far node, through this node, to
    /// HOST:PORT. The far node needs --allow-listen.
    #[arg(short = 'R', long = "remote", value_name = "PORT=NODE:HOST:PORT")]
    remote: Vec<Forward>,
    /// A SOCKS version 5 proxy: applications choose the destination, which the far node connects
    /// to. For connections and datagrams.
    #[arg(short = 'D', long = "socks", value_name = "PORT[=NODE]")]
    socks: Vec<Entrance>,
    /// Forwards connections to any host that this router's rules divert to PORT (TPROXY).
    #[arg(long, value_name = "PORT[=NODE]")]
    transparent: Vec<Entrance>,
    /// A file with further forwards, each with its own class, priority, deadline and idle time, and
    /// with the classes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The class of forwards without a class in the file: one of the classes of the file.
    #[arg(long, value_name = "NAME", requires = "config")]
    class: Option<String>,
    /// The priority of all forwarded data; 0 is the most important.
    #[arg(long, value_name = "N", default_value_t = Carriage::default().priority)]
    priority: u8,
    /// The time from reading bytes here to their delivery. Data with the earliest deadline is sent
    /// first. Later datagrams are dropped; without this flag, after 2 s.
    #[arg(long, value_name = "DURATION")]
    deadline: Option<Duration>,
    /// Resets a connection without data for this long, and forgets a UDP client; without this flag,
    /// a UDP client after 60 s.
    #[arg(long, value_name = "DURATION")]
    idle: Option<Duration>,
}

/// The same, ready to be forwarded.
#[derive(Debug)]
pub struct PreparedForwards {
    pub forwarding: Forwarding,
    pub classes: ClassTree,
}

impl ForwardPlan {
    /// What is to be forwarded to and from `nodes`.
    ///
    /// # Errors
    /// The file cannot be read or used; a node or class is not known.
    pub fn plan(&self, nodes: &[ForwardNode]) -> Result<PreparedForwards, Failure> {
        let (classes, tables) = self.tables()?;
        let classes = file::tree(&classes)?;
        let mut plan = PreparedForwards { forwarding: Forwarding::default(), classes };
        for table in tables {
            self.add(&mut plan, table, nodes)?;
        }
        if plan.forwarding.listens.is_empty() && plan.forwarding.remotes.is_empty() {
            let help = "write a [[forward]] table with `local = \"8080=centre:10.0.0.5:80\"` into \
                       the file, or give -L";
            return Err(Failure::new(Exit::Usage, "no forward is given", help));
        }
        Ok(plan)
    }

    /// The nodes that forwards name, each once.
    ///
    /// # Errors
    /// The file cannot be read or used.
    pub fn nodes(&self) -> Result<Vec<String>, Failure> {
        let (_, tables) = self.tables()?;
        let mut names: Vec<String> = Vec::new();
        for name in tables.iter().filter_map(|table| table.what.node()) {
            if names.iter().all(|known| known != name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The classes of the file, and the forwards of the flags and the file.
    fn tables(&self) -> Result<(ClassesConfig, Vec<ForwardTable>), Failure> {
        let (classes, tables) = match &self.config {
            Some(path) => file::read_near(path)?,
            None => (ClassesConfig::default(), Vec::new()),
        };
        let locals = self.local.iter().cloned().map(What::Local);
        let remotes = self.remote.iter().cloned().map(What::Remote);
        let socks = self.socks.iter().cloned().map(What::Socks);
        let transparent = self.transparent.iter().cloned().map(What::Transparent);
        let flags = locals.chain(remotes).chain(socks).chain(transparent).map(ForwardTable::of);
        Ok((classes, flags.chain(tables).collect()))
    }

    fn add(
        &self,
        plan: &mut PreparedForwards,
        table: ForwardTable,
        nodes: &[ForwardNode],
    ) -> Result<(), Failure> {
        let class = table.class.or_else(|| self.class.clone());
        let carriage = Carriage {
            class: class.map_or_else(
                || Ok(String::new()),
                |class| known(&plan.classes, &class, "a forward").map(|_| class),
            )?,
            priority: table.priority.unwrap_or(self.priority),
            deadline: table.deadline.or(self.deadline),
        };
        let idle = table.idle.or(self.idle);
        let node = known_node(nodes, table.what.node())?;
        plan.forwarding.add(table.what, node, carriage, idle);
        Ok(())
    }
}

/// The place of a node; of none that is named, that of the only one.
fn known_node(nodes: &[ForwardNode], name: Option<&str>) -> Result<usize, Failure> {
    let Some(name) = name else {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        return match *nodes {
            [_] => Ok(0),
            _ => {
                let help =
                    format!("write `=NODE` after the port, with one of {}", names.join(", "));
                Err(Failure::new(
                    Exit::Usage,
                    "there are several far nodes, and a forward does not name one",
                    &help,
                ))
            }
        };
    };
    nodes.iter().position(|node| node.name == name).ok_or_else(|| {
        let what = format!("the far node `{name}` is not known");
        let help = format!("give its address, like --node {name}=198.51.100.1:4730");
        Failure::new(Exit::Usage, &what, &help)
    })
}
