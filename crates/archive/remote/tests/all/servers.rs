//! Servers in folders of their own, lines that break, and files to deliver.

use sha2::{Digest, Sha256};
use skyhaul_remote::{OutgoingFile, ReadBack};
use skyhaul_units::ByteCount;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A process that ends with the test.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asked first: a server that is killed leaves its workers behind.
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).ok();
        for _ in 0..60 {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Server {
    /// Starts one, and waits until it listens.
    pub fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let mut server = Self { child, port };
        for _ in 0..600 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("{command:?} ended: {status}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{command:?} does not listen");
    }
}

/// Whether everything is tested: `make test-all` sets `SKYHAUL_RUNG=all`.
#[allow(clippy::disallowed_methods, reason = "a test reads how much is tested")]
pub fn is_all() -> bool {
    std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all")
}

/// A port that nobody listens at.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// The path of a program; where it is not installed, the test is skipped.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let home = std::env::var("HOME").unwrap_or_default();
    let also = ["/usr/sbin".to_owned(), "/usr/lib/openssh".to_owned(), format!("{home}/go/bin")];
    let found = path.split(':').map(str::to_owned).chain(also);
    let found = found.map(|folder| Path::new(&folder).join(name)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not installed");
    }
    found
}

/// Whether the test runs as root; a test that needs it is skipped without.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: a small disk needs root");
    }
    is_root
}

/// A line to a server that can be cut.
pub struct Line {
    pub port: u16,
    /// Bytes towards the server.
    pub sent: Arc<AtomicU64>,
    /// Each connection breaks when so many bytes of all of them went out.
    pub break_at: Arc<AtomicU64>,
    /// How many connections there were.
    pub connections: Arc<AtomicU64>,
}

impl Line {
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let sent = Arc::new(AtomicU64::new(0));
        let break_at = Arc::new(AtomicU64::new(u64::MAX));
        let (count, limit) = (Arc::clone(&sent), Arc::clone(&break_at));
        let connections = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let (count, limit) = (Arc::clone(&count), Arc::clone(&limit));
                let (mut back_from, mut back_to) =
                    (far.try_clone().unwrap(), near.try_clone().unwrap());
                std::thread::spawn(move || {
                    std::io::copy(&mut back_from, &mut back_to).ok();
                    back_to.shutdown(Shutdown::Both).ok();
                });
                std::thread::spawn(move || carry(near, far, &count, &limit));
            }
        });
        Self { port: own, sent, break_at, connections }
    }

    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Breaks the line when so many more bytes went out.
    pub fn break_after(&self, bytes: u64) {
        self.break_at.store(self.sent() + bytes, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.break_at.store(u64::MAX, Ordering::SeqCst);
    }
}

fn carry(mut near: TcpStream, mut far: TcpStream, count: &AtomicU64, limit: &AtomicU64) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length) = near.read(&mut buffer) {
        let is_broken = count.load(Ordering::SeqCst) >= limit.load(Ordering::SeqCst);
        if length == 0 || is_broken || far.write_all(&buffer[..length]).is_err() {
            break;
        }
        count.fetch_add(length as u64, Ordering::SeqCst);
    }
    for end in [near, far] {
        end.shutdown(Shutdown::Both).ok();
    }
}

/// A published file whose bytes follow from its name.
pub fn published(dir: &Path, name: &str, size: usize) -> OutgoingFile {
    let mut state = name.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let bytes: Vec<u8> = (0..size)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect();
    publish(dir, name, &bytes)
}

pub fn publish(dir: &Path, name: &str, bytes: &[u8]) -> OutgoingFile {
    let path = dir.join(name.replace('/', "-"));
    std::fs::write(&path, bytes).unwrap();
    OutgoingFile {
        path,
        name: name.to_owned(),
        size: ByteCount::of(bytes.len()),
        sha256: Sha256::digest(bytes).into(),
        md5: None,
        read_back: ReadBack::Small,
    }
}

/// A secret in a file.
pub fn secret(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Runs a program to its end.
pub fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
}

/// An authority, and certificates of it for 127.0.0.1.
pub fn certificates(dir: &Path) -> Option<()> {
    let openssl = program("openssl")?;
    std::fs::create_dir(dir.join("ca")).unwrap();
    std::fs::write(dir.join("ca/index.txt"), "").unwrap();
    std::fs::write(dir.join("ca/serial"), "01\n").unwrap();
    let config = format!(
        "[ca]\ndefault_ca = a\n[a]\ndatabase = {0}/ca/index.txt\nserial = {0}/ca/serial\n\
         new_certs_dir = {0}/ca\ncertificate = {0}/ca.pem\nprivate_key = {0}/ca.key\n\
         default_md = sha256\npolicy = p\ncopy_extensions = copy\nunique_subject = no\n\
         [p]\ncommonName = supplied\n",
        dir.display()
    );
    let config = secret(dir, "ca.cnf", &config);
    let request = |name: &str, extra: &[&str]| {
        run(Command::new(&openssl).current_dir(dir).args(extra).args([
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            &format!("{name}.key"),
            "-subj",
            &format!("/CN={name}"),
        ]));
    };
    request("ca", &["req", "-x509", "-out", "ca.pem"]);
    request("stranger", &["req", "-x509", "-out", "stranger.pem"]);
    for (name, end) in [("good", "20991231235959Z"), ("expired", "20200102000000Z")] {
        let san = ["req", "-addext", "subjectAltName=IP:127.0.0.1", "-out", "request.pem"];
        request(name, &san);
        run(Command::new(&openssl)
            .current_dir(dir)
            .args(["ca", "-batch", "-notext", "-in", "request.pem", "-config"])
            .arg(&config)
            .args(["-out", &format!("{name}.pem")])
            .args(["-startdate", "20200101000000Z", "-enddate", end]));
    }
    Some(())
}
