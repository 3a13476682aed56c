//! A station whose network lets no UDP through: real processes, and a forwarder that takes TCP alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the forwarder runs beside the processes")]

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use support::site::{Site, channel};

/// Forwards TCP to `to` from a port where nothing takes UDP; gives its address.
fn forward_tcp_alone(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&to).unwrap());
            for (mut from, mut into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                std::thread::spawn(move || {
                    let mut buffer = [0; 65_536];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        if into.write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = into.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

/// A whole contact of a station with this table, whose way to the centre takes TCP alone; gives the paths as status shows
/// them meanwhile.
fn contact_arrives(path: &str) -> Value {
    let site = Site::new();
    let way = forward_tcp_alone(site.address.clone());
    site.write_by(&way, &format!("{path}{}", channel("")));
    let _station = site.start_to_stay();
    site.assert_whole();
    site.until(|status| Some(status["line"]["paths"].clone()).filter(|_| status["spool"]["blocks"] == 0))
}

#[test]
fn where_udp_is_blocked_the_contact_arrives_over_tcp_and_status_says_why() {
    let paths = contact_arrives("");
    let [udp, tcp] = paths.as_array().unwrap().as_slice() else { panic!("{paths}") };
    assert_eq!((&udp["over"], &tcp["over"]), (&"udp".into(), &"tcp".into()), "{paths}");
    assert_eq!((&udp["state"], &tcp["state"]), (&"failed".into(), &"active".into()), "{paths}");
    assert!(tcp["reason"].as_str().unwrap().contains("UDP brings no answer"), "{paths}");
}

#[test]
fn a_path_that_is_to_go_over_tcp_does_so_at_once() {
    let paths = contact_arrives("[[path]]\ntransport = \"tcp\"\n");
    let [tcp] = paths.as_array().unwrap().as_slice() else { panic!("{paths}") };
    assert_eq!((&tcp["over"], &tcp["state"]), (&"tcp".into(), &"active".into()), "{paths}");
}
