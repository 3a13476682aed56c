//! The nodes that a contact came through, as each block of a contact that was passed on names them.
//!
//! | field | size | what |
//! |---|---|---|
//! | count | u8 | nodes, at most 16; the first is the contact's station |
//! | number | u32 | of the contact at that node |
//! | name | u8 + text | the node, as the next one knows it |

use skyhaul_units::FlowId;

/// A node that sent a contact, and the contact's number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The node's name, as the next one knows it, at most 255 bytes.
    pub node: String,
    /// The contact's number in the node's spool.
    pub flow: FlowId,
}

/// Why hops cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HopsError {
    /// The block ends inside them.
    #[error("the block ends inside the list of the nodes that it came through")]
    Truncated,
    /// It came through more nodes than a contact may.
    #[error(
        "it came through {0} nodes, and a contact passes through {HOPS_MAX} at most; send it a \
        shorter way"
    )]
    TooMany(usize),
}

/// The most nodes that a contact comes through.
pub const HOPS_MAX: usize = 16;

/// The ring that a contact goes in, where the node `own` got it from `sender` and it came through
/// `own` before: `relay-1 → relay-2 → relay-1`.
pub fn ring(own: &str, sender: &str, hops: &[Hop]) -> Option<String> {
    let nodes: Vec<&str> = hops.iter().map(|hop| hop.node.as_str()).chain([sender]).collect();
    let before = nodes.iter().position(|node| *node == own)?;
    let ring: Vec<&str> = nodes[before..].iter().copied().chain([own]).collect();
    Some(ring.join(" → "))
}

/// Appends the hops of a contact to `out`, at most [`HOPS_MAX`].
pub(crate) fn encode(hops: &[Hop], out: &mut Vec<u8>) {
    let hops = &hops[..hops.len().min(HOPS_MAX)];
    out.push(hops.len() as u8);
    for Hop { node, flow } in hops {
        let node = &node.as_bytes()[..node.len().min(255)];
        out.extend_from_slice(&flow.0.to_be_bytes());
        out.push(node.len() as u8);
        out.extend_from_slice(node);
    }
}

/// Takes the hops off `bytes`.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Vec<Hop>, &[u8]), HopsError> {
    let (count, mut rest) = bytes.split_first().ok_or(HopsError::Truncated)?;
    let count = usize::from(*count);
    if count > HOPS_MAX {
        return Err(HopsError::TooMany(count));
    }
    let mut hops = Vec::with_capacity(count);
    for _ in 0..count {
        let (flow, after) = rest.split_first_chunk::<4>().ok_or(HopsError::Truncated)?;
        let (len, after) = after.split_first().ok_or(HopsError::Truncated)?;
        let (node, after) =
            after.split_at_checked(usize::from(*len)).ok_or(HopsError::Truncated)?;
        hops.push(Hop {
            node: skyhaul_units::printable(&String::from_utf8_lossy(node), node.len()),
            flow: FlowId(u32::from_be_bytes(*flow)),
        });
        rest = after;
    }
    Ok((hops, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_that_came_through_a_node_before_is_in_a_ring() {
        let hops = |nodes: &[&str]| -> Vec<Hop> {
            nodes.iter().map(|node| Hop { node: (*node).to_owned(), flow: FlowId(1) }).collect()
        };
        assert_eq!(ring("relay-1", "station", &[]), None);
        assert_eq!(ring("centre", "relay-2", &hops(&["station", "relay-1"])), None);
        assert_eq!(
            ring("relay-1", "relay-2", &hops(&["station", "relay-1"])).as_deref(),
            Some("relay-1 → relay-2 → relay-1")
        );
        assert_eq!(
            ring("station", "relay-2", &hops(&["station", "relay-1"])).as_deref(),
            Some("station → relay-1 → relay-2 → station")
        );
    }
}
