//! The listing of a folder, as WebDAV servers write it (RFC 4918 9.1). Each has its own prefixes of
//! names.

use crate::sink::{MOST_LISTED, RemoteEntry};
use skyhaul_units::ByteCount;

/// What is asked of each file.
pub const ASKED: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><propfind xmlns=\"DAV:\"><prop>\
                         <getcontentlength/><resourcetype/></prop></propfind>";

/// The files of a listing, without folders and without names that begin with a dot.
pub fn files(xml: &str) -> Vec<RemoteEntry> {
    let mut found: Vec<RemoteEntry> =
        elements(xml, "response").into_iter().filter_map(file).take(MOST_LISTED).collect();
    found.sort();
    found
}

fn file(response: &str) -> Option<RemoteEntry> {
    let about = elements(response, "resourcetype");
    if about.iter().any(|kind| kind.contains("collection")) {
        return None;
    }
    let href = elements(response, "href").into_iter().next()?.trim();
    let last = href.rsplit('/').next().filter(|last| !last.is_empty())?;
    let name = decoded(&last.replace("&amp;", "&").replace("&#39;", "'"))?;
    let size = elements(response, "getcontentlength");
    let size = size.first().and_then(|size| size.trim().parse().ok()).unwrap_or(0);
    (!name.starts_with('.')).then(|| RemoteEntry { name, size: ByteCount::new(size) })
}

/// What is within each element of a local name.
fn elements<'a>(xml: &'a str, local: &str) -> Vec<&'a str> {
    let (mut found, mut rest) = (Vec::new(), xml);
    while let Some((_, tag)) = rest.split_once('<') {
        rest = tag;
        let end = tag.find(['>', ' ', '/', '\n', '\t', '\r']).unwrap_or(tag.len());
        let name = &tag[..end];
        if name.rsplit(':').next() != Some(local) {
            continue;
        }
        let Some((head, inner)) = tag.split_once('>') else { break };
        if head.ends_with('/') {
            continue;
        }
        // Each search for an end costs the length of the rest: one that fails is the last.
        let Some((inner, after)) = inner.split_once(&format!("</{name}>")) else { break };
        found.push(inner);
        rest = after;
    }
    found
}

/// Undoes the encoding of a path.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = core::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_whatever_their_prefixes_are() {
        let xml = "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">\
            <D:response><D:href>/in/</D:href><D:propstat><D:prop><D:resourcetype>\
            <D:collection/></D:resourcetype></D:prop></D:propstat></D:response>\
            <D:response xmlns:x=\"y\">\n<D:href>/in/%C3%84%20b.PAN</D:href><D:propstat><D:prop>\
            <lp1:resourcetype/><lp1:getcontentlength>17</lp1:getcontentlength></D:prop>\
            </D:propstat></D:response><D:response><D:href>/in/.x.part</D:href></D:response>\
            </D:multistatus>";
        let entry = RemoteEntry { name: "Ä b.PAN".to_owned(), size: ByteCount::new(17) };
        assert_eq!(files(xml), [entry]);
        let plain = xml.replace("D:", "").replace("lp1:", "");
        assert_eq!(files(&plain).len(), 1);
    }

    #[test]
    fn no_text_is_too_strange() {
        for text in ["", "<", "<response>", "<response><href>%", "<a:response/></a:response>"] {
            files(text);
        }
        assert_eq!(decoded("%4"), None);
        assert_eq!(decoded("%ff"), None);
    }
}
