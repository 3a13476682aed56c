//! The products of the contact's packets, and the completeness of each.

use super::{ContactPage, grouped, percent};
use core::fmt::Write;
use skyhaul_ccsds::id::Apid;
use skyhaul_lab::page::escape;
use std::collections::BTreeMap;

#[derive(Default)]
struct Counts {
    applications: u64,
    packets: u64,
    bytes: u64,
    missing: u64,
    /// Applications of which packets are missing.
    with_gaps: u64,
}

/// The table of products, in the order of their names; packets of no product last.
pub fn products(contact: &ContactPage<'_>, html: &mut String) {
    let applications = &contact.course.applications;
    let mut products: BTreeMap<(bool, &str), Counts> = BTreeMap::new();
    for (channel, apid, application) in
        applications.counts().filter(|(_, apid, _)| *apid != Apid::IDLE)
    {
        let product = applications.product(channel, apid);
        let counts =
            products.entry((product.is_none(), product.unwrap_or("of no product"))).or_default();
        counts.applications += 1;
        counts.packets += application.packets;
        counts.bytes += application.bytes;
        counts.missing += application.missing;
        counts.with_gaps += u64::from(application.missing > 0);
    }
    if products.is_empty() {
        return;
    }
    html.push_str(
        "<section>\n<h2>Products</h2>\n<div class=\"scroll\"><table id=\"products\">\n<tr>",
    );
    for (column, title) in
        ["product", "applications", "packets", "bytes", "missing", "quality"].iter().enumerate()
    {
        let class = if [0, 5].contains(&column) { " class=\"word\"" } else { "" };
        let _ = write!(html, "<th{class}>{title}</th>");
    }
    html.push_str("</tr>\n");
    for ((_, name), counts) in products {
        let _ = write!(html, "<tr><td class=\"word\">{}</td>", escape(name));
        for count in [counts.applications, counts.packets, counts.bytes, counts.missing] {
            let _ = write!(html, "<td>{}</td>", grouped(count));
        }
        let (class, quality) = match counts.missing {
            0 => ("pass", "complete".to_owned()),
            missing => {
                let share = percent(missing, missing + counts.packets);
                let of = if counts.with_gaps == 1 { "application" } else { "applications" };
                ("fail", format!("{share} missing, of {} {of}", grouped(counts.with_gaps)))
            }
        };
        let _ = writeln!(html, "<td class=\"word {class}\">{}</td></tr>", escape(&quality));
    }
    html.push_str("</table></div>\n</section>\n");
}
