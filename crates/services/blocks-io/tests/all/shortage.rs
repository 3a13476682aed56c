//! A process without descriptors for further programs. The limit is of the process: the test runs
//! in one of its own.

use crate::looped::{Service, until};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use skyhaul_blocks::message::MESSAGE_MAX;
use skyhaul_blocks::{NodeMessage, ProgramMessage};
use skyhaul_blocks_io::EntranceNotice;
use std::fs::File;
use std::process::Command;
use std::time::Duration;

const INSIDE: &str = "SKYHAUL_TEST_WITH_FEW_DESCRIPTORS";
/// Open files of the process: the service has some, the test the rest.
const LIMIT: u64 = 96;

#[test]
fn a_program_that_cannot_be_accepted_costs_no_thread_that_spins_and_is_served_later() {
    if std::env::var_os(INSIDE).is_some() {
        return run_short_of_descriptors();
    }
    let this = "shortage::\
                a_program_that_cannot_be_accepted_costs_no_thread_that_spins_and_is_served_later";
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args([this, "--exact"]).env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Processor time of the whole process so far.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn run_short_of_descriptors() {
    let service = Service::usual();
    let program = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(LIMIT);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    assert!(!taken.is_empty(), "the limit is above what the service has");
    rustix::net::connect(&program, &SocketAddrUnix::new(&service.socket).unwrap()).unwrap();
    let told = || service.entrance.lock().unwrap().clone();
    // Ten pauses, and no more attempts than those.
    until("the program cannot be accepted", || told().len() >= 5);
    let before = spent();
    until("it is tried again", || told().len() >= 10);
    let used = spent() - before;
    assert!(used < Duration::from_millis(300), "{used:?} of processor time in five pauses");
    let reasons = told();
    assert!(
        reasons.iter().all(|notice| {
            matches!(notice, EntranceNotice::Short(why) if why.contains("raise the node's limit"))
        }),
        "{reasons:?}"
    );
    drop(taken);
    let (name, window) = ("late".to_owned(), 1);
    let listen = ProgramMessage::Listen { name, window };
    rustix::net::send(&program, &listen.encode(), SendFlags::NOSIGNAL).unwrap();
    let mut room = vec![0; MESSAGE_MAX];
    let (len, _) = rustix::net::recv(&program, &mut room[..], RecvFlags::empty()).unwrap();
    assert_eq!(NodeMessage::decode(&room[..len]).unwrap(), NodeMessage::Listening);
    until("it is told that programs can connect again", || {
        told().last() == Some(&EntranceNotice::Open)
    });
}
