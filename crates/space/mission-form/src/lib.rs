//! The tables and keys of a mission's TOML.
//!
//! [`MissionForm::parse`] refuses keys that do not exist and values of a wrong type. What the
//! values may be is checked by `ccsds::mission`, and `docs/how-to/missions.md` describes each key.
//! It is a crate of its own because its generated code is large and is run once for each mission:
//! it is not optimised in tests.

#![allow(missing_docs, reason = "docs/how-to/missions.md describes each key under its own name")]

use serde::Deserialize;
pub use toml::Spanned;

impl MissionForm {
    /// Reads the text of a mission.
    ///
    /// # Errors
    /// What the TOML library says, with the place.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissionForm {
    pub name: Spanned<String>,
    pub title: String,
    pub scids: Spanned<Vec<u16>>,
    #[serde(default)]
    pub content: Option<ContentForm>,
    pub frame: FrameForm,
    pub coding: Spanned<CodingForm>,
    #[serde(default)]
    pub channel: Vec<ChannelForm>,
    #[serde(default)]
    pub packets: PacketsForm,
    #[serde(default)]
    pub time: Vec<TimeForm>,
    #[serde(default)]
    pub product: Vec<ProductGroupForm>,
    #[serde(default)]
    pub shared_counter: Vec<CounterForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameForm {
    pub kind: KindForm,
    pub length: Spanned<usize>,
    #[serde(default)]
    pub variable_length: Option<Spanned<bool>>,
    #[serde(default)]
    pub truncated_length: Option<Spanned<usize>>,
    #[serde(default)]
    pub scid_bits: Option<Spanned<u8>>,
    #[serde(default)]
    pub fhec: Option<Spanned<bool>>,
    #[serde(default)]
    pub insert_zone: usize,
    #[serde(default)]
    pub ocf: bool,
    #[serde(default)]
    pub fecf: bool,
    #[serde(default)]
    pub fecf_bits: Option<Spanned<u8>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindForm {
    Tm,
    Aos,
    Uslp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodingForm {
    #[serde(default)]
    pub marker: Option<Spanned<String>>,
    pub randomiser: RandomiserForm,
    #[serde(default)]
    pub derandomise_after_decoding_from: Option<Spanned<usize>>,
    #[serde(default)]
    pub reed_solomon: Option<Spanned<ReedSolomonForm>>,
    #[serde(default)]
    pub ldpc: Option<Spanned<LdpcForm>>,
    #[serde(default)]
    pub convolutional: Option<ConvolutionalForm>,
    #[serde(default)]
    pub line_code: LineCodeForm,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LdpcForm {
    pub code: LdpcCodeForm,
    #[serde(default)]
    pub rate: Option<Spanned<String>>,
    #[serde(default)]
    pub k: Option<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LdpcCodeForm {
    C2,
    Ar4ja,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalForm {
    pub rate: Spanned<String>,
    #[serde(default)]
    pub second_output: Option<SecondOutputForm>,
    #[serde(default)]
    pub modulation: ModulationForm,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondOutputForm {
    Inverted,
    Plain,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum ModulationForm {
    Bpsk,
    #[default]
    Qpsk,
}

#[derive(Deserialize, Default)]
pub enum LineCodeForm {
    #[default]
    #[serde(rename = "nrz-l")]
    NrzL,
    #[serde(rename = "nrz-m")]
    NrzM,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomiserForm {
    Ccsds255,
    Ccsds131071,
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReedSolomonForm {
    pub corrects: Spanned<usize>,
    pub interleave: usize,
    pub basis: BasisForm,
    #[serde(default)]
    pub virtual_fill: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BasisForm {
    Dual,
    Conventional,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelForm {
    pub vcids: Spanned<Vec<u8>>,
    pub content: ContentForm,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub enum ContentForm {
    Packets,
    Idle,
    Opaque,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct PacketsForm {
    #[serde(default)]
    pub longest: Option<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeForm {
    pub apids: Spanned<Vec<String>>,
    pub code: TimeCodeForm,
    #[serde(default)]
    pub offset: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeCodeForm {
    Cds8,
    Cds6,
    #[serde(rename = "cds6-since-2000")]
    Cds6Since2000,
    EosCuc,
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductGroupForm {
    pub name: Spanned<String>,
    #[serde(default)]
    pub label: Option<Spanned<String>>,
    #[serde(default)]
    pub vcids: Option<Spanned<Vec<u8>>>,
    #[serde(default)]
    pub apids: Option<Spanned<Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterForm {
    pub apids: Spanned<Vec<String>>,
}
