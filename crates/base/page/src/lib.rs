//! Parts of self-contained HTML pages: the document with its style, and drawings as SVG.
//!
//! ```
//! use skyhaul_page::{Chart, HEIGHT, Scale, document};
//! let scale = Scale::even([0.0, 4.0].into_iter());
//! let mut chart = Chart::new("Rate over time", HEIGHT);
//! chart.upright(&scale, "Mbit/s");
//! chart.frame();
//! assert!(document("Rates", "", &chart.finish()).starts_with("<!DOCTYPE html>"));
//! ```
//!
//! A page needs nothing from elsewhere, runs no scripts, follows the reader's light or dark scheme,
//! and is the same for the same content.

mod chart;

pub use chart::{
    Chart, HEIGHT, LegendKey, Point, RectangleStyle, Scale, WIDTH, escape, middle, stroke,
};

/// For [`document`]: what reports have that are read at a glance and printed, with figures as tiles
/// and drawings side by side.
pub const REPORT_STYLE: &str = include_str!("report.css");

/// A whole document; `style` is added to the style that all pages have, `body` is HTML.
pub fn document(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{COLOURS}{STYLE}{DRAWING}{style}</style>\n</head>\n<body>\n{body}</body>\n\
         </html>\n",
        title = escape(title),
    )
}

/// A finished drawing as a file of its own, for a page that takes pictures but no styles: it has
/// its own ground, and follows the reader's light or dark scheme as the pages do.
pub fn picture(svg: &str) -> String {
    let (head, rest) = svg.split_once('>').unwrap_or((svg, ""));
    let head = head.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!(
        "{head}><style>\n{COLOURS}{DRAWING}svg {{ font-family: system-ui, \"DejaVu Sans\", \
        sans-serif; }}\n\
         .ground {{ fill: var(--panel); }}\n</style><rect class=\"ground\" width=\"100%\" \
         height=\"100%\" rx=\"8\"/>{rest}\n"
    )
}

/// Light and dark.
const COLOURS: &str = include_str!("colours.css");

/// Of a page's words.
const STYLE: &str = include_str!("style.css");

/// Of what is in a drawing.
const DRAWING: &str = include_str!("drawing.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stands_alone_with_its_colours() {
        let mut chart = Chart::new("a <line>", HEIGHT);
        chart.mark((10.0, 10.0), 1, "48 Mbit/s");
        chart.legend(&[
            (LegendKey::Course(0), "tcp-bbr".to_owned()),
            (LegendKey::Mark(1), "published".to_owned()),
        ]);
        let picture = picture(&chart.finish());
        assert!(
            picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="),
            "{picture}"
        );
        assert!(
            picture.contains("prefers-color-scheme: dark") && picture.contains("tcp-bbr"),
            "{picture}"
        );
        assert!(
            picture.trim_end().ends_with("</svg>") && picture.contains("a &lt;line&gt;"),
            "{picture}"
        );
    }
}
