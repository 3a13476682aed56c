//! The code against its definition, the decoder against a plain one and against published error
//! rates.

use super::*;
use crate::gf::Kernel;
use crate::noise::Noise;
use proptest::prelude::*;

fn encode(code: Code, data: &[u8]) -> Vec<bool> {
    let mut symbols = Vec::new();
    ConvolutionalEncoder::new(code).encode(data, |bit| symbols.push(bit));
    symbols
}

/// What a receiver has of the symbols at this ratio of energy in an information bit to noise
/// density, in decibel.
fn receive(symbols: &[bool], bits: usize, decibel: f64, noise: &mut Noise) -> Vec<f64> {
    let rate = bits as f64 / symbols.len() as f64;
    let deviation = (2.0 * rate * 10f64.powf(decibel / 10.0)).powf(-0.5);
    symbols.iter().map(|bit| if *bit { 1.0 } else { -1.0 } + deviation * noise.normal()).collect()
}

fn soft(received: &[f64], amplitude: f64) -> Vec<i8> {
    received.iter().map(|value| (value * amplitude).round().clamp(-127.0, 127.0) as i8).collect()
}

fn decode(mut decoder: ViterbiDecoder, symbols: &[i8]) -> Vec<u8> {
    let mut out = Vec::new();
    decoder.push(symbols, &mut out);
    decoder.finish(&mut out);
    out
}

fn wrong_bits(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn an_impulse_shows_the_connection_vectors() {
    let plain = Code { rate: Rate::Half, second: SecondOutput::Plain };
    let symbols = encode(plain, &[0x80]);
    let output = |which: usize| {
        symbols.iter().skip(which).step_by(2).take(7).copied().collect::<Vec<bool>>()
    };
    let vector = |bits: &str| bits.chars().map(|bit| bit == '1').collect::<Vec<bool>>();
    // CCSDS 131.0-B-2 3.3.1
    assert_eq!(output(0), vector("1111001"));
    assert_eq!(output(1), vector("1011011"));
    let inverted = encode(Code::new(Rate::Half), &[0x80]);
    assert!(inverted.chunks(2).zip(symbols.chunks(2)).all(|(a, b)| a[0] == b[0] && a[1] != b[1]));
}

#[test]
fn rates_send_the_symbols_of_their_patterns() {
    // CCSDS 131.0-B-2 table 3-1: for each rate the first and the second output, by bit.
    let patterns =
        [("1", "1"), ("10", "11"), ("101", "110"), ("10101", "11010"), ("1000101", "1111010")];
    let data = Noise(3).bytes(105);
    for (rate, (first, second)) in Rate::ALL.into_iter().zip(patterns) {
        let code = Code { rate, second: SecondOutput::Plain };
        let all = encode(Code { rate: Rate::Half, ..code }, &data);
        let sent = |index: usize| {
            let pattern = if index.is_multiple_of(2) { first } else { second };
            pattern.as_bytes()[index / 2 % pattern.len()] == b'1'
        };
        let expected: Vec<bool> =
            all.iter().enumerate().filter(|(index, _)| sent(*index)).map(|(_, bit)| *bit).collect();
        assert_eq!(encode(code, &data), expected, "{rate:?}");
        assert_eq!(expected.len() * rate.sent().len(), 8 * data.len() * rate.period());
    }
}

/// A decoder without windows and without levels, that sees the whole stream: what can be had.
fn plain(code: Code, received: &[f64]) -> Vec<u8> {
    let mut metrics = [0.0; STATES];
    let mut decisions = Vec::new();
    for pair in received.chunks_exact(2) {
        let cost = |state: usize, bit: usize| -> f64 {
            let outputs = code.outputs((state << 1 | bit) as u8);
            outputs
                .iter()
                .zip(pair)
                .map(|(output, value)| if *output { -value } else { *value })
                .sum()
        };
        let mut upper = 0u64;
        metrics = core::array::from_fn(|state| {
            let ways = [state >> 1, (state >> 1) + STATES / 2]
                .map(|from| metrics[from] + cost(from, state & 1));
            upper |= u64::from(ways[1] < ways[0]) << state;
            ways[0].min(ways[1])
        });
        decisions.push(upper);
    }
    let mut state = (0..STATES).min_by(|a, b| metrics[*a].total_cmp(&metrics[*b])).unwrap();
    let mut out = vec![0; decisions.len() / 8];
    for (step, upper) in decisions.iter().enumerate().rev() {
        out[step / 8] |= ((state & 1) as u8) << (7 - step % 8);
        state = state >> 1 | ((upper >> state & 1) as usize) << 5;
    }
    out
}

#[test]
fn levels_and_windows_cost_less_than_a_quarter_decibel() {
    let code = Code::new(Rate::Half);
    let data = Noise(11).bytes(60_000);
    let symbols = encode(code, &data);
    let at = |decibel| receive(&symbols, 8 * data.len(), decibel, &mut Noise(12));
    let best = wrong_bits(&plain(code, &at(3.0)), &data);
    let ours = wrong_bits(&decode(ViterbiDecoder::new(code), &soft(&at(3.0), 60.0)), &data);
    let worse = wrong_bits(&plain(code, &at(2.75)), &data);
    assert!(best <= ours && ours < worse, "{best} at 3 dB, {ours} of ours, {worse} at 2.75 dB");
}

/// The bound on the rate of wrong bits by the weights of the code's error events, close from 3.5 dB
/// on: J. Conan, "The weight spectra of some short low-rate convolutional codes", IEEE Trans.
/// Commun. 32 (1984).
fn published(decibel: f64) -> f64 {
    let weights = [36.0, 211.0, 1_404.0, 11_633.0, 77_433.0, 502_690.0];
    let ratio = 10f64.powf(decibel / 10.0);
    // The tail of the normal distribution beyond x, by the trapezoidal rule.
    let tail = |x: f64| {
        let density = |y: f64| (-y * y / 2.0).exp() / core::f64::consts::TAU.sqrt();
        (0..4_000).map(|i| density(x + (f64::from(i) + 0.5) / 1_000.0) / 1_000.0).sum::<f64>()
    };
    (0..)
        .zip(weights)
        .map(|(i, weight)| weight * tail(f64::sqrt((10.0 + 2.0 * f64::from(i)) * ratio)))
        .sum()
}

#[test]
fn error_rates_are_those_published() {
    let code = Code::new(Rate::Half);
    let data = Noise(21).bytes(250_000);
    let symbols = encode(code, &data);
    for decibel in [3.5, 4.0] {
        let received = receive(&symbols, 8 * data.len(), decibel, &mut Noise(22));
        let wrong = wrong_bits(&decode(ViterbiDecoder::new(code), &soft(&received, 60.0)), &data);
        let rate = f64::from(wrong) / 2e6;
        let bounds = published(decibel + 0.25)..published(decibel - 0.25);
        assert!(
            bounds.contains(&rate),
            "{rate:e} at {decibel} dB, published {:e}",
            published(decibel)
        );
    }
}

#[test]
fn every_rate_corrects_what_it_should_at_any_amplitude_and_hard() {
    for (rate, decibel) in Rate::ALL.into_iter().zip([5.5, 6.0, 6.5, 7.0, 7.5]) {
        let code = Code::new(rate);
        let data = Noise(31).bytes(10_500);
        let symbols = encode(code, &data);
        for amplitude in [8.0, 60.0, 100.0] {
            let received = receive(&symbols, 8 * data.len(), decibel, &mut Noise(32));
            let out = decode(ViterbiDecoder::new(code), &soft(&received, amplitude));
            assert!(wrong_bits(&out, &data) <= 8, "{rate:?} at amplitude {amplitude}");
        }
        let mut hard = vec![0u8; symbols.len() / 8];
        for (index, bit) in symbols.iter().enumerate() {
            hard[index / 8] |= u8::from(*bit) << (7 - index % 8);
        }
        hard.iter_mut().step_by(25).for_each(|byte| *byte ^= 0x10);
        let (mut decoder, mut out) = (ViterbiDecoder::new(code), Vec::new());
        decoder.push_hard(&hard, &mut out);
        assert!(8 * out.len() + ViterbiDecoder::MAX_DELAY >= 8 * data.len());
        decoder.finish(&mut out);
        assert!(wrong_bits(&out, &data) <= 8, "{rate:?} hard");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn kernels_and_pieces_make_no_difference(
        seed in 1u64..,
        len in 0usize..30_000,
        cut in 1usize..9_000,
        rate in prop::sample::select(&Rate::ALL[..]),
        is_noise: bool,
    ) {
        let code = Code::new(rate);
        let mut noise = Noise(seed);
        let symbols: Vec<i8> = if is_noise {
            noise.bytes(len).into_iter().map(u8::cast_signed).collect()
        } else {
            let data = noise.bytes(len / 16);
            soft(&receive(&encode(code, &data), 8 * data.len(), 3.0, &mut noise), 40.0)
        };
        let mut expected = None;
        for kernel in Kernel::available() {
            let (mut decoder, mut out) = (ViterbiDecoder::with_kernel(code, kernel), Vec::new());
            symbols.chunks(cut).for_each(|piece| decoder.push(piece, &mut out));
            decoder.finish(&mut out);
            let found = (out, decoder.growth());
            prop_assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{}",
                kernel.name());
        }
        let whole = decode(ViterbiDecoder::new(code), &symbols);
        prop_assert_eq!(expected.map(|(out, _)| out), Some(whole));
    }
}

/// Whether `found` is a piece of `sent`, or of its inverse, but for a few bytes at its start.
fn is_piece(found: &[u8], sent: &[u8]) -> bool {
    let piece = &found[found.len() / 2..][..64];
    let inverse: Vec<u8> = piece.iter().map(|byte| !byte).collect();
    (0..8).any(|shift| {
        let mut moved = vec![0; sent.len() - 1];
        crate::align::copy(sent, shift, crate::align::Polarity::Upright, &mut moved);
        moved.windows(64).any(|window| window == piece || window == inverse)
    })
}

#[test]
fn symbols_taken_wrongly_are_noticed_and_put_right() {
    for (rate, decibel) in Rate::ALL.into_iter().zip([4.0, 4.5, 5.0, 6.0, 6.5]) {
        let code = Code::new(rate);
        let data = Noise(41).bytes(4_000);
        let symbols = encode(code, &data);
        let received = soft(&receive(&symbols, 8 * data.len(), decibel, &mut Noise(42)), 60.0);
        for lost in [0, 1, rate.period() - 1] {
            for turned in [false, true] {
                let turn = |pair: &[i8; 2]| if turned { [-pair[1], pair[0]] } else { *pair };
                let stream: Vec<i8> =
                    received[lost..].as_chunks::<2>().0.iter().flat_map(turn).collect();
                let mut synchroniser = NodeSynchroniser::new(code, Modulation::Qpsk);
                let mut out = Vec::new();
                stream.chunks(5_001).for_each(|piece| synchroniser.push(piece, &mut out));
                assert!(synchroniser.reception().is_some(), "{rate:?} without {lost}, {turned}");
                synchroniser.finish(&mut out);
                assert!(out.len() + 16 > data.len(), "all is decoded");
                assert!(is_piece(&out, &data), "{rate:?} without {lost}, {turned}");
                assert_eq!((synchroniser.locks(), synchroniser.skipped()), (1, 0));
            }
        }
    }
}

#[test]
fn noise_gives_no_lock_and_a_slip_makes_a_new_one() {
    let code = Code::new(Rate::Half);
    let data = Noise(51).bytes(12_000);
    let received = soft(&receive(&encode(code, &data), 8 * data.len(), 4.0, &mut Noise(52)), 60.0);
    let hiss: Vec<i8> = Noise(53).bytes(60_000).into_iter().map(u8::cast_signed).collect();
    let mut synchroniser = NodeSynchroniser::new(code, Modulation::Bpsk);
    let mut out = Vec::new();
    synchroniser.push(&hiss, &mut out);
    assert_eq!((synchroniser.reception(), out.len()), (None, 0));
    assert!(synchroniser.skipped() as usize + NodeSynchroniser::MAX_WAITING >= hiss.len());
    synchroniser.push(&received[..90_000], &mut out);
    let before = synchroniser.reception().unwrap();
    synchroniser.push(&received[90_001..], &mut out);
    let after = synchroniser.reception().unwrap();
    assert_ne!(before.skipped, after.skipped);
    assert_eq!(synchroniser.locks(), 2);
    synchroniser.push(&hiss, &mut out);
    assert_eq!(synchroniser.reception(), None);
}

#[test]
fn the_check_of_rate_one_half_is_made_of_the_connection_vectors() {
    let check = check::ParityCheck::new(Code::new(Rate::Half));
    // Each output is summed over the other's vector, 1111001 and 1011011, turned round: the oldest
    // symbol is first.
    let vector = |output| {
        (0..7u32).map(|step| check.places().contains(&(2 * step + output))).collect::<Vec<bool>>()
    };
    let turned = |bits: &str| bits.chars().rev().map(|bit| bit == '1').collect::<Vec<bool>>();
    assert_eq!((vector(0), vector(1)), (turned("1011011"), turned("1111001")));
    for rate in Rate::ALL {
        let check = check::ParityCheck::new(Code::new(rate));
        assert!(
            check.places().iter().all(|place| (*place as usize) < 7 * rate.period()),
            "{rate:?}"
        );
        assert!(check.places().len() > 9, "{rate:?}");
    }
}

#[test]
fn checks_allow_whatever_the_decoder_would_take() {
    for (rate, decibel) in Rate::ALL.into_iter().zip([1.25, 1.5, 2.0, 3.0, 4.0]) {
        let code = Code::new(rate);
        let check = check::ParityCheck::new(code);
        for seed in 1..30u32 {
            let data = Noise(u64::from(seed)).bytes(2_700);
            let louder = f64::from(seed % 3) * 1.5;
            let received = receive(
                &encode(code, &data),
                8 * data.len(),
                decibel + louder,
                &mut Noise(90 + u64::from(seed)),
            );
            let symbols = soft(&received, 60.0);
            let upright = Reception { swapped: false, inverted_second: false, skipped: 0 };
            assert!(check.judge(&symbols[..24_576]).allow(upright), "{rate:?} seed {seed}");
            let late = Reception { skipped: rate.period() - 1, ..upright };
            assert!(check.judge(&symbols[1..24_577]).allow(late), "{rate:?} late, seed {seed}");
            let turned: Vec<i8> =
                symbols.as_chunks::<2>().0.iter().flat_map(|[a, b]| [-b, *a]).collect();
            let turn = Reception { swapped: true, inverted_second: true, ..upright };
            assert!(check.judge(&turned[..24_576]).allow(turn), "{rate:?} turned, seed {seed}");
        }
    }
}

#[test]
fn checks_refuse_most_receptions_of_noise_and_all_wrong_ones_of_strong_symbols() {
    for rate in Rate::ALL {
        let code = Code::new(rate);
        let check = check::ParityCheck::new(code);
        let all = Reception::all(code, Modulation::Qpsk);
        let mut allowed = 0;
        for seed in 1..=50 {
            let hiss: Vec<i8> =
                Noise(seed).bytes(24_576).into_iter().map(u8::cast_signed).collect();
            let verdicts = check.judge(&hiss);
            allowed += all.iter().filter(|reception| verdicts.allow(**reception)).count();
        }
        assert!(200 * allowed < 50 * all.len(), "{rate:?}: {allowed} of {}", 50 * all.len());
        let data = Noise(7).bytes(2_700);
        let strong: Vec<i8> =
            encode(code, &data).into_iter().map(|bit| if bit { 60 } else { -60 }).collect();
        let verdicts = check.judge(&strong[..24_576]);
        let fitting: Vec<Reception> =
            all.into_iter().filter(|reception| verdicts.allow(*reception)).collect();
        let true_one = Reception { swapped: false, inverted_second: false, skipped: 0 };
        assert!(fitting.contains(&true_one), "{rate:?}");
        // At rate 5/6 an inverted second symbol makes other code words. Few others pass by chance.
        let twins = if rate == Rate::FiveSixths { 2 } else { 1 };
        assert!(fitting.len() <= twins + 1, "{rate:?}: {fitting:?}");
    }
}

/// However long the noise was: nothing is skipped.
#[test]
fn a_signal_behind_noise_is_found_within_a_probe() {
    for (rate, decibel) in Rate::ALL.into_iter().zip([2.0, 3.0, 3.5, 4.5, 5.0]) {
        let code = Code::new(rate);
        let data = Noise(61).bytes(9_000);
        let received = receive(&encode(code, &data), 8 * data.len(), decibel, &mut Noise(62));
        for hiss in [3_001, 100_000, 131_072] {
            let mut stream: Vec<i8> =
                Noise(63).bytes(hiss).into_iter().map(u8::cast_signed).collect();
            stream.extend(soft(&received, 60.0));
            let mut synchroniser = NodeSynchroniser::new(code, Modulation::Qpsk);
            let mut out = Vec::new();
            stream.chunks(7_777).for_each(|piece| synchroniser.push(piece, &mut out));
            synchroniser.finish(&mut out);
            let missed = synchroniser.skipped().saturating_sub(hiss as u64);
            assert!(
                missed <= NodeSynchroniser::MAX_WAITING as u64,
                "{rate:?} after {hiss}: {missed} missed"
            );
            assert_eq!(synchroniser.locks(), 1, "{rate:?} after {hiss}");
        }
    }
}
