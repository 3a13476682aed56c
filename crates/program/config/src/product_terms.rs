//! The terms of a subscription to products: which, in what order, with which record, and what is
//! done about failures and notices.

use crate::name::from_text;
use crate::section::section;
use skyhaul_catalogue::Filter;
use skyhaul_dispatch::sips::FileType;
use skyhaul_dispatch::{AnswerRules, DeliveryOrdering, MissingAnswer, RetryRules, VersionRule};
use skyhaul_units::Duration;
use std::str::FromStr;

section! {
    /// The types of files in `sips` records, from the consumers' list: `SCIENCE`, `HDF`, `HDF-EOS`,
    /// `BROWSE`, `METADATA`, `BROWSE_METADATA`, `QA_METADATA`, `PRODHIST`, `QA`, `TGZ` or
    /// `LINKAGE`.
    "[subscription.file_types]" FileTypesEntry applies at_once {
        /// That of data files.
        data: FileType => "SCIENCE",
        /// That of construction records and accounts.
        record: FileType => "METADATA",
    }
}

section! {
    /// The notice that a consumer answers a delivery record with.
    "[subscription.answer]" AnswerEntry applies at_once checked by AnswerEntry::check {
        /// How long it is awaited after the record.
        within: Duration => "7 d",
        /// What is done if none comes: `settle`, the delivery ends without; `remind`, the record is
        /// written again; `again`, all is sent again.
        missing: MissingName => "settle",
        /// The most attempts: if the consumer reports that it could not take a product, and if no
        /// notice comes.
        attempts: u32 => "3",
    }
}

section! {
    /// When failed attempts are repeated. A full disk at the destination is waited for without end.
    "[subscription.retry]" RetryEntry applies at_once checked by RetryEntry::check {
        /// The pause after the first failure; each further failure doubles it.
        first: Duration => "10 s",
        /// The longest pause.
        most: Duration => "30 min",
        /// How long failures in a row are borne; then the delivery is `failed`. Three days are a
        /// consumer's long weekend.
        r#for: Duration => "3 d",
    }
}

/// A filter over products.
#[derive(Debug, Clone)]
pub struct ItemFilter {
    text: String,
    filter: Filter,
}

/// A folder below a destination; empty where it is the destination itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutletFolder(String);

/// Which delivery goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderName {
    /// The newest product.
    Newest,
    /// The oldest product.
    Oldest,
    /// The one with the nearest deadline.
    Deadline,
}

/// Which versions are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionsName {
    /// The latest.
    Latest,
    /// Each.
    All,
    /// The first.
    First,
}

/// The form of delivery records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordForm {
    /// None.
    None,
    /// PVL text.
    Sips,
    /// Binary, as EDOS does.
    Edos,
    /// Cloud notification messages.
    Cnm,
}

/// What is done if no notice comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingName(MissingAnswer);

impl AnswerEntry {
    fn check(&self) -> Result<(), String> {
        if self.within == Duration::ZERO {
            return Err("no notice comes within 0 s; write `within` like \"6 h\"".to_owned());
        }
        if self.attempts == 0 {
            return Err("0 attempts deliver nothing; write `attempts` from 1 on".to_owned());
        }
        Ok(())
    }

    /// As deliveries use it.
    pub const fn rules(&self) -> AnswerRules {
        AnswerRules { within: self.within, missing: self.missing.0 }
    }

    /// What is done if no notice comes.
    pub const fn missing(&self) -> MissingAnswer {
        self.missing.0
    }
}

impl RetryEntry {
    fn check(&self) -> Result<(), String> {
        if self.first == Duration::ZERO || self.first > self.most {
            return Err(format!(
                "a first pause of {} does not fit a longest one of {}; write `first` up to `most`, \
                 above 0 s",
                self.first, self.most
            ));
        }
        Ok(())
    }

    /// As deliveries use it.
    pub const fn rules(&self) -> RetryRules {
        RetryRules { first: self.first, most: self.most, span: self.r#for }
    }
}

impl ItemFilter {
    /// The filter.
    pub const fn filter(&self) -> &Filter {
        &self.filter
    }
}

impl std::fmt::Display for ItemFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// One text is one filter.
impl PartialEq for ItemFilter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
impl Eq for ItemFilter {}

impl OutletFolder {
    /// The name of a file in it.
    pub fn name(&self, file: &str) -> String {
        if self.0.is_empty() { file.to_owned() } else { format!("{}/{file}", self.0) }
    }

    /// Its path; empty where it is the destination itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OrderName {
    /// As deliveries use it.
    pub const fn ordering(self) -> DeliveryOrdering {
        match self {
            Self::Newest => DeliveryOrdering::Newest,
            Self::Oldest => DeliveryOrdering::Oldest,
            Self::Deadline => DeliveryOrdering::Deadline,
        }
    }
}

impl VersionsName {
    /// As deliveries use it.
    pub const fn rule(self) -> VersionRule {
        match self {
            Self::Latest => VersionRule::Latest,
            Self::All => VersionRule::All,
            Self::First => VersionRule::First,
        }
    }
}

impl FromStr for ItemFilter {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let filter = text.parse().map_err(|error: skyhaul_catalogue::FilterError| {
            let (what, help) = error.what.split_once("; ").unwrap_or((
                &error.what,
                "write it like \"mission = 'aqua' AND kind = 'session'\"",
            ));
            format!("the filter is wrong at character {}: {what}; {help}", error.at)
        })?;
        Ok(Self { text: text.to_owned(), filter })
    }
}

impl FromStr for OutletFolder {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let is_bad = |part: &str| part.is_empty() || part.starts_with('.');
        if text.is_empty()
            || (text.len() <= LONGEST_FOLDER
                && !text.contains(char::is_control)
                && !text.split('/').any(is_bad))
        {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "`{}` is not a folder below a destination; write one like \"modis/science\", without a \
             leading slash, dot or `..`",
            text.escape_debug()
        ))
    }
}

impl FromStr for OrderName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "newest" => Ok(Self::Newest),
            "oldest" => Ok(Self::Oldest),
            "deadline" => Ok(Self::Deadline),
            _ => Err(format!(
                "`{text}` is not an order of deliveries; write newest, oldest or deadline"
            )),
        }
    }
}

impl FromStr for VersionsName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "latest" => Ok(Self::Latest),
            "all" => Ok(Self::All),
            "first" => Ok(Self::First),
            _ => Err(format!("`{text}` is not a rule of versions; write latest, all or first")),
        }
    }
}

impl FromStr for RecordForm {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "sips" => Ok(Self::Sips),
            "edos" => Ok(Self::Edos),
            "cnm" => Ok(Self::Cnm),
            _ => Err(format!("`{text}` is not a form of records; write sips, edos, cnm or none")),
        }
    }
}

impl FromStr for MissingName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "settle" => Ok(Self(MissingAnswer::Settle)),
            "remind" => Ok(Self(MissingAnswer::Remind)),
            "again" => Ok(Self(MissingAnswer::Again)),
            _ => Err(format!(
                "`{text}` does not say what follows a missing notice; write settle, remind or again"
            )),
        }
    }
}

from_text!(ItemFilter, OutletFolder, OrderName, VersionsName, RecordForm, MissingName);

/// S3 takes keys of 1,024 bytes, with the file's name.
const LONGEST_FOLDER: usize = 512;
