//! The probe over parallel routes of real packets: links of different length, over which the kernel
//! spreads flows by their ports. Needs root, network namespaces and TUN devices; skipped without.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support;
use crate::support::page::Page;
use crate::support::places::{Lab, can, printed_by};
use crate::support::process::{Running, printed};
use crate::support::schema::found;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// Round trips of 20 and 60 ms. They differ by more than the shortest of many pings varies on a
/// busy machine.
const ROUTES: &str = r#"seed = 7
spread = ["north", "south"]

[[link]]
name = "north"
both = { one_way_delay = "10 ms" }

[[link]]
name = "south"
both = { one_way_delay = "30 ms" }
"#;

const MULTIPATH: &str = "/proc/sys/net/ipv4/fib_multipath_hash_policy";

#[test]
fn a_probe_distinguishes_flows_on_routes_of_different_length() {
    if !can("emulated links", "/dev/net/tun") || !can("routes over several links", MULTIPATH) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("routes.toml"), ROUTES).unwrap();
    let lab = Lab::up("t-routes", "routes.toml", folder);
    let shown = printed(&["lab", "status", "--lab", "t-routes"], folder);
    assert!(
        shown.contains(
            "flows between 198.18.255.1 at a and 198.18.255.2 at b are spread over north, south"
        ),
        "{shown}"
    );
    // For IPv6, some kernels choose the route back independently of the route there: there would be
    // a third length.
    let (there, here) = ("198.18.255.2", "198.18.255.1");
    let mut serving = lab.probe("b", &["serve", "--bind", &format!("{there}:0")]);
    let mut far = Running::of(serving.stdout(Stdio::piped()).stderr(Stdio::null()));
    let address = far.address();
    let (from, expected) = ports(&lab, (here, there), address.rsplit_once(':').unwrap().1);
    let from = from.to_string();
    let words = ["paths", &address, "--from-port", &from, "--flows", "16"];
    let words =
        [&words[..], &["--pings", "50", "--spacing", "40 ms", "--json", "--report", "."]].concat();
    let paths = found(&lab.probe("a", &words).output().unwrap(), "probe-paths.json");

    let routes = paths["routes"].as_array().unwrap();
    assert_eq!((routes.len(), &paths["silent"]), (2, &Value::Array(Vec::new())), "{paths:#}");
    for ((route, trip), expected) in routes.iter().zip([20.0, 60.0]).zip(&expected) {
        let mut members: Vec<u64> =
            route["ports"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        members.sort_unstable();
        assert_eq!(&members, expected, "{paths:#}");
        // A link is never shorter than it was set to.
        let (least, most) = (route["min_ms"].as_f64().unwrap(), route["max_ms"].as_f64().unwrap());
        assert!(least >= trip - 0.1 && most < trip + 20.0, "{route}");
    }
    let page = Page::read(&folder.join("paths.html"));
    assert!(
        page.source().contains("<b class=\"fail\">2</b><span>routes of different length</span>")
    );
}

/// Sixteen source ports one after the other of which some take either link, as the kernel itself
/// says: the first of them, and those of each link.
fn ports(lab: &Lab<'_>, (from, to): (&str, &str), far: &str) -> (u64, [Vec<u64>; 2]) {
    let takes = |port: u64| {
        let port = port.to_string();
        let asked = [
            "ip", "-j", "route", "get", to, "from", from, "ipproto", "udp", "sport", &port,
            "dport", far,
        ];
        let told: Value = serde_json::from_str(&printed_by(&mut lab.at("a", &asked))).unwrap();
        told[0]["dev"].as_str().unwrap().to_owned()
    };
    (40_000..42_000)
        .step_by(16)
        .find_map(|first| {
            let (north, south) = (first..first + 16).partition(|port| takes(*port) == "north");
            let ports: [Vec<u64>; 2] = [north, south];
            ports.iter().all(|some| some.len() > 1).then_some((first, ports))
        })
        .expect("the kernel spreads flows")
}

#[test]
fn a_spread_over_unknown_links_is_refused() {
    if !can("emulated links", "/dev/net/tun") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("routes.toml"), ROUTES.replace("[\"north\",", "[\"east\","))
        .unwrap();
    let refused =
        support::process::run(&["lab", "up", "routes.toml", "--lab", "t-no-routes"], folder.path());
    let parts = [
        "`spread` names a link `east` that there is not",
        "name some of: north, south",
        "routes.toml:1",
    ];
    support::refusal::assert_refused(&refused, 2, &parts);
    assert!(!Path::new("/run/netns/skyhaul-t-no-routes-a").exists());
}
