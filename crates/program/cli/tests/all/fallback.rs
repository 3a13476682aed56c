//! A station whose network blocks UDP, or begins to block it, or lets only short datagrams through:
//! real processes, a forwarder for TCP only, and beside it a line for UDP that changes in
//! mid-session.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the forwarder runs beside the processes")]

use crate::support::process::Running;
use crate::support::site::{Site, channel};
use serde_json::Value;
use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig, ProxyHandle, ProxyLine};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Forwards TCP to `to` from a port where nothing receives UDP. Returns its address.
fn forward_tcp_alone(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&to).unwrap());
            for (mut from, mut into) in
                [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)]
            {
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

/// Sends a whole contact from a station with this table, whose way to the centre carries only TCP.
/// Returns the paths that status shows meanwhile.
fn contact_arrives(path: &str) -> Value {
    let site = Site::new();
    let way = forward_tcp_alone(site.address.clone());
    site.write_by(&way, &format!("{path}{}", channel("")));
    let _station = site.start_to_stay();
    site.assert_whole();
    site.until(|status| {
        Some(status["destinations"][0]["line"]["paths"].clone())
            .filter(|_| status["spool"]["blocks"] == 0)
    })
}

#[test]
fn where_udp_is_blocked_the_contact_arrives_over_tcp_and_status_says_why() {
    let paths = contact_arrives("");
    let [udp, tcp] = paths.as_array().unwrap().as_slice() else { panic!("{paths}") };
    assert_eq!((&udp["over"], &tcp["over"]), (&"udp".into(), &"tcp".into()), "{paths}");
    assert_eq!((&udp["state"], &tcp["state"]), (&"failed".into(), &"active".into()), "{paths}");
    assert!(tcp["reason"].as_str().unwrap().contains("no answer over UDP"), "{paths}");
}

#[test]
fn a_path_configured_for_tcp_uses_it_at_once() {
    let paths = contact_arrives("[[path]]\ntransport = \"tcp\"\n");
    let [tcp] = paths.as_array().unwrap().as_slice() else { panic!("{paths}") };
    assert_eq!((&tcp["over"], &tcp["state"]), (&"tcp".into(), &"active".into()), "{paths}");
}

/// A site whose station reaches the centre over a line of UDP that the test changes, and over TCP
/// at the same address.
struct Changing {
    site: Site,
    handle: ProxyHandle,
    stop: Arc<AtomicBool>,
    proxy: Option<JoinHandle<()>>,
}

/// So slow that a contact of a megabyte takes seconds, with a queue of a quarter of a second. With
/// a longer queue, a path is silent before enough full datagrams are lost.
fn line() -> LinkConfig {
    let line = LinkConfig::line(Rate::from_mbps(1), Duration::from_millis(20));
    LinkConfig { queue: ByteCount::kib(32), ..line }
}

impl Changing {
    fn new() -> Self {
        let site = Site::new();
        let way = forward_tcp_alone(site.address.clone());
        let config = ProxyConfig::new(way.parse().unwrap(), site.address.parse().unwrap(), line());
        let mut proxy = LinkProxy::bind(config).unwrap();
        let (handle, stop) = (proxy.handle(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let proxy = Some(std::thread::spawn(move || proxy.run(&stopped).unwrap()));
        site.write_by(&way, &channel(""));
        Self { site, handle, stop, proxy }
    }

    /// Returns the station when a part of the contact has been sent.
    fn under_way(&self) -> Running {
        let station = Running::start_logged(&["run", "station.toml"], self.site.folder());
        self.site.until(|status| {
            let sent = status["destinations"][0]["line"]["paths"][0]["bytes_sent"].as_u64()?;
            Some(()).filter(|()| sent > 100_000)
        });
        station
    }

    fn change(&self, line: &LinkConfig) {
        for direction in [ProxyLine::Up, ProxyLine::Down] {
            self.handle.set(direction, line.clone());
        }
    }

    /// Waits until the paths in the status are as `probe` says, and returns them.
    #[track_caller]
    fn paths(&self, probe: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        self.site.until(|status| {
            let paths = status["destinations"][0]["line"]["paths"].as_array()?;
            probe(paths).then(|| paths.clone())
        })
    }

    /// Waits until an alarm says `text`, or until the paths are no longer as `while_so` says. An
    /// alarm stands a second after its cause began.
    #[track_caller]
    fn alarm_says(&self, text: &str, while_so: impl Fn(&[Value]) -> bool) {
        self.site.until(|status| {
            let paths = status["destinations"][0]["line"]["paths"].as_array()?;
            (!while_so(paths) || status["alarms"].to_string().contains(text)).then_some(())
        });
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.proxy.take().map(JoinHandle::join));
    }
}

fn states(paths: &[Value]) -> Vec<&str> {
    paths.iter().filter_map(|path| path["state"].as_str()).collect()
}

/// A contact under way that has found out that large packets are lost. None where it has ended
/// before.
fn under_way_with_large_ones_lost() -> Option<(Changing, Running)> {
    let changing = Changing::new();
    let station = changing.under_way();
    changing.change(&LinkConfig { largest: Some(ByteCount::new(1_400)), ..line() });
    let found_out = changing.site.until(|status| {
        let payload = &status["destinations"][0]["line"]["paths"][0]["payload"];
        let is_smaller = payload.as_u64().is_some_and(|size| size < 1_472);
        let has_ended =
            status["contacts"][0]["state"] == "closed" && status["spool"]["blocks"] == 0;
        (is_smaller || has_ended).then_some(is_smaller)
    });
    if !found_out {
        changing.site.assert_whole();
    }
    found_out.then_some((changing, station))
}

#[test]
fn when_large_packets_vanish_in_mid_session_smaller_ones_carry_the_contact_and_an_alarm_says_so() {
    // On a busy machine, the path may be silent for a second before enough full datagrams are lost,
    // and TCP may carry the rest: then once more.
    let (changing, mut station) = (0..8).find_map(|_| under_way_with_large_ones_lost()).unwrap();
    let log = station.log_until("bytes are lost");
    assert!(log.contains("packets on path"), "{log}");
    changing.site.assert_whole();
    // Half-way between the full size, 1472, and the smallest, 1200.
    let paths =
        changing.paths(|paths| paths[0]["payload"].as_u64().is_some_and(|size| size > 1_200));
    // TCP may stand by, where many of the long packets were lost in a row.
    assert_eq!(
        (&paths[0]["over"], states(&paths)[0]),
        (&Value::from("udp"), "active"),
        "{paths:?}"
    );
    assert_eq!(paths[0]["payload"], 1_335, "{paths:?}");
    changing.alarm_says("packets of 1500 bytes are lost", |_| true);
}

#[test]
fn when_no_full_packet_of_any_size_arrives_in_mid_session_tcp_carries_the_contact() {
    let changing = Changing::new();
    let _station = changing.under_way();
    changing.change(&LinkConfig { largest: Some(ByteCount::new(1_000)), ..line() });
    // On a busy machine, nothing may return for a second before 64 full datagrams are lost. Then
    // the path is silent, and active again with the next short datagram.
    changing.paths(|paths| paths.iter().any(|path| path["over"] == "tcp"));
    changing.alarm_says("only short packets arrive", |paths| paths[0]["state"] == "black-hole");
    changing.site.assert_whole();
}

#[test]
fn when_udp_is_cut_in_mid_session_tcp_takes_over_at_once_until_udp_is_back() {
    let changing = Changing::new();
    let mut station = changing.under_way();
    changing.change(&LinkConfig { loss: Loss::Independent(Probability::ONE), ..line() });
    station.log_until("path silent");
    let log = station.log_until("using TCP");
    // Alarms, as that the machine is busy, may stand between the lines about paths.
    let of_paths = log.lines().filter(|line| line.contains("path="));
    assert!(of_paths.count() <= 2, "TCP is called at once: {log}");
    let paths = changing.paths(|paths| states(paths) == ["silent", "active"]);
    assert!(paths[0]["reason"].as_str().unwrap().contains("nothing is received"), "{paths:?}");
    changing.site.assert_whole();
    changing.change(&line());
    station.log_until("path answers again");
    let paths = changing.paths(|paths| paths.len() == 1);
    assert_eq!((states(&paths), &paths[0]["over"]), (vec!["active"], &"udp".into()), "{paths:?}");
}
