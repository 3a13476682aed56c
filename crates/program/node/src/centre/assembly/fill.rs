//! Merges frames of refill contacts into the contacts that they complete, so that packets with
//! parts in both come whole.

use super::source::{ContactSource, Undone, walk};
use crate::centre::shared::CentreShared;
use bytes::Bytes;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_level0::Novelty;
use skyhaul_records::Record as Entry;
use std::collections::BTreeMap;
use std::collections::btree_map::Iter;
use std::iter::Peekable;

/// The role of a contact's frames in a job.
#[derive(Debug, Default)]
pub struct Fill {
    /// Whether they are merged into the contact that it completes.
    pub is_woven: bool,
    /// The frames of other contacts to merge into its own.
    frames: BTreeMap<BitPosition, (CapturedFrame, Novelty)>,
}

/// The most memory for frames to be merged, of all contacts of a job together: 64 MiB, 1 % of 7 GB.
/// A contact that has more, or completes one that is not of the job, is not merged: only packets
/// that lie in its frames alone come whole.
const HELD_MAX: usize = 64 << 20;
/// The overhead of a frame beside its bytes.
const FRAME: usize = 256;

/// Decides what is merged into what; each source comes with its novelty.
///
/// # Errors
/// [`Undone`]: a contact cannot be read.
pub fn weave(
    sources: &[(ContactSource, Novelty)],
    shared: &CentreShared,
) -> Result<Vec<Fill>, Undone> {
    let mut fills: Vec<Fill> = sources.iter().map(|_| Fill::default()).collect();
    let mut room = HELD_MAX;
    for (at, (source, standing)) in sources.iter().enumerate() {
        let is_completed = |(other, _): &(ContactSource, Novelty)| {
            other.station == source.station
                && other.flow != source.flow
                && other.open.completes.is_none()
                && source.open.completes.is_some_and(|flow| flow.0 == other.flow)
        };
        let Some(completed) = sources.iter().position(is_completed) else { continue };
        let (mut frames, mut cost) = (Vec::new(), 0);
        walk(&source.station, source.flow, shared, &mut |entry| {
            if let Entry::Frame(frame) = entry
                && frame.is_good()
            {
                cost += frame.bytes.len() + FRAME;
                if cost <= room {
                    // The bytes share the memory of their block: copied, so that it can be freed.
                    let (bytes, check_symbols) =
                        (Bytes::copy_from_slice(&frame.bytes), Bytes::new());
                    frames.push(CapturedFrame { bytes, check_symbols, ..frame });
                }
            }
            Ok(())
        })?;
        if cost > room {
            continue;
        }
        room -= cost;
        fills[at].is_woven = true;
        fills[completed]
            .frames
            .extend(frames.into_iter().map(|frame| (frame.position, (frame, *standing))));
    }
    Ok(fills)
}

impl Fill {
    /// A cursor over the frames to merge.
    pub fn cursor(&self) -> FrameCursor<'_> {
        FrameCursor { frames: self.frames.iter().peekable() }
    }
}

/// A cursor over the frames to merge into a contact.
pub struct FrameCursor<'a> {
    frames: Peekable<Iter<'a, BitPosition, (CapturedFrame, Novelty)>>,
}

impl<'a> FrameCursor<'a> {
    /// The next frame before a position.
    pub fn before(&mut self, position: BitPosition) -> Option<&'a (CapturedFrame, Novelty)> {
        self.frames.next_if(|(at, _)| **at < position).map(|(_, frame)| frame)
    }

    /// The next frame that is left.
    pub fn rest(&mut self) -> Option<&'a (CapturedFrame, Novelty)> {
        self.frames.next().map(|(_, frame)| frame)
    }
}
