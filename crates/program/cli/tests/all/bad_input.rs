//! Bad input of every kind: one sentence that says what, where and what to do, a documented exit
//! code, and its place on the page of messages.

mod bench;

use crate::support::patience::until;
use crate::support::process::{Running, run, text};
use crate::support::recordings::{CLEAN, WHOLE_CADUS, noise, recording};
use crate::support::refusal::assert_alone;
use serde_json::Value;
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Output;

use bench::*;

const FRAME: usize = 892;

#[test]
fn captures_without_frames_are_reported_with_their_kind() {
    let bench = Bench::new();
    let aligned = std::fs::read(recording(WHOLE_CADUS)).unwrap();
    let unmarked: Vec<u8> =
        aligned.chunks(1024).flat_map(|cadu| [&[0; 4], &cadu[4..]].concat()).collect();
    for (name, bytes, part) in [
        ("empty.dat", Vec::new(), "the capture is empty"),
        ("noise.dat", noise(200_000), "there is no CCSDS marker and no run of frames in the input"),
        ("unmarked.dat", unmarked, "there is no CCSDS marker and no run of frames in the input"),
        (
            "pass.soft",
            soft(&aligned),
            "look like soft symbols, one byte each, and were taken for bits",
        ),
        ("cut.dat", aligned[..700].to_vec(), "end inside its first frame"),
    ] {
        bench.write(name, &bytes);
        bench.refused(&["decode", name], 1, part, name);
    }
}

#[test]
fn recordings_that_cannot_be_joined_are_reported_with_the_reason() {
    let bench = Bench::new();
    let [npp, aqua] = [CLEAN[0], CLEAN[1]].map(|name| std::fs::read(recording(name)).unwrap());
    let both = [&npp[..], &aqua].concat();
    for (name, bytes) in [
        ("npp.dat", &npp),
        ("aqua.dat", &aqua),
        ("both.dat", &both),
        ("noise.dat", &noise(200_000)),
    ] {
        bench.write(name, bytes);
    }
    bench.write("empty.dat", &[]);
    let refused = ["decode", "--select", "npp.dat", "aqua.dat"];
    bench.refused(
        &refused,
        2,
        "the recordings are of different downlinks: npp.dat holds",
        "aqua.dat holds",
    );
    let many = [&["decode", "--select"], &["npp.dat"; 17][..]].concat();
    bench.refused(&many, 2, "--select joins at most 16 recordings", "17");
    bench.refused(
        &["decode", "--select", "empty.dat", "noise.dat"],
        1,
        "the capture is empty",
        "empty.dat",
    );
    let report = bench.decoded(&["--select", "npp.dat", "noise.dat", "both.dat"]);
    assert_told(&report, "noise.dat is not used; its content is unknown");
    assert_told(&report, "both.dat changes to another downlink at byte ");
    assert_eq!(report["good_frames"], report["inputs"][0]["frames"], "{report}");
}

/// Writes each bit as a soft symbol with one of two levels.
fn soft(bytes: &[u8]) -> Vec<u8> {
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1));
    bits.map(|bit| if bit == 1 { 60 } else { 60u8.wrapping_neg() }).collect()
}

#[test]
fn packed_bits_taken_for_soft_symbols_are_reported() {
    let bench = Bench::new();
    bench.write("pass.dat", &std::fs::read(recording(CLEAN[0])).unwrap());
    let arguments = ["decode", "pass.dat", "--format", "soft"];
    bench.refused(
        &arguments,
        1,
        "look like packed bits, and were taken for soft symbols",
        "pass.dat",
    );
}

#[test]
fn files_without_packets_are_reported_with_their_kind() {
    let bench = Bench::new();
    bench.write("empty.packets", &[]);
    bench.refused(&["packets", "empty.packets", "--csv"], 1, "", "the packet file is empty");
    bench.write("noise.packets", &noise(20_000));
    let capture = recording(CLEAN[0]).display().to_string();
    for file in ["noise.packets", &capture] {
        let error = assert_alone(&bench.run(&["packets", file]), 1, &["no packet was found", file]);
        assert_on_page(&error, 1);
    }
    bench.refused(
        &["packets", "absent.packets"],
        3,
        "the packet file cannot be read",
        "absent.packets",
    );
    let times = ["packets", "noise.packets", "--from", "2024-12-06T17:38:20Z"];
    bench.refused(&times, 2, "the packets' times need a mission", "noise.packets");
    let output = ["packets", "noise.packets", "--output", "absent/file"];
    bench.refused(&output, 3, "the output cannot be written", "absent/file");
}

#[test]
fn a_truncated_capture_gives_its_whole_frames_and_says_that_it_was_cut() {
    let bench = Bench::new();
    let aligned = std::fs::read(recording(WHOLE_CADUS)).unwrap();
    bench.write("cut.dat", &aligned[..10 * 1024 + 500]);
    let report = bench.decoded(&["cut.dat"]);
    assert_eq!(report["clean_frames"], 10);
    assert_told(&report, "4000 bits are in no frame");
}

#[test]
fn two_spacecraft_in_one_stream_are_reported_and_kept_apart() {
    let bench = Bench::new();
    let read = |name: &str| std::fs::read(recording(name)).unwrap();
    // Eight frames of one spacecraft, then one frame of the other.
    let cadus = |name: &str| {
        bench.decoded(&[&recording(name).display().to_string(), "--frames-out", "frames.bin"]);
        std::fs::read(bench.path("frames.bin")).unwrap()
    };
    let (npp, aqua) = (cadus(CLEAN[0]), cadus(CLEAN[1]));
    let both =
        npp.chunks(8 * FRAME).zip(aqua.chunks(FRAME)).flat_map(|(npp, aqua)| [npp, aqua].concat());
    bench.write("both.bin", &both.collect::<Vec<_>>());
    let report = bench.decoded(&["both.bin", "--format", "frames"]);
    assert_told(&report, "spacecraft 157 and 154 are in one stream");
    assert_eq!(report["other_spacecraft"][0]["mission"], "aqua");
    // One after the other, they are two downlinks, each with its own account.
    bench.write("both.dat", &[read(CLEAN[0]), read(CLEAN[1])].concat());
    let output = bench.run(&["decode", "--json", "both.dat"]);
    let reports: Value = serde_json::from_slice(&output.stdout).expect("the account is JSON");
    let missions = [0, 1].map(|part| reports["files"][part]["mission"].clone());
    assert_eq!(missions, ["suomi-npp", "aqua"]);
    let table = text(&bench.run(&["decode", "both.dat"]).stdout);
    assert!(table.contains("both.dat: mission aqua, spacecraft 154, from byte "), "{table}");
    // A mission that is given by name applies to the whole file.
    bench.write("twice.dat", &[read(CLEAN[0]), noaa_21(&bench)].concat());
    let report = bench.decoded(&["twice.dat", "--mission", "suomi-npp"]);
    assert_told(&report, "the capture also holds mission noaa-21, spacecraft 177");
    bench.write("other.dat", &noaa_21(&bench));
    let arguments = ["decode", "other.dat", "--mission", "goes-16"];
    bench.refused(
        &arguments,
        1,
        "no frame of the mission was found; the capture holds mission noaa-21",
        "other.dat",
    );
}

/// A downlink with another frame length.
fn noaa_21(bench: &Bench) -> Vec<u8> {
    let output =
        bench.run(&["generate", "--mission", "noaa-21", "--frames", "400", "--output", "noaa.dat"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::read(bench.path("noaa.dat")).expect("the downlink was written")
}

#[test]
fn a_packet_length_beyond_the_data_costs_only_its_own_packet() {
    let bench = Bench::new();
    let (frames, clean) = bench.good_frames();
    let whole = clean["vcids"]["16"]["packets"].as_u64().unwrap();
    bench.write("length.bin", &with_first_packet(&frames, |packet| packet[4..6].fill(0xff)));
    let report = bench.decoded(&["length.bin", "--mission", "suomi-npp", "--format", "frames"]);
    assert_told(&report, "packet headers or lengths in virtual channel 16 are invalid");
    let kept = report["vcids"]["16"]["packets"].as_u64().unwrap();
    assert!(kept < whole && kept + 3 >= whole, "{kept} of {whole}");
}

#[test]
fn a_clock_jump_of_years_is_reported_and_the_packets_are_kept() {
    let bench = Bench::new();
    let (frames, clean) = bench.good_frames();
    let later = with_first_packet(&frames, |packet| {
        let days = u16::from_be_bytes([packet[6], packet[7]]) + 4_000;
        packet[6..8].copy_from_slice(&days.to_be_bytes());
    });
    bench.write("jump.bin", &later);
    let report = bench.decoded(&["jump.bin", "--mission", "suomi-npp", "--format", "frames"]);
    assert_told(&report, "packet times jump by a day or more");
    assert!(
        report["notes"].to_string().contains("largest jump is 4000 days"),
        "{}",
        report["notes"]
    );
    assert_eq!(report["vcids"]["16"]["packets"], clean["vcids"]["16"]["packets"]);
}

#[test]
fn configurations_with_unknown_keys_and_wrong_units_start_nothing() {
    let bench = Bench::new();
    let station = bench.station("127.0.0.1:9");
    for (written, wrong, part) in [
        ("mtu = \"1500 B\"", "mut = \"1500 B\"", "unknown key `mut`"),
        ("\"93 Mbit/s\"", "\"93 MB\"", "`93 MB` is not a rate"),
        ("\"93 Mbit/s\"", "93", "integer `93` is given, text is required"),
    ] {
        let wrong = station.replace(written, wrong);
        assert_ne!(wrong, station);
        bench.write("wrong.toml", wrong.as_bytes());
        bench.refused(&["config", "check", "wrong.toml"], 2, part, "wrong.toml:");
        bench.refused(&["run", "wrong.toml"], 2, part, "wrong.toml:");
    }
    assert!(!bench.path("station-state").exists());
}

#[test]
fn impossible_classes_deadlines_and_paths_are_reported_with_their_line() {
    let bench = Bench::new();
    let station = bench.station("127.0.0.1:9");
    for (tables, part) in [
        ("[[class]]\nname = \"a\"\nparent = \"b\"\n", "there is no class `b`"),
        ("[[class]]\nname = \"a\"\npriority = 9\n", "priority 9 is not one of 0 (first) to 7"),
        (
            "[[class]]\nname = \"a\"\nguarantee = \"5 Mbit/s\"\nceiling = \"2 Mbit/s\"\n",
            "guarantee of 5 Mbit/s is above its ceiling",
        ),
        ("[[class]]\nname = \"a\"\nquantum = \"0 B\"\n", "a quantum of zero"),
        (
            "[[subscription]]\nof = \"contacts\"\nclass = \"b\"\n[[class]]\nname = \"a\"\n",
            "there is no class `b` for a subscription",
        ),
        ("[[subscription]]\nof = \"contacts\"\npriority = 8\n", "has priority 8"),
        ("[[subscription]]\nof = \"contacts\"\ndeadline = \"0 s\"\n", "a deadline of zero"),
        ("[[subscription]]\nof = \"contacts\"\ndeadline = \"soon\"\n", "is not a duration"),
        ("compress = \"hard\"\n", "`hard` is not a compression effort"),
        ("[[path]]\nlocal = \"127.0.0.1\"\ninterface = \"lo\"\n", "both `local` and `interface`"),
        ("[[path]]\ninterface = \"a/b\"\n", "`a/b` is not an interface's name"),
        ("[[path]]\nrate = \"0 bit/s\"\n", "a path of 0 bit/s carries nothing"),
        ("[[path]]\nname = \"a\"\n[[path]]\nname = \"a\"\n", "path `a` is defined twice"),
        (
            "[[path]]\n[[path.outage]]\nfrom = \"2026-11-22T12:30:00Z\"\nuntil = \
            \"2026-11-22T12:00:00Z\"\n",
            "before it begins",
        ),
        (
            "[[path]]\n[[path.outage]]\nfrom = \"12:30\"\nuntil = \"2026-11-22T12:00:00Z\"\n",
            "`12:30` is not a time in UTC",
        ),
    ] {
        bench.write("wrong.toml", format!("{station}{tables}").as_bytes());
        bench.refused(&["config", "check", "wrong.toml"], 2, part, "wrong.toml:");
    }
    let policy = station.replace("[line]\n", "[line]\npolicy = \"lifo\"\n");
    bench.write("wrong.toml", policy.as_bytes());
    bench.refused(&["config", "check", "wrong.toml"], 2, "`lifo` is not a policy", "wrong.toml:");
}

#[test]
fn live_packets_that_cannot_be_sent_are_named_with_their_line() {
    let bench = Bench::new();
    bench.centre("127.0.0.1:0");
    let centre = std::fs::read_to_string(bench.path("centre.toml")).expect("it was written");
    let to = "to = \"udp:127.0.0.1:9\"\n";
    for (table, part) in [
        ("to = \"127.0.0.1:9\"\n".to_owned(), "`127.0.0.1:9` is not a target for packets"),
        (format!("{to}apids = \"9-3\"\n"), "`9-3` is not a list of applications"),
        (format!("{to}rate = \"0 bit/s\"\n"), "a rate of zero sends nothing"),
        (format!("{to}[[live]]\n").repeat(16) + to, "there are 17 [[live]] tables"),
    ] {
        bench.write("wrong.toml", format!("{centre}[[live]]\n{table}").as_bytes());
        bench.refused(&["config", "check", "wrong.toml"], 2, part, "wrong.toml");
    }
}

#[test]
fn a_missing_interface_is_reported_with_the_list_of_the_existing_ones() {
    let bench = Bench::new();
    let station = bench.station("127.0.0.1:9");
    bench.write("station.toml", format!("{station}[[path]]\ninterface = \"eth99\"\n").as_bytes());
    let arguments = ["run", "station.toml"];
    bench.refused(&arguments, 2, "there is no such network interface", "eth99");
    assert!(text(&bench.run(&arguments).stderr).contains(" lo"));
}

#[test]
fn orders_that_cannot_be_carried_out_say_why() {
    let bench = Bench::new();
    bench.station("127.0.0.1:9");
    let mut running = bench.start(&["run", "station.toml"]);
    let socket = "station-state/status.sock";
    let listens = || {
        assert!(running.status().is_none(), "it has ended");
        bench.path(socket).exists().then_some(())
    };
    until(listens, || "no socket".to_owned());
    let refused = |arguments: &[&str], exit, part: &str| {
        bench.refused(&[&["path"], arguments, &["--node", socket]].concat(), exit, part, "");
    };
    refused(&["remove", "path-1"], 2, "the only path cannot be removed");
    refused(&["remove", "b"], 2, "there is no such path");
    refused(&["add", "path-1"], 2, "a path of this name exists");
    refused(&["add", "b", "--interface", "eth99"], 2, "there is no such network interface");
    refused(&["add", "b", "--remote", "nowhere"], 2, "`nowhere` is not an address");
    let hint =
        ["hint", "path-1", "--from", "2026-11-22T12:30:00Z", "--until", "2026-11-22T12:00:00Z"];
    refused(&hint, 2, "the outage would end before it begins");
    refused(&["hint", "path-1"], 2, "no forecast is given for the path");
    bench.refused(&["path", "list", "--node", "no.sock"], 3, "no node is running", "no.sock");
}

#[test]
fn tables_that_have_no_effect_start_nothing() {
    let bench = Bench::new();
    let (station, centre) = (bench.station("127.0.0.1:9"), bench.centre("127.0.0.1:0"));
    for (text, part) in [
        (
            format!("{station}[products]\ndir = \"p\"\n"),
            "`products` has no effect without a [[listen]]",
        ),
        (format!("{centre}[spool]\n"), "`spool` has no effect without a [[destination]]"),
        (station.replace("node:centre-1", "node:other"), "there is no peer `other`"),
        (station.replace("node:centre-1", "node:station-1"), "`station-1` is this node"),
    ] {
        bench.write("wrong.toml", text.as_bytes());
        bench.refused(&["config", "check", "wrong.toml"], 2, part, "wrong.toml:");
        bench.refused(&["run", "wrong.toml"], 2, part, "wrong.toml:");
    }
}

#[test]
fn ports_in_use_are_named() {
    let bench = Bench::new();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let (udp, tcp) = (udp_address(&udp), tcp.local_addr().unwrap().to_string());
    bench.centre(&udp);
    bench.refused(&["run", "centre.toml"], 3, "the UDP port cannot be used", &udp);
    let station = bench
        .station("127.0.0.1:9")
        .replace("tcp-listen:127.0.0.1:0", &format!("tcp-listen:{tcp}"));
    bench.write("station.toml", station.as_bytes());
    bench.refused(&["run", "station.toml"], 3, "the channel's input cannot be opened", &tcp);
    bench.refused(
        &["emulate", "--listen", &udp, "--to", "127.0.0.1:9"],
        3,
        "the address is in use",
        &udp,
    );
}

#[test]
fn folders_that_cannot_be_written_are_named() {
    let bench = Bench::new();
    bench.write("file.txt", b"");
    let part = "the folder cannot be written";
    let station = bench.station("127.0.0.1:9").replace("station-state", "file.txt/state");
    bench.write("station.toml", station.as_bytes());
    bench.refused(&["run", "station.toml"], 3, part, "file.txt/state");
    for (folder, below) in
        [("centre-state", "file.txt/state"), ("\"products\"", "\"file.txt/products\"")]
    {
        let centre = bench.centre("127.0.0.1:0").replace(folder, below);
        bench.write("centre.toml", centre.as_bytes());
        bench.refused(&["run", "centre.toml"], 3, part, below.trim_matches('"'));
    }
}

#[test]
fn a_key_file_that_is_absent_or_holds_no_key_is_named() {
    let bench = Bench::new();
    let station = bench.station("127.0.0.1:9");
    bench.write("station.toml", station.replace("station.key", "absent.key").as_bytes());
    bench.refused(&["run", "station.toml"], 3, "the private key cannot be read", "absent.key");
    bench.write("station.toml", station.replace("station.key", "centre.toml").as_bytes());
    bench.write("centre.toml", b"no key");
    bench.refused(
        &["run", "station.toml"],
        3,
        "the private key cannot be read (other users can read it, its mode is 644)",
        "chmod 600",
    );
    bench.make_private("centre.toml");
    bench.refused(&["run", "station.toml"], 2, "the file holds no private key", "centre.toml");
}

#[test]
fn a_second_node_in_one_state_folder_is_refused() {
    let bench = Bench::new();
    let centre = bench.centre("127.0.0.1:0");
    let _running = bench.start_centre();
    bench.write("second.toml", centre.as_bytes());
    let part = "another node uses this state folder";
    bench.refused(&["run", "second.toml"], 3, part, "centre-state");
}

#[test]
fn keys_and_names_that_do_not_match_are_reported_at_both_ends() {
    let bench = Bench::new();
    bench.centre("127.0.0.1:0");
    let (mut centre, address) = bench.start_centre();
    let station = bench.station(&address);
    let output = bench.run(&["config", "check", "--connect", "station.toml"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("centre-1 answers, round trip "));

    let other = bench.fingerprint("other.key");
    let check = ["config", "check", "--connect", "wrong.toml"];
    let known = bench.fingerprint("centre.key");
    for (written, wrong, part) in [
        ("station.key", "other.key", "the far end does not trust our key"),
        (&*known, &*other, "the far end's key is not the expected"),
        ("centre-1", "centre-2", "the centre is named `centre-1`, not `centre-2`"),
        ("\"station-1\"", "\"station-2\"", "the station is named `station-2`"),
    ] {
        bench.write("wrong.toml", station.replace(written, wrong).as_bytes());
        bench.refused(&check, 4, part, &address);
    }
    let told = centre.log_until("is named `station-2`");
    assert!(told.contains("the caller's key is not trusted") && told.contains(&other), "{told}");
}

#[test]
fn a_running_station_that_is_refused_keeps_capturing_and_says_why() {
    let bench = Bench::new();
    bench.centre("127.0.0.1:0");
    let (_centre, address) = bench.start_centre();
    let station = bench.station(&address).replace("station.key", "other.key");
    bench.fingerprint("other.key");
    bench.write("station.toml", station.as_bytes());
    let mut running = bench.start(&["run", "station.toml"]);
    running.log_until("the far end does not trust our key");
    let status = || text(&bench.run(&["status", "--config", "station.toml"]).stdout);
    // It is an alarm when it has lasted for a second.
    until(|| status().contains("does not trust our key").then_some(()), status);
    assert!(status().contains("takes data"));
}

#[test]
fn a_centre_that_does_not_answer_is_reported_in_time() {
    let bench = Bench::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    bench.station(&udp_address(&silent));
    let check = ["config", "check", "--connect", "station.toml"];
    bench.refused(&check, 4, "no answer from the far end", &udp_address(&silent));
    bench.station("no-such-host.invalid:4700");
    bench.refused(&check, 2, "is not found", "no-such-host.invalid");
    bench.centre("127.0.0.1:0");
    bench.refused(
        &["config", "check", "--connect", "centre.toml"],
        2,
        "the node has no destination to connect to",
        "centre.toml",
    );
}
