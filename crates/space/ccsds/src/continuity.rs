//! Follows the frame counts of one virtual channel.
//!
//! An 8-bit count that lost more than half of its range looks like one that went back, by a replay
//! or a reset of the counter. The two are distinguished by the sequence counts of the packets, or
//! else by the bits between the two frames, or else by the time. If none of them decides at once,
//! it counts as a reset; [`Followed::lost`] corrects that later if a packet shows a loss.
//!
//! A longer count that advances by more frames than the input had room for is damaged or was reset,
//! and does not show missing frames.
//!
//! Memory is bounded: 64 applications of a channel are followed.

use crate::count::{CountStep, Modulus};
use crate::frame::{Frame, VcCount};
use crate::id::Apid;
use crate::mission::{Content, Mission};
use crate::quality::{BitPosition, CapturedFrame};
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// What a frame shows of its position among the frames of its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    /// Its count.
    pub count: VcCount,
    /// When its last bit was received.
    pub received: Utc,
    /// Where it stands in the input.
    pub position: BitPosition,
    /// Application and sequence count of the first packet that begins in it, if packets are read.
    pub packet: Option<(Apid, u16)>,
}

/// How a frame follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    /// By their counts and by the input between them.
    pub step: CountStep,
    /// An earlier [`CountStep::Back`] has turned out to be a loss.
    pub lost: Option<Lost>,
}

/// Missing frames between two received ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub missing: u64,
    /// The frame before them.
    pub before: Sign,
    /// The frame after them.
    pub after: Sign,
}

/// Follows one channel.
#[derive(Debug, Default)]
pub struct Continuity {
    last: Option<Sign>,
    /// Position and reception time of the first frame.
    first: Option<(BitPosition, Utc)>,
    /// Frames sent from the first one to the last one, as far as is known.
    sent: u64,
    applications: BTreeMap<Apid, Application>,
    doubt: Option<Doubt>,
}

/// A count that went back, while a later packet may still show that frames were lost.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    lost: Lost,
    /// Frames sent by then.
    sent: u64,
    /// The result by bits or time, which stands unless a packet contradicts it.
    was_long: bool,
}

/// The packets of one application that are the first in their frames.
#[derive(Debug, Clone, Copy)]
struct Application {
    /// The sequence count of the last one, and the frames sent by then.
    last: (u16, u64),
    /// Packets and frames sent from the first one to the last one.
    packets: u64,
    frames: u64,
}

/// Most applications followed; a virtual channel has some ten.
const MOST_APPLICATIONS: usize = 64;
/// The longest ambiguous counter: half of the range of a longer one takes hours.
const LONGEST: u64 = 1 << 16;
/// The longest loss that is accepted by bits or time: 9 minutes at 15 Mbit/s.
const MOST_MISSING: u64 = 1 << 20;
/// Frames after which the mean distance between the frames of a channel is known.
const FEWEST_FRAMES: u64 = 16;
/// Fewest missing packets that show that frames are missing.
const FEWEST_PACKETS: u64 = 4;
/// A packet that decides is expected within this many frames.
const TELLS_WITHIN: u64 = 64;
/// Half of a sequence count's range: beyond it, the distance is ambiguous.
const HALF: u64 = Modulus::PACKET.values() / 2;

impl Sign {
    /// Of a frame of this mission. Packets are looked at where the count is short.
    pub fn of(frame: &Frame<'_>, captured: &CapturedFrame, mission: &Mission) -> Self {
        let Frame { channel, count, .. } = *frame;
        let has_packets = is_short(count.modulus)
            && mission.content(channel.vcid) == Content::Packets
            && mission.covers(channel.scid);
        let packet = if has_packets { frame.first_packet(mission.frame().kind) } else { None };
        Self { count, received: captured.received, position: captured.position, packet }
    }
}

impl Continuity {
    /// Takes the channel's next frame.
    pub fn follow(&mut self, sign: &Sign) -> Followed {
        let Some(last) = self.last.replace(*sign) else {
            self.first = Some((sign.position, sign.received));
            self.note_packet(sign);
            return Followed { step: CountStep::Next, lost: None };
        };
        let step = sign.count.modulus.step(last.count.value, sign.count.value);
        let step = match step {
            // More frames than the input had room for: the count is damaged or was reset.
            CountStep::Gap { missing }
                if missing > MOST_MISSING && !self.was_long(&last, sign, missing) =>
            {
                CountStep::Back
            }
            step => step,
        };
        let is_short = is_short(sign.count.modulus);
        let step = match step {
            CountStep::Back if !is_short => step,
            CountStep::Back => self.doubt(&last, sign),
            CountStep::Same => {
                self.last = Some(last);
                return Followed { step, lost: None };
            }
            CountStep::Next | CountStep::Gap { .. } => step,
        };
        self.sent += 1 + if let CountStep::Gap { missing } = step { missing } else { 0 };
        let lost = if step == CountStep::Back || !is_short { None } else { self.settle(sign) };
        self.note_packet(sign);
        Followed { step, lost }
    }

    /// Classifies a count that went back.
    fn doubt(&mut self, last: &Sign, sign: &Sign) -> CountStep {
        let modulus = sign.count.modulus;
        let missing = modulus.between(last.count.value, sign.count.value);
        self.doubt = None;
        let was_long = self.was_long(last, sign, missing);
        match self.packets_are_missing(sign, missing, self.sent + 1) {
            Some(true) => return CountStep::Gap { missing },
            Some(false) => {}
            None if self.applications.is_empty() && was_long => return CountStep::Gap { missing },
            None => {
                let lost = Lost { missing, before: *last, after: *sign };
                self.doubt = Some(Doubt { lost, sent: self.sent, was_long });
            }
        }
        CountStep::Back
    }

    /// Checks whether this frame resolves the doubt.
    fn settle(&mut self, sign: &Sign) -> Option<Lost> {
        let Doubt { lost, sent, was_long } = self.doubt?;
        let told = self.packets_are_missing(sign, lost.missing, self.sent);
        let told = told.or_else(|| (self.sent > sent + TELLS_WITHIN).then_some(was_long))?;
        self.doubt = None;
        if !told {
            return None;
        }
        self.sent += lost.missing;
        Some(lost)
    }

    /// Whether the packets of the frame's application show that `missing` frames are missing beside
    /// those of `sent`; none if they show nothing.
    fn packets_are_missing(&self, sign: &Sign, missing: u64, sent: u64) -> Option<bool> {
        let (apid, count) = sign.packet?;
        let Application { last: (before, at), packets, frames } = *self.applications.get(&apid)?;
        let passed = sent.saturating_sub(at);
        // Packets a frame, as a fraction.
        let expected = packets.checked_mul(passed + missing)?;
        if packets * missing < FEWEST_PACKETS * frames || expected > HALF * frames {
            return None;
        }
        let went = u64::from(count.wrapping_sub(before)) & (Modulus::PACKET.values() - 1);
        // Nearer to the count expected with the missing frames than to the count expected without.
        Some(went <= HALF && 2 * went * frames >= packets * (2 * passed + missing))
    }

    /// Whether the bits or the time between two frames have room for the missing ones.
    fn was_long(&self, last: &Sign, sign: &Sign, missing: u64) -> bool {
        let Some((position, received)) = self.first.filter(|_| self.sent >= FEWEST_FRAMES) else {
            return false;
        };
        let bits = |from: BitPosition, to: BitPosition| to.as_bits().checked_sub(from.as_bits());
        let time = |from: Utc, to: Utc| Some(to.since(from).as_nanos());
        let is_long = |usual: Option<u64>, between: Option<u64>| {
            let usual = usual.map_or(0, |all| u128::from(all) * u128::from(missing + 1));
            let between = u128::from(between.unwrap_or(0)) * u128::from(self.sent);
            usual > 0 && 2 * between >= usual
        };
        is_long(bits(position, last.position), bits(last.position, sign.position))
            || is_long(time(received, last.received), time(last.received, sign.received))
    }

    /// Remembers the position of the frame's application.
    fn note_packet(&mut self, sign: &Sign) {
        let Some((apid, count)) = sign.packet else { return };
        let last = (count, self.sent);
        if let Some(application) = self.applications.get_mut(&apid) {
            let went =
                u64::from(count.wrapping_sub(application.last.0)) & (Modulus::PACKET.values() - 1);
            if went <= HALF {
                application.packets += went;
                application.frames += self.sent.saturating_sub(application.last.1);
            }
            application.last = last;
        } else if self.applications.len() < MOST_APPLICATIONS {
            self.applications.insert(apid, Application { last, packets: 0, frames: 0 });
        }
    }
}

const fn is_short(modulus: Modulus) -> bool {
    modulus.values() > 1 && modulus.values() <= LONGEST
}

#[cfg(test)]
mod tests;
