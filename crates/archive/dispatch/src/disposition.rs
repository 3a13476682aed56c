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
        } else if let Some((_, meant)) = CODES.iter().find(|(code, _)| text.starts_with(code)) {
            *meant
        } else if is_any(REFUSED) {
            Self::Refused
        } else if is_any(WAIT) {
            Self::Wait
        } else {
            Self::SendAgain
        }
    }

    /// Whether a text is one that consumers are known to send.
    pub fn is_listed(text: &str) -> bool {
        let text = text.trim().to_ascii_uppercase();
        Self::of(&text) != Self::SendAgain || AGAIN.iter().any(|entry| text.contains(entry))
    }
}

/// The codes of cloud notification messages (version 1.3 and later). What the consumer says behind
/// the code decides nothing.
const CODES: [(&str, Disposition); 3] = [
    ("TRANSFER_ERROR", Disposition::SendAgain),
    ("PROCESSING_ERROR", Disposition::Wait),
    ("VALIDATION_ERROR", Disposition::Refused),
];
/// Parts of dispositions that name a fault of the way.
const AGAIN: &[&str] = &[
    "NETWORK FAILURE",
    "NOT FOUND",
    "SIZE CHECK FAILURE",
    "CONNECTION",
    "FTP FAILURE",
    "KFTP FAILURE",
    "CHECKSUM",
    "I/O ERROR",
    "FAILED",
    "TRANSFER_ERROR",
];

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
            ("VALIDATION_ERROR: no file", Disposition::Refused),
            ("PROCESSING_ERROR: INVALID", Disposition::Wait),
            ("TRANSFER_ERROR: INVALID", Disposition::SendAgain),
        ] {
            assert_eq!(Disposition::of(text), wanted, "{text}");
            assert!(Disposition::is_listed(text), "{text}");
        }
        assert!(!Disposition::is_listed("NO IDEA"));
    }
}
