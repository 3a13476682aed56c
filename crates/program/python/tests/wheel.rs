//! The package as a user has it: a wheel, installed into an environment of its own, and tested by
//! Python there.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what cannot go on fails; what is skipped is said"
)]

#[path = "../../../services/blocks-io/tests/all/looped.rs"]
#[allow(dead_code, clippy::redundant_pub_crate, reason = "shared with other tests")]
mod looped;

use skyhaul_ccsds::count::Modulus;
use skyhaul_ccsds::id::{Channel, Scid, Vcid};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_level0::ledger::{ContactId, ContactStart, DurableFrame, Ledger, Place};
use skyhaul_store::{RealDisk, RecordDirectory as Records};
use skyhaul_units::{FlowId, Seq, Utc};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");

/// The interpreter of an environment with the wheel and what its tests need; says so where that is
/// impossible.
fn python() -> Option<&'static str> {
    static PYTHON: OnceLock<Option<String>> = OnceLock::new();
    PYTHON.get_or_init(installed).as_deref()
}

fn installed() -> Option<String> {
    let is_new = "import sys; sys.exit(sys.version_info < (3, 11))";
    match Command::new("python3").args(["-c", is_new]).status() {
        Ok(status) if status.success() => {}
        Ok(_) => {
            eprintln!("SKIPPED: python3 is older than 3.11");
            return None;
        }
        Err(_) => {
            eprintln!("SKIPPED: there is no python3");
            return None;
        }
    }
    let install =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../space/level0/tests/readers/install.py");
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/package");
    let requirements = Path::new(HERE).join("requirements.txt");
    let installer = || {
        let mut installer = Command::new("python3");
        installer.arg(install).arg(folder).arg(&requirements);
        installer
    };
    let made = installer().output().unwrap();
    if !made.status.success() {
        let said = said(&made);
        eprintln!("SKIPPED: {}", said.trim().lines().last().unwrap_or("no word from install.py"));
        return None;
    }
    let python = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let wheels = concat!(env!("CARGO_TARGET_TMPDIR"), "/wheels");
    let pack = Path::new(HERE).join("pack.py");
    let version = env!("CARGO_PKG_VERSION");
    let packed = run(Command::new(&python).arg(pack).arg(library()).args([version, wheels]));
    let wheel = String::from_utf8(packed.stdout).unwrap();
    run(installer().arg(wheel.trim()));
    Some(python)
}

/// The module, built beside this test.
fn library() -> PathBuf {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("lib_skyhaul.so");
    assert!(library.exists(), "{} is built with the tests", library.display());
    library
}

/// The program, where it was built beside this test.
fn program() -> Option<PathBuf> {
    let program =
        std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("skyhaul");
    program.exists().then_some(program)
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    output
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs the tests of one Python module.
#[track_caller]
fn passes(module: &str, prepare: impl FnOnce(&mut Command)) {
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    command
        .args(["-X", "dev", "-W", "error::ResourceWarning", "-m", "unittest", module])
        .current_dir(HERE);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    prepare(&mut command);
    let output = run(&mut command);
    assert!(!said(&output).contains("Ran 0 tests"), "{}", said(&output));
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata").canonicalize().unwrap()
}

/// The state folder of a centre to which nine frames did not come.
fn state(folder: &Path) {
    let id = ContactId { station: "polar".to_owned(), flow: FlowId(7) };
    let at = Utc::from_micros(1_733_506_700_000_000);
    let mission = "suomi-npp".to_owned();
    let mut ledger = Ledger::new(1);
    ledger.open(&id, ContactStart { channel: "x".to_owned(), mission, at, completes: None });
    let channel = Channel { scid: Scid::new(157).unwrap(), vcid: Vcid::new(16).unwrap() };
    let frame = |count: u64| DurableFrame {
        channel,
        count,
        modulus: Modulus::of_values(1 << 24).unwrap(),
        place: Place { received: at, position: BitPosition::from_bits(8_192 * count) },
        packet: None,
    };
    ledger.block(&id, Seq(0), &[frame(10), frame(20)]);
    let records = Records::open(Arc::new(RealDisk::open(folder).unwrap()), "level0/gaps").unwrap();
    records.put("polar-7", &ledger.record(&id).unwrap()).unwrap();
}

#[test]
fn blocks_are_sent_and_received_by_threads_that_wait() {
    passes("test_sessions", |_| {});
}

#[test]
fn blocks_are_sent_and_received_with_asyncio() {
    passes("test_asyncio", |_| {});
}

#[test]
fn nothing_is_copied_on_the_way_to_and_from_the_transport() {
    passes("test_memory", |_| {});
}

#[test]
fn blocks_go_through_the_block_service_of_a_node() {
    let service = looped::Service::usual();
    passes("test_local", |command| {
        command.env("SKYHAUL_BLOCKS", &service.socket);
    });
}

#[test]
fn the_stubs_say_what_is_there() {
    passes("test_stubs", |_| {});
}

#[test]
fn tables_hold_what_the_program_prints_and_what_independent_decoders_found() {
    let folder = tempfile::tempdir().unwrap();
    state(folder.path());
    passes("test_tables", |command| {
        command.env("SKYHAUL_TESTDATA", testdata()).env("SKYHAUL_STATE", folder.path());
        match program() {
            Some(program) => drop(command.env("SKYHAUL_PROGRAM", program)),
            None => eprintln!(
                "SKIPPED: the program, which tables are compared with, is not built beside this \
                test"
            ),
        }
    });
}

#[test]
fn the_tutorial_prints_what_it_shows() {
    let Some(program) = program() else {
        return eprintln!(
            "SKIPPED: the program, which the tutorial runs, is not built beside this test"
        );
    };
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(testdata(), folder.path().join("testdata")).unwrap();
    let page = testdata().join("../docs/how-to/python.md").canonicalize().unwrap();
    let mut command = Command::new(python);
    command
        .args(["-X", "dev"])
        .arg(Path::new(HERE).join("tutorial.py"))
        .arg(page)
        .current_dir(folder.path());
    let folders =
        std::env::join_paths([program.parent().unwrap(), Path::new("/usr/bin"), Path::new("/bin")])
            .unwrap();
    run(command.env("SKYHAUL_PROGRAM", &program).env("PATH", folders));
}
