//! `-D`: applications name their targets by SOCKS version 5.

use super::ends::{Ends, are_installed, pattern, printed, program};
use super::web;
use crate::support::ports::ClosedTcp;
use crate::support::process::text;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

#[test]
fn curl_connects_through_the_proxy_by_address_and_by_a_name_that_the_far_end_resolves() {
    if !are_installed(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = web::start(2);
    let port = target.rsplit_once(':').unwrap().1;
    let by_name = format!("localhost:{port}");
    let ends = Ends::start(&["--allow", &target, &by_name], &["-D", "0"], 1);
    let got = folder.path().join("got");
    let curl = ["curl", "-sS", "--noproxy", "", "--max-time", "60", "-o", got.to_str().unwrap()];
    for (flag, host) in [("--socks5", &target), ("--socks5-hostname", &by_name)] {
        printed(&[&curl[..], &[flag, &ends.local[0], &format!("http://{host}/")]].concat());
        assert!(std::fs::read(&got).unwrap() == pattern(web::PAGE));
    }
}

#[test]
fn a_failed_connection_is_answered_with_the_true_reason() {
    if !are_installed(&["curl"]) {
        return;
    }
    let refusing = ClosedTcp::new();
    let closed = refusing.address().to_string();
    let ends = Ends::start(&["--allow", &closed], &["-D", "0"], 1);
    // RFC 1928 6: 5 is refused, 2 is not allowed; curl tells the number.
    for (host, number) in [(closed.as_str(), "(5)"), ("127.0.0.2:9", "(2)"), ("localhost:9", "(2)")]
    {
        let url = format!("http://{host}/");
        let proxy = ["--socks5-hostname", &ends.local[0], &url];
        let failed =
            program(&[&["curl", "-sS", "--noproxy", "", "--max-time", "60"], &proxy[..]].concat());
        let said = text(&failed.stderr);
        assert!(failed.status.code() == Some(97) && said.contains(number), "{host}: {said}");
    }
}

/// Negotiates the method, and sends the request.
fn ask(proxy: &str, request: &[u8]) -> (TcpStream, [u8; 10]) {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&[5, 1, 0]).unwrap();
    let (mut method, mut answer) = ([0; 2], [0; 10]);
    stream.read_exact(&mut method).unwrap();
    assert_eq!(method, [5, 0]);
    stream.write_all(request).unwrap();
    stream.read_exact(&mut answer).unwrap();
    (stream, answer)
}

#[test]
fn datagrams_go_to_their_own_targets_while_the_requesting_connection_is_open() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap();
    let mut ends = Ends::start(&["--allow", &format!("udp:{target}")], &["-D", "0"], 1);
    let (control, answer) = ask(&ends.local[0], &[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(answer[..8], [5, 0, 0, 1, 127, 0, 0, 1]);
    let relay = format!("127.0.0.1:{}", u16::from_be_bytes([answer[8], answer[9]]));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    }
    let head = [&[0, 0, 0, 1, 127, 0, 0, 1], &target.port().to_be_bytes()[..]].concat();
    let mut fragment = head.clone();
    fragment[2] = 1;
    client.send_to(&[&fragment[..], b"part"].concat(), &relay).unwrap();
    client.send_to(&[&head[..], b"question"].concat(), &relay).unwrap();
    let mut buffer = [0; 100];
    let (len, from) = server.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"question", "the fragment is dropped");
    server.send_to(b"answer", from).unwrap();
    let len = client.recv(&mut buffer).unwrap();
    assert_eq!(buffer[..len], [&head[..], b"answer"].concat());
    drop(control);
    drop(client);
    ends.near.signal(rustix::process::Signal::INT);
    let summary = ends.near.log_until("datagrams: ");
    assert!(summary.contains("1 sent, 1 received, 0 late, 1 dropped"), "{summary}");
}

#[test]
fn connections_without_a_known_socks_command_are_closed_with_an_answer_if_there_is_one() {
    let ends = Ends::start(&[], &["-D", "0"], 1);
    let (mut stream, answer) = ask(&ends.local[0], &[5, 2, 0, 1, 127, 0, 0, 1, 0, 80]);
    assert_eq!(answer[1], 7, "BIND is none of ours");
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let mut other = TcpStream::connect(&ends.local[0]).unwrap();
    other.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    // Closed, or reset if not everything was read.
    assert!(matches!(other.read(&mut [0]), Ok(0) | Err(_)));
}
