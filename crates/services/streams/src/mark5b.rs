//! Mark 5B headers: 16 bytes before 10,000 of payload (Mark 5B users' manual).

use crate::frame_time::{FrameTime, HeadError};

/// A header with the sync word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark5bHeader {
    words: [u32; 4],
}

impl Mark5bHeader {
    /// Bytes of a header.
    pub const LEN: usize = 16;
    /// Bytes of a frame, with the header.
    pub const FRAME_LEN: usize = 10_016;

    /// From the first 16 bytes of a frame.
    ///
    /// # Errors
    /// There are fewer, or they are no header.
    pub fn read(bytes: &[u8]) -> Result<Self, HeadError> {
        let head = bytes.get(..Self::LEN).ok_or(HeadError::Short)?;
        let mut words = [0; 4];
        for (word, four) in words.iter_mut().zip(head.as_chunks().0) {
            *word = u32::from_le_bytes(*four);
        }
        // The time has decimal digits.
        let decimal = (0..8).all(|digit| words[2] >> (4 * digit) & 0xF < 10);
        if words[0] == SYNC && decimal { Ok(Self { words }) } else { Err(HeadError::NoHeader) }
    }

    /// Where the frame belongs: the second counts from the last day whose Modified Julian Date ends
    /// in 000.
    pub const fn place(&self) -> FrameTime {
        let (day, second) = (decimal(self.words[2] >> 20), decimal(self.words[2] & 0xF_FFFF));
        FrameTime {
            station: 0,
            thread: 0,
            second: (day * 86_400 + second) as u64,
            number: self.words[1] & NUMBER,
        }
    }

    /// Frames in a second, where number and fraction of the second tell: total rates are powers of
    /// two times 1 Mbit/s.
    pub fn frames_per_second(&self) -> Option<u32> {
        let (number, tenths) =
            (u64::from(self.words[1] & NUMBER), u64::from(decimal(self.words[3] >> 16)));
        let fits = |rate: &u32| number * 10_000 / u64::from(*rate) == tenths;
        let mut rates = (0..=11)
            .map(|doubled| 25 << doubled)
            .filter(|rate| u64::from(*rate) > number)
            .filter(fits);
        rates.next().filter(|_| tenths > 0 && rates.next().is_none())
    }

    /// Whether the check sum of the time is right.
    pub fn is_checked(&self) -> bool {
        crc(self.words) == self.words[3] as u16
    }

    /// The header of the next frame.
    #[must_use]
    pub fn next(&self, frames_per_second: Option<u32>) -> Self {
        Self { words: next(self.words, frames_per_second) }
    }

    /// Appends its bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    }
}

/// The words of the next frame's header. Recorders that leave the fraction or the check sum out are
/// followed.
pub(crate) fn next(words: [u32; 4], frames_per_second: Option<u32>) -> [u32; 4] {
    let mut next = words;
    let before = words[1] & NUMBER;
    let number = before + 1;
    let wraps = number > NUMBER || frames_per_second.is_some_and(|rate| number >= rate);
    let number = if wraps { 0 } else { number };
    next[1] = words[1] & !NUMBER | number;
    if wraps {
        let (day, second) = (decimal(words[2] >> 20), decimal(words[2] & 0xF_FFFF) + 1);
        let (day, second) = if second >= 86_400 { ((day + 1) % 1_000, 0) } else { (day, second) };
        next[2] = digits(day) << 20 | digits(second);
    }
    let left_out = before > 0
        && words[3] >> 16 == 0
        && frames_per_second.is_none_or(|rate| before * 10_000 >= rate);
    let tenths = match frames_per_second {
        Some(rate) if rate > 0 && !left_out => {
            (u64::from(number) * 10_000 / u64::from(rate)) as u32
        }
        _ => 0,
    };
    next[3] = digits(tenths) << 16;
    let checked = crc(words) == words[3] as u16;
    next[3] |= u32::from(if checked { crc(next) } else { words[3] as u16 });
    next
}

/// CRC-16 of the time, as of VLBA headers: x^16 + x^15 + x^2 + 1 over the day, the second and the
/// fraction.
fn crc(words: [u32; 4]) -> u16 {
    let time = u64::from(words[2]) << 16 | u64::from(words[3] >> 16);
    (0..48).rev().fold(0_u16, |crc, bit| {
        let top = crc >> 15 ^ (time >> bit) as u16 & 1;
        crc << 1 ^ if top == 1 { 0x8005 } else { 0 }
    })
}

/// Up to eight decimal digits of four bits each.
const fn decimal(digits: u32) -> u32 {
    let (mut value, mut place) = (0, 8);
    while place > 0 {
        place -= 1;
        value = value * 10 + (digits >> (4 * place) & 0xF);
    }
    value
}

fn digits(value: u32) -> u32 {
    (0..8)
        .fold((0, value), |(digits, rest), place| (digits | (rest % 10) << (4 * place), rest / 10))
        .0
}

const SYNC: u32 = 0xABAD_DEED;
const NUMBER: u32 = 0x7FFF;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: [u32; 4]) -> Mark5bHeader {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Mark5bHeader::read(&bytes).unwrap()
    }

    /// The four frames of a recording of 512 Mbit/s: MJD 56821, second 19801.
    const RECORDED: [[u32; 4]; 4] = [
        [SYNC, 0xBEAD_0000, 0x8211_9801, 0x0000_975D],
        [SYNC, 0xBEAD_0001, 0x8211_9801, 0x0001_1758],
        [SYNC, 0xBEAD_0002, 0x8211_9801, 0x0003_9757],
        [SYNC, 0xBEAD_0003, 0x8211_9801, 0x0004_1746],
    ];

    #[test]
    fn recorded_headers_follow_from_each_other() {
        let headers = RECORDED.map(header);
        assert!(headers.iter().all(Mark5bHeader::is_checked));
        for pair in headers.windows(2) {
            assert_eq!(pair[0].next(Some(6_400)), pair[1]);
        }
        assert_eq!(headers[0].place().second, 821 * 86_400 + 19_801);
        assert_eq!(
            headers.map(|header| header.frames_per_second()),
            [None, Some(6_400), Some(6_400), Some(6_400)]
        );
    }

    #[test]
    fn the_number_wraps_at_the_second_and_the_second_at_the_day() {
        let mut last = header([SYNC, 6_399, 0x9998_6399, 0]);
        last.words[3] = 0x9998 << 16;
        last.words[3] |= u32::from(crc(last.words));
        let next = last.next(Some(6_400));
        assert_eq!((next.place().second, next.place().number), (0, 0));
        assert!(next.is_checked());
        assert_eq!(next.words[3] >> 16, 0);
    }

    #[test]
    fn what_a_recorder_leaves_out_stays_out() {
        let bare = header([SYNC, 3, 0x8211_9801, 0]);
        assert_eq!(bare.next(Some(6_400)).words, [SYNC, 4, 0x8211_9801, 0]);
    }

    #[test]
    fn what_cannot_be_a_header_is_refused() {
        assert_eq!(Mark5bHeader::read(&[0; 16]), Err(HeadError::NoHeader));
        assert_eq!(Mark5bHeader::read(&[0; 15]), Err(HeadError::Short));
        let bytes: Vec<u8> =
            [SYNC, 0, 0xA000_0000, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(Mark5bHeader::read(&bytes), Err(HeadError::NoHeader));
    }
}
