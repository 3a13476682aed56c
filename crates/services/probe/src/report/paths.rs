//! The page about parallel routes.

use super::curves::{Axis, Caption, Curve, curves};
use super::{Subject, Tile, percent, plots, table};
use crate::paths::Routes;
use skyhaul_page::Scale;

/// A page about parallel routes.
pub fn paths(subject: &Subject, found: &Routes) -> String {
    let least = found.routes.first().map_or(0.0, |route| route.min_ms);
    let tiles = [
        Tile::new("flows", found.flows.len().to_string()),
        Tile::new("routes of different length", found.routes.len().to_string())
            .bad_if_any(found.routes.len().saturating_sub(1) as u64),
        Tile::new("flows with too few answers", found.silent.len().to_string())
            .bad_if_any(found.silent.len() as u64),
        Tile::new("shortest round trip", format!("{least:.3} ms")),
        Tile::new("told apart from", format!("{:.3} ms on", found.gap_ms)),
        Tile::new("the same flow varies by", format!("{:.3} ms", found.noise_ms)),
    ];
    let listed = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" ");
    let mut rows: Vec<Vec<String>> = found
        .routes
        .iter()
        .zip(1..)
        .map(|(route, number)| {
            vec![
                format!("route {number}"),
                format!("{:.3}", route.min_ms),
                format!("{:.3}", route.max_ms),
                percent(route.loss),
                route.ports.len().to_string(),
                listed(&route.ports),
            ]
        })
        .collect();
    if !found.silent.is_empty() {
        let unknown = String::new;
        let (flows, ports) = (found.silent.len().to_string(), listed(&found.silent));
        rows.push(vec![
            "too few answers".to_owned(),
            unknown(),
            unknown(),
            unknown(),
            flows,
            ports,
        ]);
    }
    let columns = ["", "round trip from, ms", "to, ms", "pings lost", "flows", "from ports"];
    let body = plots(&[flows(found)]) + &table("Routes", &columns, &rows, &[0, 5]);
    subject.page("Parallel routes to", &tiles, &[], &body)
}

/// The shortest round trip of each flow, a line for each route: steps where there are several.
fn flows(found: &Routes) -> String {
    let mut flows: Vec<f64> = found.flows.iter().map(|flow| flow.min_ms).collect();
    flows.sort_by(f64::total_cmp);
    let mut left = flows.iter().copied().zip(1u32..).peekable();
    let mut lines = Vec::new();
    for (route, number) in found.routes.iter().zip(1..) {
        let mut points = Vec::new();
        while let Some((trip, place)) = left.next_if(|(trip, _)| *trip <= route.max_ms) {
            points.push((f64::from(place), trip));
        }
        lines.push(Curve {
            name: format!("route {number}"),
            points,
            has_dots: true,
            goes_with: None,
        });
    }
    let level = Axis {
        name: "flows, by their shortest round trip",
        scale: Scale::even([0.0, flows.len() as f64].into_iter()),
    };
    let upright =
        Axis { name: "shortest round trip, ms", scale: Scale::even(flows.iter().copied()) };
    let says = "Routers spread flows over parallel routes by their ports. Flows that take one \
               route have nearly the same shortest round trip; a \
                step is a route of another length.";
    curves(Caption { title: "Shortest round trips", says }, level, upright, &lines)
}
