//! Byte streams as sources: a file, standard input, a ring.

use super::{CHUNK, Step, Unit, is_ready};
use crate::ring::{Ring, Took};
use skyhaul_streams::{FrameFinder, NextBytes, StreamFormat};
use skyhaul_units::Duration;
use std::fs::File;
use std::io::{self, Read};

/// Frames in bytes.
#[derive(Debug)]
pub(super) struct Stream {
    from: Origin,
    finder: FrameFinder,
    overrun: u64,
    ended: bool,
}

#[derive(Debug)]
enum Origin {
    File(File),
    Pipe,
    Ring(Ring),
}

impl Stream {
    pub fn file(file: File, format: Option<StreamFormat>) -> Self {
        Self::new(Origin::File(file), format)
    }

    pub fn pipe(format: Option<StreamFormat>) -> Self {
        Self::new(Origin::Pipe, format)
    }

    pub fn ring(ring: Ring, format: Option<StreamFormat>) -> Self {
        Self::new(Origin::Ring(ring), format)
    }

    const fn new(from: Origin, format: Option<StreamFormat>) -> Self {
        Self { from, finder: FrameFinder::new(format), overrun: 0, ended: false }
    }

    pub fn format(&self) -> Option<StreamFormat> {
        self.finder.format()
    }

    pub fn advance(&mut self, wait: Duration) -> io::Result<Step> {
        if self.ended {
            return Ok(Step::End);
        }
        if matches!(self.from, Origin::Pipe) && !is_ready(&io::stdin(), wait)? {
            return Ok(Step::Idle);
        }
        let space = self.finder.space(CHUNK);
        let took = match &mut self.from {
            Origin::File(file) => file.read(space).map(took),
            Origin::Pipe => io::stdin().lock().read(space).map(took),
            Origin::Ring(ring) => ring.read(space),
        };
        let len = if let Ok(Took::Bytes(len)) = took { len } else { 0 };
        self.finder.cut(CHUNK - len);
        match took? {
            Took::Bytes(_) => Ok(Step::More),
            Took::Overrun(lost) => {
                self.overrun += lost;
                Ok(Step::More)
            }
            Took::Nothing => {
                std::thread::park_timeout(wait.min(RING_LOOK).to_std());
                Ok(Step::Idle)
            }
            Took::End => {
                self.finder.end();
                self.ended = true;
                Ok(Step::More)
            }
        }
    }

    pub fn unit(&mut self) -> Option<Unit<'_>> {
        if self.overrun > 0 {
            return Some(Unit::Skipped(core::mem::take(&mut self.overrun)));
        }
        Some(match self.finder.next()? {
            NextBytes::Frame(head, bytes) => Unit::Frame(Some(head), bytes),
            NextBytes::Skipped(len) => Unit::Skipped(len as u64),
            NextBytes::Changed(from, to) => Unit::Changed(from, to),
        })
    }
}

const fn took(len: usize) -> Took {
    if len == 0 { Took::End } else { Took::Bytes(len) }
}

/// How often a ring is looked at.
const RING_LOOK: Duration = Duration::from_micros(500);
