//! Detects that the centre has data of another copy of this spool.
//!
//! A state folder may be restored from an older copy, or two nodes may use copies of it. Both
//! copies then give the same flow numbers to different contacts. Three signs show it: the centre's
//! last data came from an opening that is not in this spool's history; the centre has more of a
//! flow than this spool ever had; the centre's last block of a flow differs from the one here. Such
//! a spool takes a new identity, so that nothing of one is taken for the other's.

use skyhaul_records::payload::KEPT_BACK;
use skyhaul_store::{
    BlockMark, DestinationId, FlowExtent, FlowId, Held, Seq, Spool, SpoolDraw, SpoolError,
    SpoolOpening, mark,
};
use skyhaul_transport::Custody;

/// The sign that the centre has data of another copy of this spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divergence {
    /// Data came from an opening that is not in this spool's history.
    Opening(SpoolOpening),
    /// The centre has more of a flow than this spool ever had.
    Ahead(FlowId),
    /// The centre's block differs from the one here.
    Block(FlowId, Seq),
}

impl core::fmt::Display for Divergence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Opening(opening) => {
                write!(
                    f,
                    "the centre has data of opening {} of this spool, from another copy of it",
                    opening.count
                )
            }
            Self::Ahead(flow) => {
                write!(f, "the centre has more blocks of contact {flow} than this spool")
            }
            Self::Block(flow, seq) => {
                write!(f, "block {seq} of contact {flow} differs from the centre's")
            }
        }
    }
}

/// Looks for a sign that a destination, the centre, has data of another copy of this spool.
///
/// # Errors
/// The spool cannot be read.
pub fn find_divergence(
    spool: &mut Spool,
    to: DestinationId,
    custody: &Custody,
) -> Result<Option<Divergence>, SpoolError> {
    let opening = custody.spool.opening;
    if !spool.goes_on_from(opening) {
        return Ok(Some(Divergence::Opening(opening)));
    }
    // The number of a flow that another copy opened is given here too, to another contact.
    let coming = spool.queue().flow_numbers().coming;
    if let Some(held) = custody.resume.open.iter().find(|held| held.flow >= coming) {
        return Ok(Some(Divergence::Ahead(held.flow)));
    }
    for flow in spool.queue().flows_to(to) {
        if let Some(held) = custody.resume.held(flow)
            && let Compared::Diverged(found) = compare(spool, to, held)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Gives the spool a new identity. Flows that this destination, the centre, has whole and that are
/// the same here stay in its custody.
///
/// # Errors
/// The spool cannot be read or written; it is the one that it was.
pub fn renew(
    spool: &mut Spool,
    to: DestinationId,
    custody: &Custody,
    draw: SpoolDraw,
) -> Result<(), SpoolError> {
    for flow in spool.queue().flows_to(to) {
        if let Some(held) = custody.resume.held(flow).filter(|held| held.next == Seq::FINISHED)
            && compare(spool, to, held)? == Compared::Same
        {
            spool.custody(to, flow, Seq::FINISHED);
        }
    }
    spool.renew(draw)
}

/// The result of comparing a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Same,
    Diverged(Divergence),
    /// The blocks to compare were in custody before, and are gone.
    Nothing,
}

fn compare(spool: &mut Spool, to: DestinationId, held: Held) -> Result<Compared, SpoolError> {
    let Held { flow, next, last } = held;
    let Some(FlowExtent { custody: waiting, next: end }) = spool.queue().extent(to, flow) else {
        return Ok(Compared::Nothing);
    };
    // What is here of a flow that was forgotten may be a part of it.
    if next > end && !spool.queue().is_end_known(to, flow) {
        return Ok(Compared::Nothing);
    }
    // Where the centre has the whole flow, its last block must be the last one here: the block is
    // here while the flow is open.
    let is_whole = next == Seq::FINISHED;
    let next = if is_whole { end.max(Seq(1)) } else { next };
    if next > end {
        return Ok(Compared::Diverged(Divergence::Ahead(flow)));
    }
    // Of a block that was kept back, the centre has the mark of the empty place.
    let is_unknown = last == BlockMark::default() || last == mark(KEPT_BACK);
    if (next <= waiting && !is_whole) || is_unknown {
        return Ok(Compared::Nothing);
    }
    let place = Seq(next.0 - 1);
    // A block that was removed was in custody.
    if !spool.queue().is_here(flow, place) {
        return Ok(Compared::Nothing);
    }
    // A block that is not durable yet was never sent from here.
    let is_same = spool.queue_mut().mark_of(flow, place)? == Some(last);
    Ok(if is_same { Compared::Same } else { Compared::Diverged(Divergence::Block(flow, place)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_store::{SpoolConfig, SpoolIdentity, sim::SimDisk};
    use skyhaul_transport::Resume;
    use skyhaul_units::{ByteCount, Utc};
    use std::sync::Arc;

    const TO: DestinationId = DestinationId::FIRST;
    const NOW: Utc = Utc::from_micros(1_790_000_000_000_000);

    fn open(disk: &SimDisk, number: u8) -> Spool {
        let config = SpoolConfig {
            max_size: ByteCount::mib(8),
            segment_size: ByteCount::mib(1),
            ..SpoolConfig::default()
        };
        Spool::open(Arc::new(disk.clone()), config, NOW, SpoolDraw([number; 24])).unwrap()
    }

    fn append(spool: &mut Spool, flow: FlowId, contents: &[u8]) {
        for content in contents {
            spool.append(flow, &[*content; 30], NOW).unwrap();
        }
        spool.sync().unwrap();
    }

    /// The custody of a centre that last took data from this opening, with this much of a flow.
    fn has(spool: SpoolIdentity, flow: FlowId, next: Seq, last: u8) -> Custody {
        let open = vec![Held { flow, next, last: mark(&[last; 30]) }];
        Custody { spool, resume: Resume { finished_below: FlowId(0), open } }
    }

    #[test]
    fn a_spool_whose_blocks_the_centre_has_goes_on() {
        let disk = SimDisk::new(ByteCount::mib(256));
        let mut spool = open(&disk, 1);
        let (first, flow) = (spool.identity().unwrap(), spool.open_flow(NOW).unwrap());
        append(&mut spool, flow, &[1, 2, 3]);
        drop(spool);
        let mut spool = open(&disk, 2);
        for (next, last) in [(Seq(0), 0), (Seq(2), 2), (Seq(3), 3), (Seq::FINISHED, 3)] {
            assert_eq!(
                find_divergence(&mut spool, TO, &has(first, flow, next, last)).unwrap(),
                None,
                "{next}"
            );
        }
        spool.custody(TO, flow, Seq(3));
        let whole = find_divergence(&mut spool, TO, &has(first, flow, Seq::FINISHED, 9)).unwrap();
        assert_eq!(
            whole,
            Some(Divergence::Block(flow, Seq(2))),
            "it went on elsewhere, and to its end"
        );
        // What it knows to be in custody needs no comparison.
        assert_eq!(find_divergence(&mut spool, TO, &has(first, flow, Seq(2), 9)).unwrap(), None);
    }

    #[test]
    fn a_spool_that_was_put_back_is_apart_from_what_the_centre_has() {
        let disk = SimDisk::new(ByteCount::mib(256));
        let mut spool = open(&disk, 1);
        let (first, flow) = (spool.identity().unwrap(), spool.open_flow(NOW).unwrap());
        append(&mut spool, flow, &[1]);
        let copy = disk.copy();
        drop(spool);
        let later = open(&disk, 2).identity().unwrap();
        let mut copy = open(&copy, 3);
        let outcome = find_divergence(&mut copy, TO, &has(later, flow, Seq(1), 1)).unwrap();
        assert_eq!(outcome, Some(Divergence::Opening(later.opening)));
        append(&mut copy, flow, &[7]);
        for (next, last, apart_by) in [
            (Seq(1), 1, None),
            (Seq(2), 2, Some(Divergence::Block(flow, Seq(1)))),
            (Seq(3), 3, Some(Divergence::Ahead(flow))),
            (Seq::FINISHED, 2, Some(Divergence::Block(flow, Seq(1)))),
        ] {
            assert_eq!(
                find_divergence(&mut copy, TO, &has(first, flow, next, last)).unwrap(),
                apart_by,
                "{next}"
            );
        }
    }

    #[test]
    fn a_contact_that_only_another_copy_opened_sets_the_spool_apart() {
        let disk = SimDisk::new(ByteCount::mib(256));
        let mut spool = open(&disk, 1);
        let (identity, copy) = (spool.identity().unwrap(), disk.copy());
        let flow = spool.open_flow(NOW).unwrap();
        append(&mut spool, flow, &[1, 2]);
        let custody = has(identity, flow, Seq(2), 2);
        assert_eq!(find_divergence(&mut spool, TO, &custody).unwrap(), None);
        let mut copy = open(&copy, 2);
        let found = find_divergence(&mut copy, TO, &custody).unwrap();
        assert_eq!(found, Some(Divergence::Ahead(flow)));
        assert_eq!(copy.open_flow(NOW).unwrap(), flow, "it would have had the same number");
    }

    #[test]
    fn what_the_centre_has_whole_and_the_same_is_not_sent_again_by_a_spool_that_parts() {
        let mut spool = open(&SimDisk::new(ByteCount::mib(256)), 1);
        let identity = spool.identity().unwrap();
        let [same, other] = [0, 1].map(|_| spool.open_flow(NOW).unwrap());
        append(&mut spool, same, &[1, 2]);
        append(&mut spool, other, &[3, 4]);
        let mut custody = has(identity, same, Seq::FINISHED, 2);
        custody.resume.open.extend(has(identity, other, Seq::FINISHED, 9).resume.open);
        renew(&mut spool, TO, &custody, SpoolDraw([8; 24])).unwrap();
        assert_eq!(
            (spool.queue().live_flows(), spool.queue().extent(TO, other)),
            (vec![other], Some(FlowExtent { custody: Seq(0), next: Seq(2) }))
        );
        assert_ne!(spool.identity().unwrap().id, identity.id);
    }
}
