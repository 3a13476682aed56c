//! The batch decoder against libfec (Karn), on every set of instructions that the processor has.
//!
//! 10^5 codewords in the usual run, 2 seconds; `SKYHAUL_CODEWORDS=10000000` compares more, in 3
//! minutes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may fail, and says what it skips"
)]

use crate::draw::{Blocks, Draw, blocks};
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::{Basis, BatchDecoder, Codeword, Correction, Parameters, ReedSolomon};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// What one codeword was and what we made of it.
struct Word {
    sent: Vec<u8>,
    received: Vec<u8>,
    ours: Vec<u8>,
    outcome: Codeword,
}

/// Codewords of one code, and the instructions that decoded them.
struct Batch {
    parameters: Parameters,
    kernel: Kernel,
    words: Vec<Word>,
}

/// How often what came out.
#[derive(Debug, Default)]
struct Tally {
    clean: u64,
    corrected: u64,
    uncorrectable: u64,
    /// More errors than the code corrects, and both found another codeword.
    miscorrected: u64,
}

#[test]
fn libfec_finds_the_same_in_every_codeword() {
    let Some(program) = program() else { return };
    let wanted = number("SKYHAUL_CODEWORDS").unwrap_or(100_000);
    let mut libfec =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = libfec.stdin.take().unwrap();
    let (sender, receiver) = sync_channel(4);
    let tally = std::thread::scope(|scope| {
        scope.spawn(move || write(wanted, &mut input, &sender));
        compare(&mut libfec, &receiver)
    });
    assert!(libfec.wait().unwrap().success());
    println!("{tally:?}");
    let Tally { clean, corrected, uncorrectable, .. } = tally;
    assert!(clean + corrected + uncorrectable >= wanted);
    assert!(clean > 0 && uncorrectable > 0 && corrected > uncorrectable);
}

/// Decodes batches and gives them to libfec, until there are enough.
fn write(wanted: u64, input: &mut impl Write, batches: &SyncSender<Batch>) {
    let mut draw = Draw(0x5EED);
    let mut done = 0;
    let kernels: Vec<Kernel> = Kernel::available().collect();
    let mut kernels = kernels.into_iter().cycle();
    while done < wanted {
        let batch = batch(&mut draw, kernels.next().unwrap());
        let Parameters { correction, basis, interleave, virtual_fill } = batch.parameters;
        let (dual, fill) = (u8::from(basis == Basis::Dual), (virtual_fill / interleave) as u8);
        input.write_all(&[correction.check_len() as u8, dual, fill, 0]).unwrap();
        input.write_all(&(batch.words.len() as u32).to_le_bytes()).unwrap();
        let received: Vec<u8> =
            batch.words.iter().flat_map(|word| word.received.iter().copied()).collect();
        done += batch.words.len() as u64;
        // The receiver first: libfec may answer before it has read everything.
        if batches.send(batch).is_err() || input.write_all(&received).is_err() {
            return;
        }
    }
}

fn batch(draw: &mut Draw, kernel: Kernel) -> Batch {
    let (correction, basis) = [
        (Correction::E16, Basis::Dual),
        (Correction::E16, Basis::Dual),
        (Correction::E16, Basis::Conventional),
        (Correction::E8, Basis::Conventional),
    ][draw.below(4)];
    let interleave = [1, 2, 3, 4, 5, 8][draw.below(6)];
    let fill = if draw.below(2) == 0 { 0 } else { draw.below(254 - correction.check_len()) };
    let parameters = Parameters { correction, basis, interleave, virtual_fill: fill * interleave };
    let code = ReedSolomon::new(parameters).unwrap();
    let most = correction.symbols() + 2;
    let Blocks { sent, received, stride, .. } =
        blocks(&code, draw, 200, |draw| draw.below(most + 1));
    let mut ours = received.clone();
    let outcomes = BatchDecoder::with_kernel(&code, kernel).decode(&mut ours, stride).to_vec();
    let mut words = Vec::new();
    for (number, outcome) in outcomes.iter().enumerate() {
        for (index, outcome) in outcome.codewords().iter().enumerate() {
            let word = |bytes: &[u8]| {
                let block = &bytes[number * stride..][..code.block_len()];
                block.iter().skip(index).step_by(interleave).copied().collect()
            };
            words.push(Word {
                sent: word(&sent),
                received: word(&received),
                ours: word(&ours),
                outcome: *outcome,
            });
        }
    }
    Batch { parameters, kernel, words }
}

/// Reads what libfec made of each batch.
fn compare(libfec: &mut Child, batches: &Receiver<Batch>) -> Tally {
    let mut output = std::io::BufReader::new(libfec.stdout.take().unwrap());
    let mut tally = Tally::default();
    for batch in batches {
        let most = batch.parameters.correction.symbols();
        for word in &batch.words {
            let mut answer = vec![0; 1 + word.sent.len()];
            output.read_exact(&mut answer).unwrap();
            judge(most, word, (answer[0], &answer[1..]), &mut tally).unwrap_or_else(|difference| {
                panic!(
                    "{}: {difference}, {:?}, {:?}",
                    batch.kernel.name(),
                    batch.parameters,
                    word.received
                )
            });
        }
    }
    tally
}

/// What libfec says of a codeword must be what we say, and up to `most` errors must be corrected.
fn judge(
    most: usize,
    word: &Word,
    (found, theirs): (u8, &[u8]),
    tally: &mut Tally,
) -> Result<(), String> {
    let errors =
        word.sent.iter().zip(&word.received).filter(|(sent, received)| sent != received).count();
    if errors <= most && word.ours != word.sent {
        return Err(format!("{errors} errors are not corrected"));
    }
    match (word.outcome, found) {
        (Codeword::Clean, 0) => tally.clean += 1,
        (Codeword::Corrected(ours), theirs) if ours == theirs => tally.corrected += 1,
        (Codeword::Uncorrectable, u8::MAX) => tally.uncorrectable += 1,
        (ours, theirs) => {
            return Err(format!("we found {ours:?}, libfec {theirs}, of {errors} errors"));
        }
    }
    tally.miscorrected += u64::from(errors > most && word.outcome != Codeword::Uncorrectable);
    if word.ours == theirs { Ok(()) } else { Err("other symbols were changed".into()) }
}

/// The program that decodes with libfec, made on first use; says so where that is impossible.
fn program() -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/libfec/install.sh");
    let made = Command::new(script).arg(concat!(env!("CARGO_TARGET_TMPDIR"), "/libfec")).output();
    match made {
        Ok(made) if made.status.success() => {
            Some(String::from_utf8(made.stdout).unwrap().trim().to_owned())
        }
        Ok(made) => {
            eprintln!("SKIPPED: {}", String::from_utf8_lossy(&made.stderr).trim());
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: {script}: {error}");
            None
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how much to compare is said where the test is started"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
