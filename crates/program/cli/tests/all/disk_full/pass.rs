//! The recordings that are played, and what must arrive of them.

use crate::support::process::printed;
use crate::support::recordings::{CLEAN, WHOLE_CADUS, expected, hex, recording, sha256};
use sha2::{Digest, Sha256};
use skyhaul_node::status::{CentreStatus, ContactState};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Two seconds of each recording are played in a second.
const PLAYED_AT: &str = "4 Mbit/s";
const CADU: usize = 1024;

/// Channels that play the recordings from files.
pub fn file_channels() -> String {
    let channel = |name: &str| {
        let (short, path) = (name.split('.').next().unwrap(), recording(name));
        format!(
            "[[channel]]\nname = \"{short}\"\ninput = \"file:{}\"\nrate = \"{PLAYED_AT}\"\n",
            path.display()
        )
    };
    CLEAN.map(channel).join("\n")
}

/// A channel that waits for a player.
pub const LIVE_CHANNEL: &str = "[[channel]]\nname = \"live\"\ninput = \"tcp-listen:127.0.0.1:0\"\n";

/// Good frames and their digest.
pub type Frames = (u64, String);

/// What independent decoders found in the recordings.
pub fn all_recordings() -> BTreeSet<Frames> {
    CLEAN.into_iter().map(frames_of).collect()
}

fn frames_of(name: &str) -> Frames {
    let known = expected(name);
    (known["frames_total"].as_u64().unwrap(), known["frames_sha256"].as_str().unwrap().to_owned())
}

/// The frames of contacts that must all be processed.
pub fn delivered(centre: &CentreStatus) -> Vec<Frames> {
    let frames = centre.contacts.iter().map(|contact| {
        assert_eq!(contact.state, ContactState::Done, "{contact:?}");
        assert_eq!(
            (
                contact.integrity.unaccounted,
                contact.reception.set_aside,
                contact.integrity.damaged_blocks
            ),
            (0, 0, 0),
            "{contact:?}"
        );
        (contact.reception.frames, contact.integrity.frames_sha256.clone().unwrap())
    });
    frames.collect()
}

/// A player of one recording over and over, at most as fast as the station takes it.
pub struct Player {
    played: Arc<AtomicU64>,
    pub length: u64,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Player {
    /// Plays `times` times to `address`, waits for `pace` before each CADU, and then closes the
    /// connection.
    pub fn start(address: SocketAddr, times: usize, pace: Duration) -> Self {
        let cadus = fs::read(recording(WHOLE_CADUS)).unwrap();
        let length = (cadus.len() * times) as u64;
        let played = Arc::new(AtomicU64::new(0));
        let count = played.clone();
        let play = move || {
            let mut stream = TcpStream::connect(address)?;
            // A CADU that is sent is one to be read.
            stream.set_nodelay(true)?;
            for piece in (0..times).flat_map(|_| cadus.chunks(CADU)) {
                if !pace.is_zero() {
                    std::thread::park_timeout(pace);
                }
                stream.write_all(piece)?;
                count.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().spawn(play).unwrap();
        Self { played, length, thread }
    }

    /// The number of bytes that the station's system has accepted.
    pub fn played(&self) -> u64 {
        self.played.load(Ordering::Relaxed)
    }

    /// Waits for its end.
    pub fn end(self) -> std::io::Result<()> {
        self.thread.join().unwrap()
    }
}

/// What must arrive of a recording played `times` times: its frames as the program decodes them,
/// which are those that independent decoders found, repeated.
pub fn repeated(times: usize) -> Frames {
    let folder = tempfile::tempdir().unwrap();
    let capture = recording(WHOLE_CADUS).display().to_string();
    printed(&["decode", &capture, "--frames-out", "frames"], folder.path());
    let frames = fs::read(folder.path().join("frames")).unwrap();
    let (count, digest) = frames_of(WHOLE_CADUS);
    assert_eq!(sha256(&frames), digest);
    let mut all = Sha256::new();
    (0..times).for_each(|_| all.update(&frames));
    (count * times as u64, hex(&all.finalize()))
}
