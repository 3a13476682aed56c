//! Joins the frames of several contacts to one stream, with the better copy of each. Packets are
//! complete even where no single contact has all their frames.

use crate::builder::ProductsBuilder;
use crate::clock::Placement;
use crate::files::{Error, Files};
use crate::frame_runs::FrameRuns;
use crate::intake::{Intake, Nature};
use crate::order::Novelty;
use crate::window::TimeWindow;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::frame::Frame;
use skyhaul_ccsds::mission::FrameFormat;
use skyhaul_ccsds::quality::CapturedFrame;

/// Takes the joint stream of frames of several contacts. The frames count in the contacts, not
/// here. Packets that a contact had complete are offered again, and are duplicates. Packets without
/// a place in time, or outside the span of the edition, are left to the accounts of the contacts.
pub struct Joint<'a, F: Files> {
    pub(crate) products: &'a mut ProductsBuilder<F>,
    pub(crate) files: &'a mut F,
    pub(crate) intake: Intake,
    pub(crate) format: FrameFormat,
    pub(crate) brought: &'a mut FrameRuns,
    pub(crate) span: Option<TimeWindow>,
    pub(crate) novelty: Novelty,
}

impl<F: Files> Joint<'_, F> {
    /// Takes the next frame, in the order of the downlink.
    ///
    /// # Errors
    /// [`Error::Files`] where storage fails; the products are then to be made again from the
    /// beginning.
    pub fn frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        let Self { products, files, intake, span, novelty, .. } = self;
        intake.frame(frame, &mut |packet, nature| {
            offer(Target { products, files, span: *span, novelty: *novelty }, packet, nature)
        })
    }

    /// The same for a frame of a contact that was not in the previous version and is not passed
    /// with its contact: it is listed among the new frames.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub fn new_frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        if let Ok(parsed) = Frame::parse(&frame.bytes, &self.format) {
            self.brought.take(parsed.channel, parsed.count.value, parsed.count.modulus);
        }
        self.frame(frame)
    }

    /// Offers the packets that waited for the time of the stream.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub fn finish(self) -> Result<(), Error> {
        let Self { products, files, mut intake, span, novelty, .. } = self;
        intake.finish(&mut |packet, nature| {
            offer(Target { products, files, span, novelty }, packet, nature)
        })?;
        Ok(())
    }
}

/// Where packets of joined frames go.
struct Target<'a, F: Files> {
    products: &'a mut ProductsBuilder<F>,
    files: &'a mut F,
    /// Packets with a time outside it are left to the contacts' own accounts.
    span: Option<TimeWindow>,
    novelty: Novelty,
}

fn offer<F: Files>(
    to: Target<'_, F>,
    packet: &ExtractedPacket,
    nature: Nature,
) -> Result<(), Error> {
    match nature {
        Nature::Space(_, Placement::At(time)) if to.span.is_none_or(|span| span.contains(time)) => {
            to.products.take(to.files, packet, nature, to.novelty)
        }
        _ => Ok(()),
    }
}
