//! Time codes in packets (CCSDS 301.0-B-4) to calendar time.
//!
//! CDS codes count UTC days; CUC codes count TAI seconds, so a leap-second count is needed, which
//! EOS packets carry with the code and others do not.

use skyhaul_units::{Duration, Utc};

/// How a packet says its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeCode {
    /// CDS without P-field, 8 bytes: day u16, millisecond of the day u32, microsecond u16
    /// (301.0-B-4 3.3).
    Cds8,
    /// CDS without P-field, 6 bytes: day u16, millisecond of the day u32.
    Cds6,
    /// As [`Self::Cds6`], days since 2000-01-01: MetOp.
    Cds6Since2000,
    /// EOS CUC: two P-field bytes, the second with the leap-second count in its low 7 bits, then
    /// seconds u32 and a fraction u16 since 1958 TAI.
    EosCuc,
}

impl TimeCode {
    /// Bytes that the code takes.
    pub const fn len(self) -> usize {
        match self {
            Self::Cds8 | Self::EosCuc => 8,
            Self::Cds6 | Self::Cds6Since2000 => 6,
        }
    }
    /// Never: every code takes bytes.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// Reads the code at the start of `bytes`; `None` if they are too few or not a valid time.
    pub fn parse(self, bytes: &[u8]) -> Option<Utc> {
        match self {
            Self::Cds8 => {
                let [d0, d1, m0, m1, m2, m3, u0, u1] = *bytes.first_chunk::<8>()?;
                let micros = u16::from_be_bytes([u0, u1]);
                cds(u16::from_be_bytes([d0, d1]), u32::from_be_bytes([m0, m1, m2, m3]), micros)
            }
            Self::Cds6 | Self::Cds6Since2000 => {
                let [d0, d1, m0, m1, m2, m3] = *bytes.first_chunk::<6>()?;
                let day = i64::from(u16::from_be_bytes([d0, d1])) - self.days_to_1970();
                utc_of(day, u32::from_be_bytes([m0, m1, m2, m3]), 0)
            }
            Self::EosCuc => {
                let (p_field, code) = bytes.get(..8)?.split_first()?;
                // 301.0-B-4 3.2.2: extended, 4 coarse and 2 fine octets.
                if p_field & 0x8F != 0x8E {
                    return None;
                }
                let leap = u64::from(code[0] & 0x7F);
                let utc = cuc(&code[1..5], &code[5..7])?;
                Some(utc - Duration::from_secs(leap))
            }
        }
    }

    /// Writes `time` over the code at the start of `bytes`, keeping an EOS code's P-field and leap
    /// count. Returns whether the bytes were enough and the time within the code's range; if not,
    /// nothing is written.
    pub fn write(self, time: Utc, bytes: &mut [u8]) -> bool {
        match self {
            Self::Cds8 | Self::Cds6 | Self::Cds6Since2000 => write_cds(self, time, bytes),
            Self::EosCuc => write_eos_cuc(time, bytes),
        }
    }

    /// Days from the code's epoch to 1970-01-01.
    const fn days_to_1970(self) -> i64 {
        match self {
            Self::Cds8 | Self::Cds6 | Self::EosCuc => DAYS_1958_TO_1970,
            Self::Cds6Since2000 => -DAYS_1970_TO_2000,
        }
    }
}

fn write_cds(code: TimeCode, time: Utc, bytes: &mut [u8]) -> bool {
    let len = code.len();
    let (Some(code), Ok(day)) =
        (bytes.get_mut(..len), u16::try_from(time.day() + code.days_to_1970()))
    else {
        return false;
    };
    let micros = time.in_day().as_micros();
    code[..2].copy_from_slice(&day.to_be_bytes());
    code[2..6].copy_from_slice(&((micros / 1_000) as u32).to_be_bytes());
    if len == 8 {
        code[6..].copy_from_slice(&((micros % 1_000) as u16).to_be_bytes());
    }
    true
}

fn write_eos_cuc(time: Utc, bytes: &mut [u8]) -> bool {
    let Some(code) = bytes.get_mut(..8) else { return false };
    let leap = i64::from(code[1] & 0x7F);
    let nanos = time.as_nanos().rem_euclid(NANOS);
    // Rounded to the nearest 2^-16 s.
    let fraction = (nanos * 65_536 + NANOS / 2) / NANOS;
    let seconds =
        time.as_nanos().div_euclid(NANOS) + DAYS_1958_TO_1970 * 86_400 + leap + (fraction >> 16);
    let Ok(seconds) = u32::try_from(seconds) else { return false };
    code[2..6].copy_from_slice(&seconds.to_be_bytes());
    code[6..8].copy_from_slice(&(fraction as u16).to_be_bytes());
    true
}

/// Days since 1958-01-01, millisecond of the day and microsecond of the millisecond, as UTC. `None`
/// if the millisecond is beyond the end of a day with a leap second, or the microsecond beyond a
/// millisecond.
pub fn cds(day: u16, millis: u32, micros: u16) -> Option<Utc> {
    utc_of(i64::from(day) - DAYS_1958_TO_1970, millis, micros)
}

fn utc_of(day: i64, millis: u32, micros: u16) -> Option<Utc> {
    if millis >= 86_401_000 || micros >= 1_000 {
        return None;
    }
    let in_day = Duration::from_micros(u64::from(millis) * 1_000 + u64::from(micros));
    Some(Utc::from_day(day, in_day))
}

/// Seconds since 1958-01-01 TAI of 1 to 4 bytes and a binary fraction of 0 to 3 bytes (301.0-B-4
/// 3.2), on the TAI scale. `None` for other widths.
pub fn cuc(coarse: &[u8], fine: &[u8]) -> Option<Utc> {
    if !(1..=4).contains(&coarse.len()) || fine.len() > 3 {
        return None;
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0i64, |n, byte| n << 8 | i64::from(*byte));
    let scale = 1i64 << (8 * fine.len());
    let nanos = (number(fine) * NANOS + scale / 2) / scale;
    let seconds = number(coarse) - DAYS_1958_TO_1970 * 86_400;
    Some(Utc::from_nanos(seconds * NANOS + nanos))
}

/// A CUC code that begins with its P-field, epoch 1958: the time on the TAI scale and the bytes
/// taken. `None` for another epoch, another code, an extended P-field, or too few bytes.
pub fn cuc_with_p_field(bytes: &[u8]) -> Option<(Utc, usize)> {
    let p_field = *bytes.first()?;
    // 301.0-B-4 3.2.2: extension flag, code 001, coarse octets - 1, fine octets.
    if p_field >> 4 != 1 {
        return None;
    }
    let coarse = usize::from(p_field >> 2 & 3) + 1;
    let fine = usize::from(p_field & 3);
    let code = bytes.get(1..1 + coarse + fine)?;
    Some((cuc(&code[..coarse], &code[coarse..])?, 1 + coarse + fine))
}

const NANOS: i64 = 1_000_000_000;
const DAYS_1958_TO_1970: i64 = 4_383;
const DAYS_1970_TO_2000: i64 = 10_957;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cds_known_answer() {
        let code = [0x5F, 0x5B, 0x00, 0x00, 0x06, 0x94, 0x02, 0x07];
        assert_eq!(TimeCode::Cds8.parse(&code).unwrap().to_string(), "2024-11-01T00:00:01.684519Z");
        assert_eq!(TimeCode::Cds6.parse(&code).unwrap().to_string(), "2024-11-01T00:00:01.684000Z");
        assert_eq!(TimeCode::Cds8.parse(&code[..7]), None);
        let metop = [0x23, 0x92, 0x03, 0x54, 0x5B, 0xFA];
        let time = TimeCode::Cds6Since2000.parse(&metop).unwrap();
        assert_eq!(time.to_string(), "2024-12-06T15:31:00.218000Z");
        let mut written = [0u8; 6];
        assert!(TimeCode::Cds6Since2000.write(time, &mut written));
        assert_eq!(written, metop);
    }

    #[test]
    fn cuc_known_answer_with_and_without_p_field() {
        let code = [0x1E, 0x7D, 0xB5, 0xBF, 0x2F, 0x80, 0x1F];
        let (time, len) = cuc_with_p_field(&code).unwrap();
        assert_eq!(time.to_string(), "2024-10-31T10:49:19.500473Z");
        assert_eq!(len, 7);
        assert_eq!(cuc(&code[1..5], &code[5..7]), Some(time));
        let mut eos = vec![0x9E, 37];
        eos.extend(&code[1..]);
        let utc = TimeCode::EosCuc.parse(&eos).unwrap();
        assert_eq!(utc.to_string(), "2024-10-31T10:48:42.500473Z", "37 leap seconds earlier");
    }

    #[test]
    fn impossible_times_are_refused() {
        assert_eq!(cds(0, 86_401_000, 0), None);
        assert_eq!(cds(0, 0, 1_000), None);
        assert_eq!(cuc(&[], &[1]), None);
        assert_eq!(cuc_with_p_field(&[0x2E, 0, 0, 0, 0, 0, 0]), None, "agency epoch");
    }

    proptest! {
        #[test]
        fn written_times_read_back(micros in 0i64..2_000_000_000_000_000) {
            let time = Utc::from_micros(micros);
            let mut cds = [0u8; 8];
            prop_assert!(TimeCode::Cds8.write(time, &mut cds));
            prop_assert_eq!(TimeCode::Cds8.parse(&cds), Some(time));
            let mut eos = [0x9E, 37, 0, 0, 0, 0, 0, 0];
            prop_assert!(TimeCode::EosCuc.write(time, &mut eos));
            let read = TimeCode::EosCuc.parse(&eos).unwrap();
            prop_assert!((read.as_nanos() - time.as_nanos()).abs() <= 7_630, "within half of 2^-16 \
                                                                             s");
        }

        #[test]
        fn any_bytes_are_a_time_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            for code in [TimeCode::Cds8, TimeCode::Cds6, TimeCode::Cds6Since2000,
                TimeCode::EosCuc] {
                let _ = code.parse(&bytes);
            }
            let _ = cuc_with_p_field(&bytes);
        }
    }
}
