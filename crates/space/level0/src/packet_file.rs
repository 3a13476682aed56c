//! The packet file of a product: packets back to back, with an account of what was written.

use crate::digests::{Digesting, FileDigests};
use crate::entry;
use crate::files::{Error, Files};
use crate::gaps::{ApidAccount, LISTED_FILLS, LISTED_GAPS, Last, PacketTimestamps};
use crate::order::{Change, Held, Slot};
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::Counters;
use skyhaul_units::{ByteCount, Utc};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

/// A packet file being written.
pub(crate) struct PacketFile<W: Write> {
    out: Output<W>,
    index: Option<Output<W>>,
    /// None if the file will be written again.
    accountant: Option<Accountant>,
}

/// What a packet file holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    pub packets: u64,
    pub size: ByteCount,
    pub corrected_packets: u64,
    /// Packets that were not in the previous version.
    pub added: u64,
    /// Packets with a worse copy in the previous version.
    pub improved: u64,
    pub first: Option<PacketTimestamps>,
    pub last: Option<PacketTimestamps>,
    pub apids: BTreeMap<Apid, ApidAccount>,
}

/// Keeps the account of a packet file while it is written.
struct Accountant {
    counters: Counters,
    /// The figures that do not depend on the APID.
    whole: Account,
    /// By APID, its index in `streams` plus one; 0 if it is not there.
    places: Box<[u16]>,
    streams: Vec<Stream>,
    /// The last packet of each counter, by the APID that identifies the counter.
    last: Vec<(Apid, Option<Last>)>,
    listed_gaps: usize,
    listed_fills: usize,
}

/// The account of one APID.
struct Stream {
    apid: Apid,
    account: ApidAccount,
    /// Its counter's place.
    counter: usize,
}

/// A packet file that is complete but not published.
pub(crate) struct Written<W> {
    pub file: W,
    pub working: String,
    /// Empty, like the account, if the file is provisional.
    pub digests: FileDigests,
    pub account: Account,
}

impl<W: Write> PacketFile<W> {
    /// Begins a packet file, with an index if it may have to be read back for merging.
    pub fn create<F: Files<Writer = W>>(
        files: &mut F,
        working: String,
        index: Option<String>,
        counters: &Counters,
    ) -> Result<Self, Error> {
        let index = match index {
            None => None,
            Some(working) => Some(Output::create(files, working)?),
        };
        Ok(Self {
            out: Output::digested(files, working)?,
            index,
            accountant: Some(Accountant::new(counters)),
        })
    }

    /// Appends a packet. `time` is its time in the product: none if the APID has no time code.
    pub fn put(&mut self, slot: Slot, held: &Held<'_>, time: Option<Utc>) -> Result<(), Error> {
        self.out.put(held.bytes)?;
        if let Some(index) = &mut self.index {
            index.put(&entry::head(slot, held))?;
        }
        if let Some(accountant) = &mut self.accountant {
            accountant.add(held, time);
        }
        Ok(())
    }

    /// Stops the digest and the account: the file will be written again.
    pub fn make_provisional(&mut self) {
        self.out.digesting = None;
        self.accountant = None;
    }

    /// Flushes and closes both files, so that they can be read back. Returns the index's working
    /// name.
    pub fn close(self) -> Result<(Written<W>, Option<String>), Error> {
        let Closed { file, working, digests } = self.out.close()?;
        let index = match self.index {
            None => None,
            Some(index) => Some(index.close()?.working),
        };
        Ok((
            Written {
                file,
                working,
                digests,
                account: self.accountant.map(Accountant::complete).unwrap_or_default(),
            },
            index,
        ))
    }
}

impl Accountant {
    fn new(counters: &Counters) -> Self {
        Self {
            counters: counters.clone(),
            whole: Account::default(),
            places: vec![0; usize::from(Apid::MAX.value()) + 1].into(),
            streams: Vec::new(),
            last: Vec::new(),
            listed_gaps: 0,
            listed_fills: 0,
        }
    }

    fn add(&mut self, held: &Held<'_>, time: Option<Utc>) {
        let stamp = PacketTimestamps { time, received: held.received };
        self.whole.first.get_or_insert(stamp);
        self.whole.last = Some(stamp);
        let offset = self.whole.size;
        let place = match self.places[usize::from(held.apid.value())] {
            0 => self.open(held.apid, ApidAccount::new(stamp, offset)),
            place => usize::from(place) - 1,
        };
        let Stream { account, counter, .. } = &mut self.streams[place];
        let last = Last { count: held.count, stamp };
        let before = self.last[*counter].1.replace(last);
        let gap = before.and_then(|before| account.follow(before, last, offset));
        if let Some(gap) = gap.filter(|_| self.listed_gaps < LISTED_GAPS) {
            self.listed_gaps += 1;
            account.gaps.push(gap);
        }
        if held.fill > 0 || held.quality.length_differs() {
            let room = LISTED_FILLS.saturating_sub(self.listed_fills);
            self.listed_fills += account.note_fill(held, offset, room);
        }
        account.add(held, stamp);
        self.whole.packets += 1;
        self.whole.size += ByteCount::of(held.bytes.len());
        self.whole.corrected_packets += u64::from(held.quality.is_corrected());
        match held.quality.change() {
            Change::None => {}
            Change::Added => self.whole.added += 1,
            Change::Improved => self.whole.improved += 1,
        }
    }

    /// Begins the account of an APID; returns its place.
    fn open(&mut self, apid: Apid, account: ApidAccount) -> usize {
        let known_by = self.counters.of(apid);
        let counter =
            self.last.iter().position(|(apid, _)| *apid == known_by).unwrap_or_else(|| {
                self.last.push((known_by, None));
                self.last.len() - 1
            });
        self.streams.push(Stream { apid, account, counter });
        self.places[usize::from(apid.value())] = self.streams.len() as u16;
        self.streams.len() - 1
    }

    fn complete(self) -> Account {
        let apids = self.streams.into_iter().map(|stream| (stream.apid, stream.account)).collect();
        Account { apids, ..self.whole }
    }
}

/// A working file written through a buffer, with optional digests of its contents.
pub(crate) struct Output<W: Write> {
    working: String,
    file: W,
    buffer: Vec<u8>,
    digesting: Option<Digesting>,
}

/// A working file that is complete.
pub(crate) struct Closed<W> {
    pub file: W,
    pub working: String,
    /// Empty where none were wanted.
    pub digests: FileDigests,
}

impl<W: Write> Output<W> {
    /// Begins a file under a working name.
    pub fn create<F: Files<Writer = W>>(files: &mut F, working: String) -> Result<Self, Error> {
        let file = files.create(&working).map_err(Error::on("create", &working))?;
        Ok(Self { working, file, buffer: Vec::with_capacity(WRITE_BUFFER), digesting: None })
    }

    fn digested<F: Files<Writer = W>>(files: &mut F, working: String) -> Result<Self, Error> {
        let digesting = Some(Digesting::new(files.digests()));
        Ok(Self { digesting, ..Self::create(files, working)? })
    }

    /// Appends bytes, at most a packet.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.buffer.len() + bytes.len() > WRITE_BUFFER {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if let Some(digesting) = &mut self.digesting {
            digesting.update(&self.buffer);
        }
        self.file.write_all(&self.buffer).map_err(Error::on("write", &self.working))?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes everything through.
    pub fn close(mut self) -> Result<Closed<W>, Error> {
        self.flush()?;
        self.file.flush().map_err(Error::on("write", &self.working))?;
        let digests = self.digesting.map(Digesting::finish).unwrap_or_default();
        Ok(Closed { file: self.file, working: self.working, digests })
    }
}

/// The file behind a buffer, after a flush.
pub(crate) fn flushed<W: Write>(buffer: BufWriter<W>, name: &str) -> Result<W, Error> {
    let mut inner = buffer
        .into_inner()
        .map_err(|error| error.into_error())
        .map_err(Error::on("write", name))?;
    inner.flush().map_err(Error::on("write", name))?;
    Ok(inner)
}

/// 128 KiB, at least the longest packet: 70 ms of a 15 Mbit/s downlink.
const WRITE_BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::PacketQuality;
    use skyhaul_ccsds::id::Vcid;

    fn held(apid: Apid, count: u16) -> Held<'static> {
        let received = Utc::from_nanos(i64::from(count));
        let quality = PacketQuality::from_bits(1);
        Held { apid, count, vcid: Vcid::MAX, quality, received, fill: 0, bytes: &[0; 10] }
    }

    #[test]
    fn missing_is_the_sum_of_gaps_over_the_wrap_and_resets_are_apart() {
        let mut accountant = Accountant::new(&Counters::default());
        for count in [16_381u16, 16_382, 2, 3, 3, 10, 4] {
            accountant.add(&held(Apid::MAX, count), None);
        }
        let account = accountant.complete();
        let apid = &account.apids[&Apid::MAX];
        let gaps: Vec<_> =
            apid.gaps.iter().map(|gap| (gap.first_missing, gap.missed, gap.offset)).collect();
        assert_eq!(gaps, [(16_383, 3, 20), (4, 6, 50)]);
        assert_eq!((apid.gap_count, apid.missing, apid.resets), (2, 9, 2));
        assert_eq!((apid.packets, apid.bytes, apid.corrected_packets), (7, ByteCount::new(70), 7));
        assert_eq!(apid.gaps[0].preceding.received, Utc::from_nanos(16_382));
        assert_eq!(apid.gaps[0].following.received, Utc::from_nanos(2));
    }

    #[test]
    fn a_full_list_still_counts() {
        let mut accountant = Accountant::new(&Counters::default());
        accountant.listed_gaps = LISTED_GAPS;
        accountant.add(&held(Apid::MAX, 0), None);
        accountant.add(&held(Apid::MAX, 5), None);
        let account = accountant.complete();
        let apid = &account.apids[&Apid::MAX];
        assert_eq!((apid.gaps.len(), apid.gap_count, apid.missing), (0, 1, 4));
    }
}
