//! Writes a file to an SFTP server with many requests under way, and notes what is on its disk.

use super::login::SftpSession;
use super::refusal::refused;
use crate::access::RemoteAccess;
use crate::failure::stalled;
use crate::sink::{GoOn, OutgoingFile, PlaceProgress, ResumeStep};
use crate::source::{PIECE, PublishedSource};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use russh_sftp::client::error::Error;
use russh_sftp::extensions::{FSYNC, STATVFS};
use russh_sftp::protocol::StatusCode;
use sha2::{Digest, Sha256};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use skyhaul_units::ByteCount;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A file that is open at the server.
pub struct Writing<'a> {
    /// The session.
    pub session: &'a SftpSession,
    /// As texts name the place.
    pub place: &'a str,
    /// The rate, and the longest wait.
    pub access: &'a RemoteAccess,
    /// What is written.
    pub file: &'a OutgoingFile,
    /// Where it is written.
    pub path: String,
    /// The server's name of the open file.
    pub handle: String,
}

/// Requests under way.
type Requests<'a> = FuturesOrdered<Pin<Box<dyn Future<Output = Acknowledged> + 'a>>>;

/// The answer to one request.
struct Acknowledged {
    result: Result<(), Error>,
    of: Asked,
}

/// What was asked.
enum Asked {
    /// To write so many bytes; it took so long.
    Write(u64, Duration),
    /// To bring to the disk what was acknowledged when it was asked: so many bytes of the file.
    Sync(u64),
}

/// How many writes are under way: as many as a server answers in a few seconds.
#[derive(Debug)]
struct Window {
    writes: usize,
}

impl Window {
    fn on_answer(&mut self, took: Duration) {
        self.writes = match took > SLOW {
            true => (self.writes / 2).max(LEAST_WRITES),
            false => (self.writes + 1).min(MOST_WRITES),
        };
    }
}

impl Writing<'_> {
    /// Writes the rest of the source, and makes it durable where the server can.
    ///
    /// # Errors
    /// The server refuses, the connection breaks, or nothing moves.
    pub async fn fill(
        &self,
        source: &mut PublishedSource<'_>,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<GoOn, DeliveryFailure> {
        let mut requests: Requests<'_> = FuturesOrdered::new();
        let mut window = Window { writes: LEAST_WRITES };
        let (mut acknowledged, mut synced, mut idle) = (source.at(), source.at(), Duration::ZERO);
        loop {
            while requests.len() < window.writes && !source.is_at_end() {
                let offset = source.at();
                let bytes = source.next(WRITE)?;
                if let Some(pace) = &self.access.pace {
                    tokio::time::sleep(pace.take(ByteCount::of(bytes.len()))).await;
                }
                requests.push_back(Box::pin(self.write(offset, bytes)));
            }
            if acknowledged - synced >= NOTED_EACH {
                synced = acknowledged;
                requests.push_back(Box::pin(self.synced(acknowledged)));
            }
            let mut wish = GoOn::Continue;
            match timeout(TICK, requests.next()).await {
                Ok(None) => break,
                Ok(Some(Acknowledged { result: Err(error), .. })) => {
                    return Err(self.refused(&error).await);
                }
                Ok(Some(Acknowledged { of: Asked::Write(length, took), .. })) => {
                    idle = Duration::ZERO;
                    acknowledged += length;
                    window.on_answer(took);
                }
                Ok(Some(Acknowledged { of: Asked::Sync(durable), .. })) => {
                    idle = Duration::ZERO;
                    let step = ResumeStep::part(self.file, durable);
                    wish = progress(PlaceProgress::Reached(&step));
                }
                Err(_) => idle += TICK,
            }
            let sent = PlaceProgress::Sent(ByteCount::new(acknowledged));
            if wish == GoOn::Stop || progress(sent) == GoOn::Stop {
                return Ok(GoOn::Stop);
            }
            if idle >= self.access.stall {
                return Err(stalled(self.place, "a write was to be acknowledged", idle));
            }
        }
        match self.synced(acknowledged).await.result {
            Ok(()) => Ok(GoOn::Continue),
            Err(error) => Err(self.refused(&error).await),
        }
    }

    async fn write(&self, offset: u64, bytes: Vec<u8>) -> Acknowledged {
        let (began, length) = (Instant::now(), bytes.len() as u64);
        let written = self.session.raw.write(self.handle.clone(), offset, bytes).await;
        let of = Asked::Write(length, began.elapsed());
        Acknowledged { result: written.map(drop), of }
    }

    /// Brings to the disk what was acknowledged, where the server can.
    async fn synced(&self, acknowledged: u64) -> Acknowledged {
        let of = Asked::Sync(acknowledged);
        if !self.session.extensions.contains_key(FSYNC) {
            return Acknowledged { result: Ok(()), of };
        }
        let synced = self.session.raw.fsync(self.handle.clone()).await;
        Acknowledged { result: synced.map(drop), of }
    }

    /// Version 3 has no code for a full disk: where the server says only that it failed, it is
    /// asked how much room there is.
    async fn refused(&self, error: &Error) -> DeliveryFailure {
        let failure = refused(self.place, &format!("writing {}", self.file.name), error);
        let is_vague =
            matches!(error, Error::Status(status) if status.status_code == StatusCode::Failure);
        if !is_vague || !self.session.extensions.contains_key(STATVFS) {
            return failure;
        }
        let room = self.session.raw.statvfs(&self.path).await;
        match room.is_ok_and(|room| room.blocks_avail.saturating_mul(room.fragment_size) < FULL) {
            true => {
                let sentence = format!("{}; the disk there has no room left", failure.sentence);
                DeliveryFailure::new(FailureKind::Full, sentence)
            }
            false => failure,
        }
    }
}

/// Reads a piece of an open file.
///
/// # Errors
/// The server refuses.
pub async fn read_at(
    session: &SftpSession,
    handle: &str,
    from: u64,
    length: usize,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let left = u32::try_from((length - bytes.len()).min(WRITE)).expect("32 KiB at most");
        match session.raw.read(handle, from + bytes.len() as u64, left).await {
            Ok(data) if data.data.is_empty() => break,
            Ok(data) => bytes.extend_from_slice(&data.data[..data.data.len().min(left as usize)]),
            Err(Error::Status(status)) if status.status_code == StatusCode::Eof => {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// The digest of an open file, with several requests under way.
///
/// # Errors
/// The server refuses.
pub async fn digest(session: &SftpSession, handle: &str, size: u64) -> Result<[u8; 32], Error> {
    let (mut hash, mut at) = (Sha256::new(), 0);
    let mut requests = FuturesOrdered::new();
    loop {
        while requests.len() < READS && at < size {
            let length = usize::try_from(size - at).unwrap_or(usize::MAX).min(PIECE);
            requests.push_back(read_at(session, handle, at, length));
            at += length as u64;
        }
        match requests.next().await {
            None => return Ok(hash.finalize().into()),
            Some(bytes) => hash.update(bytes?),
        }
    }
}

/// What every server takes in one request (draft-ietf-secsh-filexfer-02, 3).
const WRITE: usize = 32 << 10;
/// 2 MiB, the window of OpenSSH: 160 Mbit/s at a round trip of 100 ms.
const MOST_WRITES: usize = 64;
/// At 64 kbit/s they take 16 s.
const LEAST_WRITES: usize = 4;
/// 2 MiB in this time are 3 Mbit/s; with fewer requests a slower line is not thought dead.
const SLOW: Duration = Duration::from_secs(5);
/// Pieces of 256 KiB.
const READS: usize = 8;
/// What a broken connection sends twice, at most, beside what is under way: 32 MiB, 2.7 s at
/// 100 Mbit/s. Each costs the server a sync, while further writes are under way.
const NOTED_EACH: u64 = 32 << 20;
/// A disk with less room takes no file.
const FULL: u64 = 1 << 20;
/// How often the caller is asked whether it goes on.
const TICK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_line_has_few_writes_under_way() {
        let mut window = Window { writes: LEAST_WRITES };
        (0..100).for_each(|_| window.on_answer(Duration::from_millis(100)));
        assert_eq!(window.writes, MOST_WRITES);
        (0..100).for_each(|_| window.on_answer(Duration::from_secs(9)));
        assert_eq!(window.writes, LEAST_WRITES);
    }
}
