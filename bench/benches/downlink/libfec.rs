//! What libfec (Karn) takes for the same, in a process of its own: a library in C, built where it
//! can be had.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What it is to do.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Decoding codewords without errors.
    Check,
    /// Decoding codewords with 1 to 16 errors.
    Correct,
    /// Computing check symbols.
    Encode,
    /// Decoding soft symbols of the convolutional code, rate 1/2.
    Viterbi,
}

/// The process.
pub struct Libfec {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Libfec {
    /// Builds and starts it; says why where that is impossible.
    pub fn start() -> Result<Self, String> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let made = Command::new(format!("{root}/crates/base/coding/tests/libfec/install.sh"))
            .arg(concat!(env!("CARGO_TARGET_TMPDIR"), "/libfec"))
            .arg(format!("{root}/bench/peers/libfec.c"))
            .output()
            .map_err(|error| error.to_string())?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).trim().to_owned());
        }
        let program = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let started = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("{program}: {error}"))?;
        let orders = child.stdin.take().ok_or("no way to tell it what to do")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no way to hear what it says")?);
        Ok(Self { child, orders, answers })
    }

    /// One turn: Gbit/s of channel access data units of so many codewords and a marker each, or of
    /// decoded bits.
    pub fn gbps(&mut self, work: Work, interleave: usize) -> f64 {
        let order = match work {
            Work::Check => b'c',
            Work::Correct => b'd',
            Work::Encode => b'e',
            Work::Viterbi => b'v',
        };
        let mut answer = String::new();
        let asked = self.orders.write_all(&[order]).and_then(|()| self.orders.flush());
        let heard = asked.and_then(|()| self.answers.read_line(&mut answer));
        // Nanoseconds a codeword, or a byte.
        let Some(each) = heard.ok().and_then(|_| answer.trim().parse::<f64>().ok()) else {
            return 0.0;
        };
        let bits = match work {
            Work::Viterbi => 8.0,
            _ => 8.0 * (255.0 + 4.0 / interleave as f64),
        };
        bits / each
    }
}

impl Drop for Libfec {
    fn drop(&mut self) {
        // It may be gone already.
        self.orders.write_all(b"q").and_then(|()| self.orders.flush()).ok();
        self.answers.read_to_end(&mut Vec::new()).ok();
        self.child.wait().ok();
    }
}
