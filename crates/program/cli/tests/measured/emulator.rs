//! Emulated links as a person uses them. Needs root, network namespaces and TUN devices; skipped
//! without.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what tests share; what is skipped is said"
)]

use crate::support::process::{printed, run, text};
use std::path::Path;

const LINE: &str =
    "[[link]]\nname = \"geo\"\nboth = { rate = \"50 Mbit/s\", one_way_delay = \"20 ms\" }\n";

/// A lab that is taken down however the test ends.
struct Lab<'a>(&'a str, &'a Path);

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--kill", "--lab", self.0], self.1);
    }
}

fn can_emulate() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !can {
        eprintln!("SKIPPED: emulated links need root and /dev/net/tun");
    }
    can
}

fn counters(lab: &str, folder: &Path) -> serde_json::Value {
    let status = printed(&["lab", "status", "--json", "--lab", lab], folder);
    serde_json::from_str::<serde_json::Value>(&status).unwrap()["status"]["links"][0].clone()
}

#[test]
fn a_lab_is_made_used_changed_and_removed() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("line.toml"), LINE).unwrap();
    let lab = ["--lab", "t-cli"];
    let with = |words: &[&str]| printed(&[words, &lab].concat(), folder);
    let up = with(&["lab", "up", "line.toml"]);
    let _lab = Lab("t-cli", folder);
    assert!(up.contains("skyhaul-t-cli-a") && up.contains("198.18.0.1 → 198.18.0.2"), "{up}");
    let listed = printed(
        &["lab", "exec", "--lab", "t-cli", "a", "--", "ip", "-br", "address", "show", "geo"],
        folder,
    );
    assert!(listed.contains("198.18.0.1/30"), "{listed}");
    let failed = run(&["lab", "exec", "--lab", "t-cli", "b", "--", "sh", "-c", "exit 7"], folder);
    assert_eq!(failed.status.code(), Some(7));
    let again = run(&[&["lab", "up", "line.toml"], &lab[..]].concat(), folder);
    assert_eq!(again.status.code(), Some(3));
    assert!(text(&again.stderr).contains("is up already"), "{}", text(&again.stderr));

    with(&["lab", "set", "loss=5%", "queue=2MiB", "--direction", "down"]);
    let link = counters("t-cli", folder);
    assert_eq!(link["down"]["config"]["loss"]["probability"], "5 %");
    assert_eq!(
        (&link["up"]["config"]["loss"]["kind"], &link["down"]["config"]["rate"]),
        (&"none".into(), &"50 Mbit/s".into())
    );
    let wrong = run(&[&["lab", "set", "speed=3"], &lab[..]].concat(), folder);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("unknown field `speed`"), "{}", text(&wrong.stderr));
    let other = run(&[&["lab", "set", "loss=5%", "--link", "cable"], &lab[..]].concat(), folder);
    assert!(
        text(&other.stderr).contains("give --link with one of: geo"),
        "{}",
        text(&other.stderr)
    );

    assert!(with(&["lab", "down"]).contains("is down"));
    let gone = run(&[&["lab", "status"], &lab[..]].concat(), folder);
    assert!(text(&gone.stderr).contains("is not up"), "{}", text(&gone.stderr));
    assert!(!Path::new("/run/netns/skyhaul-t-cli-a").exists());
}

/// The commands of docs/how-to/emulator.md with that page's own file, on a lab of another name.
#[test]
fn the_commands_of_the_emulator_page_work() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/how-to/emulator.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, file) = page.split_once("```toml file=line.toml\n").unwrap();
    std::fs::write(folder.join("line.toml"), file.split_once("```").unwrap().0).unwrap();
    let has_iperf3 = std::process::Command::new("iperf3").arg("--version").output().is_ok();
    let _lab = Lab("t-page", folder);
    let commands = page.lines().filter_map(|line| line.strip_prefix("    sudo skyhaul "));
    let mut ran = Vec::new();
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        if words.contains(&"iperf3") && !has_iperf3 {
            eprintln!("SKIPPED: `{command}`: there is no iperf3");
            continue;
        }
        let printed = printed(&[&words[..2], &["--lab", "t-page"], &words[2..]].concat(), folder);
        if words[1] == "up" {
            assert!(printed.contains("skyhaul lab exec --lab t-page a -- CMD"), "{printed}");
            assert!(printed.contains("skyhaul lab down --lab t-page\n"), "{printed}");
        }
        if words[1] == "set" {
            let up = counters("t-page", folder)["up"]["config"].clone();
            assert_eq!(
                (&up["rate"], &up["loss"]["probability"]),
                (&"50 Mbit/s".into(), &"5 %".into())
            );
            assert!(printed.contains(" 5 % "), "{printed}");
        }
        ran.push(words[1].to_owned());
    }
    ran.retain(|command| command != "exec");
    assert_eq!(ran, ["up", "set", "status", "down"]);
    let gone = run(&["lab", "status", "--lab", "t-page"], folder);
    assert!(
        text(&gone.stderr).contains("`skyhaul lab up --lab t-page LINE.toml`"),
        "{}",
        text(&gone.stderr)
    );
}

#[test]
fn down_and_the_next_up_remove_what_a_killed_lab_left() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The name of a device may be a keyword of iproute2, or the beginning of one.
    std::fs::write(folder.join("line.toml"), LINE.replace("geo", "l")).unwrap();
    let _lab = Lab("t-killed", folder);
    for next in ["down", "up"] {
        printed(&["lab", "up", "line.toml", "--lab", "t-killed"], folder);
        let pid: i32 =
            std::fs::read_to_string("/run/skyhaul/lab/t-killed/pid").unwrap().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let process =
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        rustix::event::poll(
            &mut [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)],
            None,
        )
        .unwrap();
        assert!(Path::new("/run/netns/skyhaul-t-killed-a").exists());
        if next == "down" {
            assert!(printed(&["lab", "down", "--lab", "t-killed"], folder).contains("is down"));
            assert!(!Path::new("/run/netns/skyhaul-t-killed-a").exists());
        } else {
            printed(&["lab", "up", "line.toml", "--lab", "t-killed"], folder);
        }
    }
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("line.toml"), "seed = 1\n[[link]]\nrate = \"1 Mbit/s\"\n")
        .unwrap();
    let refused = run(&["lab", "up", "line.toml", "--lab", "t-wrong"], folder.path());
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("line.toml:3") && said.contains("unknown field `rate`"), "{said}");
}

#[test]
fn a_failure_of_a_lab_in_the_background_is_reported_by_its_command() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The kernel reserves this name for all devices.
    std::fs::write(folder.path().join("line.toml"), LINE.replace("geo", "all")).unwrap();
    let refused = run(&["lab", "up", "line.toml", "--lab", "t-behind"], folder.path());
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("failed (") || said.contains("cannot "), "{said}");
    assert!(!Path::new("/run/netns/skyhaul-t-behind-a").exists());
}

#[test]
fn a_declared_line_carries_as_much_over_emulated_links_as_in_virtual_time() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scenario =
        "name = \"same\"\ntitle = \"the declared line\"\nsource = \"this test\"\nkind = \
                   \"goodput\"
[parameters]\nrate = \"20 Mbit/s\"\nrtt = \"40 ms\"\nloss = \"1 %\"\ncontroller = \
\"line\"\nduration = \"12 s\"\n";
    std::fs::write(folder.join("same.toml"), scenario).unwrap();
    let virtual_time: serde_json::Value =
        serde_json::from_str(&printed(&["lab", "run", "same.toml", "--json"], folder)).unwrap();
    let expected = virtual_time["cells"][0]["goodput_bps"].as_f64().unwrap() / 1e6;

    let line =
        "[[link]]\nname = \"line\"\nup = { rate = \"20 Mbit/s\", one_way_delay = \"20 ms\", \
               queue = \"100 kB\",
loss = { kind = \"independent\", probability = \"1 %\" } }\ndown = { rate = \"20 Mbit/s\", \
one_way_delay = \"20 ms\" }\n";
    std::fs::write(folder.join("line.toml"), line).unwrap();
    printed(&["lab", "up", "line.toml", "--lab", "t-same"], folder);
    let _lab = Lab("t-same", folder);
    let program = env!("CARGO_BIN_EXE_skyhaul");
    let inside = |place: &'static str| {
        let mut command = std::process::Command::new(program);
        command.args(["lab", "exec", "--lab", "t-same", place, "--", program, "perf"]);
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        command
    };
    // Ended with the lab, if it has not ended by itself before.
    let mut serving = inside("b")
        .args([
            "serve",
            "--bind",
            "198.18.0.2:4710",
            "--once",
            "--insecure-test",
            "--insecure-beyond-loopback",
        ])
        .spawn()
        .unwrap();
    let sent = inside("a")
        .args(["send", "--to", "198.18.0.2:4710", "--cc", "line", "--rate", "20 Mbit/s"])
        .args(["--duration", "30 s", "--insecure-test", "--insecure-beyond-loopback"])
        .output()
        .unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    serving.wait().unwrap();
    // The run reports its rate in each second. The median of those after the start is the rate at a
    // quiet moment of this machine.
    let said = text(&sent.stderr);
    let pace =
        |line: &str| line.split_once(" s ")?.1.split_once(" Mbit/s")?.0.trim().parse::<f64>().ok();
    let mut paces: Vec<f64> = said.lines().filter_map(pace).skip(3).collect();
    paces.sort_by(f64::total_cmp);
    assert!(paces.len() >= 5, "{said}");
    let found = paces[paces.len() / 2];
    assert!(
        (found / expected - 1.0).abs() < 0.02,
        "{found} Mbit/s emulated, {expected} in virtual time: {said}"
    );
}
