//! Video of a real sender to a real receiver.

use super::{Ends, pair_of_ports};
use crate::support::patience::until;
use crate::support::process::{Running, text};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Pictures of the clip: 4 s.
const PICTURES: usize = 100;

/// ffmpeg with these words in `folder`; says nothing but errors.
fn ffmpeg(words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-loglevel", "error", "-y"]).args(words).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The digests of the pictures in a file that ffmpeg writes.
fn digests(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.rsplit_once(',')?.1.trim().to_owned())).collect()
}

/// A clip of this encoder with its digests, in `folder`. Says so where it cannot be made.
fn clip(encoder: &str, folder: &Path) -> Option<Vec<String>> {
    let encode = ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", "100"];
    let how = ["-c:v", encoder, "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25"];
    let made = ffmpeg(&[&encode[..], &how, &["clip.ts"]].concat(), folder).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no ffmpeg with {encoder}");
        return None;
    }
    let decode = ["-i", "clip.ts", "-fps_mode", "passthrough", "-f", "framemd5", "clip.md5"];
    assert!(ffmpeg(&decode, folder).status().unwrap().success());
    let digests = digests(&folder.join("clip.md5"));
    assert_eq!(digests.len(), PICTURES);
    Some(digests)
}

/// Sends a clip from one ffmpeg to another, and asserts that the pictures are those of the clip.
fn pictures_arrive(encoder: &str, codec: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(clip) = clip(encoder, folder.path()) else { return };
    let target = pair_of_ports();
    let ends = Ends::to(target, &format!("?codec={codec}"));
    let (port, name) = (target.port(), codec.to_uppercase());
    let description = format!(
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\n\
        m=video {port} RTP/AVP 96\na=rtpmap:96 {name}/90000\n"
    );
    fs::write(folder.path().join("far.sdp"), description).unwrap();
    let receive = ["-protocol_whitelist", "file,udp,rtp", "-i", "far.sdp"];
    let digest = ["-fps_mode", "passthrough", "-flush_packets", "1", "-f", "framemd5", "far.md5"];
    let receiver = Running::of(&mut ffmpeg(&[&receive[..], &digest].concat(), folder.path()));
    until(|| is_bound(port).then_some(()), || "the receiver has no socket".to_owned());
    let to = format!("rtp://{}?pkt_size=1200", ends.source);
    let send = ["-re", "-i", "clip.ts", "-c", "copy", "-f", "rtp", &to];
    assert!(ffmpeg(&send, folder.path()).status().unwrap().success());
    let account = {
        let shown = || digests(&folder.path().join("far.md5"));
        // The last picture may stay in the decoder until it ends.
        let is_last =
            |shown: &Vec<String>| shown.iter().any(|one| clip[PICTURES - 5..].contains(one));
        until(|| Some(shown()).filter(is_last), || format!("{} pictures", shown().len()));
        ends.end()
    };
    receiver.signal(Signal::INT);
    receiver.end();
    let shown: BTreeSet<String> = digests(&folder.path().join("far.md5")).into_iter().collect();
    let equal = clip.iter().filter(|picture| shown.contains(*picture)).count();
    // A machine that is too busy loses some at its sockets.
    assert!(equal > PICTURES / 2, "{equal} of {PICTURES}: {account}");
    assert!(account["counters"]["sent"].as_u64() >= Some(PICTURES as u64 - 1), "{account}");
}

/// Whether a socket has this UDP port.
fn is_bound(port: u16) -> bool {
    let table = fs::read("/proc/net/udp").map(|bytes| text(&bytes)).unwrap_or_default();
    table.contains(&format!(":{port:04X} "))
}

#[test]
fn pictures_of_h264_are_those_that_were_sent() {
    pictures_arrive("libx264", "h264");
}

#[test]
fn pictures_of_h265_are_those_that_were_sent() {
    pictures_arrive("libx265", "h265");
}
