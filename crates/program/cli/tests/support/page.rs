//! A written HTML page: whether it is well-formed and self-contained, and what its tables hold.

use std::path::Path;

/// A page that was found well-formed.
pub struct Page(String);

impl Page {
    /// Reads a page; it must be well-formed, and self-contained.
    #[track_caller]
    pub fn read(path: &Path) -> Self {
        let source = std::fs::read_to_string(path).unwrap();
        assert!(source.starts_with("<!DOCTYPE html>\n<html"), "{}", path.display());
        for banned in ["<script", "http:", "https:", "src=", "href=", "@import", "url("] {
            assert!(!source.contains(banned), "{banned} in {}", path.display());
        }
        assert_balanced(&source);
        Self(source)
    }

    /// The HTML.
    pub fn source(&self) -> &str {
        &self.0
    }

    /// The text of the element with this id.
    #[track_caller]
    pub fn text(&self, id: &str) -> &str {
        self.after(id).split_once('>').unwrap().1.split('<').next().unwrap()
    }

    /// The number in the element with this id.
    #[track_caller]
    pub fn number(&self, id: &str) -> u64 {
        self.text(id).replace('\u{202f}', "").parse().unwrap()
    }

    /// The cells of the table with this id, or of all tables in the part of the page with it, by
    /// row.
    #[track_caller]
    pub fn rows(&self, id: &str) -> Vec<Vec<String>> {
        let part = self.after(id).split("</section>").next().unwrap();
        let cell =
            |cell: &str| cell.split_once('>').unwrap().1.split('<').next().unwrap().to_owned();
        let row = |row: &str| {
            row.split("</t")
                .filter(|cell| cell.contains("<t"))
                .map(|text| {
                    let start = text.rfind("<t").unwrap();
                    cell(&text[start..])
                })
                .collect()
        };
        part.split("<tr>").skip(1).map(|text| row(text.split("</tr>").next().unwrap())).collect()
    }

    #[track_caller]
    fn after(&self, id: &str) -> &str {
        let mark = format!("id=\"{id}\"");
        self.0.split_once(&mark).unwrap_or_else(|| panic!("nothing has {mark}")).1
    }
}

/// Every element ends, and in order; every attribute value has quotation marks; `<` and `&` appear
/// only as markup.
#[track_caller]
fn assert_balanced(source: &str) {
    let body = source.split_once("<html").unwrap().1;
    let (style_start, style_end) = (body.find("<style>").unwrap(), body.find("</style>").unwrap());
    let text = format!("<html{}{}", &body[..style_start], &body[style_end + "</style>".len()..]);
    let mut open: Vec<&str> = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, words) = part.split_once('>').expect("every tag ends");
        let name = tag.trim_end_matches('/').split_whitespace().next().unwrap();
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "</{tag}> ends what is open"),
            None if tag.ends_with('/') || VOID.contains(&name) => {}
            None => open.push(name),
        }
        assert_eq!(tag.matches("=\"").count() * 2, tag.matches('"').count(), "<{tag}>");
        for entity in words.split('&').skip(1) {
            assert!(
                ["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)),
                "&{entity}"
            );
        }
    }
    assert!(open.is_empty(), "{open:?} never end");
}

/// Elements that have no end.
const VOID: [&str; 1] = ["meta"];
