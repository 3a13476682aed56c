//! Identifiers with the width that the standards give them.

use core::fmt;

/// Declares an identifier of at most `$bits` bits.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $bits:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            /// The greatest value that fits the field.
            pub const MAX: Self = Self(<$inner>::MAX >> (<$inner>::BITS - $bits));

            /// From a number; `None` if it is too large for the field.
            pub const fn new(value: $inner) -> Option<Self> {
                if value > Self::MAX.0 { None } else { Some(Self(value)) }
            }
            /// From the lowest bits of `value`: for reading a field out of a header.
            pub const fn from_bits(value: $inner) -> Self {
                Self(value & Self::MAX.0)
            }
            /// The number.
            pub const fn value(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
    };
}

id!(
    /// A spacecraft: 16 bits in USLP frames (CCSDS 732.1-B-3 4.1.2.2), 10 in others (132.0-B-3
    /// 4.1.2.2; 732.0-B-5 4.1.2.2.2, earlier issues have 8 for AOS).
    Scid(u16), 16
);
id!(
    /// A virtual channel of a spacecraft: 3 bits in TM, 6 in AOS and USLP frames.
    Vcid(u8), 6
);
id!(
    /// A multiplexer access point of a USLP virtual channel: 4 bits (CCSDS 732.1-B-3 4.1.2.5).
    MapId(u8), 4
);
id!(
    /// An application process of a spacecraft: 11 bits (CCSDS 133.0-B-2 4.1.3.3.4).
    Apid(u16), 11
);

impl Apid {
    /// The application process id of idle packets.
    pub const IDLE: Self = Self::MAX;
}

/// A virtual channel together with its spacecraft: what all state kept per channel is keyed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    /// The spacecraft.
    pub scid: Scid,
    /// The virtual channel.
    pub vcid: Vcid,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spacecraft {} channel {}", self.scid, self.vcid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_wider_than_its_field_is_refused() {
        assert_eq!(MapId::new(16), None);
        assert_eq!(Scid::new(0xFFFF), Some(Scid::MAX));
        assert_eq!(Vcid::new(64), None);
        assert_eq!(Apid::new(2048), None);
        assert_eq!(Apid::new(2047), Some(Apid::IDLE));
        assert_eq!(Apid::from_bits(0xFFFF), Apid::IDLE);
    }
}
