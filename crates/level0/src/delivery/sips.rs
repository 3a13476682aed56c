//! Delivery records and notices as PVL text.

use super::pvl::{self, Statement};
use super::{Answer, DeliveryRecord, FileAnswer, Notice, NoticeError};
use skyhaul_units::Utc;

/// Whose record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Edos,
    Sips,
}

/// A delivery record's text.
pub fn write_record(record: &DeliveryRecord) -> Vec<u8> {
    pvl::write(&statements(record, Style::Sips), "\n").into_bytes()
}

pub(super) fn statements(record: &DeliveryRecord, style: Style) -> Vec<Statement> {
    let size: u64 = record.files.iter().map(|file| file.size.as_u64()).sum();
    let mut all =
        vec![text("ORIGINATING_SYSTEM", &record.originator), text("CONSUMER_SYSTEM", &record.consumer)];
    if style == Style::Edos {
        all.push(text("DAN_SEQ_NO", &record.sequence.to_string()));
        all.push(text("PRODUCT_NAME", &record.product));
        all.push(text("MISSION", &record.mission));
        all.push(text("TOTAL_FILE_COUNT", &format!("{:04}", record.files.len())));
        all.push(text("AGGREGATE_LENGTH", &size.to_string()));
    } else {
        all.push(text("TOTAL_FILE_COUNT", &record.files.len().to_string()));
    }
    all.push(text("EXPIRATION_TIME", &time(record.expires)));
    let mut group = vec![
        text("DATA_SET_ID", &record.product),
        text("DATA_TYPE", &record.data_type),
        text("DESCRIPTOR", "NOT USED"),
        text("DATA_VERSION", &format!("{:03}", record.version)),
        text("NODE_NAME", &record.originator),
    ];
    for file in &record.files {
        let kind = if file.is_metadata { "METADATA" } else { "DATA" };
        let mut spec = vec![
            text("DIRECTORY_ID", &file.directory),
            text("FILE_ID", &file.name),
            text("FILE_TYPE", kind),
            text("FILE_SIZE", &file.size.as_u64().to_string()),
        ];
        if style == Style::Sips {
            spec.push(text("FILE_CKSUM_TYPE", "SHA256"));
            spec.push(text("FILE_CKSUM_VALUE", &file.sha256));
        }
        group.push(Statement::Object("FILE_SPEC".to_owned(), spec));
    }
    if let Some((first, last)) = record.span {
        group.push(text("BEGINNING_DATE/TIME", &time(first)));
        group.push(text("ENDING_DATE/TIME", &time(last)));
    }
    all.push(Statement::Object("FILE_GROUP".to_owned(), group));
    all
}

/// A notice that everything was taken, or that nothing was and why, as a consumer writes it.
pub fn write_short(failure: Option<&str>, made: Utc) -> Vec<u8> {
    let disposition = failure.unwrap_or(SUCCESSFUL);
    let all =
        [text("MESSAGE_TYPE", "SHORTPAN"), text("DISPOSITION", disposition), text("TIME_STAMP", &time(made))];
    pvl::write(&all, "\n").into_bytes()
}

pub(super) fn parse_notice(bytes: &[u8]) -> Result<Notice, NoticeError> {
    let text = core::str::from_utf8(bytes).map_err(|_| NoticeError("it is no text".to_owned()))?;
    let all = pvl::parse(text).map_err(|error| NoticeError(error.to_string()))?;
    let kind =
        pvl::value(&all, "MESSAGE_TYPE").ok_or_else(|| NoticeError("it has no MESSAGE_TYPE".to_owned()))?;
    let disposition = || {
        let missing = || NoticeError("it has no DISPOSITION".to_owned());
        pvl::value(&all, "DISPOSITION").map(str::to_owned).ok_or_else(missing)
    };
    let answer = match kind {
        "SHORTPAN" => match disposition()? {
            reason if is_successful(&reason) => Answer::Accepted,
            reason => Answer::Failed(reason),
        },
        "LONGPAN" => settled(list(&all, ("NO_OF_FILES", "FILE_NAME"))?),
        "SHORTPDRD" => Answer::Refused(disposition()?),
        "LONGPDRD" => {
            let groups = list(&all, ("NO_FILE_GRPS", "DATA_TYPE"))?;
            let failed =
                groups.into_iter().find_map(|group| Some(format!("{}: {}", group.name, group.failure?)));
            failed.map_or(Answer::Accepted, Answer::Refused)
        }
        other => return Err(NoticeError(format!("`{}` is no kind of notice", shortened(other)))),
    };
    Ok(Notice { sequence: None, answer })
}

/// The entries of a long notice: a count, then a name and a disposition for each.
fn list(all: &[Statement], (count, name): (&str, &str)) -> Result<Vec<FileAnswer>, NoticeError> {
    let named: Option<usize> = pvl::value(all, count).and_then(|count| count.parse().ok());
    let names: Vec<_> = pvl::values(all, name).collect();
    let dispositions: Vec<_> = pvl::values(all, "DISPOSITION").collect();
    if named != Some(names.len()) || names.len() != dispositions.len() {
        return Err(NoticeError(format!("{count} does not agree with the entries")));
    }
    let answer = |(name, reason): (&str, &str)| FileAnswer {
        name: name.to_owned(),
        failure: (!is_successful(reason)).then(|| reason.to_owned()),
    };
    Ok(names.into_iter().zip(dispositions).map(answer).collect())
}

fn settled(files: Vec<FileAnswer>) -> Answer {
    let is_fine = files.iter().all(|file| file.failure.is_none());
    if is_fine { Answer::Accepted } else { Answer::Files(files) }
}

fn is_successful(disposition: &str) -> bool {
    matches!(disposition, SUCCESSFUL | "OK")
}

fn text(key: &str, value: &str) -> Statement {
    Statement::Value(key.to_owned(), value.to_owned())
}

/// ISO 8601 to the second.
fn time(at: Utc) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(..19).unwrap_or(&text))
}

/// Enough of a text to recognise it in a message.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

const SUCCESSFUL: &str = "SUCCESSFUL";
