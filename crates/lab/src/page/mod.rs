//! Parts of self-contained HTML pages: the document with its style, and drawings as SVG.
//!
//! A page needs nothing from elsewhere, runs no scripts, follows the reader's light or dark scheme, and is the same for
//! the same content.

mod chart;

pub use chart::{Chart, HEIGHT, Scale, WIDTH, escape, middle, stroke};

/// A whole document; `style` is added to the style that all pages have, `body` is HTML.
pub fn document(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{}{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        include_str!("style.css"),
        title = escape(title),
    )
}
