//! Reads a mission from TOML, with all checks.

use super::consistency::{Channels, claims_again, is_shadowed};
use super::{
    ApidRange, ChannelRule, Content, Counters, FrameCheck, FrameFormat, FrameKind, FrameLengths,
    Mission, ProductGroup, TimeRule,
};
use crate::id::{Scid, Vcid};
use crate::packet::SpaceHeader;
use crate::time::TimeCode;
use skyhaul_mission_form::Spanned;
use skyhaul_mission_form::{
    ContentForm, FrameForm, KindForm, MissionForm, ProductGroupForm, TimeCodeForm, TimeForm,
};

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
    /// [`MissionError`] names the line and what is wrong there: a key that does not exist, a value
    /// out of range, or fields that contradict each other.
    pub fn from_toml(text: &str) -> Result<Self, MissionError> {
        if text.len() > LONGEST_TEXT {
            let reason =
                format!("the text has {} bytes; a mission has at most {LONGEST_TEXT}", text.len());
            return Err(MissionError { line: 1, reason });
        }
        let form: MissionForm = MissionForm::parse(text).map_err(|error| MissionError {
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            reason: error.message().trim().replace('\n', " "),
        })?;
        Reader { text }.mission(form)
    }
}

fn content_of(form: ContentForm) -> Content {
    match form {
        ContentForm::Packets => Content::Packets,
        ContentForm::Idle => Content::Idle,
        ContentForm::Opaque => Content::Opaque,
    }
}

/// Longest mission text in bytes: contact records carry it.
const LONGEST_TEXT: usize = 65_535;
/// Longest frame in bytes that a synchroniser holds.
const LONGEST_FRAME: usize = 16_384;
/// Longest frame in bytes with a length field, which has 16 bits.
const LONGEST_USLP_FRAME: usize = 65_536;
/// Most entries of each list.
const LONGEST_LIST: usize = 256;

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

pub(super) struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    pub(super) fn refuse<T>(&self, at: &Spanned<T>, reason: impl Into<String>) -> MissionError {
        MissionError { line: line_of(self.text, at.span().start), reason: reason.into() }
    }

    fn mission(&self, form: MissionForm) -> Result<Mission, MissionError> {
        self.name(&form.name)?;
        let frame = self.frame(&form.frame)?;
        let scids = self.scids(&form.scids, &frame)?;
        let coding = self.coding(&form.coding, &form.frame.length)?;
        self.coding_of_lengths(&form.coding, &frame, &coding)?;
        let lists =
            [form.channel.len(), form.time.len(), form.product.len(), form.shared_counter.len()];
        self.list(&form.scids, lists.into_iter().max().unwrap_or(0))?;
        let mut channels = Vec::new();
        for rule in &form.channel {
            let content = content_of(rule.content);
            for vcid in self.vcids(&rule.vcids, frame.kind)? {
                if channels.iter().any(|known: &ChannelRule| known.vcid == vcid) {
                    return Err(
                        self.refuse(&rule.vcids, format!("channel {vcid} has two rules; keep one"))
                    );
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
        let content = form.content.map_or(Content::Packets, content_of);
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
            let reason =
                format!("`{text}` is not a name: use 1 to 32 lower-case letters, digits and `-`");
            return Err(self.refuse(name, reason));
        }
        Ok(())
    }

    fn list<T>(&self, at: &Spanned<T>, len: usize) -> Result<(), MissionError> {
        if len > LONGEST_LIST {
            return Err(self.refuse(
                at,
                format!("a list has {len} entries; at most {LONGEST_LIST} are taken"),
            ));
        }
        Ok(())
    }

    fn scids(
        &self,
        scids: &Spanned<Vec<u16>>,
        frame: &FrameFormat,
    ) -> Result<Vec<Scid>, MissionError> {
        self.list(scids, scids.get_ref().len())?;
        let bits = match (frame.kind, frame.wide_scid) {
            (FrameKind::Uslp, _) => 16,
            (FrameKind::Tm, _) | (FrameKind::Aos, true) => 10,
            (FrameKind::Aos, false) => 8,
        };
        let most = u16::MAX >> (16 - bits);
        let read = |value: &u16| {
            let reason = || format!("spacecraft id {value} does not fit {bits} bits (0 to {most})");
            Scid::new(*value)
                .filter(|scid| scid.value() <= most)
                .ok_or_else(|| self.refuse(scids, reason()))
        };
        let read: Vec<Scid> = scids.get_ref().iter().map(read).collect::<Result<_, _>>()?;
        match (1..read.len()).find(|index| read[..*index].contains(&read[*index])) {
            Some(index) => {
                Err(self.refuse(scids, format!("spacecraft {} is listed twice", read[index])))
            }
            None => Ok(read),
        }
    }

    fn vcids(&self, vcids: &Spanned<Vec<u8>>, kind: FrameKind) -> Result<Vec<Vcid>, MissionError> {
        self.list(vcids, vcids.get_ref().len())?;
        let most = kind.last_vcid().value();
        let read = |value: &u8| {
            let reason = || {
                format!(
                    "virtual channel {value} does not exist: this kind of frame has 0 to {most}"
                )
            };
            Vcid::new(*value)
                .filter(|v| v.value() <= most)
                .ok_or_else(|| self.refuse(vcids, reason()))
        };
        vcids.get_ref().iter().map(read).collect()
    }

    fn apids(&self, apids: &Spanned<Vec<String>>) -> Result<Vec<ApidRange>, MissionError> {
        self.list(apids, apids.get_ref().len())?;
        let read =
            |text: &String| text.parse().map_err(|reason: String| self.refuse(apids, reason));
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
            return Err(
                self.refuse(at, "only AOS frames have header error control; leave `fhec` out")
            );
        }
        let wide_scid = match &form.scid_bits {
            None => kind != FrameKind::Aos,
            Some(bits) => match (bits.get_ref(), kind) {
                (10, FrameKind::Tm | FrameKind::Aos) | (16, FrameKind::Uslp) => true,
                (8, FrameKind::Aos) => false,
                _ => {
                    let reason =
                        "`scid_bits` is 8 or 10 in AOS frames, 10 in TM and 16 in USLP frames";
                    return Err(self.refuse(bits, reason));
                }
            },
        };
        let length = *form.length.get_ref();
        let fecf = self.frame_check(form, kind)?;
        let lengths = self.lengths(form, kind, fecf)?;
        let longest =
            if lengths == FrameLengths::Fixed { LONGEST_FRAME } else { LONGEST_USLP_FRAME };
        if length > longest {
            let reason = format!("a frame of {length} bytes is longer than {longest}");
            return Err(self.refuse(&form.length, reason));
        }
        let fields =
            kind.header_len() + 3 + 2 * usize::from(fhec) + 4 * usize::from(form.ocf) + fecf.len();
        if fields.saturating_add(form.insert_zone) > length {
            let reason =
                format!("a frame of {length} bytes has no room for its header, zones and trailer");
            return Err(self.refuse(&form.length, reason));
        }
        let FrameForm { insert_zone, ocf, .. } = *form;
        Ok(FrameFormat { kind, length, lengths, wide_scid, fhec, insert_zone, ocf, fecf })
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

    fn longest_packet(&self, longest: Option<&Spanned<usize>>) -> Result<usize, MissionError> {
        let Some(longest) = longest else { return Ok(SpaceHeader::LONGEST_PACKET) };
        if (SpaceHeader::LEN + 1..=SpaceHeader::LONGEST_PACKET).contains(longest.get_ref()) {
            return Ok(*longest.get_ref());
        }
        Err(self.refuse(
            longest,
            format!("the longest packet is 7 to {} bytes", SpaceHeader::LONGEST_PACKET),
        ))
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
            let reason = format!(
                "a time {offset} bytes into the packet is not in its secondary header (6 to 64)"
            );
            return Err(self.refuse(&form.apids, reason));
        }
        Ok(TimeRule { apids: self.apids(&form.apids)?, code, offset })
    }

    fn products(
        &self,
        forms: Vec<ProductGroupForm>,
        channels: &Channels<'_>,
    ) -> Result<Vec<ProductGroup>, MissionError> {
        let mut products: Vec<ProductGroup> = Vec::new();
        for form in forms {
            self.name(&form.name)?;
            if products.iter().any(|known| known.name == *form.name.get_ref()) {
                return Err(self.refuse(
                    &form.name,
                    format!("two products are called `{}`", form.name.get_ref()),
                ));
            }
            if let Some(label) = &form.label {
                let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
                if label.get_ref().len() != LABEL_LEN || !label.get_ref().chars().all(fits) {
                    let reason = format!(
                        "a label is {LABEL_LEN} capital letters and digits, like \
                        \"0826VIIRSSCIENCEAS\""
                    );
                    return Err(self.refuse(label, reason));
                }
            }
            let vcids =
                form.vcids.as_ref().map(|vcids| self.vcids(vcids, channels.kind)).transpose()?;
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

/// Application id (4) and product text (14) of a Level-0 file name.
const LABEL_LEN: usize = 18;
