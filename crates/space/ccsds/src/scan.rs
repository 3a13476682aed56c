//! Finds the packets of a packet file that may be damaged: contiguous space packets and
//! encapsulation packets.
//!
//! A packet file has no markers. The length of a packet is proven by the next packet directly after
//! it: a packet is accepted if a packet of a known application follows it, or [`CHAIN`] packets in
//! a row, or the end of the file. If none does and a chain of packets begins inside the packet, its
//! length is wrong; otherwise the packet is accepted and the bytes after it are damage. After
//! damage, the chain continues where packets of known applications follow each other, so that noise
//! does not count as packets.

use crate::end_of_input::EndOfInput;
use crate::id::Apid;
use crate::packet::{Header, HeaderError, SpaceHeader};

/// What stands in a packet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned<'a> {
    /// A packet.
    Packet {
        /// Where it begins, in bytes from the start of the file.
        offset: u64,
        /// Its header.
        header: Header,
        /// All of it.
        bytes: &'a [u8],
    },
    /// Bytes that are no packets.
    Damage(UnreadableRange),
}

/// A stretch of a packet file without packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableRange {
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What was found where it begins.
    pub kind: DamageKind,
}

/// What is wrong where the chain of packets breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// Zeros, which would read as packets of one byte: a disk returns them for lost data.
    Zeros,
    /// There is no packet header.
    Header(HeaderError),
    /// No packet begins after a packet with this length in bytes.
    Length(u64),
    /// The file ends inside a packet with this length in bytes.
    CutOff(u64),
    /// The file ends inside a packet header.
    CutOffHeader,
}

impl DamageKind {
    const fn is_cut(self) -> bool {
        matches!(self, Self::CutOff(_) | Self::CutOffHeader)
    }
}

impl core::fmt::Display for DamageKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Zeros => f.write_str("zeros instead of packets begin here"),
            Self::Header(error) => write!(f, "no packet begins here: {error}"),
            Self::Length(length) => {
                write!(
                    f,
                    "a packet of {length} bytes is said to begin here, but no packet begins where \
                    it would end"
                )
            }
            Self::CutOff(length) => write!(f, "the file ends inside a packet of {length} bytes"),
            Self::CutOffHeader => write!(f, "the file ends inside a packet header"),
        }
    }
}

/// Finds the packets of one file, which is read in stretches.
#[derive(Debug, Clone)]
pub struct Scanner {
    /// The offset of the next stretch in the file.
    offset: u64,
    /// By APID, whether packets of it were found.
    known: Box<[bool]>,
    has_known: bool,
    /// The damage at the present position, if any.
    damage: Option<UnreadableRange>,
}

/// What is at a position of a stretch.
enum Place {
    /// A packet of this header.
    Packet(Header),
    /// No packet.
    Wrong(DamageKind),
    /// More of the file is needed to decide.
    More,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            offset: 0,
            known: vec![false; usize::from(Apid::MAX.value()) + 1].into(),
            has_known: false,
            damage: None,
        }
    }
}

impl Scanner {
    /// Passes the packets and damage in `bytes` to `sink`; the bytes continue the file from the end
    /// of the last call. Returns the number of bytes that are used up. Give the others again at the
    /// start of the next call, together with the bytes that follow them in the file. At the end of
    /// the file all bytes are used up.
    ///
    /// Less than [`LOOK_AHEAD`] bytes are left over.
    pub fn scan<'a>(
        &mut self,
        bytes: &'a [u8],
        end: EndOfInput,
        mut sink: impl FnMut(Scanned<'a>),
    ) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            match self.place(&bytes[at..], end) {
                Place::More => break,
                Place::Packet(header) => {
                    if let Some(damage) = self.damage.take() {
                        sink(Scanned::Damage(damage));
                    }
                    if let Header::Space(header) = header {
                        self.known[usize::from(header.apid.value())] = true;
                        self.has_known = true;
                    }
                    let packet = &bytes[at..at + header.total_len()];
                    sink(Scanned::Packet {
                        offset: self.offset + at as u64,
                        header,
                        bytes: packet,
                    });
                    at += packet.len();
                }
                Place::Wrong(kind) => {
                    let offset = self.offset + at as u64;
                    self.damage.get_or_insert(UnreadableRange { offset, bytes: 0, kind }).bytes +=
                        1;
                    at += 1;
                }
            }
        }
        if end == EndOfInput::Reached
            && let Some(damage) = self.damage.take()
        {
            sink(Scanned::Damage(damage));
        }
        self.offset += at as u64;
        at
    }

    /// What is at the start of `bytes`, which are not empty.
    fn place(&self, bytes: &[u8], end: EndOfInput) -> Place {
        if self.damage.is_some() {
            return self.resumes(bytes, end);
        }
        let first = match whole(bytes) {
            Ok(header) => header,
            Err(kind) if kind.is_cut() && end == EndOfInput::Ahead => return Place::More,
            Err(kind) => return Place::Wrong(kind),
        };
        let mut rest = &bytes[first.total_len()..];
        let is_space = |header: &Header| matches!(header, Header::Space(_));
        let mut chain = match (self.has_known, is_space(&first)) {
            (true, _) => CHAIN,
            (false, true) => FIRST_CHAIN,
            (false, false) => LONG_CHAIN,
        };
        let mut links = 1;
        while links < chain {
            if rest.is_empty() && end == EndOfInput::Reached {
                return Place::Packet(first);
            }
            if Header::parse(rest).is_ok_and(|header| self.knows(&header)) {
                return Place::Packet(first);
            }
            match whole(rest) {
                Ok(header) => {
                    rest = &rest[header.total_len()..];
                    links += 1;
                    if !self.has_known && !is_space(&header) {
                        chain = LONG_CHAIN;
                    }
                }
                Err(kind) if kind.is_cut() && end == EndOfInput::Ahead => return Place::More,
                Err(_) if self.has_known => return self.suspect(first, bytes, end),
                // A short file that was cut.
                Err(kind) if kind.is_cut() && links >= SHORT_CHAIN => return Place::Packet(first),
                // Not even one packet has been found yet: this is another kind of file, or it
                // begins with damage.
                Err(kind) => return Place::Wrong(kind),
            }
        }
        Place::Packet(first)
    }

    /// What follows a packet is none: either its length is wrong, or it is the last before some
    /// damage.
    fn suspect(&self, first: Header, bytes: &[u8], end: EndOfInput) -> Place {
        let length = first.total_len();
        for at in 1..length {
            match self.resumes(&bytes[at..], end) {
                Place::Packet(_) => return Place::Wrong(DamageKind::Length(length as u64)),
                Place::More => return Place::More,
                Place::Wrong(_) => {}
            }
        }
        Place::Packet(first)
    }

    /// Whether a chain of packets begins at the start of `bytes` that is too long to be noise.
    fn resumes(&self, bytes: &[u8], end: EndOfInput) -> Place {
        let (chain, known) = if self.has_known { (CHAIN, KNOWN) } else { (LONG_CHAIN, 0) };
        let mut rest = bytes;
        let mut first = None;
        for link in 0..chain {
            if rest.is_empty() && end == EndOfInput::Reached && (link >= KNOWN || known > 0) {
                break;
            }
            match whole(rest) {
                Ok(header) if self.carries_on(&header, link, known) => {
                    first.get_or_insert(header);
                    rest = &rest[header.total_len()..];
                }
                Err(kind) if kind.is_cut() && end == EndOfInput::Ahead => {
                    // The first header alone decides for most positions.
                    let hopeless = Header::parse(rest)
                        .is_ok_and(|header| !self.carries_on(&header, link, known));
                    return if hopeless { Place::Wrong(kind) } else { Place::More };
                }
                Ok(header) => return Place::Wrong(DamageKind::Length(header.total_len() as u64)),
                Err(kind) => return Place::Wrong(kind),
            }
        }
        first.map_or(Place::Wrong(DamageKind::CutOffHeader), Place::Packet)
    }

    /// Whether a packet may be link number `link` of a chain after damage: the first `known` links
    /// must be of known applications; if none is known, all must be space packets.
    fn carries_on(&self, header: &Header, link: usize, known: usize) -> bool {
        let wanted = link < known;
        match header {
            Header::Space(_) => !wanted || self.knows(header),
            Header::Encapsulation(_) => !wanted && self.has_known,
        }
    }

    /// Whether packets of the application were found before.
    fn knows(&self, header: &Header) -> bool {
        matches!(header, Header::Space(header) if self.known[usize::from(header.apid.value())])
    }
}

/// The header of the packet at the start of `bytes`, which must be complete.
fn whole(bytes: &[u8]) -> Result<Header, DamageKind> {
    if bytes.starts_with(&[0; SpaceHeader::LEN]) {
        return Err(DamageKind::Zeros);
    }
    let header = Header::parse(bytes).map_err(|error| match error {
        HeaderError::Incomplete => DamageKind::CutOffHeader,
        other => DamageKind::Header(other),
    })?;
    let length = header.total_len();
    if length > LONGEST {
        Err(DamageKind::Length(length as u64))
    } else if length > bytes.len() {
        Err(DamageKind::CutOff(length as u64))
    } else {
        Ok(header)
    }
}

/// Packets in a row that form a chain. A quarter of the positions in noise look like the header of
/// a packet.
pub const CHAIN: usize = 4;
/// Packets of known applications at the beginning of a chain after damage: with twenty known, one
/// position of noise in ten million has as many.
const KNOWN: usize = 2;
/// Space packets at the beginning of a packet file. One is not enough, because the marker of a
/// capture reads as the start of a packet.
const FIRST_CHAIN: usize = 6;
/// Whole packets before a cut packet at the end of the file that are enough instead.
const SHORT_CHAIN: usize = 3;
/// Space packets in a chain if no application is known yet: one position of noise in 17 million has
/// as many.
const LONG_CHAIN: usize = 8;
/// 128 KiB: the longest accepted packet, twice the longest space packet. The length field of
/// encapsulation packets goes up to 4 GiB.
const LONGEST: usize = 128 << 10;
/// Bytes after a position that may be needed to decide what is there.
pub const LOOK_AHEAD: usize = (LONG_CHAIN + 1) * LONGEST + Header::LONGEST;

#[cfg(test)]
mod tests;
