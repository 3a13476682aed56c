//! VDIF headers (VLBI Data Interchange Format 1.1.1), of 16 bytes (legacy) and 32.

use crate::frame_time::{FRAME_MAX, FrameTime, HeadError};
use crate::mark5b;
use skyhaul_units::{Duration, Utc};

/// A header that says what can be: a frame longer than itself, and not longer than is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VdifHeader {
    words: [u32; 8],
}

impl VdifHeader {
    /// From the first bytes of a frame: 16 of a legacy one, otherwise 32.
    ///
    /// # Errors
    /// There are too few, or they are no header of a frame that is carried.
    pub fn read(bytes: &[u8]) -> Result<Self, HeadError> {
        let mut words = [0; 8];
        let legacy = *bytes.get(3).ok_or(HeadError::Short)? & 0x40 != 0;
        let len = if legacy { LEGACY } else { FULL };
        let head = bytes.get(..len).ok_or(HeadError::Short)?;
        for (word, four) in words.iter_mut().zip(head.as_chunks().0) {
            *word = u32::from_le_bytes(*four);
        }
        let header = Self { words };
        // VDIF 1.1.1 section 5: the upper bits of word 1 are not assigned, and are 0.
        if header.frame_len() <= len || words[1] >> 30 != 0 {
            return Err(HeadError::NoHeader);
        }
        if header.frame_len() > FRAME_MAX {
            return Err(HeadError::TooLong(header.frame_len()));
        }
        Ok(header)
    }

    /// Bytes of the header.
    pub const fn len(&self) -> usize {
        if self.is_legacy() { LEGACY } else { FULL }
    }

    /// Never: a header has bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Whether it has 16 bytes.
    pub const fn is_legacy(&self) -> bool {
        self.words[0] & LEGACY_BIT != 0
    }

    /// Whether the data are marked as invalid.
    pub const fn is_invalid(&self) -> bool {
        self.words[0] & INVALID_BIT != 0
    }

    /// Bytes of the frame, with the header.
    pub const fn frame_len(&self) -> usize {
        (self.words[2] as usize & 0xFF_FFFF) * 8
    }

    /// Which version of extended user data it has; a legacy header has none.
    pub const fn extension(&self) -> Option<u8> {
        if self.is_legacy() { None } else { Some((self.words[4] >> 24) as u8) }
    }

    /// Where the frame belongs.
    pub const fn place(&self) -> FrameTime {
        let epoch = (self.words[1] >> 24 & 0x3F) as u64;
        FrameTime {
            station: self.words[3] as u16,
            thread: (self.words[3] >> 16 & 0x3FF) as u16,
            second: epoch << 32 | (self.words[0] & SECONDS) as u64,
            number: self.words[1] & 0xFF_FFFF,
        }
    }

    /// The beginning of a second of [`FrameTime::second`]. Leap seconds are left out, as they are
    /// in most headers.
    pub fn utc(second: u64) -> Utc {
        let half_years = (second >> 32) as i64;
        let (year, july) = (2000 + half_years / 2, half_years % 2);
        // Days from 1970 to the beginning of a year of this century, as every fourth is a leap year
        // up to 2099.
        let leap = i64::from((year - 2000) % 4 == 0);
        let days = 10_957 + (year - 2000) * 365 + (year - 2000 + 3) / 4 + july * (181 + leap);
        Utc::from_day(days, Duration::from_secs(second & u64::from(SECONDS)))
    }

    /// Frames of a thread in a second, where the header has the sample rate: extensions 1, 3 and 4.
    pub fn frames_per_second(&self) -> Option<u32> {
        if !matches!(self.extension(), Some(1 | 3 | 4)) {
            return None;
        }
        let unit = if self.words[4] & 1 << 23 == 0 { 1_000 } else { 1_000_000 };
        let complex = self.words[3] >> 31;
        let bits = u64::from(self.words[3] >> 26 & 0x1F) + 1;
        // The rate is that of complex samples: real ones come twice as fast.
        let samples = u64::from(self.words[4] & 0x7F_FFFF) * unit * u64::from(2 - complex);
        let in_word = 32 / bits / u64::from(1 + complex);
        let in_payload = (self.frame_len() - self.len()) as u64 / 4 * in_word;
        let in_frame =
            in_payload.checked_shr(self.words[2] >> 24 & 0x1F).filter(|count| *count > 0)?;
        let whole = samples > 0 && samples.is_multiple_of(in_frame);
        u32::try_from(samples / in_frame).ok().filter(|rate| whole && *rate <= 1 << 24)
    }

    /// The header of the thread's next frame.
    #[must_use]
    pub fn next(&self, frames_per_second: Option<u32>) -> Self {
        let mut next = *self;
        let number = self.place().number + 1;
        let wraps = number > 0xFF_FFFF || frames_per_second.is_some_and(|rate| number >= rate);
        let number = if wraps { 0 } else { number };
        if wraps {
            let second = self.words[0].wrapping_add(1) & SECONDS;
            next.words[0] = self.words[0] & !SECONDS | second;
        }
        next.words[1] = self.words[1] & 0xFF00_0000 | number;
        match self.extension() {
            // ALMA: the number of the packet is in words 6 and 7.
            Some(2) => {
                let (low, carry) = self.words[6].overflowing_add(1);
                next.words[6] = low;
                next.words[7] = self.words[7].wrapping_add(carry.into());
            }
            // A Mark 5B header is in words 4 to 7.
            Some(0xAB) => {
                let inner = [self.words[4], self.words[5], self.words[6], self.words[7]];
                next.words[4..].copy_from_slice(&mark5b::next(inner, frames_per_second));
            }
            _ => {}
        }
        next
    }

    /// Whether both are of the same frame: it may be invalid in one, and extended data of which
    /// nothing is known may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        let known = matches!(self.extension(), None | Some(0..=4 | 0xAB));
        let basic = (self.words[0] ^ other.words[0]) & !INVALID_BIT == 0
            && self.words[1..4] == other.words[1..4];
        basic && (!known || self.words[4..] == other.words[4..])
    }

    /// Whether frames of both can follow each other in a stream.
    pub const fn goes_with(&self, other: &Self) -> bool {
        self.words[2] & 0xFF_FFFF == other.words[2] & 0xFF_FFFF
            && self.is_legacy() == other.is_legacy()
    }

    /// The same, told more closely, for where nothing else is known: version, channels and bits are
    /// the same too, and they are not of one frame.
    pub fn confirms(&self, other: &Self) -> bool {
        self.goes_with(other)
            && self.words[2] == other.words[2]
            && self.words[3] >> 26 == other.words[3] >> 26
            && self.place() != other.place()
    }

    /// The same header, its data marked as invalid.
    #[must_use]
    pub const fn invalid(mut self) -> Self {
        self.words[0] |= INVALID_BIT;
        self
    }

    /// Appends its bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        let words = &self.words[..self.len() / 4];
        words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    }

    pub(crate) const fn made(words: [u32; 8]) -> Self {
        Self { words }
    }
}

const LEGACY: usize = 16;
const FULL: usize = 32;
const INVALID_BIT: u32 = 1 << 31;
const LEGACY_BIT: u32 = 1 << 30;
const SECONDS: u32 = 0x3FFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: [u32; 8]) -> VdifHeader {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        VdifHeader::read(&bytes).unwrap()
    }

    /// Of a recording of PSR B1957+20: thread 1, station 65532, EDV 3 with 16 MHz, 2 bits.
    const RECORDED: [u32; 8] = [
        0x00DB_2C77,
        0x1C00_0000,
        0x2000_0275,
        0x0401_FFFC,
        0x0380_0010,
        0xACAB_FEED,
        0x3340_0000,
        0xF203_1583,
    ];

    #[test]
    fn a_recorded_header_says_what_it_is() {
        let header = header(RECORDED);
        let place =
            FrameTime { station: 65_532, thread: 1, second: 28 << 32 | 14_363_767, number: 0 };
        assert_eq!((header.place(), header.frame_len(), header.len()), (place, 5_032, 32));
        assert_eq!((header.extension(), header.frames_per_second()), (Some(3), Some(1_600)));
        assert_eq!(
            VdifHeader::utc(28 << 32 | 14_363_767).to_string(),
            "2014-06-16T05:56:07.000000Z"
        );
        assert_eq!(VdifHeader::utc(1 << 32).to_string(), "2000-07-01T00:00:00.000000Z");
        assert_eq!(VdifHeader::utc(31 << 32).to_string(), "2015-07-01T00:00:00.000000Z");
        let mut bytes = Vec::new();
        header.put(&mut bytes);
        assert_eq!(VdifHeader::read(&bytes), Ok(header));
    }

    #[test]
    fn the_number_wraps_at_the_second() {
        let mut words = RECORDED;
        words[1] |= 1_599;
        let next = header(words).next(Some(1_600));
        assert_eq!((next.place().second, next.place().number), (28 << 32 | 14_363_768, 0));
        assert_eq!(header(words).next(None).place().number, 1_600);
    }

    #[test]
    fn numbers_in_extended_data_go_on_too() {
        let mut words = RECORDED;
        words[4] = 2 << 24 | 0xA5_EA50;
        (words[6], words[7]) = (u32::MAX, 4);
        let next = header(words).next(None);
        assert_eq!(next.words[6..], [0, 5]);
        // Mark 5B within: 0.0156 s and the check sum of the second frame.
        words[4..].copy_from_slice(&[0xABAD_DEED, 0xBEAD_0000, 0x8211_9801, 0x0000_975D]);
        let next = header(words).next(Some(6_400));
        assert_eq!(next.words[4..], [0xABAD_DEED, 0xBEAD_0001, 0x8211_9801, 0x0001_1758]);
    }

    #[test]
    fn what_cannot_be_a_header_is_refused() {
        let read = |words: [u32; 8], len: usize| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            VdifHeader::read(&bytes[..len])
        };
        assert_eq!(read(RECORDED, 31), Err(HeadError::Short));
        assert_eq!(read([0; 8], 32), Err(HeadError::NoHeader));
        let mut long = RECORDED;
        long[2] |= 0xFF_FFFF;
        assert_eq!(read(long, 32), Err(HeadError::TooLong(0xFF_FFFF * 8)));
        let mut legacy = RECORDED;
        legacy[0] |= LEGACY_BIT;
        assert_eq!(
            read(legacy, 16).map(|header| (header.len(), header.extension())),
            Ok((16, None))
        );
    }
}
