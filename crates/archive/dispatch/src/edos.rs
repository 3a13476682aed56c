//! Delivery records and notices in the binary form of EDOS: a ground message header of 24 octets,
//! then PVL text behind two labels, or a table of files.
//!
//! Not certain, for want of the ICD: the two labels of 20 characters are CCSDS 620.0-B labels of a
//! PVL text here; a notice's count of files is read as four digits or as a binary number, whichever
//! agrees with its length.

use super::pvl::{self, Statement};
use super::sips::{text, time};
use super::{DeliveryRecord, FileAnswer, Notice, NoticeContent, NoticeError};
use skyhaul_units::Utc;

/// The first octet of a notice.
pub(crate) const NOTICE: u8 = 0x0C;
const PDS_RECORD: u8 = 0x09;
const EDS_RECORD: u8 = 0x0B;
const SOURCE_EDOS: u8 = 0x01;
const DESTINATION_GSFC: u8 = 0x06;
pub(crate) const HEADER: usize = 24;
/// The two labels in front of the text.
pub(crate) const LABELS: usize = 40;

/// A delivery record's bytes. Its length field, of 16 bits, is zero where the text is longer.
pub fn write_record(record: &DeliveryRecord) -> Vec<u8> {
    let text = pvl::write(&statements(record), "\x0C\n");
    let labels = format!("CCSD3ZF0000100000001CCSD1K000006{:08}", text.len().min(99_999_999));
    let kind = if record.is_expedited { EDS_RECORD } else { PDS_RECORD };
    let mut out = header(kind, record.created, labels.len() + text.len()).to_vec();
    out.extend(labels.as_bytes());
    out.extend(text.as_bytes());
    out
}

/// Whether bytes begin as a delivery record does: with its octet and, behind the header, a label.
pub(crate) fn is_record(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&PDS_RECORD | &EDS_RECORD))
        && bytes.get(HEADER..).is_some_and(|body| body.starts_with(b"CCSD"))
}

fn statements(record: &DeliveryRecord) -> Vec<Statement> {
    let size: u64 = record.files.iter().map(|file| file.size.as_u64()).sum();
    let mut group = vec![
        text("DATA_SET_ID", &record.product),
        text("DATA_TYPE", &record.data_type),
        text("DESCRIPTOR", "NOT USED"),
        text("DATA_VERSION", &format!("{:03}", record.version)),
        text("NODE_NAME", &record.originator),
    ];
    for file in &record.files {
        let kind = if file.is_metadata { "METADATA" } else { "DATA" };
        let spec = vec![
            text("DIRECTORY_ID", &file.directory),
            text("FILE_ID", &file.name),
            text("FILE_TYPE", kind),
            text("FILE_SIZE", &file.size.as_u64().to_string()),
        ];
        group.push(Statement::Object("FILE_SPEC".to_owned(), spec));
    }
    if let Some((first, last)) = record.span {
        group.push(text("BEGINNING_DATE/TIME", &time(first)));
        group.push(text("ENDING_DATE/TIME", &time(last)));
    }
    vec![
        text("ORIGINATING_SYSTEM", &record.originator),
        text("CONSUMER_SYSTEM", &record.consumer),
        text("DAN_SEQ_NO", &record.sequence.to_string()),
        text("PRODUCT_NAME", &record.product),
        text("MISSION", &record.mission),
        text("TOTAL_FILE_COUNT", &format!("{:04}", record.files.len())),
        text("AGGREGATE_LENGTH", &size.to_string()),
        text("EXPIRATION_TIME", &time(record.expires)),
        Statement::Object("FILE_GROUP".to_owned(), group),
    ]
}

/// A notice's bytes, as a consumer writes it.
pub fn write_notice(sequence: u32, made: Utc, files: &[(&str, &str, u8)]) -> Vec<u8> {
    let body = 16 + files.len() * FILE;
    let mut out = header(NOTICE, made, body).to_vec();
    out.extend(&((u32::from(NOTICE) << 24) | (body as u32 & 0xFF_FFFF)).to_be_bytes());
    out.extend([0; 4]);
    out.extend(sequence.to_be_bytes());
    out.extend((files.len() as u32).to_be_bytes());
    for (directory, name, disposition) in files {
        out.extend(padded::<DIRECTORY>(directory));
        out.extend(padded::<NAME>(name));
        out.push(*disposition);
    }
    out
}

pub(crate) fn parse_notice(bytes: &[u8]) -> Result<Notice, NoticeError> {
    let refuse = |reason: &str| NoticeError(reason.to_owned());
    let body = bytes.get(HEADER..).ok_or_else(|| refuse("it ends inside its header"))?;
    let (head, files) =
        body.split_at_checked(16).ok_or_else(|| refuse("it ends before its list of files"))?;
    if head[0] != NOTICE {
        return Err(refuse("its second part is not a notice's"));
    }
    let word =
        |at: usize| -> [u8; 4] { head[at..at + 4].try_into().expect("the head has 16 octets") };
    let listed = files.len() / FILE;
    let digits =
        core::str::from_utf8(&head[12..16]).ok().and_then(|text| text.parse::<usize>().ok());
    let agrees = digits == Some(listed) || u32::from_be_bytes(word(12)) as usize == listed;
    if !files.len().is_multiple_of(FILE) || !agrees {
        return Err(refuse("its length does not agree with its count of files"));
    }
    let answers = files.chunks_exact(FILE).map(|file| {
        let name = String::from_utf8_lossy(&file[DIRECTORY..DIRECTORY + NAME]);
        let failure = disposition(file[FILE - 1]);
        FileAnswer { name: name.trim_matches(['\0', ' ']).to_owned(), failure }
    });
    let answers: Vec<_> = answers.collect();
    let sequence = Some(u32::from_be_bytes(word(8)));
    let is_fine = answers.iter().all(|file| file.failure.is_none());
    Ok(Notice {
        sequence,
        answer: if is_fine { NoticeContent::Accepted } else { NoticeContent::Files(answers) },
    })
}

fn disposition(code: u8) -> Option<String> {
    Some(match code {
        0 => return None,
        3 => "checksum or size is wrong".to_owned(),
        8 => "the file cannot be read".to_owned(),
        9 => "the construction record is wrong".to_owned(),
        other => format!("disposition {other}"),
    })
}

fn header(kind: u8, at: Utc, length: usize) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = kind;
    header[2] = SOURCE_EDOS;
    header[3] = DESTINATION_GSFC;
    header[5..12].copy_from_slice(&pb5(at));
    header[18..20].copy_from_slice(&u16::try_from(length).unwrap_or(0).to_be_bytes());
    header
}

/// PB5 code: a flag bit, 14 bits of days since 1995-10-10, 17 bits of seconds, 10 of ms, 10 of us,
/// 4 zero. A day outside is held at the nearer end.
fn pb5(at: Utc) -> [u8; 7] {
    let day = (at.day() - DAY_0).clamp(0, (1 << 14) - 1).cast_unsigned();
    let micros = at.in_day().as_micros();
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    let bits = 1 << 55 | day << 41 | seconds << 24 | (rest / 1_000) << 14 | (rest % 1_000) << 4;
    let [_, bytes @ ..] = bits.to_be_bytes();
    bytes
}

/// 1995-10-10, modified Julian day 50000, in days since 1970.
const DAY_0: i64 = 50_000 - 40_587;
pub(crate) const DIRECTORY: usize = 216;
pub(crate) const NAME: usize = 40;
pub(crate) const FILE: usize = DIRECTORY + NAME + 1;

/// Text of a fixed length, cut or filled with zeros.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let len = text.len().min(N);
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Duration;

    #[test]
    fn times_are_in_pb5() {
        let at = Utc::from_day(DAY_0 + 3, Duration::from_micros(12 * 3_600 * 1_000_000 + 7_009));
        // 1 | 3 in 14 bits | 43200 in 17 | 7 in 10 | 9 in 10 | 0000
        let bits = 1u64 << 55 | 3 << 41 | 43_200 << 24 | 7 << 14 | 9 << 4;
        assert_eq!(pb5(at), bits.to_be_bytes()[1..]);
        assert_eq!(pb5(Utc::from_day(0, Duration::ZERO)), [0x80, 0, 0, 0, 0, 0, 0]);
    }
}
