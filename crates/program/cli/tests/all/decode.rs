//! `skyhaul decode` against what independent decoders found in real captures, and against bad
//! input.

use crate::support::page::Page;
use crate::support::process::{printed, run, text};
use crate::support::recordings::{CLEAN, DAMAGED, expected, noise, recording, sha256};
use crate::support::refusal::assert_refused;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const NPP: &str = CLEAN[0];
const AQUA: &str = CLEAN[1];
const METOP: &str = CLEAN[2];

#[test]
fn the_account_agrees_with_independent_decoders() {
    let files = CLEAN.map(|name| recording(name).display().to_string());
    let arguments: Vec<&str> = files.iter().map(String::as_str).chain(["--json"]).collect();
    let output = decode(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), CLEAN.len());
    for (name, found) in CLEAN.iter().zip(files) {
        let known = expected(name);
        assert!(known["frames_total"].is_u64(), "nothing is known of {name}");
        assert_eq!(found["scid"], known["scid"], "{name}");
        assert_eq!(found["cadus"], known["frames_total"], "{name}");
        assert_eq!(found["clean_frames"], known["frames_total"], "{name}");
        assert_eq!(found["good_frames_sha256"], known["frames_sha256"], "{name}");
        let channels = known["vcids"].as_object().unwrap();
        assert_eq!(found["vcids"].as_object().unwrap().len(), channels.len(), "{name}");
        for (vcid, known) in channels {
            let found = &found["vcids"][vcid];
            assert_eq!(
                (&found["good_frames"], &found["missing_frames"]),
                (&known["frames"], &known["missing"])
            );
            if known.get("packets").is_some() {
                for key in ["packets", "bytes", "packets_sha256", "apids"] {
                    assert_eq!(found[key], known[key], "{name}, channel {vcid}, {key}");
                }
            }
        }
    }
}

#[test]
fn the_written_frames_and_packets_agree_with_the_account() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let capture = recording(NPP).display().to_string();
    let (packets, frames) = (at("packets"), at("frames.bin"));
    let output = decode(&[&capture, "--packets-out", &packets, "--frames-out", &frames, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &report["files"][0];
    assert_eq!(report["good_frames_sha256"], sha256(&std::fs::read(&frames).unwrap()));
    let file = format!("{NPP}-scid157-vcid16.packets");
    assert_eq!(
        report["vcids"]["16"]["packets_sha256"],
        sha256(&std::fs::read(Path::new(&packets).join(file)).unwrap())
    );

    let again = decode(&[&frames, "--mission", "suomi-npp", "--format", "frames", "--json"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["files"][0]["good_frames_sha256"], report["good_frames_sha256"]);
    assert_eq!(again["files"][0]["vcids"], report["vcids"]);
}

#[test]
fn the_table_names_mission_channels_and_applications() {
    let capture = recording(METOP).display().to_string();
    let table = text(&decode(&[&capture]).stdout);
    for part in ["mission metop-b, spacecraft 11", "1023 clean, 0 corrected", "130: 11, 135: 11"] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn a_truncated_capture_gives_the_frames_that_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.dat");
    std::fs::write(&cut, &std::fs::read(recording(AQUA)).unwrap()[..100_000]).unwrap();
    let output = decode(&[cut.to_str().unwrap(), "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["files"][0]["clean_frames"], 97);
}

#[test]
fn input_that_is_not_a_capture_is_reported_in_one_sentence_and_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (empty, noisy, absent) = (at("empty.dat"), at("noise.dat"), at("absent.dat"));
    std::fs::write(&empty, b"").unwrap();
    std::fs::write(&noisy, noise(100_000)).unwrap();
    for (file, exit, part) in
        [(&empty, 1, "empty.dat"), (&noisy, 1, "no CCSDS marker"), (&absent, 3, "cannot be read")]
    {
        assert_refused(&decode(&[file]), exit, &[part]);
    }
    let capture = recording(NPP).display().to_string();
    let output = decode(&[&noisy, &capture]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("mission suomi-npp"));
}

#[test]
fn unknown_missions_and_unwritable_outputs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "name = \"x\"\nlenght = 3\n").unwrap();
    let capture = recording(NPP).display().to_string();
    let taken = wrong.join("packets");
    for (flags, exit, part) in [
        (["--mission", "suomi"], 2, "write one of"),
        (["--mission", wrong.to_str().unwrap()], 2, "wrong.toml:"),
        (["--packets-out", taken.to_str().unwrap()], 3, "cannot be written"),
        (["--frames-out", taken.to_str().unwrap()], 3, "cannot be written"),
        (["--report", taken.to_str().unwrap()], 3, "the report cannot be written"),
    ] {
        let output = decode(&[&[capture.as_str()], &flags[..]].concat());
        assert_refused(&output, exit, &[part]);
    }
}

#[test]
fn each_contact_has_a_page_with_the_numbers_of_independent_decoders() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("pages/of/today");
    let files = CLEAN.map(|name| recording(name).display().to_string());
    let arguments: Vec<&str> =
        files.iter().map(String::as_str).chain(["--report", at.to_str().unwrap()]).collect();
    let output = decode(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for name in CLEAN {
        let known = expected(name);
        let page = Page::read(&at.join(format!("{name}.report.html")));
        assert_eq!(page.number("frames"), known["frames_total"], "{name}");
        assert_eq!((page.number("set-aside"), page.number("missing")), (0, 0));
        assert!(
            page.text("verdict").starts_with("Complete: all 1\u{202f}023 frames have no errors"),
            "{name}"
        );
        let channels = known["vcids"].as_object().unwrap();
        let rows = page.rows("channels");
        assert_eq!(rows.len(), 1 + channels.len(), "{name}");
        for (vcid, known) in channels {
            let row = rows.iter().find(|row| row[0] == format!("VC {vcid}")).unwrap();
            assert_eq!(
                (plain(&row[2]), plain(&row[4])),
                (of(&known["frames"]), of(&known["missing"]))
            );
            let Some(apids) = known.get("apids").and_then(Value::as_object) else { continue };
            assert_eq!(
                (plain(&row[8]), plain(&row[9])),
                (of(&known["packets"]), of(&known["bytes"]))
            );
            let shown: Vec<_> = page
                .rows("applications")
                .into_iter()
                .filter(|row| row[1] == format!("VC {vcid}"))
                .map(|row| (row[0].clone(), plain(&row[2])))
                .collect();
            let mut apids: Vec<_> =
                apids.iter().map(|(apid, count)| (apid.clone(), of(count))).collect();
            apids.sort_by_key(|(apid, _)| apid.parse::<u16>().unwrap());
            assert_eq!(shown, apids, "{name}, channel {vcid}");
        }
        let products = page.rows("products");
        let apids = channels.values().filter_map(|channel| channel.get("apids")?.as_object());
        let packets: u64 =
            apids.flatten().filter(|(apid, _)| *apid != "2047").map(|(_, count)| of(count)).sum();
        assert_eq!(products[1..].iter().map(|row| plain(&row[2])).sum::<u64>(), packets, "{name}");
        assert!(
            products[1..].iter().all(|row| (plain(&row[4]) == 0) == (row[5] == "complete")),
            "{name}"
        );
    }
}

#[test]
fn the_page_of_an_impaired_capture_shows_slips_polarity_and_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let page = page_of("npp_sync_impaired.dat", folder.path());
    assert!(page.text("verdict").starts_with("Incomplete: 1\u{202f}021 of 1\u{202f}022 frames"));
    assert!(
        page.text("verdict").ends_with("Bits slipped twice, the polarity became inverted once.")
    );
    assert_eq!((page.number("slips"), page.number("set-aside"), page.number("missing")), (2, 1, 2));
    let changes: Vec<String> = page.rows("changes").into_iter().map(|row| row[1].clone()).collect();
    let known = [
        "in lock from here on",
        "slip: marker 3 bits early",
        "slip: marker 5 bits late",
        "inverted from here on",
    ];
    assert_eq!(changes[1..], known);
    let products = page.rows("products");
    assert_eq!(products[1][..5], ["viirs-science", "15", "270", "820\u{202f}828", "3"]);
    assert_eq!(products[1][5], "1.1 % missing, of 2 applications");
    let gaps = page.rows("gaps");
    assert_eq!(gaps.len(), 3);
    assert!(gaps[1..].iter().all(|gap| gap[..2] == ["1", "VC 16"]));
    for part in ["slip of -3 bits", "slip of +5 bits", "frames inverted", "frames missing"] {
        assert!(page.source().contains(part), "{part}");
    }
}

#[test]
fn the_page_of_a_damaged_capture_counts_symbols_and_codewords() {
    let folder = tempfile::tempdir().unwrap();
    let (page, known) = (page_of(DAMAGED, folder.path()), expected(DAMAGED));
    assert_eq!(page.number("corrected"), known["rs_corrected_frames"]);
    assert_eq!(page.number("symbols"), known["rs_corrected_symbols_in_good_frames"]);
    assert_eq!(page.number("set-aside"), known["rs_uncorrectable_frames"]);
    let codewords = page.rows("codewords");
    assert_eq!(codewords.len(), 1 + 4);
    let lost: u64 = codewords[1..].iter().map(|row| plain(&row[3])).sum();
    assert_eq!(lost, of(&known["rs_uncorrectable_frames"]), "one codeword of each was made so");
    let missing: u64 = page.rows("channels")[1..].iter().map(|row| plain(&row[4])).sum();
    assert_eq!(missing, page.number("missing"));
}

#[test]
fn the_colour_of_the_frame_strip_shows_the_share_of_bad_frames() {
    let folder = tempfile::tempdir().unwrap();
    let made = [
        "generate",
        "--mission",
        "noaa-21",
        "--frames",
        "6000",
        "--uncorrectable",
        "10%",
        "--output",
        "pass.dat",
    ];
    assert!(run(&made, folder.path()).status.success());
    assert!(run(&["decode", "pass.dat", "--report", "."], folder.path()).status.success());
    let page = Page::read(&folder.path().join("report.html"));
    let strip =
        page.source().split("id=\"lock-plot\"").nth(1).unwrap().split("</figure>").next().unwrap();
    // The square pixels of the blocks that have this label.
    let area = |words: &str| -> f64 {
        let blocks = strip.split("<rect ").filter(|block| block.contains(words));
        let side = |block: &str, name: &str| -> f64 {
            let (_, rest) = block.split_once(&format!(" {name}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        blocks.map(|block| side(block, "width") * side(block, "height")).sum()
    };
    let (bad, all) = (area(" frames set aside<"), area(" frames good<"));
    let share = page.number("set-aside") as f64 / page.number("frames") as f64;
    assert!((0.08..0.12).contains(&share), "{share}");
    assert!((bad / all - share).abs() < 0.02, "{} of the strip is red for {share}", bad / all);
}

#[test]
fn bare_frames_have_a_page_that_claims_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames.bin").display().to_string();
    let capture = recording(NPP).display().to_string();
    assert!(decode(&[&capture, "--frames-out", &frames]).status.success());
    let report = folder.path().display().to_string();
    let flags = ["--mission", "suomi-npp", "--format", "frames", "--report", &report];
    assert!(decode(&[&[frames.as_str()], &flags[..]].concat()).status.success());
    let page = Page::read(&folder.path().join("report.html"));
    assert!(page.text("verdict").contains("without any check for errors"));
    assert!(page.source().contains("Bare frames do not show these"));
    assert!(!page.source().contains("id=\"codewords\""));
}

#[test]
fn a_page_that_cannot_be_written_does_not_suppress_the_account() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("report.html")).unwrap();
    let capture = recording(NPP).display().to_string();
    let output = decode(&[&capture, "--report", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("mission suomi-npp"));
    assert!(text(&output.stderr).contains("the report cannot be written"));
    let twice = decode(&[&capture, &capture, "--report", folder.path().to_str().unwrap()]);
    assert_refused(&twice, 2, &["so would their pages"]);
}

fn page_of(name: &str, folder: &Path) -> Page {
    let (capture, folder_name) =
        (recording(name).display().to_string(), folder.display().to_string());
    let output = decode(&[&capture, "--report", &folder_name]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    Page::read(&folder.join("report.html"))
}

/// A number as the page shows it.
fn plain(shown: &str) -> u64 {
    shown.replace('\u{202f}', "").parse().expect("the page shows a number")
}

fn of(known: &Value) -> u64 {
    known.as_u64().expect("counts are whole numbers")
}

fn decode(arguments: &[&str]) -> Output {
    run(&[&["decode"], arguments].concat(), Path::new("."))
}

/// Bare frames of a spacecraft that no mission describes. All are of channel 2, except two stray
/// frames whose headers are damaged.
#[test]
fn notes_say_what_was_not_extracted_and_stray_frames_are_not_counted_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let frames = (0..200_u32).flat_map(|at| {
        let (scid, count) = if at % 90 == 60 { (at as u16, 123_456 * at) } else { (231, at) };
        let mut bytes: Vec<u8> = (0..500_u32).map(|byte| ((byte * (at + 7)) >> 3) as u8).collect();
        bytes[..2].copy_from_slice(&(1 << 14 | scid << 6 | 2).to_be_bytes());
        bytes[2..6].copy_from_slice(&(count << 8).to_be_bytes());
        bytes
    });
    let file = folder.path().join("unknown.bin");
    std::fs::write(&file, frames.collect::<Vec<u8>>()).unwrap();
    let report = printed(&["decode", "--json", "unknown.bin"], folder.path());
    let report: Value = serde_json::from_str(&report).unwrap();
    let found = &report["files"][0];
    assert_eq!(
        (&found["mission"], &found["good_frames"]),
        (&"generic".into(), &200.into()),
        "{found}"
    );
    assert_eq!(
        (&found["stray_frames"], &found["vcids"]["2"]["good_frames"]),
        (&2.into(), &198.into())
    );
    // The frames in whose places the stray frames are.
    assert_eq!(found["vcids"]["2"]["missing_frames"], 2);
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("packets were not extracted") && notes.contains("no other frame names"),
        "{notes}"
    );
}
