//! The TOML form of a mission, and the checks that make one of it.

use super::consistency::{Channels, claims_again, is_shadowed};
use super::form::{
    BasisForm, CodingForm, Form, FrameForm, KindForm, LineCodeForm, ModulationForm, ProductForm,
    RandomiserForm, ReedSolomonForm, SecondOutputForm, TimeCodeForm, TimeForm,
};
use super::{
    ApidRange, ChannelRule, Coding, Content, Counters, Derandomise, FrameCheck, FrameFormat, FrameKind,
    MARKER_LEN, Mission, ProductGroup, TimeRule,
};
use crate::id::{Scid, Vcid};
use crate::inner::{InnerCode, LineCode};
use crate::packet::SpaceHeader;
use crate::time::TimeCode;
use skyhaul_coding::convolutional::{Code, Modulation, Rate, SecondOutput};
use skyhaul_coding::{Basis, Correction, Parameters, Randomiser, ReedSolomon};
use toml::Spanned;

/// Why a mission's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct MissionError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Mission {
    /// Reads a mission from TOML.
    ///
    /// # Errors
    /// [`MissionError`] names the line and what is wrong there: a key that does not exist, a value out of range,
    /// or fields that contradict each other.
    pub fn from_toml(text: &str) -> Result<Self, MissionError> {
        if text.len() > LONGEST_TEXT {
            let reason = format!("the text has {} bytes; a mission has at most {LONGEST_TEXT}", text.len());
            return Err(MissionError { line: 1, reason });
        }
        let form: Form = toml::from_str(text).map_err(|error| MissionError {
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            reason: error.message().trim().replace('\n', " "),
        })?;
        Reader { text }.mission(form)
    }
}

/// Longest mission text in bytes: contact records carry it.
const LONGEST_TEXT: usize = 65_535;
/// Longest frame in bytes that a synchroniser holds.
const LONGEST_FRAME: usize = 16_384;
/// Most entries of each list.
const LONGEST_LIST: usize = 256;

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn refuse<T>(&self, at: &Spanned<T>, reason: impl Into<String>) -> MissionError {
        MissionError { line: line_of(self.text, at.span().start), reason: reason.into() }
    }

    fn mission(&self, form: Form) -> Result<Mission, MissionError> {
        self.name(&form.name)?;
        let frame = self.frame(&form.frame)?;
        let scids = self.scids(&form.scids, &frame)?;
        let coding = self.coding(&form.coding, &form.frame.length)?;
        let lists = [form.channel.len(), form.time.len(), form.product.len(), form.shared_counter.len()];
        self.list(&form.scids, lists.into_iter().max().unwrap_or(0))?;
        let mut channels = Vec::new();
        for rule in &form.channel {
            let content = rule.content.into();
            for vcid in self.vcids(&rule.vcids, frame.kind)? {
                if channels.iter().any(|known: &ChannelRule| known.vcid == vcid) {
                    return Err(self.refuse(&rule.vcids, format!("channel {vcid} has two rules; keep one")));
                }
                channels.push(ChannelRule { vcid, content });
            }
        }
        let mut times: Vec<TimeRule> = Vec::new();
        for rule in &form.time {
            let read = self.time(rule)?;
            is_shadowed(&times, &read).map_err(|reason| self.refuse(&rule.apids, reason))?;
            times.push(read);
        }
        let content = form.content.map_or(Content::Packets, Content::from);
        let rules = Channels { rules: &channels, content, kind: frame.kind };
        let products = self.products(form.product, &rules)?;
        let mut counters = Counters::default();
        for counter in &form.shared_counter {
            let apids = self.apids(&counter.apids)?;
            let shared = counters.share(apids, &times, &products);
            shared.map_err(|reason| self.refuse(&counter.apids, reason))?;
        }
        Ok(Mission {
            name: form.name.into_inner(),
            title: form.title,
            scids,
            frame,
            coding,
            content,
            channels,
            longest_packet: self.longest_packet(form.packets.longest.as_ref())?,
            times,
            products,
            counters,
            text: self.text.to_owned(),
        })
    }

    fn name(&self, name: &Spanned<String>) -> Result<(), MissionError> {
        let text = name.get_ref();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() || text.len() > 32 || !text.chars().all(fits) {
            let reason = format!("`{text}` is not a name: use 1 to 32 lower-case letters, digits and `-`");
            return Err(self.refuse(name, reason));
        }
        Ok(())
    }

    fn list<T>(&self, at: &Spanned<T>, len: usize) -> Result<(), MissionError> {
        if len > LONGEST_LIST {
            return Err(
                self.refuse(at, format!("a list has {len} entries; at most {LONGEST_LIST} are taken"))
            );
        }
        Ok(())
    }

    fn scids(&self, scids: &Spanned<Vec<u16>>, frame: &FrameFormat) -> Result<Vec<Scid>, MissionError> {
        self.list(scids, scids.get_ref().len())?;
        let bits = match (frame.kind, frame.wide_scid) {
            (FrameKind::Uslp, _) => 16,
            (FrameKind::Tm, _) | (FrameKind::Aos, true) => 10,
            (FrameKind::Aos, false) => 8,
        };
        let most = u16::MAX >> (16 - bits);
        let read = |value: &u16| {
            let reason = || format!("spacecraft id {value} does not fit {bits} bits (0 to {most})");
            Scid::new(*value).filter(|scid| scid.value() <= most).ok_or_else(|| self.refuse(scids, reason()))
        };
        let read: Vec<Scid> = scids.get_ref().iter().map(read).collect::<Result<_, _>>()?;
        match (1..read.len()).find(|index| read[..*index].contains(&read[*index])) {
            Some(index) => Err(self.refuse(scids, format!("spacecraft {} is listed twice", read[index]))),
            None => Ok(read),
        }
    }

    fn vcids(&self, vcids: &Spanned<Vec<u8>>, kind: FrameKind) -> Result<Vec<Vcid>, MissionError> {
        self.list(vcids, vcids.get_ref().len())?;
        let most = kind.last_vcid().value();
        let read = |value: &u8| {
            let reason =
                || format!("virtual channel {value} does not exist: this kind of frame has 0 to {most}");
            Vcid::new(*value).filter(|v| v.value() <= most).ok_or_else(|| self.refuse(vcids, reason()))
        };
        vcids.get_ref().iter().map(read).collect()
    }

    fn apids(&self, apids: &Spanned<Vec<String>>) -> Result<Vec<ApidRange>, MissionError> {
        self.list(apids, apids.get_ref().len())?;
        let read = |text: &String| text.parse().map_err(|reason: String| self.refuse(apids, reason));
        apids.get_ref().iter().map(read).collect()
    }

    fn frame(&self, form: &FrameForm) -> Result<FrameFormat, MissionError> {
        let kind = match form.kind {
            KindForm::Tm => FrameKind::Tm,
            KindForm::Aos => FrameKind::Aos,
            KindForm::Uslp => FrameKind::Uslp,
        };
        let fhec = form.fhec.as_ref().is_some_and(|fhec| *fhec.get_ref());
        if let (true, FrameKind::Tm | FrameKind::Uslp, Some(at)) = (fhec, kind, &form.fhec) {
            return Err(self.refuse(at, "only AOS frames have header error control; leave `fhec` out"));
        }
        let wide_scid = match &form.scid_bits {
            None => kind != FrameKind::Aos,
            Some(bits) => match (bits.get_ref(), kind) {
                (10, FrameKind::Tm | FrameKind::Aos) | (16, FrameKind::Uslp) => true,
                (8, FrameKind::Aos) => false,
                _ => {
                    let reason = "`scid_bits` is 8 or 10 in AOS frames, 10 in TM and 16 in USLP frames";
                    return Err(self.refuse(bits, reason));
                }
            },
        };
        let length = *form.length.get_ref();
        if length > LONGEST_FRAME {
            let reason = format!("a frame of {length} bytes is longer than {LONGEST_FRAME}");
            return Err(self.refuse(&form.length, reason));
        }
        let fecf = self.frame_check(form, kind)?;
        let fields = kind.header_len() + 3 + 2 * usize::from(fhec) + 4 * usize::from(form.ocf) + fecf.len();
        if fields.saturating_add(form.insert_zone) > length {
            let reason = format!("a frame of {length} bytes has no room for its header, zones and trailer");
            return Err(self.refuse(&form.length, reason));
        }
        let FrameForm { insert_zone, ocf, .. } = *form;
        Ok(FrameFormat { kind, length, wide_scid, fhec, insert_zone, ocf, fecf })
    }

    fn frame_check(&self, form: &FrameForm, kind: FrameKind) -> Result<FrameCheck, MissionError> {
        match (&form.fecf_bits, form.fecf) {
            (None, false) => Ok(FrameCheck::None),
            (None, true) => Ok(FrameCheck::Crc16),
            (Some(bits), false) => {
                Err(self.refuse(bits, "there is no frame error control: give `fecf = true`"))
            }
            (Some(bits), true) => match (bits.get_ref(), kind) {
                (16, _) => Ok(FrameCheck::Crc16),
                (32, FrameKind::Uslp) => Ok(FrameCheck::Crc32),
                _ => Err(self.refuse(bits, "`fecf_bits` is 16, or 32 in USLP frames")),
            },
        }
    }

    fn coding(&self, form: &Spanned<CodingForm>, length: &Spanned<usize>) -> Result<Coding, MissionError> {
        let CodingForm { marker, randomiser, derandomise_after_decoding_from, reed_solomon, .. } =
            form.get_ref();
        let marker = match marker {
            None => DEFAULT_MARKER,
            Some(text) => Some(text.get_ref())
                .filter(|hex| hex.len() == 2 * MARKER_LEN)
                .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                .ok_or_else(|| self.refuse(text, "a marker is 8 hexadecimal digits, like \"1ACFFC1D\""))?,
        };
        let reed_solomon = reed_solomon.as_ref().map(|code| self.reed_solomon(code, length)).transpose()?;
        let derandomise = match derandomise_after_decoding_from {
            None => Derandomise::BeforeDecoding,
            Some(at) if reed_solomon.is_none() => {
                return Err(
                    self.refuse(at, "there is no decoding to derandomise after: give [coding.reed_solomon]")
                );
            }
            Some(at) if matches!(randomiser, RandomiserForm::None) => {
                return Err(self.refuse(at, "nothing is randomised; give a `randomiser`, or leave this out"));
            }
            Some(skip) if skip.get_ref() >= length.get_ref() => {
                return Err(
                    self.refuse(skip, format!("this lies outside the frame of {} bytes", length.get_ref()))
                );
            }
            Some(skip) => Derandomise::AfterDecoding { skip: *skip.get_ref() },
        };
        let randomiser = match randomiser {
            RandomiserForm::Ccsds255 => Some(Randomiser::Ccsds255),
            RandomiserForm::Ccsds131071 => Some(Randomiser::Ccsds131071),
            RandomiserForm::None => None,
        };
        let inner = self.inner(form.get_ref())?;
        Ok(Coding { marker, randomiser: randomiser.map(|kind| (kind, derandomise)), reed_solomon, inner })
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
                        "there is no rate `{other}`; write \"1/2\", \"2/3\", \"3/4\", \"5/6\" or \"7/8\""
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
                let reason =
                    format!("no code corrects {other} symbols; `corrects` is 16 (255,223) or 8 (255,239)");
                return Err(self.refuse(corrects, reason));
            }
        };
        let basis = match basis {
            BasisForm::Dual => Basis::Dual,
            BasisForm::Conventional => Basis::Conventional,
        };
        let parameters =
            Parameters { correction, basis, interleave: *interleave, virtual_fill: *virtual_fill };
        let code = ReedSolomon::new(parameters).map_err(|error| self.refuse(form, error.to_string()))?;
        if code.data_len() != *length.get_ref() {
            let reason = format!(
                "the frame has {} bytes, but the code of [coding.reed_solomon] carries {}; make `length` that, or \
                 change `interleave` or `virtual_fill`",
                length.get_ref(),
                code.data_len()
            );
            return Err(self.refuse(length, reason));
        }
        Ok(parameters)
    }

    fn longest_packet(&self, longest: Option<&Spanned<usize>>) -> Result<usize, MissionError> {
        let Some(longest) = longest else { return Ok(SpaceHeader::LONGEST_PACKET) };
        if (SpaceHeader::LEN + 1..=SpaceHeader::LONGEST_PACKET).contains(longest.get_ref()) {
            return Ok(*longest.get_ref());
        }
        Err(self.refuse(longest, format!("the longest packet is 7 to {} bytes", SpaceHeader::LONGEST_PACKET)))
    }

    fn time(&self, form: &TimeForm) -> Result<TimeRule, MissionError> {
        let code = match form.code {
            TimeCodeForm::Cds8 => Some(TimeCode::Cds8),
            TimeCodeForm::Cds6 => Some(TimeCode::Cds6),
            TimeCodeForm::Cds6Since2000 => Some(TimeCode::Cds6Since2000),
            TimeCodeForm::EosCuc => Some(TimeCode::EosCuc),
            TimeCodeForm::None => None,
        };
        let offset = form.offset.unwrap_or(SpaceHeader::LEN);
        if !(SpaceHeader::LEN..=64).contains(&offset) {
            let reason =
                format!("a time {offset} bytes into the packet is not in its secondary header (6 to 64)");
            return Err(self.refuse(&form.apids, reason));
        }
        Ok(TimeRule { apids: self.apids(&form.apids)?, code, offset })
    }

    fn products(
        &self,
        forms: Vec<ProductForm>,
        channels: &Channels<'_>,
    ) -> Result<Vec<ProductGroup>, MissionError> {
        let mut products: Vec<ProductGroup> = Vec::new();
        for form in forms {
            self.name(&form.name)?;
            if products.iter().any(|known| known.name == *form.name.get_ref()) {
                return Err(
                    self.refuse(&form.name, format!("two products are called `{}`", form.name.get_ref()))
                );
            }
            if let Some(label) = &form.label {
                let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
                if label.get_ref().len() != LABEL_LEN || !label.get_ref().chars().all(fits) {
                    let reason = format!(
                        "a label is {LABEL_LEN} capital letters and digits, like \"0826VIIRSSCIENCEAS\""
                    );
                    return Err(self.refuse(label, reason));
                }
            }
            let vcids = form.vcids.as_ref().map(|vcids| self.vcids(vcids, channels.kind)).transpose()?;
            let apids = form.apids.as_ref().map(|apids| self.apids(apids)).transpose()?;
            let product = ProductGroup {
                name: form.name.get_ref().clone(),
                label: form.label.map(Spanned::into_inner),
                vcids: vcids.unwrap_or_default(),
                apids: apids.unwrap_or_default(),
            };
            let at = |reason| match &form.vcids {
                Some(vcids) => self.refuse(vcids, reason),
                None => self.refuse(&form.name, reason),
            };
            channels.refuse(&product).map_err(at)?;
            claims_again(&products, &product).map_err(|reason| self.refuse(&form.name, reason))?;
            products.push(product);
        }
        Ok(products)
    }
}

/// CCSDS 131.0-B-5 9.3.
const DEFAULT_MARKER: u32 = 0x1ACF_FC1D;
/// Application id (4) and product text (14) of a Level-0 file name.
const LABEL_LEN: usize = 18;
