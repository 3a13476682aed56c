//! An amount of data.

use crate::parse::{Form, text_form, write_scaled};
use core::ops::{Add, AddAssign, Sub};

/// An amount of data in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(u64);

impl ByteCount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From a count of bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// The length of a slice in memory.
    pub const fn of(len: usize) -> Self {
        Self(len as u64)
    }
    /// From mebibytes (2^20 bytes).
    pub const fn mib(mebibytes: u64) -> Self {
        Self(mebibytes << 20)
    }
    /// From kibibytes (2^10 bytes).
    pub const fn kib(kibibytes: u64) -> Self {
        Self(kibibytes << 10)
    }
    /// The count of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
    /// The count of bytes, as an index into memory.
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }
    /// The difference, or zero where `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for ByteCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}
impl core::iter::Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl core::fmt::Display for ByteCount {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Sizes that were written in binary units are shown in them.
        let binary = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let whole =
            binary.iter().find(|(factor, _)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        match whole {
            Some((factor, unit)) if !self.0.is_multiple_of(1_000) => {
                write!(f, "{} {unit}", self.0 / factor)
            }
            _ => write_scaled(
                f,
                self.0,
                &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")],
            ),
        }
    }
}

const FORM: Form = Form {
    quantity: "size",
    example: "\"64 MiB\" (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)",
    units: &[
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ],
};
text_form!(ByteCount, FORM, ByteCount);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_units_they_are_whole_in() {
        for (bytes, text) in [
            (0, "0 B"),
            (64 << 20, "64 MiB"),
            (4096, "4 KiB"),
            (64_000_000_000, "64 GB"),
            (22_724, "22.724 kB"),
        ] {
            assert_eq!(ByteCount::new(bytes).to_string(), text);
        }
    }
}
