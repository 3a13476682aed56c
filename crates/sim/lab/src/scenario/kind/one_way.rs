//! `one-way`: blocks over a line without return: what stays lost, by the groups as they were sent
//! and as counted.

use super::{Broken, CellParameters, Experiment, Kind, ParametersRefused};
use crate::scenario::metric::{GOODPUT, Measured, Metric, Unit};
use bytes::Bytes;
use core::num::NonZeroU32;
use serde::Deserialize;
use skyhaul_identity::OneWayKey;
use skyhaul_link::{GilbertElliott, Link, LinkConfig, Loss};
use skyhaul_oneway::{
    Assumptions, HEADERS_IPV4, Listener, TransmitSession, Transmitter, assumptions_for,
};
use skyhaul_transport::oneway::{Design, Event, ReceiverConfig, SenderConfig};
use skyhaul_transport::{Block, FlowId, cost};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate, Utc};

/// The kind.
pub(super) struct OneWay;

impl Kind for OneWay {
    fn name(&self) -> &'static str {
        "one-way"
    }

    fn about(&self) -> &'static str {
        "blocks over a line without return: the share that stays lost against the one asked for, \
        and what it costs"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(
        &self,
        parameters: CellParameters<'_>,
    ) -> Result<Box<dyn Experiment>, ParametersRefused> {
        let cell: Cell = parameters.read()?;
        Design::new(&cell.assumptions())
            .map_err(|error| ParametersRefused::new(error.to_string()))?;
        if cell.block == ByteCount::ZERO || cell.block > ByteCount::mib(8) {
            return Err(ParametersRefused::new("`block` is out of range; give 1 B to 8 MiB"));
        }
        cell.loss().map_err(|error| ParametersRefused::new(error.to_string()))?;
        Ok(Box::new(cell))
    }
}

/// A line, what is assumed of it, and what it does.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    /// The line's rate, counted in IP packets.
    rate: Rate,
    /// Share of datagrams assumed lost.
    loss: Probability,
    /// How many in a row, on average; 1 for each alone.
    burst: NonZeroU32,
    /// Share of blocks that may stay lost.
    residual: Probability,
    /// The share of the assumed loss that there is.
    actual: Probability,
    /// Size of the blocks.
    block: ByteCount,
    /// How long blocks are handed over.
    duration: Duration,
}

impl Experiment for Cell {
    fn virtual_time(&self) -> Duration {
        self.duration
    }

    fn cost(&self) -> Duration {
        PER_PACKET * ((self.rate * self.duration).as_u64() / 1_500)
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let broken = |error: &dyn core::fmt::Display| Broken(error.to_string());
        let loss = self.loss().map_err(|error| broken(&error))?;
        let key = OneWayKey::from_bytes([7; 32]);
        let session =
            TransmitSession { key: key.clone(), began: Utc::default(), salt: seed.to_be_bytes() };
        let config = SenderConfig {
            send_buffer: ByteCount::new(cost(self.block.as_usize()) * 64),
            ..SenderConfig::default()
        };
        let transmitter = Transmitter::new(Instant::ZERO, session, &self.assumptions(), config);
        let mut run = Run {
            transmitter: transmitter.map_err(|error| broken(&error))?,
            listener: Listener::new(key, ReceiverConfig::default()),
            link: Link::new(
                LinkConfig { one_way_delay: DELAY, loss, ..LinkConfig::default() },
                seed,
            ),
            block: Block::reliable(FlowId(0), Bytes::from(vec![0x5a; self.block.as_usize()])),
            delivered: 0,
            missing: 0,
        };
        run.run(Instant::ZERO + self.duration);
        let design = run.transmitter.sender().design().clone();
        let counters = *run.transmitter.sender().counters();
        let (sent, target) = (counters.blocks_sent, self.residual.as_f64());
        if sent == 0 || run.delivered + run.missing != sent {
            return Err(Broken(format!(
                "of {sent} blocks {} came and {} are missing",
                run.delivered, run.missing
            )));
        }
        let mut measured = Measured::default();
        measured.add_rate(
            &GOODPUT,
            Rate::over(ByteCount::new(run.delivered * self.block.as_u64()), self.duration),
        );
        measured.add(&OF_TARGET, counters.residual() / target);
        measured.add(&COUNTED, run.missing as f64 / sent as f64 / target);
        measured.add(&OFFERED, sent as f64);
        measured.add(&LOST, run.missing as f64);
        measured.add(&OVERHEAD, counters.overhead());
        measured.add_time(&BUDGET, design.budget());
        Ok(measured)
    }
}

impl Cell {
    fn assumptions(&self) -> Assumptions {
        Assumptions {
            loss: self.loss,
            burst: self.burst.get(),
            residual: self.residual,
            block: self.block,
            ..assumptions_for(self.rate, PACKET, HEADERS_IPV4)
        }
    }

    /// What the line does.
    fn loss(&self) -> Result<Loss, skyhaul_link::LossError> {
        let parts = u64::from(self.loss.as_ppb()) * u64::from(self.actual.as_ppb());
        let share = Probability::of(parts, u64::from(Probability::ONE.as_ppb()).pow(2));
        match self.burst.get() {
            1 => Ok(Loss::Independent(share)),
            _ => GilbertElliott::with_bursts(share, self.burst).map(Loss::GilbertElliott),
        }
    }
}

/// Both ends and the line between them.
struct Run {
    transmitter: Transmitter,
    listener: Listener,
    link: Link<Vec<u8>>,
    block: Block,
    delivered: u64,
    missing: u64,
}

impl Run {
    /// Hands over blocks until `stop`, then lets everything end.
    fn run(&mut self, stop: Instant) {
        let mut now = Instant::ZERO;
        loop {
            if now >= stop {
                self.transmitter.sender().finish();
            } else {
                // The buffer takes as many as it has room for.
                while self.transmitter.sender().send(now, self.block.clone()).is_ok() {}
            }
            while self.transmitter.sender().poll_settled().is_some() {}
            while let Some(datagram) = self.transmitter.poll(now) {
                self.link.send(now, ByteCount::of(datagram.len() + HEADERS_IPV4), datagram);
            }
            while let Some(datagram) = self.link.poll(now) {
                self.listener.datagram(now, datagram);
                self.take();
            }
            self.listener.expire(now);
            self.take();
            let next = [
                self.transmitter.next_timeout(now),
                self.link.next_event(),
                self.listener.next_timeout(),
            ];
            match next.into_iter().flatten().min() {
                Some(due) => now = due.max(now + SHORTEST),
                None => return,
            }
        }
    }

    fn take(&mut self) {
        while let Some((_, event)) = self.listener.poll_event() {
            match event {
                Event::Block(_) => self.delivered += 1,
                Event::Gap(gap) => self.missing += gap.count,
                Event::Announced(_) | Event::Silent => {}
            }
        }
    }
}

const OF_TARGET: Metric = Metric {
    key: "residual_of_target",
    heading: "residual ÷ asked",
    unit: Unit::Share,
    meaning: "share of blocks that stays lost under the assumed loss, computed from each group as \
             it was sent, ÷ the share asked for",
};
const COUNTED: Metric = Metric {
    key: "counted_of_target",
    heading: "counted ÷ asked",
    unit: Unit::Share,
    meaning: "share of blocks that did stay lost ÷ the share asked for",
};
const OFFERED: Metric =
    Metric { key: "blocks.offered", heading: "blocks", unit: Unit::Count, meaning: "blocks sent" };
const LOST: Metric = Metric {
    key: "blocks.lost",
    heading: "lost",
    unit: Unit::Count,
    meaning: "blocks that stayed lost",
};
const OVERHEAD: Metric = Metric {
    key: "overhead",
    heading: "overhead",
    unit: Unit::Share,
    meaning: "everything sent beside the blocks' own datagrams ÷ those, in bytes",
};
const BUDGET: Metric = Metric {
    key: "repaired_within_s",
    heading: "repaired within",
    unit: Unit::Seconds,
    meaning: "from a symbol's sending until all its repair is sent, at most",
};

const METRICS: &[&Metric] = &[&GOODPUT, &OF_TARGET, &COUNTED, &OFFERED, &LOST, &OVERHEAD, &BUDGET];

const PACKET: ByteCount = ByteCount::new(1_500);
/// A geostationary hop.
const DELAY: Duration = Duration::from_millis(270);
/// Virtual time never stands still.
const SHORTEST: Duration = Duration::from_nanos(1);
/// What a packet costs a processor core with both ends, sealing and coding.
const PER_PACKET: Duration = Duration::from_nanos(15_000);
