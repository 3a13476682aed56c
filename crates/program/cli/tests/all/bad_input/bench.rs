//! The folder and the programs of the tests of bad input, and the checks of their messages.

use super::*;

/// A folder with keys and configurations.
pub(super) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("the folder can be written");
    }

    pub(super) fn make_private(&self, name: &str) {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(self.path(name), private).expect("the file is this user's");
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        run(arguments, self.folder.path())
    }

    /// Asserts that one sentence with `part` and `place` was printed, with this exit code, and that
    /// the page of messages has both.
    #[track_caller]
    pub(super) fn refused(&self, arguments: &[&str], exit: i32, part: &str, place: &str) {
        let error = assert_alone(&self.run(arguments), exit, &[part, place]);
        assert_on_page(&error, exit);
    }

    /// The account of one file.
    pub(super) fn decoded(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["decode", "--json"], arguments].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("the account is JSON");
        report["files"][0].clone()
    }

    /// The good frames of a real capture, and their account.
    pub(super) fn good_frames(&self) -> (Vec<u8>, Value) {
        let capture = recording(CLEAN[0]).display().to_string();
        self.decoded(&[&capture, "--frames-out", "good.bin"]);
        let report = self.decoded(&["good.bin", "--mission", "suomi-npp", "--format", "frames"]);
        (std::fs::read(self.path("good.bin")).expect("the frames were written"), report)
    }

    /// Makes the key if it does not exist.
    pub(super) fn fingerprint(&self, key: &str) -> String {
        let arguments: &[&str] =
            if self.path(key).exists() { &["keygen", key, "--show"] } else { &["keygen", key] };
        text(&self.run(arguments).stdout).trim().to_owned()
    }

    pub(super) fn station(&self, centre: &str) -> String {
        self.fingerprint("station.key");
        let fingerprint = self.fingerprint("centre.key");
        let text = format!(
            "[node]\nname = \"station-1\"\nkey = \"station.key\"\nstate = \"station-state\"\n\
             [[destination]]\nto = \"node:centre-1\"\n[[peer]]\nname = \"centre-1\"\n\
             addresses = [\"{centre}\"]\nfingerprints = \
             [\"{fingerprint}\"]\n\
             [line]\nrate = \"93 Mbit/s\"\nmtu = \"1500 B\"\n\
             [[channel]]\nname = \"x-band\"\ninput = \"tcp-listen:127.0.0.1:0\"\n"
        );
        self.write("station.toml", text.as_bytes());
        text
    }

    pub(super) fn centre(&self, bind: &str) -> String {
        self.fingerprint("centre.key");
        let fingerprint = self.fingerprint("station.key");
        let text = format!(
            "[node]\nname = \"centre-1\"\nkey = \"centre.key\"\nstate = \"centre-state\"\n\
             [[listen]]\nbind = \"{bind}\"\n[products]\ndir = \"products\"\n\
             [[peer]]\nname = \"station-1\"\nfingerprints = [\"{fingerprint}\"]\n"
        );
        self.write("centre.toml", text.as_bytes());
        text
    }

    pub(super) fn start(&self, arguments: &[&str]) -> Running {
        Running::start_logged(arguments, self.folder.path())
    }

    /// Starts the centre. Returns it with its address.
    pub(super) fn start_centre(&self) -> (Running, String) {
        let mut running = self.start(&["run", "centre.toml"]);
        let log = running.log_until("listening on ");
        let (_, address) = log.trim().rsplit_once("listening on ").expect("waited for above");
        (running, address.to_owned())
    }
}

/// Changes the first packet that begins in a frame and has a time. Returns the frames.
pub(super) fn with_first_packet(frames: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    const HAS_TIME: u8 = 0x08;
    let mut frames = frames.to_vec();
    let packet = frames.chunks_mut(FRAME).find_map(|frame| {
        let vcid = frame[1] & 0x3f;
        let first = usize::from(u16::from_be_bytes([frame[6], frame[7]]) & 0x7ff);
        let packet = frame.get_mut(8 + first..)?;
        (vcid == 16 && packet.len() > 14 && packet[0] & HAS_TIME != 0).then_some(packet)
    });
    change(packet.expect("a packet begins in some frame"));
    frames
}

/// Asserts a note in the account of a file, and that the page of messages has it.
pub(super) fn assert_told(report: &Value, part: &str) {
    let notes = report["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let note = notes.iter().filter_map(Value::as_str).find(|note| note.contains(part));
    let note = note.unwrap_or_else(|| panic!("`{part}` is not in {notes:?}"));
    assert!(note.contains("; ") && note.contains(": "), "{note}");
    assert_on_page(note, 0);
}

/// Asserts that docs/reference/messages.md has a row for this sentence with this exit code. A row's
/// first cell is the sentence with `…` for what differs.
pub(super) fn assert_on_page(sentence: &str, exit: i32) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/messages.md");
    let page = std::fs::read_to_string(page).expect("docs/reference/messages.md");
    let found = page.lines().filter_map(|line| line.strip_prefix("| ")).any(|row| {
        let mut cells = row.split(" | ");
        let (Some(said), Some(code)) = (cells.next(), cells.next()) else { return false };
        code == exit.to_string() && holds(sentence, said)
    });
    assert!(found, "docs/reference/messages.md has no row with exit code {exit} for: {sentence}");
}

/// Whether the parts of `said` between its `…` are in `sentence`, in their order.
pub(super) fn holds(sentence: &str, said: &str) -> bool {
    let mut rest = sentence;
    said.split('…').all(|part| match rest.split_once(part.trim()) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

pub(super) fn udp_address(socket: &UdpSocket) -> String {
    socket.local_addr().expect("the socket is bound").to_string()
}
