//! Sources that come, go, flood and hang.

use super::*;
use skyhaul_hints::{FeedLineError, FeedMap};
use std::io::Write;
use std::os::unix::net::UnixListener;

/// A reader and its feed, under a clock that the test moves.
struct Bench {
    reader: FeedReader,
    feed: PathFeed,
    now: Instant,
}

impl Bench {
    fn new(source: &str) -> Self {
        let stale = Duration::from_secs(5);
        let source = source.parse().expect("a source");
        Self {
            reader: FeedReader::new(source, Clock::start(), stale),
            feed: PathFeed::new(FeedMap::default(), stale),
            now: Instant::ZERO,
        }
    }

    fn read(&mut self) {
        self.reader.read(self.now, &mut self.feed);
    }

    /// Reads until `done`, as long as another process may take.
    fn read_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..10_000 {
            self.read();
            if done(self) {
                return;
            }
            std::thread::yield_now();
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        panic!("{:?}, {:?}", self.reader, self.feed);
    }
}

#[test]
fn a_command_that_ends_is_run_again_and_the_pauses_grow_while_it_says_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let mut bench = Bench::new(&format!("exec:echo x >> {}; exit 3", count.display()));
    let mut pauses = Vec::new();
    for _ in 0..8 {
        bench.read_until(|bench| bench.now < bench.reader.retry_at);
        assert_eq!(bench.reader.reason(), Some("the command ended: exit status: 3"));
        pauses.push(bench.reader.retry_at.since(bench.now).as_millis() / 1_000);
        bench.now = bench.reader.retry_at;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(std::fs::read_to_string(&count).expect("written").lines().count(), 8);
    let mut bench = Bench::new("exec:echo snr=5");
    for round in 1..4 {
        bench.read_until(|bench| bench.now < bench.reader.retry_at);
        assert_eq!(bench.feed.counters().lines, round);
        assert_eq!(bench.reader.retry_at.since(bench.now), PAUSE_MIN, "it says something");
        bench.now = bench.reader.retry_at;
    }
}

#[test]
fn what_a_command_started_ends_with_the_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let command = format!("exec:sleep 1000 & echo $! > {}; echo snr=5; wait", file.display());
    let mut bench = Bench::new(&command);
    bench.read_until(|bench| bench.feed.counters().lines == 1);
    let pid: i32 = std::fs::read_to_string(&file).expect("written").trim().parse().expect("a pid");
    drop(bench);
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    let ended = (0..10_000).any(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(1));
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
    assert!(ended, "it still runs");
}

#[test]
fn a_flood_is_read_a_bounded_part_at_a_time() {
    let mut bench = Bench::new("exec:yes snr=1");
    bench.read_until(|bench| bench.feed.counters().lines > 0);
    let before = bench.feed.counters().lines;
    bench.read();
    // The end of a line whose beginning was read before counts too.
    assert!(bench.feed.counters().lines - before <= (READ_MAX / 6 + 1) as u64);
    let mut bench = Bench::new("exec:yes | tr -d '\\n'");
    bench.read_until(|bench| bench.feed.counters().garbage > 0);
    let told = bench.feed.take_garbage(bench.now).expect("told");
    assert_eq!(told.error, FeedLineError::Long);
}

#[test]
fn a_socket_is_connected_again_and_one_that_nobody_serves_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("modem.sock");
    let mut bench = Bench::new(&format!("unix:{}", path.display()));
    bench.read();
    assert!(bench.reader.reason().is_some_and(|why| why.contains("modem.sock: No such file")));
    let listener = UnixListener::bind(&path).expect("a socket");
    bench.now = bench.reader.retry_at;
    bench.read();
    let (mut stream, _) = listener.accept().expect("connected");
    stream.write_all(b"snr=1\nsnr=").expect("written");
    bench.read_until(|bench| bench.feed.counters().lines == 1);
    assert_eq!(bench.reader.reason(), None);
    drop(stream);
    bench.read_until(|bench| bench.reader.reason().is_some());
    bench.now = bench.reader.retry_at;
    bench.read();
    let (mut stream, _) = listener.accept().expect("connected again");
    stream.write_all(b"snr=2\n").expect("written");
    bench.read_until(|bench| bench.feed.newest() == Some("snr=2"));
    assert_eq!(bench.feed.counters().garbage, 0, "the piece before is forgotten");
}

#[test]
fn the_last_whole_line_of_a_file_counts_once_for_each_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("modem.txt");
    let mut bench = Bench::new(&format!("file:{}", path.display()));
    bench.read();
    assert!(bench.reader.reason().is_some_and(|why| why.contains("No such file")));
    std::fs::write(&path, "snr=1\nsnr=2\nsnr=").expect("written");
    bench.read();
    assert_eq!((bench.feed.newest(), bench.reader.reason()), (Some("snr=2"), None));
    bench.read();
    assert_eq!(bench.feed.counters().lines, 1);
    std::fs::write(&path, "snr=33").expect("written");
    bench.read();
    assert_eq!(bench.feed.newest(), Some("snr=33"));
    std::fs::write(&path, [b'x'; 100_000]).expect("written");
    bench.read();
    assert_eq!(bench.feed.counters().garbage, 1);
    let mut folder = Bench::new(&format!("file:{}", folder.path().display()));
    folder.read();
    assert!(folder.reader.reason().is_some_and(|why| why.contains("not a regular file")));
}

#[test]
fn a_file_that_was_old_at_first_says_nothing_before_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("modem.txt");
    std::fs::write(&path, "snr=1\n").expect("written");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    std::fs::File::options().write(true).open(&path).expect("open").set_modified(old).expect("set");
    let mut bench = Bench::new(&format!("file:{}", path.display()));
    bench.read();
    assert_eq!(bench.feed.newest(), None);
    std::fs::write(&path, "snr=1\n").expect("written");
    bench.read();
    assert_eq!(bench.feed.newest(), Some("snr=1"));
}
