//! Every operation of every instruction set against a computation lane by lane.

use super::*;
use crate::field::{div, mul};
use crate::gf::Kernel;
use proptest::prelude::*;

/// All products of `a` and `b`, the inverses of `a`, comparisons, and a transposed tile.
struct Everything<'a> {
    a: &'a [u8; 64],
    b: &'a [u8; 64],
    table: &'a Factors,
}

#[derive(Debug, PartialEq)]
struct Found {
    products: Vec<u8>,
    inverses: Vec<u8>,
    images: Vec<u8>,
    equal: Vec<u8>,
    at_most: Vec<u8>,
    minus: Vec<u8>,
    selected: Vec<u8>,
    zeros: u64,
    logic: [Vec<u8>; 2],
    numbers: [Vec<u8>; 2],
    halves: [Vec<u8>; 2],
    shuffled: Vec<u8>,
    same: u64,
    most: [Vec<u8>; 2],
    signed: [Vec<u8>; 5],
    signs: u64,
    chosen: [Vec<u8>; 2],
}

impl Task for Everything<'_> {
    type Output = Found;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Found {
        let (a, b) = (simd.load(self.a, 0), simd.load(self.b, 0));
        let bytes = |register| {
            let mut bytes = vec![0; S::LANES];
            simd.store(register, &mut bytes, 0);
            bytes
        };
        let mut images = [simd.splat(0)];
        for (input, factor) in [a, b].into_iter().zip(S::factors(self.table)) {
            accumulate(simd, &mut images, input, core::slice::from_ref(factor));
        }
        Found {
            products: bytes(simd.mul(a, b)),
            inverses: bytes(simd.inverse(a)),
            images: bytes(images[0]),
            equal: bytes(simd.equal(a, b)),
            at_most: bytes(simd.at_most(a, b)),
            minus: bytes(simd.minus(a, b)),
            selected: bytes(simd.select(simd.equal(a, b), simd.splat(1), b)),
            zeros: simd.zeros(simd.xor(a, b)),
            logic: [bytes(simd.and(a, b)), bytes(simd.or(a, b))],
            numbers: [bytes(simd.plus(a, b)), bytes(simd.least(a, b))],
            halves: [bytes(simd.halves(a).0), bytes(simd.halves(a).1)],
            shuffled: bytes(simd.shuffle(b, simd.halves(a).0)),
            same: simd.same(a, b),
            most: [bytes(simd.most(a, b)), bytes(simd.mean(a, b))],
            signed: [
                bytes(simd.plus_signed(a, b)),
                bytes(simd.minus_signed(a, b)),
                bytes(simd.size(a)),
                bytes(simd.opposite(a, b)),
                bytes(simd.append(a, b)),
            ],
            signs: simd.signs(a),
            chosen: [
                bytes(simd.select_equal([a, b], simd.splat(1), b)),
                bytes(simd.select_at_most([a, b], simd.splat(1), b)),
            ],
        }
    }
}

fn expected(a: &[u8], b: &[u8], form: Form) -> Found {
    let conventional = |symbol: &u8| form.conventional(*symbol);
    let pairs =
        |f: &dyn Fn(u8, u8) -> u8| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect::<Vec<u8>>();
    let mask = |set: bool| if set { 0xFF } else { 0 };
    let same = a
        .iter()
        .zip(b)
        .enumerate()
        .fold(0, |mask, (lane, (a, b))| mask | u64::from(a == b) << lane);
    Found {
        products: pairs(&|a, b| form.working(mul(conventional(&a), conventional(&b)))),
        inverses: pairs(&|a, _| if a == 0 { 0 } else { form.working(div(1, conventional(&a))) }),
        images: pairs(&|a, b| mul(a, 0x53) ^ crate::field::TO_DUAL[usize::from(b)]),
        equal: pairs(&|a, b| mask(a == b)),
        at_most: pairs(&|a, b| mask(a <= b)),
        minus: pairs(&u8::wrapping_sub),
        selected: pairs(&|a, b| if a == b { 1 } else { b }),
        zeros: same,
        logic: [pairs(&|a, b| a & b), pairs(&|a, b| a | b)],
        numbers: [pairs(&u8::wrapping_add), pairs(&u8::min)],
        halves: [pairs(&|a, _| a & 15), pairs(&|a, _| a >> 4)],
        shuffled: (0..a.len()).map(|lane| b[lane / 16 * 16 + usize::from(a[lane] & 15)]).collect(),
        same,
        most: [pairs(&u8::max), pairs(&|a, b| (u16::from(a) + u16::from(b)).div_ceil(2) as u8)],
        signed: [
            pairs(&|a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned()),
            pairs(&|a, b| a.cast_signed().saturating_sub(b.cast_signed()).cast_unsigned()),
            pairs(&|a, _| a.cast_signed().unsigned_abs()),
            pairs(&|a, b| if b >= 128 { a.wrapping_neg() } else { a }),
            pairs(&|a, b| a << 1 | b >> 7),
        ],
        signs: a.iter().enumerate().fold(0, |mask, (lane, a)| mask | u64::from(a >> 7) << lane),
        chosen: [
            pairs(&|a, b| if a == b { 1 } else { b }),
            pairs(&|a, b| if a <= b { 1 } else { b }),
        ],
    }
}

fn kernels() -> impl Iterator<Item = (Kernel, Form)> {
    Kernel::available().filter_map(|kernel| kernel.form().map(|form| (kernel, form)))
}

proptest! {
    #[test]
    fn operations_are_those_of_the_field_in_every_lane(mut a: [u8; 64], b: [u8; 64],
        same in 0usize..64) {
        a[same..].copy_from_slice(&b[same..]);
        a[63 - same] = 0;
        for (kernel, form) in kernels() {
            let maps = [Map::new(|x| mul(x, 0x53)),
                Map::new(|x| crate::field::TO_DUAL[usize::from(x)])];
            let table = Factors::new(form, maps.into_iter());
            let found = kernel.run(Everything { a: &a, b: &b, table: &table }).expect("it has \
                                                                                      vectors");
            let lanes = kernel.lanes();
            prop_assert_eq!(found, expected(&a[..lanes], &b[..lanes], form), "{}", kernel.name());
        }
    }
}

struct Transpose<'a>(&'a [u8]);

impl Task for Transpose<'_> {
    type Output = Vec<u8>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vec<u8> {
        let piece = |row: usize| self.0[row * PIECE..].first_chunk().expect("a row of the tile");
        let tile = transpose(
            simd,
            core::array::from_fn(|row| simd.gather(|part| piece(row + PIECE * part))),
        );
        let mut out = vec![0; PIECE * S::LANES];
        for (column, register) in tile.into_iter().enumerate() {
            simd.store(register, &mut out, column * S::LANES);
        }
        out
    }
}

#[test]
fn a_transposed_tile_has_a_row_in_each_lane() {
    let rows: Vec<u8> = (0..64 * PIECE).map(|index| (index * 7 + index / 256) as u8).collect();
    for (kernel, _) in kernels() {
        let lanes = kernel.lanes();
        let columns = kernel.run(Transpose(&rows)).expect("it has vectors");
        for (index, symbol) in columns.iter().enumerate() {
            assert_eq!(*symbol, rows[index % lanes * PIECE + index / lanes], "{}", kernel.name());
        }
    }
}

#[test]
fn the_isomorphism_keeps_sums_and_products() {
    let form = Form::Matrices;
    for a in 0..=255 {
        assert_eq!(form.conventional(form.working(a)), a);
        for b in 0..=255 {
            assert_eq!(form.working(a ^ b), form.working(a) ^ form.working(b));
            assert_eq!(form.working(mul(a, b)), mul_aes(form.working(a), form.working(b)));
        }
    }
}
