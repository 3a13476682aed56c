//! Compares missions that share coding, frame length and spacecraft id by how well they fit the
//! frames of an unknown downlink.

use super::{Identification, InputLayout};
use crate::frame::{Check, FirstHeader, Frame};
use crate::id::Scid;
use crate::mission::{Content, Mission};
use crate::packet::{Header, HeaderError};
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How well a mission fits; a greater value is a closer fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fitness {
    /// Frames with one of the mission's spacecraft ids; if it names none, frames with the most
    /// frequent id.
    pub frames: usize,
    /// Correct check fields of those frames, minus wrong ones.
    checks: isize,
    /// Valid packet headers at the positions in those frames' first header pointers, minus invalid
    /// ones.
    packets: isize,
    /// The spacecraft of most of them.
    pub scid: Option<Scid>,
}

impl Fitness {
    /// Of these frames.
    pub fn of(mission: &Mission, frames: &[Bytes]) -> Self {
        let (mut checks, mut packets) = (0, 0);
        let mut own: BTreeMap<Scid, usize> = BTreeMap::new();
        for bytes in frames {
            let Ok(frame) = Frame::parse(bytes, mission.frame()) else { continue };
            if !mission.covers(frame.channel.scid) {
                continue;
            }
            *own.entry(frame.channel.scid).or_default() += 1;
            checks += [frame.fhec, frame.fecf].into_iter().map(agreement).sum::<isize>();
            packets += packet_start(mission, &frame);
        }
        let most = own.iter().max_by_key(|(scid, frames)| (**frames, Reverse(**scid)));
        // A mission that names no spacecraft fits every header, also those in noise, which have
        // many different ids: only frames of the most frequent id count.
        let frames = match mission.scids().is_empty() {
            true => most.map_or(0, |(_, frames)| *frames),
            false => own.values().sum(),
        };
        Self { frames, checks, packets, scid: most.map(|(scid, _)| *scid) }
    }
}

const fn agreement(check: Check) -> isize {
    match check {
        Check::None => 0,
        Check::Good | Check::Corrected => 1,
        Check::Bad => -1,
    }
}

/// 1 for a valid packet header at the frame's first header pointer, -1 for an invalid one, 0
/// without a pointer.
fn packet_start(mission: &Mission, frame: &Frame<'_>) -> isize {
    let kind = mission.frame().kind;
    if mission.content(frame.channel.vcid) != Content::Packets || frame.is_idle(kind) {
        return 0;
    }
    let Some(packets) = frame.m_pdu(kind) else { return 0 };
    let FirstHeader::At(offset) = packets.first_header else { return 0 };
    match packets.zone.get(offset..).filter(|zone| !zone.is_empty()).map(Header::parse) {
        Some(Ok(header)) if header.total_len() <= mission.longest_packet() => 1,
        Some(Err(HeaderError::Incomplete)) => 0,
        _ => -1,
    }
}

/// The closest of the missions that fit, the first among equals, and the names of the others that
/// fit as many frames.
pub(super) fn closest(
    fitting: &[(&Mission, Fitness)],
    format: InputLayout,
) -> Option<Identification> {
    let rank = |fitness: &Fitness| (fitness.frames, fitness.checks, fitness.packets);
    let (mission, best) = fitting.iter().rev().max_by_key(|(_, fitness)| rank(fitness))?;
    let others = fitting.iter().filter(|(other, fitness)| {
        fitness.frames == best.frames && fitness.scid == best.scid && other.name() != mission.name()
    });
    Some(Identification {
        format,
        mission: (*mission).clone(),
        scid: best.scid,
        is_generic: false,
        also_fits: others.map(|(other, _)| other.name().to_owned()).collect(),
    })
}
