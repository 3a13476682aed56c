//! A session of a node on this machine, judged by its status at the beginning, at the end and in
//! between.

use super::rest::rest;
use crate::commands::node_socket::NodeArguments;
use skyhaul_exit::Failure;
use skyhaul_node::fault::Fault;
use skyhaul_node::status::{NodeStatus, ask};
use skyhaul_node::why::{LOOK, WatchedSession, judged};
use skyhaul_units::Duration;

/// Looks at a running node's session for `span`: that with the node `with`, or with the destination
/// that lacks most, or with the peer that brings most.
///
/// # Errors
/// No node answers, it has no such session, the session ended meanwhile, or the wait was
/// interrupted.
pub fn watched(
    node: &NodeArguments,
    with: Option<&str>,
    span: Duration,
) -> Result<WatchedSession, Failure> {
    let socket = node.socket()?;
    let mut looks = vec![ask(&socket)?];
    let mut left = span;
    while left > Duration::ZERO {
        let step = left.min(LOOK);
        rest(step)?;
        left = left.saturating_sub(step);
        looks.push(ask(&socket)?);
    }
    let place = socket.display().to_string();
    let looks: Vec<&NodeStatus> = looks.iter().collect();
    judged(&looks, with).map_err(|fault| Fault { place, ..fault }.into())
}
