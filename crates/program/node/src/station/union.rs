//! Best-frame selection over several inputs of one downlink: identifies the downlink, selects the
//! best copy of each frame, and accounts for each input's frames. Time is an argument.

use super::contact::stride;
use skyhaul_ccsds::identify::Identification;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_ccsds::select::{InputAccount, Select, SelectOptions};
use skyhaul_records::InputReport;
use skyhaul_units::{Duration, Utc};

/// Joins the inputs of one contact.
#[derive(Debug)]
pub struct Union {
    /// The longest that a frame waits; `None` for files, which wait for each other.
    window: Option<Duration>,
    /// The most frames that wait.
    held: usize,
    sides: Vec<Side>,
    joined: Option<Joined>,
    /// Frames taken, with files: then the order of frames stands for the time.
    turn: i64,
}

/// The downlink, once it is known.
#[derive(Debug)]
struct Joined {
    select: Select,
    downlink: Identification,
}

/// One input.
#[derive(Debug, Default)]
struct Side {
    /// Whether it receives another downlink.
    is_foreign: bool,
    foreign: u64,
}

/// The meaning of an input's identification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// It identifies the downlink of the contact.
    First,
    /// The input receives the same downlink.
    Same,
    /// The input receives another downlink: its frames are excluded.
    Other {
        /// The mission of the contact.
        of_contact: String,
        /// The input's.
        its: String,
    },
}

impl Union {
    /// A union of so many inputs.
    pub fn new(inputs: usize, window: Option<Duration>) -> Self {
        let sides = (0..inputs).map(|_| Side::default()).collect();
        Self { window, held: SelectOptions::default().held, sides, joined: None, turn: 0 }
    }

    /// The same with a limit on the frames that wait; otherwise as in [`SelectOptions`].
    #[must_use]
    pub fn holding_up_to(self, held: usize) -> Self {
        Self { held, ..self }
    }

    /// The downlink, once an input identified it.
    pub fn downlink(&self) -> Option<&Identification> {
        self.joined.as_ref().map(|joined| &joined.downlink)
    }

    /// An input was identified: frames of it follow.
    pub fn identified(&mut self, input: usize, found: &Identification) -> Sighting {
        let (window, held, inputs) = (self.window, self.held, self.sides.len());
        let Some(side) = self.sides.get_mut(input) else { return Sighting::Same };
        let mut sighting = Sighting::Same;
        let joined = self.joined.get_or_insert_with(|| {
            sighting = Sighting::First;
            let options =
                SelectOptions { window, most_window: window.unwrap_or(Duration::ZERO), held };
            let select = Select::new(*found.mission.frame(), inputs, options);
            Joined { select, downlink: found.clone() }
        });
        side.is_foreign = !is_same(&joined.downlink, found);
        if side.is_foreign {
            let name = |found: &Identification| found.mission.name().to_owned();
            return Sighting::Other { of_contact: name(&joined.downlink), its: name(found) };
        }
        joined.select.stride(input, stride(&found.mission, found.format));
        sighting
    }

    /// Takes the next frame of an input.
    pub fn push(&mut self, input: usize, mut frame: CapturedFrame) {
        let (Some(joined), Some(side)) = (&mut self.joined, self.sides.get_mut(input)) else {
            return;
        };
        if side.is_foreign {
            side.foreign += 1;
            return;
        }
        if self.window.is_none() {
            self.turn += 1;
            frame.received = Utc::from_micros(self.turn);
        }
        joined.select.push(input, frame);
    }

    /// An input's transmission is over: no frame waits for it until it gives another one.
    pub fn close(&mut self, input: usize) {
        if let Some(joined) = &mut self.joined {
            joined.select.close(input);
        }
    }

    /// All inputs are over: all frames are released.
    pub fn finish(&mut self) {
        if let Some(joined) = &mut self.joined {
            joined.select.finish();
        }
    }

    /// The next frame that is released by `now`. Files have no reception time: `now` stands for it.
    pub fn poll(&mut self, now: Utc) -> Option<CapturedFrame> {
        let mut frame = self.joined.as_mut()?.select.poll(now)?.frame;
        if self.window.is_none() {
            frame.received = Utc::from_micros(now.as_micros());
        }
        Some(frame)
    }

    /// The latest time at which the next frame is released.
    pub fn due(&self) -> Option<Utc> {
        self.joined.as_ref()?.select.due()
    }

    /// Frames of an input that wait: of several files, the one with the fewest is read next.
    pub fn holding(&self, input: usize) -> usize {
        self.joined.as_ref().map_or(0, |joined| joined.select.holding(input))
    }

    /// The account of an input's frames, and how many were of another downlink.
    pub fn account(&self, input: usize) -> (InputAccount, u64) {
        let account = self.joined.as_ref().and_then(|joined| joined.select.account(input));
        let mut account = account.unwrap_or_default();
        if self.window.is_none() {
            account.skew = Duration::ZERO;
        }
        (account, self.sides.get(input).map_or(0, |side| side.foreign))
    }

    /// The accounts of all inputs, with their names and sources.
    pub fn reports<'a>(&self, inputs: impl Iterator<Item = (&'a str, String)>) -> Vec<InputReport> {
        let report = |(at, (name, source)): (usize, (&str, String))| {
            let (account, foreign) = self.account(at);
            InputReport { name: name.to_owned(), source, account, foreign }
        };
        inputs.enumerate().map(report).collect()
    }
}

/// Whether two inputs receive the same downlink, as far as is known. A generic mission only says
/// what frames look like.
fn is_same(one: &Identification, other: &Identification) -> bool {
    let fits = |this: &Identification, that: &Identification| {
        let name = that.mission.name();
        this.mission.name() == name || this.also_fits.iter().any(|fitting| fitting == name)
    };
    if one.scid.zip(other.scid).is_some_and(|(one, other)| one != other) {
        return false;
    }
    let (ours, theirs) = (one.mission.frame(), other.mission.frame());
    if one.is_generic || other.is_generic {
        return (ours.kind, ours.length) == (theirs.kind, theirs.length);
    }
    ours == theirs && (fits(one, other) || fits(other, one))
}

#[cfg(test)]
mod tests;
