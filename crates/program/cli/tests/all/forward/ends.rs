//! The two ends of a forward as processes, and the programs whose connections go through it.

use crate::support::process::{Running, text};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Both ends, each ended with the test.
pub struct Ends {
    pub far: Running,
    pub near: Running,
    /// The addresses at which the near end accepts applications, in the order of the flags.
    pub local: Vec<String>,
}

impl Ends {
    /// Starts a near end with the flags `near`, of which this many are local ports, and a far end
    /// named `far` with the flags `serve`.
    pub fn start(serve: &[&str], near: &[&str], ports: usize) -> Self {
        let here = Path::new(".");
        let bind = ["forward", "serve", "--bind", "127.0.0.1:0", "--insecure-test"];
        let mut far = Running::start_logged(&[&bind, serve].concat(), here);
        let node = format!("far={}", far.address());
        let call = ["forward", "--node", &node, "--insecure-test"];
        let mut near = Running::start_logged(&[&call, near].concat(), here);
        let local = (0..ports).map(|_| listening(&near.line())).collect();
        Self { far, near, local }
    }

    /// The first port here.
    pub fn port(&self) -> &str {
        self.local[0].rsplit_once(':').unwrap().1
    }
}

/// The address in a line like `listening on 127.0.0.1:8080, for far:10.0.0.5:80`.
fn listening(line: &str) -> String {
    let (_, rest) =
        line.split_once("listening on ").unwrap_or_else(|| panic!("`{line}` names no port"));
    rest.split_once(", for ").unwrap().0.to_owned()
}

/// Whether these programs are installed; says which one is not.
pub fn are_installed(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| find(program).is_none());
    if let Some(program) = missing {
        eprintln!("SKIPPED: {program} is not installed");
    }
    missing.is_none()
}

/// Where a program is, the folders for administrators included.
pub fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = ["/usr/sbin", "/usr/local/sbin"].map(Into::into);
    std::env::split_paths(&path)
        .chain(places)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Runs another program to its end.
pub fn program(words: &[&str]) -> Output {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).output().expect("the program starts")
}

/// What it prints; it must succeed.
#[track_caller]
pub fn printed(words: &[&str]) -> String {
    let output = program(words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Bytes that show a loss or a change of order.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place % 251) as u8 ^ (place >> 13) as u8).collect()
}
