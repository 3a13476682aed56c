//! Deliveries: products on their way to destinations, delivery records that announce files, and the
//! notices in return.
//!
//! [`Delivery`] is the state of one product on its way to one destination, and [`DestinationQueue`]
//! says which of a destination's deliveries begins next. Neither knows a clock, a disk or a socket.
//!
//! Records have three forms: binary records and notices as EDOS exchanges them ([`edos`]), PVL text
//! as the science data processing systems do ([`sips`]; [`pvl`]), and cloud notification messages
//! ([`cnm`]). The ICDs (423-ICD-EDOS/EGS, 423-41-57) are not public: the layouts are what
//! independent readers and writers agree on. Parsers take any bytes; [`check()`] says what the
//! other side says of a record or a notice.

mod check;
mod checksum;
pub mod cnm;
mod delivery;
mod disposition;
pub mod edos;
mod failure;
pub mod pvl;
mod queue;
mod rules;
pub mod sips;

pub use check::{CheckFinding, CheckTerms, CheckedKind, RecordCheck, check};
pub use checksum::{Checksum, ChecksumKind, Summing};
pub use delivery::{Delivery, DeliveryInput, DeliveryOrder, DeliveryOutput, DeliveryState, Proof};
pub use disposition::Disposition;
pub use failure::{DeliveryFailure, FailureKind};
pub use queue::{DeliveryOrdering, DestinationQueue, QueueLane, QueuedDelivery};
pub use rules::{AnswerRules, DeliveryRules, MissingAnswer, PromiseRule, RetryRules, VersionRule};
use skyhaul_units::{ByteCount, Utc, printable};

/// What announces one product's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Who delivers.
    pub originator: String,
    /// To whom.
    pub consumer: String,
    /// Counts deliveries: the number by which notices name this one.
    pub sequence: u32,
    /// The product.
    pub product: String,
    /// The mission.
    pub mission: String,
    /// What kind of data, as the consumer knows it.
    pub data_type: String,
    /// The product's version.
    pub version: u32,
    /// An expedited data set.
    pub is_expedited: bool,
    /// When the record was made.
    pub created: Utc,
    /// Until when the files stay.
    pub expires: Utc,
    /// The first and the last packet's time, where packets have one.
    pub span: Option<(Utc, Utc)>,
    /// The files.
    pub files: Vec<DeliveredFile>,
}

/// A file that is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredFile {
    /// The folder, as the consumer sees it; in a cloud notification message its address.
    pub directory: String,
    /// The name.
    pub name: String,
    /// The length.
    pub size: ByteCount,
    /// Its checksum, where records say one.
    pub checksum: Option<Checksum>,
    /// Says what the others hold: a construction record or an account.
    pub is_metadata: bool,
}

/// What a consumer answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The delivery that is answered, where the notice says so.
    pub sequence: Option<u32>,
    /// What it says.
    pub answer: NoticeContent,
}

/// What a notice says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeContent {
    /// Everything was taken.
    Accepted,
    /// What became of each file.
    Files(Vec<FileAnswer>),
    /// Something is wrong with all of it.
    Failed(String),
    /// The record itself was refused, and nothing was taken.
    Refused(String),
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAnswer {
    /// Its name, or its group's data type.
    pub name: String,
    /// Why it was not taken; none where it was.
    pub failure: Option<String>,
}

/// Bytes that are no notice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an acceptance notice: {0}")]
pub struct NoticeError(pub String);

impl Notice {
    /// Reads a notice of any form.
    ///
    /// # Errors
    /// [`NoticeError`] says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoticeError> {
        if bytes.len() > LONGEST_NOTICE {
            return Err(NoticeError(format!("{} bytes are more than a notice has", bytes.len())));
        }
        match bytes.trim_ascii_start().first() {
            _ if bytes.first() == Some(&edos::NOTICE) => edos::parse_notice(bytes),
            Some(b'{') => cnm::parse_response(bytes),
            _ => sips::parse_notice(bytes),
        }
    }

    /// Why the delivery failed; none where everything was taken.
    pub fn failure(&self) -> Option<String> {
        let said = match &self.answer {
            NoticeContent::Accepted => None,
            NoticeContent::Failed(reason) | NoticeContent::Refused(reason) => Some(reason.clone()),
            NoticeContent::Files(files) => {
                let failed =
                    files.iter().find_map(|file| Some((&file.name, file.failure.as_ref()?)));
                failed.map(|(name, failure)| format!("{name}: {failure}"))
            }
        };
        said.map(|said| printable(&said, REASON_MAX))
    }
}

/// Bytes of a consumer's words that are kept: they go into the catalogue, the log and terminals.
const REASON_MAX: usize = 500;

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 1 MiB: 4,000 files.
const LONGEST_NOTICE: usize = 1 << 20;

#[cfg(test)]
mod tests;
