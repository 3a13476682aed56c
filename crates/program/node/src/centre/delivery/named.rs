//! How a notice names its delivery.

use skyhaul_catalogue_io::DeliveryNames;
use skyhaul_dispatch::{Notice, NoticeContent};

/// The names in a notice that came in a file called `record`, without suffix.
pub fn names<'a>(record: Option<&'a str>, notice: &'a Notice) -> DeliveryNames<'a> {
    let files = match &notice.answer {
        NoticeContent::Files(files) => files.iter().map(|file| file.name.as_str()).collect(),
        _ => Vec::new(),
    };
    DeliveryNames { sequence: notice.sequence, record, files }
}
