//! Planned passes at a real station: what comes of each, its alarms, and a plan that changes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::run;
use crate::support::recordings::{DAMAGED, recording};
use crate::support::site::Site;
use serde_json::Value;
use skyhaul_net::Clock;
use skyhaul_units::Duration;

/// A time so many seconds from now, as plans have it.
fn at(seconds: i64) -> String {
    let now = Clock::start().utc();
    let span = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { now - span } else { now + span };
    time.to_string()
}

fn row(from: i64, to: i64, mission: &str) -> String {
    format!("{},{},{mission},s\n", at(from), at(to))
}

/// The states of the passes in a status, in their order.
fn states(status: &Value) -> Vec<&str> {
    let passes = status["passes"].as_array().map_or(&[][..], Vec::as_slice);
    passes.iter().filter_map(|pass| pass["state"].as_str()).collect()
}

/// Asks for the whole status of the station until `probe` returns a value.
fn whole<T>(site: &Site, probe: impl Fn(&Value) -> Option<T>) -> T {
    until(|| probe(&node::status("station.toml", site.folder())?), || site.shown("station.toml"))
}

fn alarms(status: &Value, kind: &str) -> Vec<String> {
    let alarms = status["station"]["alarms"].as_array().map_or(&[][..], Vec::as_slice);
    let of_kind = alarms.iter().filter(|alarm| alarm["kind"] == kind);
    of_kind.map(|alarm| alarm["sentence"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_station_says_which_passes_came_and_which_have_no_lock() {
    let site = Site::new();
    let heading = "start,end,mission,station\n";
    let locked = row(-120, 600, "suomi-npp");
    let (dark, ahead) = (row(-110, 600, "noaa-21"), row(3_600, 4_200, "noaa-21"));
    let plan = site.folder().join("passes.csv");
    std::fs::write(&plan, [heading, &locked, &dark, &ahead].concat()).unwrap();
    let path = recording(DAMAGED);
    site.write(&format!(
        "[[channel]]\nname = \"x\"\ninput = \"file:{}\"\n[[plan]]\nfile = \"passes.csv\"\n",
        path.display()
    ));
    let _station = site.start_to_stay();
    let wanted = ["under-way", "no-lock", "ahead"];
    whole(&site, |status| {
        let is_told = alarms(status, "pass-no-lock").len() == 1;
        (states(status) == wanted && is_told).then_some(())
    });
    let shown = run(&["passes", "--config", "station.toml", "--json"], site.folder());
    let text = String::from_utf8(shown.stdout).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["mission"], text.lines().count()), (&"suomi-npp".into(), 3), "{text}");
    assert!(first["contacts"][0].as_str().unwrap().starts_with("s-"), "{text}");
    let shown = run(&["passes", "--config", "station.toml"], site.folder());
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("no lock    noaa-21, s\n") && text.contains(", first frame 20"),
        "{text}"
    );

    std::fs::write(&plan, format!("{heading}{locked}noon\n")).unwrap();
    let told = whole(&site, |status| alarms(status, "pass-plan-unread").pop());
    assert!(told.contains("line 3: it has 1 of 4 columns"), "{told}");
    assert!(told.contains("stays in force"), "{told}");
    std::fs::write(&plan, [heading, &locked].concat()).unwrap();
    whole(&site, |status| {
        let is_quiet =
            ["pass-plan-unread", "pass-no-lock"].iter().all(|kind| alarms(status, kind).is_empty());
        (states(status) == ["under-way"] && is_quiet).then_some(())
    });
}

/// Elements of a low polar orbit, as of now.
fn elements(number: u64) -> String {
    let epoch = Clock::start().utc().to_string();
    serde_json::json!({
        "OBJECT_NAME": "A", "OBJECT_ID": "2003-049A", "EPOCH": epoch.trim_end_matches('Z'),
        "MEAN_MOTION": 14.354_780_80, "ECCENTRICITY": 0.000_088_4, "INCLINATION": 98.428_3,
        "RA_OF_ASC_NODE": 247.696_1, "ARG_OF_PERICENTER": 88.196_4, "MEAN_ANOMALY": 271.932_2,
        "EPHEMERIS_TYPE": 0, "CLASSIFICATION_TYPE": "U", "NORAD_CAT_ID": number,
        "ELEMENT_SET_NO": 183, "REV_AT_EPOCH": 14_055, "BSTAR": 0.000_035_94,
        "MEAN_MOTION_DOT": 0.000_000_6, "MEAN_MOTION_DDOT": 0,
    })
    .to_string()
}

#[test]
fn a_station_computes_its_passes_from_orbital_elements() {
    let site = Site::new();
    let file = site.folder().join("orbits.json");
    std::fs::write(&file, elements(7)).unwrap();
    let path = recording(DAMAGED);
    site.write(&format!(
        "[[channel]]\nname = \"x\"\ninput = \"file:{}\"\n[[plan]]\nelements = \"orbits.json\"\n\
         satellites = {{ suomi-npp = 28057, noaa-21 = 7 }}\nstation = \"s\"\nlatitude = 78.2306\n\
         longitude = 15.3894\n",
        path.display()
    ));
    let checked = run(&["config", "check", "station.toml"], site.folder());
    let (said, doubted) =
        (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    let lacks = "satellite 28057 (suomi-npp): the file has no elements of it";
    assert!(said.contains("watches the passes that are computed from "), "{said}");
    assert!(said.contains(lacks) || doubted.contains(lacks), "{said}{doubted}");

    let _station = site.start_to_stay();
    let told = whole(&site, |status| alarms(status, "pass-plan-unread").pop());
    assert!(told.contains(lacks) && told.contains("its other passes are watched"), "{told}");
    // A polar orbit comes over Svalbard fourteen times a day; some of them are below 5 degrees.
    whole(&site, |status| {
        let ahead = states(status).iter().filter(|state| **state == "ahead").count();
        (ahead >= 10).then_some(())
    });
    std::fs::write(&file, format!("[{},{}]", elements(7), elements(28057))).unwrap();
    whole(&site, |status| {
        let passes = status["passes"].as_array().unwrap();
        let of = |mission: &str| passes.iter().filter(|pass| pass["mission"] == mission).count();
        let is_quiet = alarms(status, "pass-plan-unread").is_empty();
        (is_quiet && of("suomi-npp") >= 10 && of("noaa-21") >= 10).then_some(())
    });
    let shown = run(&["passes", "--config", "station.toml"], site.folder());
    let text = String::from_utf8(shown.stdout).unwrap();
    let first = text.lines().find(|line| line.contains("ahead")).unwrap();
    assert!(first.contains(", s, up to ") && first.ends_with('\u{b0}'), "{first}");
}
