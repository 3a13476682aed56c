//! The coding of a mission's TOML.

use super::text::{MissionError, Reader};
use super::{Coding, Derandomise};
use crate::inner::{InnerCode, LineCode};
use skyhaul_coding::convolutional::{Code, Modulation, Rate, SecondOutput};
use skyhaul_coding::ldpc;
use skyhaul_coding::marker::Marker;
use skyhaul_coding::{Basis, Correction, Parameters, Randomiser, ReedSolomon};
use skyhaul_mission_form::Spanned;
use skyhaul_mission_form::{
    BasisForm, CodingForm, LdpcCodeForm, LdpcForm, LineCodeForm, ModulationForm, RandomiserForm,
    ReedSolomonForm, SecondOutputForm,
};

/// CCSDS 131.0-B-5 9.3.
const DEFAULT_MARKER: Marker = Marker::Bits32(0x1ACF_FC1D);
/// Of the AR4JA codes: CCSDS 131.0-B-5 9.3.
const LONG_MARKER: Marker = Marker::Bits64(0x0347_76C7_2728_95B0);

impl Reader<'_> {
    pub(super) fn coding(
        &self,
        form: &Spanned<CodingForm>,
        length: &Spanned<usize>,
    ) -> Result<Coding, MissionError> {
        let CodingForm {
            marker, randomiser, derandomise_after_decoding_from, reed_solomon, ..
        } = form.get_ref();
        let ldpc = form
            .get_ref()
            .ldpc
            .as_ref()
            .map(|code| self.ldpc(code, form.get_ref(), length))
            .transpose()?;
        let marker = match (marker, ldpc) {
            (None, Some(ldpc::Code::Ar4ja { .. })) => LONG_MARKER,
            (None, _) => DEFAULT_MARKER,
            (Some(text), _) => {
                let number = u64::from_str_radix(text.get_ref(), 16).ok();
                match (number, text.get_ref().len()) {
                    (Some(bits), 8) => Marker::Bits32(bits as u32),
                    (Some(bits), 16) => Marker::Bits64(bits),
                    _ => {
                        let reason = "a marker is 8 hexadecimal digits, like \"1ACFFC1D\", or 16";
                        return Err(self.refuse(text, reason));
                    }
                }
            }
        };
        let reed_solomon =
            reed_solomon.as_ref().map(|code| self.reed_solomon(code, length)).transpose()?;
        let derandomise = match derandomise_after_decoding_from {
            None => Derandomise::BeforeDecoding,
            Some(at) if reed_solomon.is_none() => {
                return Err(self.refuse(
                    at,
                    "there is no decoding to derandomise after: give [coding.reed_solomon]",
                ));
            }
            Some(at) if matches!(randomiser, RandomiserForm::None) => {
                return Err(self
                    .refuse(at, "nothing is randomised; give a `randomiser`, or leave this out"));
            }
            Some(skip) if skip.get_ref() >= length.get_ref() => {
                return Err(self.refuse(
                    skip,
                    format!("this lies outside the frame of {} bytes", length.get_ref()),
                ));
            }
            Some(skip) => Derandomise::AfterDecoding { skip: *skip.get_ref() },
        };
        let randomiser = match randomiser {
            RandomiserForm::Ccsds255 => Some(Randomiser::Ccsds255),
            RandomiserForm::Ccsds131071 => Some(Randomiser::Ccsds131071),
            RandomiserForm::None => None,
        };
        let inner = self.inner(form.get_ref())?;
        Ok(Coding {
            marker,
            randomiser: randomiser.map(|kind| (kind, derandomise)),
            reed_solomon,
            ldpc,
            inner,
        })
    }

    fn inner(&self, form: &CodingForm) -> Result<InnerCode, MissionError> {
        let convolutional = form.convolutional.as_ref().map(|form| {
            let rate = match form.rate.get_ref().as_str() {
                "1/2" => Rate::Half,
                "2/3" => Rate::TwoThirds,
                "3/4" => Rate::ThreeQuarters,
                "5/6" => Rate::FiveSixths,
                "7/8" => Rate::SevenEighths,
                other => {
                    let reason = format!(
                        "there is no rate `{other}`; write \"1/2\", \"2/3\", \"3/4\", \"5/6\" or \
                        \"7/8\""
                    );
                    return Err(self.refuse(&form.rate, reason));
                }
            };
            let usual = Code::new(rate);
            let second = match form.second_output {
                None => usual.second,
                Some(SecondOutputForm::Inverted) => SecondOutput::Inverted,
                Some(SecondOutputForm::Plain) => SecondOutput::Plain,
            };
            let modulation = match form.modulation {
                ModulationForm::Bpsk => Modulation::Bpsk,
                ModulationForm::Qpsk => Modulation::Qpsk,
            };
            Ok((Code { rate, second }, modulation))
        });
        let line = match form.line_code {
            LineCodeForm::NrzL => LineCode::Level,
            LineCodeForm::NrzM => LineCode::Mark,
        };
        Ok(InnerCode { convolutional: convolutional.transpose()?, line })
    }

    fn reed_solomon(
        &self,
        form: &Spanned<ReedSolomonForm>,
        length: &Spanned<usize>,
    ) -> Result<Parameters, MissionError> {
        let ReedSolomonForm { corrects, interleave, basis, virtual_fill } = form.get_ref();
        let correction = match corrects.get_ref() {
            8 => Correction::E8,
            16 => Correction::E16,
            other => {
                let reason = format!(
                    "no code corrects {other} symbols; `corrects` is 16 (255,223) or 8 (255,239)"
                );
                return Err(self.refuse(corrects, reason));
            }
        };
        let basis = match basis {
            BasisForm::Dual => Basis::Dual,
            BasisForm::Conventional => Basis::Conventional,
        };
        let parameters =
            Parameters { correction, basis, interleave: *interleave, virtual_fill: *virtual_fill };
        let code =
            ReedSolomon::new(parameters).map_err(|error| self.refuse(form, error.to_string()))?;
        if code.data_len() != *length.get_ref() {
            let reason = format!(
                "the frame has {} bytes, but the code of [coding.reed_solomon] carries {}; make \
                `length` that, or \
                 change `interleave` or `virtual_fill`",
                length.get_ref(),
                code.data_len()
            );
            return Err(self.refuse(length, reason));
        }
        Ok(parameters)
    }

    /// CCSDS 131.0-B-5 7: one transfer frame in each codeword.
    fn ldpc(
        &self,
        at: &Spanned<LdpcForm>,
        coding: &CodingForm,
        length: &Spanned<usize>,
    ) -> Result<ldpc::Code, MissionError> {
        if coding.reed_solomon.is_some() || coding.convolutional.is_some() {
            let reason = "[coding.ldpc] stands alone: leave out [coding.reed_solomon] and \
                         [coding.convolutional]";
            return Err(self.refuse(at, reason));
        }
        let form = at.get_ref();
        let rate = form.rate.as_ref().map(|rate| (rate, rate.get_ref().as_str()));
        let code = match (&form.code, rate, &form.k) {
            (LdpcCodeForm::C2, None | Some((_, "7/8")), None) => ldpc::Code::C2,
            (LdpcCodeForm::C2, Some((rate, _)), _) => {
                return Err(self.refuse(rate, "the code c2 has the rate \"7/8\""));
            }
            (LdpcCodeForm::C2, None, Some(k)) => {
                return Err(self.refuse(k, "the code c2 has one size; leave `k` out"));
            }
            (LdpcCodeForm::Ar4ja, Some(rate), Some(k)) => {
                let rate = match rate.1 {
                    "1/2" => ldpc::Rate::Half,
                    "2/3" => ldpc::Rate::TwoThirds,
                    "4/5" => ldpc::Rate::FourFifths,
                    other => {
                        let reason = format!(
                            "there is no rate `{other}` of ar4ja; write \"1/2\", \"2/3\" or \"4/5\""
                        );
                        return Err(self.refuse(rate.0, reason));
                    }
                };
                let information = match k.get_ref() {
                    1024 => ldpc::Information::K1024,
                    4096 => ldpc::Information::K4096,
                    16384 => ldpc::Information::K16384,
                    other => {
                        let reason = format!(
                            "a codeword of ar4ja has 1024, 4096 or 16384 information bits, not \
                            {other}"
                        );
                        return Err(self.refuse(k, reason));
                    }
                };
                ldpc::Code::Ar4ja { information, rate }
            }
            (LdpcCodeForm::Ar4ja, ..) => {
                return Err(self.refuse(
                    at,
                    "a code ar4ja needs `rate` (\"1/2\", \"2/3\" or \"4/5\") and `k`",
                ));
            }
        };
        if code.frame_len() != *length.get_ref() {
            let reason = format!(
                "the frame has {} bytes, but a codeword of [coding.ldpc] carries {}; make `length` \
                that, or take another code",
                length.get_ref(),
                code.frame_len()
            );
            return Err(self.refuse(length, reason));
        }
        Ok(code)
    }
}
