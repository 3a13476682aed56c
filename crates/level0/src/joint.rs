//! Frames of several contacts as one stream, of each the better copy: so that packets come whole of which no contact had every
//! frame.

use crate::clock::Placement;
use crate::files::{Error, Files};
use crate::intake::{Intake, Nature};
use crate::workshop::Workshop;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::quality::CapturedFrame;

/// Takes the frames that contacts have together. They count in the contacts themselves, not here. Packets that a contact had
/// whole are offered again, and are duplicates; what has no place in time is left to the contacts' own accounts.
pub struct Joint<'a, F: Files> {
    pub(crate) workshop: &'a mut Workshop<F>,
    pub(crate) files: &'a mut F,
    pub(crate) intake: Intake,
    pub(crate) is_later: bool,
}

impl<F: Files> Joint<'_, F> {
    /// Takes the next frame, in the order of the downlink.
    ///
    /// # Errors
    /// [`Error::Files`] where storage fails; the products are then to be made again from the beginning.
    pub fn frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        let Self { workshop, files, intake, is_later } = self;
        intake.frame(frame, &mut |packet, nature| offer(workshop, files, (packet, nature), *is_later))
    }

    /// Offers what waited for the time of the stream to be known.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub fn finish(self) -> Result<(), Error> {
        let Self { workshop, files, mut intake, is_later } = self;
        intake.finish(&mut |packet, nature| offer(workshop, files, (packet, nature), is_later))?;
        Ok(())
    }
}

fn offer<F: Files>(
    workshop: &mut Workshop<F>,
    files: &mut F,
    (packet, nature): (&ExtractedPacket, Nature),
    is_later: bool,
) -> Result<(), Error> {
    match nature {
        Nature::Space(_, Placement::At(_)) => workshop.take(files, packet, nature, is_later),
        _ => Ok(()),
    }
}
