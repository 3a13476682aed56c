//! The answer to a request for a file: conditions (RFC 9110 13), ranges (14), digests (RFC 9530).

use crate::answer::{AnswerBody, BodyPlace, ByteSpan, FileBody, FileSlice, ServeAnswer};
use crate::http_date::{from_http_date, http_date};
use crate::range::{RangeSelection, selection};
use crate::request::{ServeMethod, ServeRequest, encoded};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use skyhaul_catalogue::ItemFile;
use skyhaul_units::Utc;

/// The answer about a file that was published at a time. Its SHA-256 is its entity tag: the tag
/// stays the same as long as the bytes do, on every node.
pub fn file_answer(request: &ServeRequest, file: &ItemFile, published: Utc) -> ServeAnswer {
    tagged_answer(request, file, published, &tag(file))
}

/// The answer about a file, whose entity tag is another one.
pub fn tagged_answer(
    request: &ServeRequest,
    file: &ItemFile,
    published: Utc,
    tag: &str,
) -> ServeAnswer {
    let of_file = |status| {
        ServeAnswer::empty(status)
            .header("etag", tag)
            .header("last-modified", http_date(published))
            .header("cache-control", "private, no-transform")
    };
    match condition(request, tag, published) {
        Condition::Holds => {}
        Condition::NotModified => return of_file(304),
        Condition::Failed => {
            let what = "the file is not the one that the condition of the request names";
            return ServeAnswer::problem(412, what).header("etag", tag);
        }
    }
    let described = |status| {
        let digest = BASE64_STANDARD.encode(file.sha256);
        of_file(status)
            .header("accept-ranges", "bytes")
            .header("repr-digest", format!("sha-256=:{digest}:"))
            .header("content-disposition", disposition(&file.name))
    };
    let body = |slices| {
        let (place, name) = (BodyPlace::Products, file.name.clone());
        AnswerBody::File(FileBody { place, name, size: file.size, slices })
    };
    // Ranges are defined for GET alone (RFC 9110 14.2).
    let wanted = request
        .header("range")
        .filter(|_| request.method == ServeMethod::Get && is_for_this(request, tag, published));
    let whole = ByteSpan { from: 0, len: file.size };
    let selected = wanted.map_or(RangeSelection::Whole, |header| selection(header, file.size));
    let (answer, slices) = match selected {
        RangeSelection::Nothing => {
            let what = format!("the file has {} bytes, and none that the range names", file.size);
            return ServeAnswer::problem(416, &what)
                .header("content-range", format!("bytes */{}", file.size))
                .header("etag", tag);
        }
        RangeSelection::Whole => {
            let answer = described(200).header("content-type", media(&file.name));
            (answer, vec![FileSlice::Span(whole)])
        }
        RangeSelection::Parts(parts) => match parts[..] {
            [part] => {
                let answer = described(206)
                    .header("content-type", media(&file.name))
                    .header("content-range", content_range(part, file.size));
                (answer, vec![FileSlice::Span(part)])
            }
            _ => {
                let boundary = boundary(file);
                let media = format!("multipart/byteranges; boundary={boundary}");
                let answer = described(206).header("content-type", media);
                (answer, multipart(&parts, file, &boundary))
            }
        },
    };
    ServeAnswer { body: body(slices), ..answer }
}

/// What the conditions of a request come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Holds,
    NotModified,
    Failed,
}

/// In the order of RFC 9110 13.2.2.
fn condition(request: &ServeRequest, tag: &str, published: Utc) -> Condition {
    // Headers have no fraction of a second.
    let is_later = |header: &str| {
        from_http_date(header).is_some_and(|date| http_date(published) != http_date(date))
            && from_http_date(header).is_some_and(|date| published > date)
    };
    if let Some(wanted) = request.header("if-match") {
        if !names(wanted, tag, Comparison::Strong) {
            return Condition::Failed;
        }
    } else if request.header("if-unmodified-since").is_some_and(is_later) {
        return Condition::Failed;
    }
    if let Some(known) = request.header("if-none-match") {
        if names(known, tag, Comparison::Weak) {
            return Condition::NotModified;
        }
    } else if let Some(date) = request.header("if-modified-since")
        && from_http_date(date).is_some()
        && !is_later(date)
    {
        return Condition::NotModified;
    }
    Condition::Holds
}

/// Whether a range is of this file (RFC 9110 13.1.5). The time of publication is a strong
/// validator: another file of the name has another version, and with it another address.
fn is_for_this(request: &ServeRequest, tag: &str, published: Utc) -> bool {
    match request.header("if-range").map(str::trim) {
        None => true,
        Some(known) if known.starts_with('"') => known == tag,
        Some(date) => {
            from_http_date(date).is_some_and(|date| http_date(date) == http_date(published))
        }
    }
}

/// How tags are compared (RFC 9110 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of tags has one. Tags of ours have no comma.
fn names(list: &str, tag: &str, comparison: Comparison) -> bool {
    list.split(',').map(str::trim).any(|known| {
        let plain = match (known.strip_prefix("W/"), comparison) {
            (Some(plain), Comparison::Weak) => plain,
            _ => known,
        };
        plain == "*" || plain == tag
    })
}

/// The entity tag of a file.
pub fn tag(file: &ItemFile) -> String {
    format!("\"{}\"", hex(&file.sha256))
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 64 hexadecimal digits as bytes.
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().enumerate().filter(|_| is_hex) {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    is_hex.then_some(bytes)
}

fn content_range(part: ByteSpan, size: u64) -> String {
    format!("bytes {}-{}/{size}", part.from, part.from + part.len - 1)
}

/// RFC 6266: browsers and downloaders write a file of this name, and show nothing in their window.
fn disposition(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"\\%".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    match plain == name {
        true => format!("attachment; filename=\"{plain}\""),
        false => format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", encoded(name)),
    }
}

fn media(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("json") => "application/json",
        Some("h5") => "application/x-hdf5",
        Some("parquet") => "application/vnd.apache.parquet",
        _ => "application/octet-stream",
    }
}

/// A line that is not in the file: who could write a file with its own SHA-256 in it?
fn boundary(file: &ItemFile) -> String {
    format!("part-{}", &hex(&file.sha256)[..40])
}

/// RFC 9110 14.6.
fn multipart(parts: &[ByteSpan], file: &ItemFile, boundary: &str) -> Vec<FileSlice> {
    let mut slices = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let before = if place == 0 { "" } else { "\r\n" };
        let head = format!(
            "{before}--{boundary}\r\ncontent-type: {}\r\ncontent-range: {}\r\n\r\n",
            media(&file.name),
            content_range(*part, file.size)
        );
        slices.push(FileSlice::Bytes(head.into()));
        slices.push(FileSlice::Span(*part));
    }
    slices.push(FileSlice::Bytes(format!("\r\n--{boundary}--\r\n").into()));
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> ItemFile {
        ItemFile {
            name: "P1.PDS".to_owned(),
            size: 10_000,
            sha256: [0xba; 32],
            md5: None,
            cksum: None,
            is_metadata: false,
        }
    }

    fn published() -> Utc {
        Utc::from_rfc3339("2026-11-23T08:07:13.5Z").unwrap()
    }

    fn ask(headers: &[(&str, &str)]) -> ServeAnswer {
        let mut request = ServeRequest::new(ServeMethod::Get, "/").unwrap();
        for (name, value) in headers {
            request.headers.insert((*name).to_owned(), (*value).to_owned());
        }
        file_answer(&request, &file(), published())
    }

    #[test]
    fn the_whole_file_has_tag_digest_and_name() {
        let answer = ask(&[]);
        assert_eq!((answer.status, answer.len()), (200, 10_000));
        let tag = format!("\"{}\"", "ba".repeat(32));
        assert_eq!(answer.header_of("etag"), Some(&tag[..]));
        let digest = "sha-256=:urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6uro=:";
        assert_eq!(answer.header_of("repr-digest"), Some(digest));
        let name = "attachment; filename=\"P1.PDS\"";
        assert_eq!(answer.header_of("content-disposition"), Some(name));
        assert_eq!(answer.header_of("last-modified"), Some("Mon, 23 Nov 2026 08:07:13 GMT"));
    }

    #[test]
    fn conditions_come_in_the_order_of_the_standard() {
        let tag = &format!("\"{}\"", "ba".repeat(32))[..];
        let weak = &format!("W/{tag}")[..];
        let (same, later) = ("Mon, 23 Nov 2026 08:07:13 GMT", "Mon, 23 Nov 2026 08:07:14 GMT");
        let earlier = "Mon, 23 Nov 2026 08:07:12 GMT";
        for (headers, status) in [
            (&[("if-none-match", tag)][..], 304),
            (&[("if-none-match", weak)], 304),
            (&[("if-none-match", "\"x\", \"y\"")], 200),
            (&[("if-none-match", "*")], 304),
            (&[("if-none-match", "\"x\""), ("if-modified-since", later)], 200),
            (&[("if-modified-since", same)], 304),
            (&[("if-modified-since", earlier)], 200),
            (&[("if-modified-since", "yesterday")], 200),
            (&[("if-match", tag)], 200),
            (&[("if-match", weak)], 412),
            (&[("if-match", "\"x\"")], 412),
            (&[("if-unmodified-since", same)], 200),
            (&[("if-unmodified-since", earlier)], 412),
            (&[("range", "bytes=0-1")], 206),
            (&[("range", "bytes=0-1"), ("if-range", tag)], 206),
            (&[("range", "bytes=0-1"), ("if-range", weak)], 200),
            (&[("range", "bytes=0-1"), ("if-range", "\"x\"")], 200),
            (&[("range", "bytes=0-1"), ("if-range", same)], 206),
            (&[("range", "bytes=0-1"), ("if-range", later)], 200),
            (&[("range", "bytes=0-1"), ("if-none-match", tag)], 304),
            (&[("range", "bytes=10000-")], 416),
        ] {
            assert_eq!(ask(headers).status, status, "{headers:?}");
        }
        let nothing = ask(&[("range", "bytes=10000-")]);
        assert_eq!(nothing.header_of("content-range"), Some("bytes */10000"));
    }

    #[test]
    fn a_head_has_the_length_of_the_whole_whatever_its_range() {
        let mut request = ServeRequest::new(ServeMethod::Head, "/").unwrap();
        request.headers.insert("range".to_owned(), "bytes=0-1".to_owned());
        let answer = file_answer(&request, &file(), published());
        assert_eq!((answer.status, answer.len()), (200, 10_000));
    }

    #[test]
    fn parts_have_heads_and_the_length_says_all_of_it() {
        let one = ask(&[("range", "bytes=-5")]);
        assert_eq!((one.status, one.len()), (206, 5));
        assert_eq!(one.header_of("content-range"), Some("bytes 9995-9999/10000"));
        let two = ask(&[("range", "bytes=0-0,-1")]);
        let media = two.header_of("content-type").unwrap();
        let boundary = media.strip_prefix("multipart/byteranges; boundary=").unwrap();
        let AnswerBody::File(body) = &two.body else { panic!("it is a file") };
        let mut text = String::new();
        for slice in &body.slices {
            match slice {
                FileSlice::Bytes(bytes) => text.push_str(core::str::from_utf8(bytes).unwrap()),
                FileSlice::Span(span) => text.push_str(&"x".repeat(span.len as usize)),
            }
        }
        let part = |range: &str| {
            format!(
                "--{boundary}\r\ncontent-type: application/octet-stream\r\ncontent-range: \
                 bytes {range}/10000\r\n\r\nx\r\n"
            )
        };
        let all = format!("{}{}--{boundary}--\r\n", part("0-0"), part("9999-9999"));
        assert_eq!(text, all);
        assert_eq!(two.len(), all.len() as u64);
    }

    #[test]
    fn a_name_with_other_letters_stands_twice() {
        assert_eq!(
            disposition("Ä\"1.PDS"),
            "attachment; filename=\"__1.PDS\"; filename*=UTF-8''%C3%84%221.PDS"
        );
    }
}
