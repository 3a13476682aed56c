//! curl, to a small server of HTTP/1.0.

use super::ends::{Ends, are_installed, pattern, printed, program};
use crate::support::ports::ClosedTcp;
use crate::support::process::text;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;

/// The contents for the path of a request, or what was uploaded there.
pub const PAGE: usize = 3_000_000;

fn serve(stream: impl Read, mut answer: impl Write) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = if length > 0 { body } else { pattern(PAGE) };
    write!(answer, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
    answer.write_all(&body).unwrap();
}

/// Serves this number of connections. Returns the target.
pub fn start(connections: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let stream: TcpStream = stream.unwrap();
            std::thread::spawn(move || serve(&stream, &stream));
        }
    });
    target
}

#[test]
fn curl_downloads_and_uploads_one_file_and_several_at_a_time() {
    if !are_installed(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = start(4);
    let ends = Ends::start(&["--allow", &target], &["-L", &format!("0=far:{target}")], 1);
    let url = format!("http://127.0.0.1:{}/", ends.port());
    let (sent, back) = (folder.path().join("sent"), folder.path().join("back"));
    std::fs::write(&sent, pattern(1_000_000)).unwrap();
    let curl = ["curl", "-sS", "--noproxy", "*", "--max-time", "60"];
    let put = ["-T", sent.to_str().unwrap(), "-o", back.to_str().unwrap(), &url];
    printed(&[&curl[..], &put].concat());
    assert!(std::fs::read(&back).unwrap() == pattern(1_000_000));
    let got: Vec<_> = (0..3).map(|number| folder.path().join(number.to_string())).collect();
    let mut words = [&curl[..], &["--parallel", "--parallel-immediate"]].concat();
    for path in &got {
        words.extend(["-o", path.to_str().unwrap(), &url]);
    }
    printed(&words);
    for path in got {
        assert!(std::fs::read(path).unwrap() == pattern(PAGE));
    }
}

#[test]
fn curl_uses_unix_sockets_at_both_ends() {
    if !are_installed(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here.sock"), folder.path().join("there.sock"));
    let listener = UnixListener::bind(&there).unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        serve(&stream, &stream);
    });
    let rule = format!("unix:{}", there.display());
    let _ends = Ends::start(
        &["--allow", &rule],
        &["-L", &format!("unix:{}=far:{rule}", here.display())],
        1,
    );
    let got = folder.path().join("got");
    let socket = ["--unix-socket", here.to_str().unwrap(), "http://there/"];
    printed(
        &[&["curl", "-sS", "--max-time", "60", "-o", got.to_str().unwrap()], &socket[..]].concat(),
    );
    assert!(std::fs::read(got).unwrap() == pattern(PAGE));
}

#[test]
fn curl_sees_a_reset_where_nobody_listens_and_where_the_far_end_allows_nothing() {
    if !are_installed(&["curl"]) {
        return;
    }
    let closed = ClosedTcp::new();
    let target = closed.address().to_string();
    for (allow, reason) in [
        (&["--allow", &target][..], "Connection refused"),
        (&[], "the connecting node's rules do not allow it"),
    ] {
        let mut ends = Ends::start(allow, &["-L", &format!("0=far:{target}")], 1);
        let url = format!("http://127.0.0.1:{}/", ends.port());
        let failed = program(&["curl", "-v", "--noproxy", "*", "--max-time", "60", &url]);
        // The exit code says when the reset came: before curl looked for its connection (7), before
        // it sent (55), or afterwards (52, 56).
        let said = text(&failed.stderr);
        let reset = ["Connection reset by peer", "Empty reply from server"];
        assert!(matches!(failed.status.code(), Some(7 | 52 | 55 | 56)), "{said}");
        assert!(reset.iter().any(|reset| said.contains(reset)), "{said}");
        for end in [&mut ends.near, &mut ends.far] {
            assert!(end.log_until("cannot connect to").contains(reason));
        }
    }
}
