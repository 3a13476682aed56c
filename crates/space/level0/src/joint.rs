//! Frames of several contacts as one stream, of each the better copy: so that packets come whole of
//! which no contact had every frame.

use crate::brought::Brought;
use crate::clock::Placement;
use crate::files::{Error, Files};
use crate::intake::{Intake, Nature};
use crate::window::Window;
use crate::workshop::Workshop;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::frame::Frame;
use skyhaul_ccsds::mission::FrameFormat;
use skyhaul_ccsds::quality::CapturedFrame;

/// Takes the frames that contacts have together. They count in the contacts themselves, not here.
/// Packets that a contact had whole are offered again, and are duplicates; what has no place in
/// time, or lies outside the span of the edition, is left to the contacts' own accounts.
pub struct Joint<'a, F: Files> {
    pub(crate) workshop: &'a mut Workshop<F>,
    pub(crate) files: &'a mut F,
    pub(crate) intake: Intake,
    pub(crate) format: FrameFormat,
    pub(crate) brought: &'a mut Brought,
    pub(crate) span: Option<Window>,
    pub(crate) is_later: bool,
}

impl<F: Files> Joint<'_, F> {
    /// Takes the next frame, in the order of the downlink.
    ///
    /// # Errors
    /// [`Error::Files`] where storage fails; the products are then to be made again from the
    /// beginning.
    pub fn frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        let Self { workshop, files, intake, span, is_later, .. } = self;
        intake.frame(frame, &mut |packet, nature| {
            offer(workshop, files, (packet, nature), (*span, *is_later))
        })
    }

    /// The same of a frame that a contact brought which the version before had not, and that is not
    /// given with its contact: it is listed among those that are new.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub fn new_frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        if let Ok(parsed) = Frame::parse(&frame.bytes, &self.format) {
            self.brought.take(parsed.channel, parsed.count.value, parsed.count.modulus);
        }
        self.frame(frame)
    }

    /// Offers what waited for the time of the stream to be known.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub fn finish(self) -> Result<(), Error> {
        let Self { workshop, files, mut intake, span, is_later, .. } = self;
        intake.finish(&mut |packet, nature| {
            offer(workshop, files, (packet, nature), (span, is_later))
        })?;
        Ok(())
    }
}

fn offer<F: Files>(
    workshop: &mut Workshop<F>,
    files: &mut F,
    (packet, nature): (&ExtractedPacket, Nature),
    (span, is_later): (Option<Window>, bool),
) -> Result<(), Error> {
    match nature {
        Nature::Space(_, Placement::At(time)) if span.is_none_or(|span| span.contains(time)) => {
            workshop.take(files, packet, nature, is_later)
        }
        _ => Ok(()),
    }
}
