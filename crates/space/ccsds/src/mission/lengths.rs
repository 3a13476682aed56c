//! The keys of a mission whose frames have a length field.

use super::text::{MissionError, Reader};
use super::{Coding, FrameCheck, FrameFormat, FrameKind, FrameLengths};
use crate::frame::SHORTEST_TRUNCATED;
use skyhaul_mission_form::Spanned;
use skyhaul_mission_form::{CodingForm, FrameForm};

impl Reader<'_> {
    /// What `variable_length` and `truncated_length` say together.
    pub(super) fn lengths(
        &self,
        form: &FrameForm,
        kind: FrameKind,
        fecf: FrameCheck,
    ) -> Result<FrameLengths, MissionError> {
        let is_variable =
            form.variable_length.as_ref().filter(|is_variable| *is_variable.get_ref());
        let Some(at) = is_variable else {
            return match &form.truncated_length {
                None => Ok(FrameLengths::Fixed),
                Some(at) => Err(self.refuse(
                    at,
                    "frames of one length are not cut at another; give `variable_length = true`",
                )),
            };
        };
        if kind != FrameKind::Uslp {
            return Err(
                self.refuse(at, "only USLP frames say their length; leave `variable_length` out")
            );
        }
        let Some(truncated) = &form.truncated_length else {
            return Ok(FrameLengths::Variable { truncated: None });
        };
        let (least, most) = (SHORTEST_TRUNCATED + fecf.len(), *form.length.get_ref());
        if !(least..=most).contains(truncated.get_ref()) {
            let reason = format!(
                "truncated frames have {least} to {most} bytes: `length` is that of the longest \
                frame"
            );
            return Err(self.refuse(truncated, reason));
        }
        Ok(FrameLengths::Variable { truncated: Some(*truncated.get_ref()) })
    }

    /// Refuses a coding for frames with a length field, which are not in blocks.
    pub(super) fn coding_of_lengths(
        &self,
        at: &Spanned<CodingForm>,
        frame: &FrameFormat,
        coding: &Coding,
    ) -> Result<(), MissionError> {
        let is_coded =
            coding.reed_solomon.is_some() || coding.ldpc.is_some() || !coding.inner.is_none();
        if frame.is_variable() && (is_coded || coding.randomiser.is_some()) {
            let reason = "frames of variable length come as the receiver hands them on, without \
                         marker and coding; write \
                          `randomiser = \"none\"` and no code";
            return Err(self.refuse(at, reason));
        }
        Ok(())
    }
}
