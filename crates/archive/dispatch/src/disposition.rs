//! What a consumer's disposition asks for: to send again, to wait, or to stop.

/// What a disposition asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disposition {
    /// It was taken.
    Taken,
    /// The way or the copy was at fault: send again.
    SendAgain,
    /// The consumer itself is at fault: send again after the longest pause.
    Wait,
    /// The record or the product is at fault: sending again changes nothing.
    Refused,
}

impl Disposition {
    /// Of the text in a notice (ECS-SIPS ICD, volume 0, 4.5). A text that is on no list is taken
    /// for a fault of the way: the attempts are bounded.
    pub fn of(text: &str) -> Self {
        let text = text.trim().to_ascii_uppercase();
        let is_any = |list: &[&str]| list.iter().any(|entry| text.contains(entry));
        if matches!(text.as_str(), "SUCCESSFUL" | "OK") {
            Self::Taken
        } else if is_any(REFUSED) {
            Self::Refused
        } else if is_any(WAIT) {
            Self::Wait
        } else {
            Self::SendAgain
        }
    }
}

/// Parts of dispositions that name a fault of the record or the product. A size that does not match
/// after the transfer is a fault of the copy, and on the other list.
const REFUSED: &[&str] = &[
    "INVALID",
    "UNSUPPORTED CHECKSUM",
    "MISSING FILE_CKSUM",
    "INCORRECT NUMBER OF",
    "DATA CONVERSION FAILURE",
    "METADATA PREPROCESSING ERROR",
    "DUPLICATE FILE NAME",
];
/// Parts of dispositions that name a fault of the consumer.
const WAIT: &[&str] = &["INTERNAL ERROR", "INSUFFICIENT", "RESOURCE ALLOCATION"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disposition_that_consumers_send_asks_for_one_thing() {
        for (text, wanted) in [
            ("SUCCESSFUL", Disposition::Taken),
            ("ok ", Disposition::Taken),
            ("NETWORK FAILURE", Disposition::SendAgain),
            ("ALL FILE GROUPS/FILES NOT FOUND", Disposition::SendAgain),
            ("POST-TRANSFER FILE SIZE CHECK FAILURE", Disposition::SendAgain),
            ("UNABLE TO ESTABLISH FTP/KFTP CONNECTION", Disposition::SendAgain),
            ("FTP/KFTP FAILURE", Disposition::SendAgain),
            ("CHECKSUM VERIFICATION FAILURE", Disposition::SendAgain),
            ("FILE I/O ERROR", Disposition::SendAgain),
            ("FAILED", Disposition::SendAgain),
            ("ECS INTERNAL ERROR", Disposition::Wait),
            ("INVALID FILE COUNT", Disposition::Refused),
            ("INVALID PVL STATEMENT", Disposition::Refused),
            ("INVALID FILE_CKSUM_VALUE", Disposition::Refused),
            ("MISSING FILE_CKSUM_TYPE PARAMETER", Disposition::Refused),
            ("UNSUPPORTED CHECKSUM TYPE", Disposition::Refused),
            ("INCORRECT NUMBER OF SCIENCE FILES", Disposition::Refused),
            ("DATA CONVERSION FAILURE", Disposition::Refused),
        ] {
            assert_eq!(Disposition::of(text), wanted, "{text}");
        }
    }
}
