//! The low-density parity-check codes of CCSDS 131.0-B-5 chapter 7: the code of rate 7/8 (C2) and
//! the AR4JA family.
//!
//! Encoders are systematic: a codeword is the transfer frame, then check symbols. Decoders take
//! many codewords at once, one in each lane of a register, and say of each whether every check of
//! the code holds. Where one does not, the frame is left as received: there is no guess.
//!
//! A symbol is an `i8` as for [`crate::convolutional`]: its sign is the bit, positive for one, its
//! size how sure it is, on any scale; zero is a symbol of which nothing is known.
//! Pseudo-randomisation is undone before ([`crate::Randomiser`]), by turning the signs where the
//! sequence has a one.
//!
//! ```
//! use skyhaul_coding::ldpc::{Code, LdpcDecoder, LdpcEncoder};
//! let frame: Vec<u8> = (0..892).map(|byte| byte as u8).collect();
//! let mut codeword = vec![0; Code::C2.codeword_len()];
//! LdpcEncoder::new(Code::C2).encode(&frame, &mut codeword);
//! for place in [3, 700, 1000] {
//!     codeword[place] ^= 0x24;
//! }
//! let mut received = Vec::new();
//! let decoded = LdpcDecoder::new(Code::C2).decode_hard(&codeword, &mut received);
//! assert!(decoded[0].is_good());
//! assert_eq!(decoded[0].corrected_symbols(), 6);
//! assert_eq!(received, frame);
//! ```

mod bits;
mod decoder;
mod encoder;
mod expurgation;
mod inverse;
mod lanes;
mod levels;
mod matrix;
mod ring;
mod sweep;
mod tables;

pub use decoder::{Decoded, LdpcDecoder, MAX_ITERATIONS};
pub use encoder::LdpcEncoder;

/// A code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// (8160,7136), of rate 7/8 by name and 223/255 in truth. CCSDS 131.0-B-5 7.3.
    C2,
    /// One of the family for deep space. CCSDS 131.0-B-5 7.4.
    Ar4ja {
        /// Information bits of a codeword.
        information: Information,
        /// How many of a codeword's bits these are.
        rate: Rate,
    },
}

/// Information bits of an AR4JA codeword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Information {
    /// 1024: frames of 128 bytes.
    K1024,
    /// 4096: frames of 512 bytes.
    K4096,
    /// 16384: frames of 2048 bytes.
    K16384,
}

/// Information bits of an AR4JA codeword among those sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 1/2.
    Half,
    /// 2/3.
    TwoThirds,
    /// 4/5.
    FourFifths,
}

impl Information {
    const fn bits(self) -> usize {
        match self {
            Self::K1024 => 1024,
            Self::K4096 => 4096,
            Self::K16384 => 16384,
        }
    }
}

impl Rate {
    /// Information bits, in blocks of M. The codeword has two blocks more that are sent and one
    /// that is not.
    const fn blocks(self) -> usize {
        match self {
            Self::Half => 2,
            Self::TwoThirds => 4,
            Self::FourFifths => 8,
        }
    }
}

impl Code {
    /// All codes: C2, then the AR4JA codes from the shortest and of highest rate on.
    pub const ALL: [Self; 10] = {
        const SIZES: [Information; 3] =
            [Information::K1024, Information::K4096, Information::K16384];
        const RATES: [Rate; 3] = [Rate::FourFifths, Rate::TwoThirds, Rate::Half];
        let mut all = [Self::C2; 10];
        let mut index = 1;
        while index < all.len() {
            let (size, rate) = ((index - 1) / RATES.len(), (index - 1) % RATES.len());
            all[index] = Self::Ar4ja { information: SIZES[size], rate: RATES[rate] };
            index += 1;
        }
        all
    };

    /// Bytes of a transfer frame.
    pub const fn frame_len(self) -> usize {
        self.information_bits() / 8
    }

    /// Bytes of a codeword as it is sent.
    pub const fn codeword_len(self) -> usize {
        self.codeword_bits() / 8
    }

    /// Bits of a transfer frame.
    pub const fn information_bits(self) -> usize {
        match self {
            Self::C2 => 7136,
            Self::Ar4ja { information, .. } => information.bits(),
        }
    }

    /// Bits of a codeword as it is sent.
    pub const fn codeword_bits(self) -> usize {
        match self {
            Self::C2 => 8160,
            Self::Ar4ja { information, rate } => {
                information.bits() / rate.blocks() * (rate.blocks() + 2)
            }
        }
    }

    /// Its name, for reports.
    pub const fn name(self) -> &'static str {
        use Information::{K1024, K4096, K16384};
        use Rate::{FourFifths, Half, TwoThirds};
        match self {
            Self::C2 => "c2 7/8",
            Self::Ar4ja { information: K1024, rate: Half } => "ar4ja 1024 1/2",
            Self::Ar4ja { information: K1024, rate: TwoThirds } => "ar4ja 1024 2/3",
            Self::Ar4ja { information: K1024, rate: FourFifths } => "ar4ja 1024 4/5",
            Self::Ar4ja { information: K4096, rate: Half } => "ar4ja 4096 1/2",
            Self::Ar4ja { information: K4096, rate: TwoThirds } => "ar4ja 4096 2/3",
            Self::Ar4ja { information: K4096, rate: FourFifths } => "ar4ja 4096 4/5",
            Self::Ar4ja { information: K16384, rate: Half } => "ar4ja 16384 1/2",
            Self::Ar4ja { information: K16384, rate: TwoThirds } => "ar4ja 16384 2/3",
            Self::Ar4ja { information: K16384, rate: FourFifths } => "ar4ja 16384 4/5",
        }
    }
}

#[cfg(test)]
mod tests;
