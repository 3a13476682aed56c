//! A comparison on a busy machine. Needs root, network namespaces and TUN devices.

use crate::support::process::{run, text};
use std::path::Path;
use std::process::{Child, Command};

const MINE: &str =
    "name = \"mine\"\ntitle = \"a thin line\"\nsource = \"this test\"\nduration = \"1 s\"
tools = [\"adaptive\"]\n[line]\nseed = 1\n[[line.link]]\nname = \"thin\"
both = { rate = \"5 Mbit/s\", one_way_delay = \"5 ms\" }\n[[cell]]\nlabel = \"clean\"
published = { \"adaptive\" = \"4 Mbit/s\" }\n";

/// Busy programs, one for each processor and one more. They are ended when this is dropped.
struct Beside(Vec<Child>);

impl Beside {
    fn start() -> Self {
        let count = std::thread::available_parallelism().unwrap().get() + 1;
        // They run only where nothing else does, so that they take nothing from the other tests.
        let busy = || {
            Command::new("chrt")
                .args(["--idle", "0", "sh", "-c", "while :; do :; done"])
                .spawn()
                .unwrap()
        };
        Self((0..count).map(|_| busy()).collect())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn a_run_disturbed_by_busy_programs_is_reported_and_writes_no_page_unless_it_is_accepted() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        eprintln!("SKIPPED: emulated links need root and /dev/net/tun");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("mine.toml"), MINE).unwrap();
    let beside = Beside::start();
    let refused =
        run(&["lab", "compare", "mine.toml", "--lab", "t-busy", "--markdown", "out.md"], folder);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused.stderr));
    let told = text(&refused.stderr);
    assert!(told.contains("this machine is busy") && told.contains("--even-if-busy"), "{told}");
    assert!(!folder.join("out.md").exists());

    let said = run(
        &[
            "lab",
            "compare",
            "mine.toml",
            "--lab",
            "t-busy",
            "--json",
            "--markdown",
            "out.md",
            "--even-if-busy",
        ],
        folder,
    );
    let found: serde_json::Value = serde_json::from_str(&text(&said.stdout)).unwrap();
    let conditions = &found["conditions"];
    assert_eq!((&conditions["runs"], &conditions["disturbed"]), (&1.into(), &1.into()), "{found}");
    assert_eq!(conditions["repeated"], 0, "{found}");
    assert!(conditions["foreign"]["max"].as_f64().unwrap() > 0.05, "{found}");
    assert!(found["cells"][0]["tools"][0]["median_bps"].is_f64(), "{found}");
    let written = std::fs::read_to_string(folder.join("out.md")).unwrap();
    assert!(written.contains("**On a busy machine:** others disturbed 1 of 1 runs."), "{written}");
    drop(beside);
}
