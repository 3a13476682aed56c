//! The header as its generator makes it, and programs in C, compiled and run: as they are, and with
//! the address sanitizer, which watches the library's memory, too. (Under valgrind a handshake
//! takes longer than a busy machine has time for.)
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what cannot go on fails; what is skipped is said"
)]

#[path = "../../../services/blocks-io/tests/all/looped.rs"]
#[allow(dead_code, clippy::redundant_pub_crate, reason = "shared with other tests")]
mod looped;

use looped::Service;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The shared library, built beside this test.
fn library() -> PathBuf {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libskyhaul_c.so");
    assert!(library.exists(), "{} is built with the tests", library.display());
    library
}

/// Compiles a program of this crate's folder, with every warning an error. `None` where there is no
/// compiler, or it lacks what `options` ask for, which is said.
fn compiled(source: &str, options: &[&str], folder: &Path) -> Option<PathBuf> {
    let program = folder.join("program");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"])
        .args(options);
    compiler.arg("-I").arg(Path::new(HERE).join("include")).arg(Path::new(HERE).join(source));
    compiler.arg(library()).arg("-o").arg(&program);
    let Ok(output) = compiler.output() else {
        eprintln!("SKIPPED: there is no C compiler (cc)");
        return None;
    };
    if !output.status.success() && !options.is_empty() && !links(options, folder) {
        eprintln!("SKIPPED: the C compiler has no {}", options.join(" "));
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Whether the compiler makes any program with these options.
fn links(options: &[&str], folder: &Path) -> bool {
    let source = folder.join("nothing.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    Command::new("cc")
        .args(options)
        .arg(&source)
        .arg("-o")
        .arg(folder.join("nothing"))
        .status()
        .unwrap()
        .success()
}

fn run(mut command: Command) -> Output {
    command.env("LD_LIBRARY_PATH", library().parent().unwrap()).output().unwrap()
}

#[track_caller]
fn assert_prints(output: &Output, lines: &[&str]) {
    let (printed, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}{said}");
    let found: Vec<&str> = printed.lines().collect();
    for line in lines {
        assert!(found.contains(line), "`{line}` is not in:\n{printed}{said}");
    }
}

const BLOCKS: [&str; 4] = [
    "66009 bytes in 3 blocks",
    "key frame: delivered",
    "next frame: delivered",
    "message: delivered",
];
const MISUSE: [&str; 1] = ["everything was told"];
/// Each program, and what it prints.
const PROGRAMS: [(&str, &[&str]); 2] =
    [("examples/blocks.c", &BLOCKS), ("tests/misuse.c", &MISUSE)];

#[test]
fn the_header_is_what_is_made_of_the_sources() {
    let config = cbindgen::Config::from_file(Path::new(HERE).join("cbindgen.toml")).unwrap();
    let bindings =
        cbindgen::Builder::new().with_config(config).with_crate(HERE).generate().unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let kept =
        std::fs::read_to_string(Path::new(HERE).join("include/skyhaul.h")).unwrap_or_default();
    if made != kept {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skyhaul.h");
        std::fs::write(&file, made).unwrap();
        panic!(
            "include/skyhaul.h is not that of the sources: look at {}, and copy it there",
            file.display()
        );
    }
}

#[test]
fn the_header_serves_programs_in_cpp_too() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.cpp");
    std::fs::write(
        &source,
        "#include \"skyhaul.h\"\nint main() { return skyhaul_version()[0] == 0; }\n",
    )
    .unwrap();
    let program = folder.path().join("program");
    let mut compiler = Command::new("c++");
    compiler
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(Path::new(HERE).join("include"));
    let Ok(output) = compiler.arg(&source).arg(library()).arg("-o").arg(&program).output() else {
        return eprintln!("SKIPPED: there is no C++ compiler (c++)");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_prints(&run(Command::new(program)), &[]);
}

#[test]
fn programs_in_c_send_receive_and_are_told_what_they_do_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (source, lines) in PROGRAMS {
        let Some(program) = compiled(source, &[], folder.path()) else { return };
        assert_prints(&run(Command::new(program)), lines);
    }
}

const LOCAL: [&str; 2] = ["100000 bytes in flow 1", "frame: delivered"];

#[test]
fn programs_in_c_go_through_the_block_service_of_their_node_and_wait_with_poll() {
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &["-fsanitize=address,undefined"]] {
        let service = Service::usual();
        let Some(program) = compiled("examples/local.c", options, folder.path()) else { return };
        let mut command = Command::new(program);
        command.arg(&service.socket).arg("mirror");
        assert_prints(&run(command), &LOCAL);
    }
}

#[test]
fn the_address_sanitizer_finds_nothing_in_them() {
    let folder = tempfile::tempdir().unwrap();
    for (source, lines) in PROGRAMS {
        let Some(program) = compiled(source, &["-fsanitize=address,undefined"], folder.path())
        else {
            return;
        };
        assert_prints(&run(Command::new(program)), lines);
    }
}
