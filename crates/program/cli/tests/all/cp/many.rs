//! More than the limits allow: files in one block, copies at the same time.

use super::*;

#[test]
fn more_tiny_files_than_one_block_may_hold_arrive_both_ways() {
    // By its bytes, a block could hold this many of these files, and a few more.
    const FILES: usize = 4_096 + 500;
    let ends = Ends::new(&["--write"]);
    fs::create_dir(ends.path("near/tiny")).unwrap();
    for number in 0..FILES {
        fs::write(ends.path(&format!("near/tiny/{number}")), &number.to_string()[..1]).unwrap();
    }
    assert_eq!(ends.copied(&["tiny", "far:."])["copied"], FILES);
    assert_eq!(fs::read(ends.path("far/tiny/4595")).unwrap(), b"4");
    assert_eq!(ends.copied(&["far:tiny", "back"])["copied"], FILES);
    assert_eq!(fs::read_dir(ends.path("near/back/tiny")).unwrap().count(), FILES);
}

#[test]
fn a_copy_above_the_limit_of_the_far_end_says_so_and_waits_for_its_turn() {
    const MOST: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("far")).unwrap();
    fs::write(folder.path().join("one"), "one").unwrap();
    let (address, at) = (free_address().to_string(), folder.path());
    let words = [
        "files",
        "serve",
        "--bind",
        &address,
        "--insecure-test",
        "--root",
        "far",
        "--write",
        "--json",
    ];
    let mut serving = Running::start(&words, at);
    let node = format!("far={address}");
    let copy = |from: &str, to: &str| {
        let mut command =
            skyhaul(&["cp", from, to, "--node", &node, "--insecure-test", "--json"], at);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    // Each copy waits for data from its standard input.
    let mut held = Vec::new();
    for number in 0..MOST {
        held.push(copy("-", &format!("far:{number}")).spawn().unwrap());
        await_call(&mut serving);
    }
    let mut waiting = Running::of(&mut copy("one", "far:."));
    let line = waiting.line();
    assert!(line.contains("\"busy\"") && line.contains("64 transfers"), "{line}");
    let mut first = held.swap_remove(0);
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success(), "what was under way comes to its end");
    let ended = waiting.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert_eq!(fs::read_to_string(at.join("far/one")).unwrap(), "one");
    for mut child in held {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

/// Reads what the far end says until it has taken a copy.
fn await_call(serving: &mut Running) {
    while !serving.line().contains("\"called\"") {}
}

/// The first message of a transfer is lost now and then, and the next one is not.
#[test]
fn transfers_begin_over_a_line_that_loses_every_fourth_datagram() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("far")).unwrap();
    let address = free_address().to_string();
    let words =
        ["files", "serve", "--bind", &address, "--insecure-test", "--root", "far", "--write"];
    let _serving = Running::start(&words, at);
    let words = ["emulate", "--listen", "127.0.0.1:0", "--to", &address, "--loss", "25 %"];
    let mut line = Running::start(&words, at);
    let node = format!("far={}", line.address());
    for number in 0..12 {
        let name = format!("f{number}");
        fs::write(at.join(&name), [number]).unwrap();
        let copied = run(&["cp", &name, "far:.", "--node", &node, "--insecure-test"], at);
        assert!(copied.status.success(), "{name}: {}", text(&copied.stderr));
        assert_eq!(fs::read(at.join("far").join(&name)).unwrap(), [number]);
    }
}
