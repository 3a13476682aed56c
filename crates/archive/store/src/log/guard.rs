//! The parity behind the payload of each block: a few flipped bits or a lost sector can be mended.
//!
//! | width | what |
//! |---|---|
//! | as long as a stripe, or as the payload where that is shorter | the stripes of the payload, one upon another (exclusive or) |
//! | 4 for each unit of the payload | CRC-32C of the unit |
//! | 44 | the record's header once more, with `RS` instead of `SR` |
//!
//! A unit has 64, 256 or 1,024 bytes, by the payload's length; a stripe is 8 units. In each column
//! of units one can be restored: any stretch of 7 units, and any other damage with at most one unit
//! in each column. For a full block of 256 KiB that is 7 KiB, for 3.5 % more on the disk. The
//! columns continue in their order after the payload's last unit, so that a stretch over both also
//! has at most one unit in each. Beyond that, one flipped bit in each unit is found by the unit's
//! checksum. None of this is read while the payload's own checksum holds.

use super::checksum::{HEADER_LEN, crc};
use skyhaul_units::ByteCount;

/// The first bytes of the header's copy.
pub(super) const COPY_MAGIC: [u8; 2] = *b"RS";

/// Units in a stripe.
const STRIPE: usize = 8;
const SUM_LEN: usize = 4;
/// Of CRC-32C (RFC 3720 12.1), the bits in the order in which it takes them.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// Bytes of a unit.
const fn unit(payload: usize) -> usize {
    match payload {
        0..=0x4000 => 64,
        0x4001..=0x1_0000 => 256,
        _ => 1_024,
    }
}

/// The layout of the data after a payload of this length.
pub(super) fn len(payload: ByteCount) -> ByteCount {
    let payload = payload.as_usize();
    let unit = unit(payload);
    ByteCount::of(payload.div_ceil(unit) * SUM_LEN + payload.min(unit * STRIPE) + HEADER_LEN)
}

/// Writes the data after `payload`, for the record with this header.
pub(super) fn write(payload: &[u8], header: &[u8; HEADER_LEN], out: &mut Vec<u8>) {
    let unit = unit(payload.len());
    let at = out.len();
    let mut stripes = payload.chunks(unit * STRIPE);
    out.extend_from_slice(stripes.next().unwrap_or_default());
    for stripe in stripes {
        add(&mut out[at..], stripe);
    }
    out[at..].rotate_left(first_column(payload.len()) * unit);
    for unit in payload.chunks(unit) {
        out.extend_from_slice(&crc(&[unit]).to_be_bytes());
    }
    out.extend_from_slice(&COPY_MAGIC);
    out.extend_from_slice(&header[COPY_MAGIC.len()..]);
}

/// Corrects units that do not have their checksum: by parity, then single flipped bits, then by the
/// parity that this makes usable. The payload's own checksum then shows whether it is right.
pub(super) fn mend(payload: &mut [u8], guard: &[u8]) {
    correct_by_parity(payload, guard);
    correct_bits(payload, guard);
    correct_by_parity(payload, guard);
}

/// Flips the bit back in each unit whose checksum differs as one flipped bit makes it differ.
fn correct_bits(payload: &mut [u8], guard: &[u8]) {
    let unit = unit(payload.len());
    let sums = guard.get(payload.len().min(unit * STRIPE)..).unwrap_or_default();
    for (bytes, sum) in payload.chunks_mut(unit).zip(sums.chunks_exact(SUM_LEN)) {
        let difference =
            crc(&[bytes]) ^ sum.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        if difference != 0
            && let Some(behind) = bits_behind(difference, bytes.len() * 8)
        {
            // CRC-32C takes a byte's bits from the least significant one on.
            bytes[bytes.len() - 1 - behind / 8] ^= 0x80 >> (behind % 8);
        }
    }
}

/// The number of bits after the one whose flip gives this difference of the CRC-32C, if it is one
/// of the last `bits`.
fn bits_behind(difference: u32, bits: usize) -> Option<usize> {
    let next = |effect: &u32| Some(effect >> 1 ^ if effect & 1 == 1 { POLYNOMIAL } else { 0 });
    core::iter::successors(Some(POLYNOMIAL), next)
        .take(bits)
        .position(|effect| effect == difference)
}

/// Restores units without their checksum, each from the others of its column.
fn correct_by_parity(payload: &mut [u8], guard: &[u8]) {
    let unit = unit(payload.len());
    let Some((parity, rest)) = guard.split_at_checked(payload.len().min(unit * STRIPE)) else {
        return;
    };
    let Some(sums) = rest.get(..payload.len().div_ceil(unit) * SUM_LEN) else { return };
    let mut parity = parity.to_vec();
    parity.rotate_right(first_column(payload.len()) * unit);
    for (place, sum) in sums.chunks_exact(SUM_LEN).enumerate() {
        let (from, to) = (place * unit, payload.len().min((place + 1) * unit));
        if crc(&[&payload[from..to]]).to_be_bytes() == *sum {
            continue;
        }
        let column = place % STRIPE * unit;
        let mut made = parity[column..column + (to - from)].to_vec();
        for (other, bytes) in payload.chunks(unit).enumerate().skip(place % STRIPE).step_by(STRIPE)
        {
            if other != place {
                add(&mut made, bytes);
            }
        }
        // Otherwise another unit of the column is damaged, or the parity.
        if crc(&[&made]).to_be_bytes() == *sum {
            payload[from..to].copy_from_slice(&made);
        }
    }
}

/// The first column after the payload. There are fewer than 8 if the payload is not longer than a
/// stripe.
const fn first_column(payload: usize) -> usize {
    let units = payload.div_ceil(unit(payload));
    if units > STRIPE { units % STRIPE } else { 0 }
}

fn add(sum: &mut [u8], bytes: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum ^= byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8 ^ (at >> 9) as u8).collect()
    }

    fn guard(payload: &[u8]) -> Vec<u8> {
        let mut guard = Vec::new();
        write(payload, &[7; HEADER_LEN], &mut guard);
        assert_eq!(ByteCount::of(guard.len()), len(ByteCount::of(payload.len())));
        guard
    }

    #[test]
    fn any_stretch_of_seven_units_is_made_again() {
        for len in [1, 63, 64, 65, 600, 5_000, 0x4000, 0x4001, 60_000, 262_144] {
            let good = payload(len);
            let guard = guard(&good);
            let longest = (7 * unit(len) + 1).min(len);
            for from in [0, 1, len / 3, len - longest] {
                let from = from.min(len - longest);
                let mut bad = good.clone();
                bad[from..from + longest].iter_mut().for_each(|byte| *byte ^= 0xff);
                mend(&mut bad, &guard);
                assert!(bad == good, "{longest} bytes from {from} of {len}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_in_every_unit_costs_nothing() {
        for len in [1, 63, 64, 65, 600, 5_000, 93_000, 262_144] {
            let good = payload(len);
            let guard = guard(&good);
            // Of long ones each eighth bit: they have many units.
            for bit in (0..64).step_by(if len > 5_000 { 8 } else { 1 }) {
                let mut bad = good.clone();
                for bytes in bad.chunks_mut(unit(len)) {
                    let at = (bit * 131) % (bytes.len() * 8);
                    bytes[at / 8] ^= 1 << (at % 8);
                }
                mend(&mut bad, &guard);
                assert!(bad == good, "bit {bit} of each unit of {len} bytes");
            }
        }
    }

    #[test]
    fn a_full_block_needs_less_than_four_percent_more() {
        assert!(len(ByteCount::kib(256)).as_u64() * 100 < 4 * ByteCount::kib(256).as_u64());
    }

    proptest! {
        #[test]
        fn a_flipped_bit_of_the_payload_and_one_of_its_guard_cost_nothing(
            len in 1usize..70_000, bit in any::<prop::sample::Index>(),
                other in any::<prop::sample::Index>(),
        ) {
            let good = payload(len);
            let guard = guard(&good);
            let (mut bad, mut bad_guard) = (good.clone(), guard.clone());
            let sums = good.len().div_ceil(unit(len)) * SUM_LEN;
            let (bit, other) = (bit.index(len * 8), other.index(sums * 8));
            bad[bit / 8] ^= 1 << (bit % 8);
            bad_guard[len.min(unit(len) * STRIPE) + other / 8] ^= 1 << (other % 8);
            mend(&mut bad, &bad_guard);
            // The checksum of the unit itself shows that it was restored.
            prop_assert!(bad == good || bit / 8 / unit(len) == other / 8 / SUM_LEN);
        }

        #[test]
        fn any_guard_is_taken(
            mut payload in prop::collection::vec(any::<u8>(), 0..900),
            guard in prop::collection::vec(any::<u8>(), 0..900),
        ) {
            mend(&mut payload, &guard);
        }
    }
}
