//! `skyhaul decode --select`: from several recordings of one pass, the better copy of each frame,
//! in order and once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::page::Page;
use crate::support::process::{run, text};
use crate::support::recordings::{CLEAN, DAMAGED, expected, noise, recording, sha256};
use crate::support::refusal::assert_refused;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The recording that the impaired ones were made of.
const WHOLE: &str = CLEAN[0];
const AQUA: &str = CLEAN[1];
const IMPAIRED: &str = "npp_sync_impaired.dat";
const CADU: usize = 1_024;

#[test]
fn two_impaired_recordings_give_the_whole_pass_in_either_order() {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames.bin");
    let known = expected(WHOLE);
    let files = [DAMAGED, IMPAIRED].map(recording);
    for order in [[0, 1], [1, 0]] {
        let files = order.map(|at| files[at].clone());
        let report = selected(&files, &["--frames-out", &shown(&frames)]);
        assert_eq!(report["cadus"], known["frames_total"], "{report}");
        assert_eq!(report["good_frames_sha256"], known["frames_sha256"], "{report}");
        assert_eq!(report["uncorrectable_frames"], 0, "{report}");
        assert_eq!(report["vcids"]["16"]["packets_sha256"], known["vcids"]["16"]["packets_sha256"]);
        assert_eq!(known["frames_sha256"], sha256(&std::fs::read(&frames).unwrap()));
        let inputs = report["inputs"].as_array().unwrap();
        for (input, file) in inputs.iter().zip(&files) {
            assert_eq!(input["file"], shown(file), "in the order of the command");
            assert!(of(input, "only_here") > 0 && of(input, "worse") > 0, "{input}");
            let ends =
                ["chosen", "worse", "duplicates", "repeated", "late"].map(|key| of(input, key));
            assert_eq!(of(input, "frames"), ends.iter().sum::<u64>(), "{input}");
        }
        let chosen: u64 = inputs.iter().map(|input| of(input, "chosen")).sum();
        assert_eq!(known["frames_total"], chosen);
        let damaged = &inputs[order.iter().position(|at| *at == 0).unwrap()];
        assert_eq!(damaged["set_aside"], expected(DAMAGED)["rs_uncorrectable_frames"], "{damaged}");
    }
}

#[test]
fn recordings_damaged_cut_and_shifted_give_every_frame_once() {
    let folder = tempfile::tempdir().unwrap();
    let known = expected(WHOLE);
    let whole = std::fs::read(recording(WHOLE)).unwrap();
    let third = whole.len() / 3 / CADU * CADU;
    // One recording ends early, and one begins late. The part that both have is damaged at
    // different places.
    let mut early = whole[..2 * third].to_vec();
    let mut late = whole[third..].to_vec();
    damage(&mut early, 0, 1);
    damage(&mut late, third, 6);
    let mut rest = whole;
    damage(&mut rest, 0, 3);
    let files =
        [("north.dat", early), ("south.dat", late), ("west.dat", rest)].map(|(name, bytes)| {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            file
        });
    let [north, south, west] = files;
    for files in [[&north, &south, &west], [&west, &south, &north]] {
        let files = files.map(Clone::clone);
        let report = selected(&files, &[]);
        assert_eq!(report["good_frames_sha256"], known["frames_sha256"], "{report}");
        assert_eq!(report["cadus"], known["frames_total"]);
    }
}

#[test]
fn recordings_that_lack_different_bare_frames_give_all_of_them_together() {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames.bin");
    let whole = run_decode(&[&shown(&recording(WHOLE)), "--json", "--frames-out", &shown(&frames)]);
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    let bytes = std::fs::read(&frames).unwrap();
    let known = expected(WHOLE);
    let length = bytes.len() / known["frames_total"].as_u64().unwrap() as usize;
    // Each recording lacks one frame in a hundred. Some of these are next to a frame that another
    // recording lacks.
    for lacking in [&[30, 31][..], &[31, 30], &[7, 8, 57]] {
        let files: Vec<PathBuf> = lacking
            .iter()
            .map(|lost| {
                let there = bytes.chunks(length).enumerate().filter(|(at, _)| at % 100 != *lost);
                let file = folder.path().join(format!("without-{lost}.bin"));
                std::fs::write(
                    &file,
                    there.flat_map(|(_, frame)| frame).copied().collect::<Vec<u8>>(),
                )
                .unwrap();
                file
            })
            .collect();
        let report = selected(&files, &["--format", "frames"]);
        // Idle frames of this downlink are all equal: if one of two neighbours is missing, nothing
        // shows which.
        assert_eq!(
            report["vcids"]["16"], whole["files"][0]["vcids"]["16"],
            "{lacking:?}: {report}"
        );
    }
}

#[test]
fn a_single_recording_decodes_alike_with_and_without_select() {
    let file = recording(DAMAGED);
    let alone = run_decode(&[&shown(&file), "--json"]);
    let with = run_decode(&[&shown(&file), "--json", "--select"]);
    assert!(with.status.success());
    assert_eq!(text(&alone.stdout), text(&with.stdout));
}

#[test]
fn text_page_and_packets_show_what_each_recording_contributed() {
    let folder = tempfile::tempdir().unwrap();
    let files = [DAMAGED, IMPAIRED].map(|name| shown(&recording(name)));
    let pages = shown(folder.path());
    let output = run_decode(&[
        &files[0],
        &files[1],
        "--select",
        "--report",
        &pages,
        "--packets-out",
        &pages,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let account = text(&output.stdout);
    let head = format!("{} + {}: mission suomi-npp, spacecraft 157", files[0], files[1]);
    assert!(account.contains(&head), "{account}");
    let given =
        |name: &str| account.lines().any(|line| line.starts_with(' ') && line.ends_with(name));
    assert!(given(DAMAGED) && given(IMPAIRED), "{account}");
    assert!(folder.path().join(format!("{DAMAGED}-scid157-vcid16.packets")).is_file());
    let page = Page::read(&folder.path().join("report.html"));
    assert_eq!(expected(WHOLE)["frames_total"], page.number("frames"));
    assert!(page.text("verdict").starts_with("Complete"), "{}", page.text("verdict"));
    let rows = page.rows("inputs");
    assert!(rows.iter().any(|row| row[0].ends_with(IMPAIRED)), "{rows:?}");
}

#[test]
fn recordings_of_different_missions_are_refused_with_both_names() {
    let files = [WHOLE, AQUA].map(|name| shown(&recording(name)));
    let output = run_decode(&[&files[0], &files[1], "--select"]);
    assert_refused(
        &output,
        2,
        &["mission suomi-npp", "mission aqua", &files[0], &files[1], "--select"],
    );
    let output = run_decode(&[&files[0], "there-is-none.dat", "--select"]);
    assert!(!output.status.success() && text(&output.stderr).contains("there-is-none.dat"));
}

#[test]
fn an_empty_recording_is_reported_and_does_not_stop_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let [silent, empty] = ["silent.dat", "empty.dat"].map(|name| folder.path().join(name));
    std::fs::write(&silent, noise(200_000)).unwrap();
    std::fs::write(&empty, []).unwrap();
    let report = selected(&[silent.clone(), recording(WHOLE), empty.clone()], &[]);
    assert_eq!(report["good_frames_sha256"], expected(WHOLE)["frames_sha256"]);
    let notes = report["notes"].to_string();
    assert!(notes.contains("silent.dat") && notes.contains("empty.dat"), "{notes}");
    let output = run_decode(&[&shown(&silent), &shown(&empty), "--select"]);
    assert!(!output.status.success() && text(&output.stderr).contains("silent.dat"));
}

#[track_caller]
fn selected(files: &[PathBuf], more: &[&str]) -> Value {
    let files: Vec<String> = files.iter().map(|file| shown(file)).collect();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.extend(["--select", "--json"]);
    arguments.extend(more);
    let output = run_decode(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [one] = &report["files"].as_array().unwrap()[..] else { panic!("{report}") };
    one.clone()
}

/// Destroys every eighth group of 16 frames, by the number `which` of the group modulo 8, counted
/// from the beginning of the recording. `bytes` are a part of the recording that begins at `from`.
/// Neighbouring frames may be lost too.
fn damage(bytes: &mut [u8], from: usize, which: usize) {
    for (at, cadu) in bytes.chunks_mut(CADU).enumerate() {
        if (from / CADU + at) / 16 % 8 == which {
            cadu.iter_mut().skip(8).take(700).for_each(|byte| *byte ^= 0x5A);
        }
    }
}

fn of(input: &Value, key: &str) -> u64 {
    input[key].as_u64().unwrap()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn run_decode(arguments: &[&str]) -> Output {
    run(&[&["decode"], arguments].concat(), Path::new("."))
}
