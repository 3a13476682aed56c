//! The sources of a channel's bytes: sockets, files and pipes behind one read call with a short
//! time-out.

use super::connect::{ConnectionAttempt, Reached};
use crate::fault::Fault;
use crate::upgrade::{GivenSource, PassedKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{RecvFlags, recv};
use skyhaul_config::Input;
use skyhaul_net::{Clock, drops};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRead {
    /// This many bytes.
    Data(usize),
    /// Nothing within the time-out.
    Idle,
    /// The sender ended this transmission; another may come.
    Break,
    /// The source is exhausted.
    End,
}

/// An opened input.
#[derive(Debug)]
pub struct InputSource {
    kind: Kind,
    clock: Clock,
}

#[derive(Debug)]
enum Kind {
    Listen {
        listener: TcpListener,
        stream: Option<TcpStream>,
    },
    Connect {
        address: String,
        stream: Option<TcpStream>,
        attempt: Option<ConnectionAttempt>,
        retry_at: Instant,
    },
    Udp(UdpInput),
    File {
        file: File,
        pace: Option<Pace>,
        steps: ReadSizes,
    },
    Stdin(File),
    /// Somebody else reads it.
    Away,
}

/// Datagrams.
#[derive(Debug)]
struct UdpInput {
    socket: UdpSocket,
    /// The last look found one: at tens of thousands a second, more have come meanwhile, and a call
    /// of the system that says so would cost as much as to take the next one.
    is_flowing: bool,
}

/// How much of a file is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadSizes {
    /// As much as the buffer holds, or is due.
    Any,
    /// The same size always, except at the end of the file: what is read does not depend on when.
    Equal,
}

/// Plays a file as a live downlink.
#[derive(Debug)]
struct Pace {
    rate: Rate,
    started: Instant,
    played: ByteCount,
}

/// What is asked of a file.
#[derive(Debug)]
struct FileRead<'a> {
    buffer: &'a mut [u8],
    patience: Duration,
    now: Instant,
}

/// What a UDP input asks the system to keep for it: a third of a second of 93 Mbit/s.
const UDP_BUFFER: usize = 4 << 20;
/// Between two attempts to reach a TCP server.
const RETRY: Duration = Duration::from_secs(1);
/// Equal steps, in bytes: 2 ms at 15 Mbit/s.
const EQUAL: usize = 4 << 10;
/// A paced file is read in steps of this length, as a receiver gives out its bits.
const STEP: Duration = Duration::from_millis(5);

impl InputSource {
    /// Opens `input`; a file is read from byte `from` on, in reads of these `steps`, and at `rate`
    /// where there is one.
    ///
    /// # Errors
    /// The port is in use, the file cannot be read.
    pub fn open(
        input: &Input,
        rate: Option<Rate>,
        steps: ReadSizes,
        from: u64,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let kind = match input {
            Input::TcpListen(address) => {
                let listener = TcpListener::bind(address).map_err(|error| in_use(input, &error))?;
                listener.set_nonblocking(true).map_err(|error| in_use(input, &error))?;
                Kind::Listen { listener, stream: None }
            }
            Input::Tcp(address) => Kind::Connect {
                address: address.to_string(),
                stream: None,
                attempt: None,
                retry_at: Instant::ZERO,
            },
            Input::Udp(address) => {
                let socket = UdpSocket::bind(address).map_err(|error| in_use(input, &error))?;
                // Where the system allows less, that is what there is.
                let _ = set_socket_recv_buffer_size(&socket, UDP_BUFFER);
                Kind::Udp(UdpInput::of(socket))
            }
            Input::File(path) => {
                let opened = File::open(path).and_then(|mut file| {
                    file.seek(SeekFrom::Start(from))?;
                    Ok(file)
                });
                let file = opened.map_err(|error| {
                    let what = format!("the input file cannot be read ({error})");
                    Fault::environment(
                        what,
                        path.display(),
                        "give the path of a file that this user can read",
                    )
                })?;
                let pace =
                    rate.map(|rate| Pace { rate, started: clock.now(), played: ByteCount::ZERO });
                Kind::File { file, pace, steps }
            }
            Input::Folder => {
                let what = "a folder's files are read one by one";
                return Err(Fault::configuration(what, input, "name the channel in a [[folder]]"));
            }
            Input::Stdin => {
                // Not through the standard library's buffer: `poll` does not see bytes that wait
                // there.
                let owned = io::stdin().as_fd().try_clone_to_owned();
                Kind::Stdin(File::from(owned.map_err(|error| in_use(input, &error))?))
            }
        };
        Ok(Self { kind, clock })
    }

    /// One that brings nothing: somebody else reads it.
    pub const fn away(clock: Clock) -> Self {
        Self { kind: Kind::Away, clock }
    }

    /// What a live input is, and its descriptors.
    pub fn parts(&self) -> (PassedKind, Vec<BorrowedFd<'_>>) {
        match &self.kind {
            Kind::Listen { listener, stream } => {
                let stream = stream.iter().map(TcpStream::as_fd);
                (PassedKind::TcpListen, [listener.as_fd()].into_iter().chain(stream).collect())
            }
            Kind::Connect { stream, .. } => {
                (PassedKind::Tcp, stream.iter().map(TcpStream::as_fd).collect())
            }
            Kind::Udp(udp) => (PassedKind::Udp, vec![udp.socket.as_fd()]),
            Kind::Stdin(stdin) => (PassedKind::Stdin, vec![stdin.as_fd()]),
            Kind::File { .. } | Kind::Away => (PassedKind::Tcp, Vec::new()),
        }
    }

    /// A live input, for who reads it from here on.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn into_given(self) -> io::Result<GivenSource> {
        let (kind, descriptors) = self.parts();
        let owned = descriptors.iter().map(BorrowedFd::try_clone_to_owned);
        Ok(GivenSource::Given(kind, owned.collect::<io::Result<_>>()?))
    }

    /// The source of `input` that was read elsewhere before.
    ///
    /// # Errors
    /// It is of another kind; it was lost, and cannot be opened again.
    pub fn given(input: &Input, given: GivenSource, clock: Clock) -> io::Result<Self> {
        let (kind, descriptors) = match given {
            GivenSource::Given(kind, descriptors) => (kind, descriptors),
            GivenSource::Lost => {
                let opened = Self::open(input, None, ReadSizes::Any, 0, clock);
                return opened.map_err(io::Error::other);
            }
        };
        let mut descriptors = descriptors.into_iter();
        let first = descriptors.next();
        let kind = match (input, kind, first) {
            (Input::TcpListen(_), PassedKind::TcpListen, Some(listener)) => {
                let stream = descriptors.next().map(TcpStream::from);
                Kind::Listen { listener: listener.into(), stream }
            }
            (Input::Tcp(address), PassedKind::Tcp, stream) => Kind::Connect {
                address: address.to_string(),
                stream: stream.map(TcpStream::from),
                attempt: None,
                retry_at: Instant::ZERO,
            },
            (Input::Udp(_), PassedKind::Udp, Some(socket)) => {
                Kind::Udp(UdpInput::of(socket.into()))
            }
            (Input::Stdin, PassedKind::Stdin, Some(stdin)) => Kind::Stdin(stdin.into()),
            _ => return Err(io::Error::other(format!("{input} was handed over as {kind:?}"))),
        };
        Ok(Self { kind, clock })
    }

    /// The address that it listens on.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Listen { listener, .. } => listener.local_addr().ok(),
            Kind::Udp(udp) => udp.socket.local_addr().ok(),
            Kind::Connect { .. } | Kind::File { .. } | Kind::Stdin(_) | Kind::Away => None,
        }
    }

    /// Datagrams that the kernel dropped before they were read; zero for other inputs, and where it
    /// does not tell.
    pub fn kernel_drops(&self) -> u64 {
        let Kind::Udp(udp) = &self.kind else { return 0 };
        let ours = drops::inode(&udp.socket).ok();
        ours.and_then(|ours| drops::kernel_drops(|inode| inode == ours)).unwrap_or(0)
    }

    /// Plays a file at `rate` from here on, or as fast as it is read.
    pub fn play(&mut self, rate: Option<Rate>) {
        if let Kind::File { pace, .. } = &mut self.kind {
            let started = self.clock.now();
            *pace = rate.map(|rate| Pace { rate, started, played: ByteCount::ZERO });
        }
    }

    /// The descriptor that `poll` waits for; `None` for a file, and for a server that is not
    /// connected.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Listen { listener, stream: None } => Some(listener.as_fd()),
            Kind::Listen { stream: Some(stream), .. }
            | Kind::Connect { stream: Some(stream), .. } => Some(stream.as_fd()),
            Kind::Udp(udp) => Some(udp.socket.as_fd()),
            Kind::Stdin(stdin) => Some(stdin.as_fd()),
            Kind::Connect { stream: None, .. } | Kind::File { .. } | Kind::Away => None,
        }
    }

    /// Reads what is there into `buffer`, waiting up to `patience` for something.
    ///
    /// # Errors
    /// The file or pipe failed. A socket that fails ends a transmission, which is no error.
    pub fn read(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<InputRead> {
        let now = self.clock.now();
        match &mut self.kind {
            Kind::Listen { listener, stream } => {
                if stream.is_none() {
                    if !readable(&*listener, patience)? {
                        return Ok(InputRead::Idle);
                    }
                    *stream = listener.accept().ok().map(|(stream, _)| stream);
                }
                Ok(read_stream(stream, buffer, patience))
            }
            Kind::Connect { address, stream, attempt, retry_at } => {
                if stream.is_none() {
                    if attempt.is_none() && now < *retry_at {
                        pause(patience.min(retry_at.since(now)));
                        return Ok(InputRead::Idle);
                    }
                    if attempt.is_none() {
                        *retry_at = now + RETRY;
                        *attempt = ConnectionAttempt::begin(address);
                    }
                    match attempt.as_ref().map_or(Reached::No, |attempt| attempt.outcome(patience))
                    {
                        Reached::Yes(reached) => (*stream, *attempt) = (Some(reached), None),
                        Reached::No => *attempt = None,
                        Reached::NotYet => {}
                    }
                    if stream.is_none() {
                        return Ok(InputRead::Idle);
                    }
                }
                Ok(read_stream(stream, buffer, patience))
            }
            Kind::Udp(udp) => udp.read(buffer, patience),
            Kind::File { file, pace, steps } => {
                read_file(file, pace, *steps, FileRead { buffer, patience, now })
            }
            Kind::Stdin(stdin) => {
                if !readable(&*stdin, patience)? {
                    return Ok(InputRead::Idle);
                }
                Ok(data_or_end(stdin.read(buffer)?))
            }
            Kind::Away => {
                pause(patience);
                Ok(InputRead::Idle)
            }
        }
    }
}

impl UdpInput {
    const fn of(socket: UdpSocket) -> Self {
        Self { socket, is_flowing: false }
    }

    /// The next datagram, waiting up to `patience` for it.
    fn read(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<InputRead> {
        if self.is_flowing
            && let Some(length) = self.receive(buffer)
        {
            return Ok(InputRead::Data(length));
        }
        if !readable(&self.socket, patience)? {
            return Ok(InputRead::Idle);
        }
        Ok(self.receive(buffer).map_or(InputRead::Idle, InputRead::Data))
    }

    /// The next datagram, where there is one. An error is of an earlier one: it is over with it.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let received = recv(&self.socket, buffer, RecvFlags::DONTWAIT).ok();
        self.is_flowing = received.is_some();
        received.map(|(length, _)| length)
    }
}

impl Pace {
    /// The bytes that are due by now and have not been played.
    fn due(&self, now: Instant) -> usize {
        (self.rate * now.since(self.started)).saturating_sub(self.played).as_usize()
    }
}

fn data_or_end(read: usize) -> InputRead {
    if read == 0 { InputRead::End } else { InputRead::Data(read) }
}

fn read_stream(slot: &mut Option<TcpStream>, buffer: &mut [u8], patience: Duration) -> InputRead {
    let Some(stream) = slot else { return InputRead::Idle };
    let read = match readable(&*stream, patience) {
        Ok(false) => return InputRead::Idle,
        Ok(true) => stream.read(buffer),
        Err(error) => Err(error),
    };
    match read {
        Ok(len) if len > 0 => InputRead::Data(len),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => InputRead::Idle,
        Ok(_) | Err(_) => {
            *slot = None;
            InputRead::Break
        }
    }
}

/// A step of a file, where it is due by `now`.
fn read_file(
    file: &mut File,
    pace: &mut Option<Pace>,
    steps: ReadSizes,
    read: FileRead<'_>,
) -> io::Result<InputRead> {
    let FileRead { buffer, patience, now } = read;
    let due = pace.as_ref().map_or(buffer.len(), |pace| pace.due(now));
    let least = if steps == ReadSizes::Equal { EQUAL } else { 1 };
    if due < least {
        pause(patience.min(STEP));
        return Ok(InputRead::Idle);
    }
    let read = match steps {
        ReadSizes::Any => {
            let len = due.min(buffer.len());
            file.read(&mut buffer[..len])?
        }
        ReadSizes::Equal => {
            let len = EQUAL.min(buffer.len());
            read_full(file, &mut buffer[..len])?
        }
    };
    if let Some(pace) = pace {
        pace.played += ByteCount::of(read);
    }
    Ok(data_or_end(read))
}

/// Fills `buffer`, except at the end of the file.
fn read_full(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Waits until one of several live sources has something, up to `patience`. Sources without a
/// descriptor are polled after that time.
///
/// # Errors
/// The system cannot wait.
pub fn wait<'a>(
    sources: impl Iterator<Item = &'a InputSource>,
    patience: Duration,
) -> io::Result<()> {
    let mut ready: Vec<PollFd<'_>> = sources
        .filter_map(InputSource::readiness)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    await_ready(&mut ready, patience).map(|_| ())
}

fn readable(fd: &impl AsFd, patience: Duration) -> io::Result<bool> {
    await_ready(&mut [PollFd::new(fd, PollFlags::IN)], patience)
}

fn await_ready(ready: &mut [PollFd<'_>], patience: Duration) -> io::Result<bool> {
    let nanos = patience.as_nanos();
    let timeout = Timespec {
        tv_sec: (nanos / 1_000_000_000).cast_signed(),
        tv_nsec: (nanos % 1_000_000_000).cast_signed(),
    };
    match poll(ready, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a file has nothing to wait on: its pace is the clock's"
)]
fn pause(span: Duration) {
    std::thread::sleep(span.to_std());
}

fn in_use(input: &Input, error: &io::Error) -> Fault {
    let help = "give the channel an address of this host with a port that no other program uses, \
               or stop that program";
    Fault::environment(format!("the channel's input cannot be opened ({error})"), input, help)
}
