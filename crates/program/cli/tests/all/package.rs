//! What a package brings beside the program: manual pages, completions, the unit of the service.
//! Each is read by the programs that use it, where they are installed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{printed, run, skyhaul, text};
use crate::support::refusal::assert_refused;
use crate::support::rung::is_all;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program behind a command, if it is there; says so otherwise.
fn output(command: &mut Command) -> Option<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Ok(output) = command.stdin(Stdio::null()).output() else {
        eprintln!("SKIPPED: there is no {name}");
        return None;
    };
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    Some(said)
}

#[test]
fn every_command_and_both_files_have_a_manual_page_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = skyhaul(&["man", "manual"], folder.path());
    let made = command.env("SOURCE_DATE_EPOCH", "1795700000").output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let made = text(&made.stdout);
    let pages: Vec<PathBuf> = made.lines().map(|line| folder.path().join(line)).collect();
    for name in ["man1/skyhaul.1", "man1/skyhaul-cp.1", "man1/skyhaul-config-check.1"] {
        assert!(made.contains(name), "{made}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join("manual").join(name));
    let check = read("man1/skyhaul-config-check.1").unwrap();
    assert!(check.contains("2026-11-26") && check.contains("\\fB\\-\\-strict\\fR"), "{check}");
    let node = read("man5/skyhaul-node.toml.5").unwrap();
    let keys = printed(&["config", "keys"], folder.path());
    let (keys, _) = keys.split_once("## nodes.toml").unwrap();
    for key in keys.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (key, _) = key.split_once('`').unwrap();
        assert!(node.contains(&format!("\\fB{key}\\fR")), "{key}");
    }
    // It takes a while for each page: those with all kinds of text, without the whole matrix. What
    // it prints to standard error are its warnings.
    let few = ["skyhaul.1", "skyhaul-generate.1", "skyhaul-node.toml.5"];
    let some = pages.iter().filter(|page| is_all() || few.iter().any(|name| page.ends_with(name)));
    let mut man = Command::new("man");
    let shown = man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8"]).args(some);
    let shown = shown.env("MANROFFSEQ", "").env("MANPAGER", "cat").env("LC_ALL", "C.UTF-8");
    match shown.stdin(Stdio::null()).output() {
        Ok(output) => {
            assert!(output.status.success());
            assert_eq!(text(&output.stderr), "");
            assert!(text(&output.stdout).contains("skyhaul-node.toml"));
        }
        Err(_) => eprintln!("SKIPPED: there is no man"),
    }
    let mut lint = Command::new("mandoc");
    output(lint.args(["-T", "lint", "-W", "warning"]).args(&pages));
}

#[test]
fn a_manual_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let refused = run(&["man", "file"], folder.path());
    assert_refused(&refused, 3, &["the manual cannot be written", "file/man1", "may write"]);
    let mut command = skyhaul(&["man", "manual"], folder.path());
    let refused = command.env("SOURCE_DATE_EPOCH", "yesterday").output().unwrap();
    assert_refused(&refused, 2, &["SOURCE_DATE_EPOCH", "git log"]);
}

#[test]
fn the_shells_complete_commands_flags_and_values() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell], folder.path());
        std::fs::write(folder.path().join(shell), script).unwrap();
    }
    let run = |shell: &str, arguments: &[&str]| {
        output(Command::new(shell).args(arguments).current_dir(folder.path()))
    };
    // As Bash calls the function: the words, the place of the last one, and the line's own.
    let bash = "source ./bash
        complete_line() {
            COMP_WORDS=(\"$@\"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
            _skyhaul skyhaul \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
            echo \"${COMPREPLY[*]}\"
        }
        complete -p skyhaul
        complete_line skyhaul conf
        complete_line skyhaul config sys
        complete_line skyhaul config check --str
        complete_line skyhaul run --log-format j";
    if let Some(said) = run("bash", &["--noprofile", "--norc", "-c", bash]) {
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].contains("-F _skyhaul"), "{said}");
        assert_eq!(lines[1..], ["config", "systemd", "--strict", "json journal"]);
    }
    let fish = "source ./fish; complete -C 'skyhaul conf'; complete -C 'skyhaul config sys'
        complete -C 'skyhaul run --log-format jo'";
    let home = ["--no-config", "-c", fish];
    if let Some(said) = run("fish", &home) {
        let words: Vec<&str> =
            said.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(words, ["config", "systemd", "journal"], "{said}");
    }
    run("zsh", &["-f", "-n", "./zsh"]);
    // The shell with the system of completion, in a terminal of its own: the line as Tab leaves it.
    let zsh = "zmodload zsh/zpty
        zpty shell zsh -f -i
        say() { zpty -w shell \"$1\"; }
        say \"PS1='>'; TERM=dumb; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d dump\"
        say 'source ./zsh; compdef _skyhaul skyhaul'
        say 'list() { print -r -- \"<$BUFFER>\"; zle kill-buffer; }; zle -N list'
        say \"bindkey '^X' list; print rea''dy\"
        zpty -r shell said '*ready*'
        zpty -w -n shell $'skyhaul config sys\\t\\x18'
        zpty -r shell said '*<*>*'
        print -r -- \"$said\"
        zpty -d shell";
    if let Some(said) = run("zsh", &["-f", "-c", zsh]) {
        assert!(said.contains("<skyhaul config systemd"), "{said}");
    }
    let refused = skyhaul(&["completions", "csh"], folder.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("[possible values: bash, zsh, fish]"));
}

/// What systemd itself reports about the unit, alone and with drop-ins, and about its exposure (15
/// stands for 1.5, `OK`).
#[test]
fn the_unit_of_the_service_and_its_drop_ins_are_valid_and_restrict_it() {
    let folder = tempfile::tempdir().unwrap();
    let unit = std::fs::read_to_string(ops().join("skyhaul@.service")).unwrap();
    assert!(unit.contains("\nExecStart=/usr/bin/skyhaul run --log-format journal /etc/skyhaul/%i"));
    // The check looks for the program.
    let unit = unit.replace("/usr/bin/skyhaul", env!("CARGO_BIN_EXE_skyhaul"));
    std::fs::write(folder.path().join("skyhaul@.service"), unit).unwrap();
    let analyze = |arguments: &[&str], unit: &str| {
        let mut command = Command::new("systemd-analyze");
        command.args(arguments).arg(folder.path().join(unit));
        let said =
            output(command.env("SYSTEMD_UNIT_PATH", format!("{}:", folder.path().display())));
        assert!(said.as_ref().is_none_or(|said| !said.contains("Unknown")), "{unit}: {said:?}");
        said
    };
    let security = ["security", "--offline=true", "--threshold=15"];
    let Some(_) = analyze(&security, "skyhaul@.service") else { return };
    // A file whose node needs every kind of setting.
    std::fs::write(folder.path().join("all.toml"), EVERYTHING).unwrap();
    let drop_in = printed(&["config", "systemd", "all.toml"], folder.path());
    for setting in ["BindReadOnlyPaths=/home/", "DeviceAllow=", "LimitNOFILE=", "StateDirectory="] {
        assert!(drop_in.contains(&format!("\n{setting}")), "{drop_in}");
    }
    for instance in ["plain", "all"] {
        let name = format!("skyhaul@{instance}.service");
        std::fs::copy(folder.path().join("skyhaul@.service"), folder.path().join(&name)).unwrap();
        let folder = folder.path().join(format!("{name}.d"));
        std::fs::create_dir(&folder).unwrap();
        let written = if instance == "all" { &*drop_in } else { "[Service]\n" };
        let written = written.replace("/usr/bin/skyhaul", env!("CARGO_BIN_EXE_skyhaul"));
        std::fs::write(folder.join("node.conf"), written).unwrap();
        let said = analyze(&["verify", "--man=no"], &name).unwrap();
        assert_eq!(said, "", "{name}");
    }
}

/// `scripts/setup` of a checkout on a machine with `manager` alone, without a compiler and Rust.
/// Each program writes how it was called.
fn set_up_with(manager: &str) -> String {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["bash", "dirname", "env", "sed", "sort", "head", "cut", "grep", "rm", "cat"] {
        let found = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(name));
        let found = found.into_iter().find(|path| path.exists()).unwrap();
        symlink(found, bin.join(name)).unwrap();
    }
    let stub = |name: &str, body: &str| {
        let file = bin.join(name);
        std::fs::write(&file, format!("#!/usr/bin/env bash\n{body}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    stub("id", "echo 0");
    // What it installs appears: cargo prints a version.
    let install = "echo \"${0##*/} $*\" >>\"$LOG\"
        case \" $* \" in *\" install \"*cargo*)
        printf '#!/usr/bin/env bash\\necho cargo 9.9.9 x\\n' >\"${0%/*}/cargo\"
        /bin/chmod 755 \"${0%/*}/cargo\" ;; esac";
    stub(manager, install);
    stub("apt-cache", "[ \"$2\" != rustup ]");
    let log = folder.path().join("log");
    std::fs::write(&log, "").unwrap();
    let script = ops().join("../../scripts/setup");
    let mut command = Command::new(bin.join("bash"));
    command.arg(script).env_clear().env("PATH", &bin).env("LOG", &log).env("HOME", folder.path());
    let said = output(&mut command).unwrap();
    assert!(said.contains("setup: installing the package gcc"), "{said}");
    std::fs::read_to_string(log).unwrap()
}

#[test]
fn what_building_needs_is_installed_by_the_manager_of_the_system() {
    let apt = set_up_with("apt-get");
    for package in ["gcc", "libc6-dev", "cargo"] {
        let line = format!("apt-get install -y -qq --no-install-recommends {package}\n");
        assert!(apt.contains(&line), "{apt}");
    }
    let dnf = set_up_with("dnf");
    for package in ["gcc", "glibc-devel", "cargo"] {
        let line = format!("dnf install -y -q --setopt=install_weak_deps=False {package}\n");
        assert!(dnf.contains(&line), "{dnf}");
    }
}

#[test]
fn the_examples_of_the_package_are_configurations() {
    let folder = ops().join("../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        let shown = printed(&["config", "check", file.to_str().unwrap()], &folder);
        assert!(shown.starts_with("node "), "{shown}");
        count += 1;
    }
    assert_eq!(count, 2);
    let drop_in = printed(&["config", "systemd", "centre.toml"], &folder);
    assert!(drop_in.contains("\n# [products] dir\nReadWritePaths=/srv/products\n"), "{drop_in}");
}

/// A node with a table of every kind that needs a right.
const EVERYTHING: &str = r#"
[node]
name = "all"
key = "all.key"
state = "/var/lib/skyhaul/elsewhere"
status_socket = "/run/skyhaul/status/all.sock"
[[listen]]
bind = "0.0.0.0:443"
[[peer]]
name = "c"
addresses = ["c.example.org:4700"]
fingerprints = ["SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
[peer.files]
root = "/srv/with space/100%"
[[destination]]
to = "node:c"
[[channel]]
name = "x"
input = "file:/home/ops/pass.dat"
[[forward]]
transparent = "9000"
[[stream]]
from = "/dev/receiver0"
to = "null"
[[stream]]
from = "shm:/ring"
to = "null"
[products]
dir = "/srv/products"
[serve]
bind = "127.0.0.1:8443"
connections = 50000
[[exec]]
command = ["/usr/local/bin/page", "100%"]
events = ["alarm.*"]
"#;

fn ops() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ops/systemd"))
}
