//! The commands that the README shows, run as they are printed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]
#![allow(clippy::disallowed_methods, reason = "the program under test stands before what PATH has")]

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_application_examples_of_the_readme_work() {
    for tool in ["curl", "python3", "timeout", "bash"] {
        if Command::new(tool)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_err()
        {
            eprintln!("SKIPPED: the README's example needs {tool}, which is not installed");
            return;
        }
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let readme = std::fs::read_to_string(checkout.join("README.md")).unwrap();
    let (_, script) = readme.split_once("```sh\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(checkout.join("testdata"), folder.path().join("testdata")).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_skyhaul")).parent().unwrap();
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-eu", "-c", script]).current_dir(folder.path()).env("PATH", path).process_group(0);
    // The output goes to a file, so that a process in the background holds no pipe open.
    let said = folder.path().join("said");
    let file = std::fs::File::create(&said).unwrap();
    let mut child = bash.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let status = child.wait().unwrap();
    // The last line ends everything. If something failed before it, this ends the rest.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let said = std::fs::read_to_string(said).unwrap();
    assert!(status.success(), "{status}: {said}");
    let recording = "aqua.20241206T175646.dat";
    for name in ["copied/near", "mirrored"] {
        let copied = std::fs::read(folder.path().join("far").join(name).join(recording)).unwrap();
        assert_eq!(
            copied,
            std::fs::read(checkout.join("testdata/cadu").join(recording)).unwrap(),
            "{said}"
        );
    }
    assert!(said.contains(recording), "the server's list came through: {said}");
    let scan = std::fs::metadata(folder.path().join("far/scan.vdif")).unwrap();
    assert!(scan.len() > 1 << 20, "{said}");
}
