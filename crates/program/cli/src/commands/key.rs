//! `skyhaul key`: the key of a running node, and what it knows of those of others.

use super::node_socket::NodeArguments;
use skyhaul_exit::Failure;
use skyhaul_node::status::{
    KeyOrder, KeyReport, NextKeyStatus, RotationStage, StatusRequest, ask_keys, order,
};
use skyhaul_quic::Fingerprint;
use skyhaul_units::printable;
use std::io::{self, Write};

/// Keys of a node.
#[derive(clap::Subcommand)]
pub enum KeyCommand {
    /// Shows the key of the node, a change that is under way, and the keys of other nodes.
    #[command(after_help = "Example:
  skyhaul key show --config station.toml
  skyhaul key show --config station.toml --json")]
    Show(KeyShow),
    /// Changes the key of the node, without an end to its sessions.
    #[command(after_help = "\
        The node makes the next key and announces it to the other nodes of its configuration. When \
        all of them know it, it is used; when all of them know that, the former one is removed. No \
        configuration changes. A node that is down is waited for: --force does not.

Example:
  skyhaul key rotate --config station.toml
  skyhaul key rotate --config station.toml --force")]
    Rotate(KeyRotate),
    /// Refuses a key from now on, and ends its sessions.
    #[command(after_help = "Example:
  skyhaul key revoke --config centre.toml --reason 'lost laptop' \
      SHA256:4f0a5e4c3c8b1a1f6f0d3e7c2b9a8d7e6f5c4b3a29181706f5e4d3c2b1a09f8e")]
    Revoke(KeyRevoke),
    /// Accepts a key again that was revoked, or that is out of use.
    #[command(after_help = "Example:
  skyhaul key allow --config centre.toml \
      SHA256:4f0a5e4c3c8b1a1f6f0d3e7c2b9a8d7e6f5c4b3a29181706f5e4d3c2b1a09f8e")]
    Allow(KeyAllow),
}

/// The arguments of `skyhaul key show`.
#[derive(clap::Args)]
pub struct KeyShow {
    #[command(flatten)]
    node: NodeArguments,
    /// Prints the keys as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul key rotate`.
#[derive(clap::Args)]
pub struct KeyRotate {
    #[command(flatten)]
    node: NodeArguments,
    /// Takes the next step of a change that is under way, whoever knows of it. Nodes that do not
    /// refuse this one until the key is in their configuration.
    #[arg(long)]
    force: bool,
    /// Prints the keys as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul key revoke`.
#[derive(clap::Args)]
pub struct KeyRevoke {
    #[command(flatten)]
    node: NodeArguments,
    /// The fingerprint of the key.
    #[arg(value_name = "FINGERPRINT")]
    key: Fingerprint,
    /// Why, for the logs.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Prints the keys as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul key allow`.
#[derive(clap::Args)]
pub struct KeyAllow {
    #[command(flatten)]
    node: NodeArguments,
    /// The fingerprint of the key.
    #[arg(value_name = "FINGERPRINT")]
    key: Fingerprint,
    /// Prints the keys as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Shows the keys of a node, or changes them.
///
/// # Errors
/// No node answers, or it refuses.
pub fn run(command: &KeyCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let (node, asked, json) = match command {
        KeyCommand::Show(show) => (&show.node, None, show.json),
        KeyCommand::Rotate(rotate) => {
            let asked = if rotate.force { KeyOrder::Force } else { KeyOrder::Rotate };
            (&rotate.node, Some(asked), rotate.json)
        }
        KeyCommand::Revoke(revoke) => {
            let (key, reason) = (revoke.key.to_string(), revoke.reason.clone());
            (&revoke.node, Some(KeyOrder::Revoke { key, reason }), revoke.json)
        }
        KeyCommand::Allow(allow) => {
            let key = allow.key.to_string();
            (&allow.node, Some(KeyOrder::Allow { key }), allow.json)
        }
    };
    let socket = node.socket()?;
    let said = asked.map(|asked| order(&socket, &StatusRequest::OrderKey { order: asked }));
    let said = said.transpose()?;
    if json {
        let line = serde_json::to_string(&ask_keys(&socket)?).expect("keys have text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    match said {
        Some(said) => Ok(writeln!(out, "{}", printable(&said, 4_000))?),
        None => Ok(write_keys(&ask_keys(&socket)?, out)?),
    }
}

fn write_keys(keys: &KeyReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "this node  {}  since {}", keys.key, keys.since)?;
    keys.next.iter().try_for_each(|next| write_next(next, out))?;
    for peer in &keys.peers {
        if peer.accepted.is_empty() {
            writeln!(out, "{}  no key is accepted", peer.name)?;
        }
        for (place, key) in peer.accepted.iter().enumerate() {
            let next = if place + 1 < peer.accepted.len() { "  (the newer one)" } else { "" };
            writeln!(out, "{}  {key}{next}", peer.name)?;
        }
        for key in &peer.out_of_use {
            writeln!(out, "{}  {key}  out of use", peer.name)?;
        }
    }
    for one in &keys.revoked {
        let of = one.peer.as_ref().map_or(String::new(), |name| format!(" of {name}"));
        let reason = printable(&one.reason, 500);
        writeln!(out, "revoked{of}  {}  at {}  {reason}", one.key, one.at)?;
    }
    Ok(())
}

fn write_next(next: &NextKeyStatus, out: &mut dyn Write) -> io::Result<()> {
    let (which, key) = match next.stage {
        RotationStage::Staged => ("next key", &next.key),
        RotationStage::Switched => ("former key", &next.former),
    };
    writeln!(out, "  {which}  {key}  since {}", next.since)?;
    if let Some(stuck) = &next.stuck {
        writeln!(out, "  cannot go on: {}", printable(stuck, 1_000))?;
    }
    match next.waits_for.is_empty() {
        true => Ok(()),
        false => writeln!(out, "  waits for {}", next.waits_for.join(", ")),
    }
}
