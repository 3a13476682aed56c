//! A bounded queue of lines and the thread that writes them. What does not fit is dropped, counted,
//! and noted in the place where it lacks.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that wait for the reader: some thousands of lines.
const BYTES_MAX: usize = 1 << 20;

/// Lines on their way to a reader.
#[derive(Debug)]
pub struct Outlet(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to write.
    news: Condvar,
    /// There is nothing more to write.
    quiet: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Item>,
    /// Of the lines in the queue, and of the one that is being written.
    bytes: usize,
    /// Lines that were dropped since the last item, and are not reported yet.
    untold: u64,
    /// The reader refused the last line. The next line is tried again.
    is_refused: bool,
    is_writing: bool,
}

#[derive(Debug)]
enum Item {
    Line(Vec<u8>),
    Dropped(u64),
}

impl Outlet {
    /// Writes to `file` from a thread of its own; `note` is the line that tells how many were
    /// dropped before it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        file: impl Write + Send + 'static,
        note: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of = Arc::clone(&shared);
        // It ends with the process: nothing can end it while its reader holds it up.
        std::thread::Builder::new()
            .name("skyhaul-log".to_owned())
            .spawn(move || of.write(file, note))?;
        Ok(Self(shared))
    }

    /// Queues a line; where there is no room, drops it. Never waits for the reader.
    pub fn push(&self, line: Vec<u8>) {
        let mut state = self.0.state();
        if state.bytes + line.len() > BYTES_MAX {
            state.untold += 1;
            self.0.news.notify_one();
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if state.untold > 0 {
            let untold = std::mem::take(&mut state.untold);
            state.queue.push_back(Item::Dropped(untold));
        }
        state.bytes += line.len();
        state.queue.push_back(Item::Line(line));
        state.is_refused = false;
        self.0.news.notify_one();
    }

    /// Lines dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, at most `patience`.
    pub fn finish(&self, patience: Duration) {
        let state = self.0.state();
        let is_busy = |state: &mut State| state.is_writing || state.is_due();
        drop(self.0.quiet.wait_timeout_while(state, patience, is_busy));
    }
}

impl State {
    fn is_due(&self) -> bool {
        !self.queue.is_empty() || self.untold > 0 && !self.is_refused
    }

    fn next(&mut self) -> Option<Item> {
        let untold = std::mem::take(&mut self.untold);
        match self.queue.pop_front() {
            None => (untold > 0).then_some(Item::Dropped(untold)),
            item => {
                self.untold = untold;
                item
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, mut file: impl Write, note: impl Fn(u64) -> String) {
        let mut is_torn = false;
        loop {
            let item = self.item();
            let (text, lines) = match item {
                Item::Line(line) => (line, None),
                Item::Dropped(lines) => (note(lines).into_bytes(), Some(lines)),
            };
            let written = if is_torn { whole(&mut file, b"\n") } else { Ok(()) };
            let written = written.and_then(|()| whole(&mut file, &text));
            let mut state = self.state();
            if lines.is_none() {
                state.bytes -= text.len();
            }
            match written {
                Ok(()) => is_torn = false,
                Err(begun) => {
                    is_torn |= begun > 0;
                    state.is_refused = true;
                    // A note that did not arrive is given once more, a line is one that was
                    // dropped.
                    state.untold += lines.unwrap_or(1);
                    self.dropped.fetch_add(u64::from(lines.is_none()), Ordering::Relaxed);
                }
            }
        }
    }

    /// Waits for the next.
    fn item(&self) -> Item {
        let mut state = self.state();
        loop {
            state.is_writing = false;
            if state.is_due()
                && let Some(item) = state.next()
            {
                state.is_writing = true;
                return item;
            }
            self.quiet.notify_all();
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Writes all of it; how much was written where that fails.
fn whole(file: &mut impl Write, bytes: &[u8]) -> Result<(), usize> {
    let mut begun = 0;
    while begun < bytes.len() {
        match file.write(&bytes[begun..]) {
            Ok(0) => return Err(begun),
            Ok(more) => begun += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(begun),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// As long as anything on a machine takes.
    const LONG: Duration = Duration::from_secs(120);

    /// A reader that takes one write each time it is told what to do with it.
    struct Reader {
        told: Receiver<io::Result<()>>,
        begun: Sender<()>,
        read: Arc<Mutex<String>>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.begun.send(());
            // A test that has said everything lets all through.
            self.told.recv().unwrap_or(Ok(()))?;
            self.read.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Case {
        outlet: Outlet,
        tell: Sender<io::Result<()>>,
        begun: Receiver<()>,
        read: Arc<Mutex<String>>,
    }

    fn case() -> Case {
        let ((tell, told), (begins, begun)) = (channel(), channel());
        let read = Arc::<Mutex<String>>::default();
        let reader = Reader { told, begun: begins, read: read.clone() };
        let outlet = Outlet::start(reader, |lines| format!("({lines} dropped)\n")).unwrap();
        Case { outlet, tell, begun, read }
    }

    impl Case {
        /// What came out when all was let through.
        fn end(self) -> (String, u64) {
            drop(self.tell);
            self.outlet.finish(LONG);
            let read = self.read.lock().unwrap().clone();
            (read, self.outlet.dropped())
        }
    }

    #[test]
    fn a_reader_that_stops_holds_nobody_up_and_is_told_what_it_missed_when_it_reads_again() {
        let case = case();
        let line = vec![b'x'; 1 << 10];
        for _ in 0..3_000 {
            // Nobody reads: this would block for ever if anything did.
            case.outlet.push([&line[1..], b"\n"].concat());
        }
        assert_eq!(case.outlet.dropped(), 3_000 - 1_024);
        case.outlet.finish(Duration::from_millis(1));
        let (read, dropped) = case.end();
        assert_eq!(dropped, 1_976);
        assert_eq!(read.lines().count(), 1_025);
        assert!(read.ends_with("x\n(1976 dropped)\n"), "the note stands where the lines lack");
    }

    #[test]
    fn a_line_that_is_refused_is_dropped_and_the_next_one_is_tried() {
        let case = case();
        case.outlet.push("one\n".into());
        case.begun.recv_timeout(LONG).unwrap();
        case.tell.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        case.outlet.finish(LONG);
        assert_eq!(case.outlet.dropped(), 1, "and nothing is tried before the next line");
        case.outlet.push("two\n".into());
        assert_eq!(case.end(), ("(1 dropped)\ntwo\n".to_owned(), 1));
    }

    #[test]
    fn lines_come_out_whole_and_in_order() {
        let case = case();
        (0..500).for_each(|line| case.outlet.push(format!("{line}\n").into_bytes()));
        let (read, dropped) = case.end();
        assert_eq!((read.lines().count(), dropped), (500, 0));
        assert!(read.lines().enumerate().all(|(at, line)| line == at.to_string()));
    }
}
