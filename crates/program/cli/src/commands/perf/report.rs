//! The result of a run, for people and for programs.

use super::message::LatencyQuantiles;
use crate::commands::rate::rate_text;
use serde::{Deserialize, Serialize};
use skyhaul_exit::Failure;
use skyhaul_probe::why::{DiskBacklog, Lack, Silence};
use std::io::Write;
use std::net::SocketAddr;

/// The result of a run; docs/explanation/performance.md documents its JSON form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Bytes of blocks acknowledged by the far end, over `seconds`.
    pub goodput_bps: u64,
    /// Bytes of blocks that the far end acknowledged.
    pub bytes: u64,
    /// From handing over the first block to the last acknowledgement.
    pub seconds: f64,
    /// From handing over a block to its delivery.
    pub latency_s: LatencyQuantiles,
    /// What became of the blocks.
    pub blocks: Blocks,
    /// Processor time of each end, all threads.
    pub cpu_s: Cpu,
    /// The paths.
    pub paths: Vec<PathResult>,
    /// Where datagrams were lost, as far as it is known.
    pub losses: LossPlaces,
    /// Bytes of blocks acknowledged, over the second half of the run, without its start. `null` for
    /// runs of a few seconds.
    pub steady_bps: Option<u64>,
    /// What may have limited the transfer, for `skyhaul why`.
    #[serde(flatten)]
    pub evidence: TransferEvidence,
    /// The rate at which blocks were offered, where one was given.
    pub offered_bps: Option<u64>,
    /// Who decided how fast it sent.
    pub control: ControlSummary,
    /// The results of the classes, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassResult>,
}

/// What may have limited the transfer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TransferEvidence {
    /// What the sender waited for.
    pub waited_s: WaitSeconds,
    /// The share of the time for which the busiest thread of each end ran.
    pub busiest_thread: Busiest,
    /// The share of the time that the far end spent in calls to its disk; `null` where it keeps
    /// nothing.
    pub disk_share: Option<f64>,
    /// What kept the threads of each end from running.
    pub lack: HostShortage,
    /// Data that the far end had received and not yet written at the end; `null` where it keeps
    /// nothing.
    pub backlog: Option<DiskBacklog>,
    /// The longest time without an answer of the far end while data was queued or under way.
    pub silence: Silence,
}

/// Seconds that the sender waited, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitSeconds {
    /// For blocks: all that were handed over were sent.
    pub application: f64,
    /// For the far end to take more.
    pub window: f64,
    /// For its own send buffer.
    pub buffer: f64,
    /// For the rates given to classes.
    pub classes: f64,
    /// For a path: its window or its pacing.
    pub path: f64,
}

/// Shares of one processor; `null` if the system does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Busiest {
    /// Of the sending process.
    pub send: Option<f64>,
    /// Of the receiving process.
    pub receive: Option<f64>,
}

/// What kept the threads of each end from running, as shares of the time; `null` if the system does
/// not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostShortage {
    /// Of the sending process.
    pub send: Option<Lack>,
    /// Of the receiving process.
    pub receive: Option<Lack>,
}

/// The rate control of a run, and its datagrams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlSummary {
    /// As `--cc` names it.
    pub name: String,
    /// The declared rate, where there is one.
    pub declared_bps: Option<u64>,
    /// UDP payload of a full datagram.
    pub payload: u64,
    /// The same at the end, where longer ones vanished meanwhile; `null` where it stayed.
    #[serde(default)]
    pub payload_shrunk: Option<u64>,
}

/// What arrived under one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// As it was given.
    pub name: String,
    /// When its sender began and ended, in seconds of the measurement.
    pub from_s: f64,
    /// The measurement's end where it has none of its own.
    pub until_s: f64,
    /// Bytes delivered, over that time.
    pub goodput_bps: u64,
    /// Bytes delivered in each tenth of a second of the measurement, by the far end's clock.
    pub tenths: Vec<u64>,
}

/// Blocks by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// Delivered without repair.
    pub delivered: u64,
    /// Delivered after repair.
    pub repaired: u64,
    /// Not delivered by their deadline.
    pub expired: u64,
}

/// Seconds of processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// Of the sending process.
    pub send: f64,
    /// Of the receiving process.
    pub receive: f64,
}

/// One path, seen from the sender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathResult {
    /// `udp` or `tcp`.
    pub over: &'static str,
    /// This end's address.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// Its share of the goodput, by what each path carried: together they are all of it.
    pub goodput_bps: u64,
    /// Smoothed round-trip time at the end.
    pub rtt_s: f64,
    /// The mean while data was sent, of one reading each second.
    pub loaded_rtt_s: f64,
    /// The shortest lately.
    pub min_rtt_s: f64,
    /// Share of datagrams lost over the last few thousand.
    pub loss: f64,
    /// Repair symbols sent.
    pub repair_sent: u64,
    /// Datagrams that repair stood for at the far end.
    pub repair_used: u64,
}

/// Where datagrams were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LossPlaces {
    /// Symbols sent, those sent again too.
    pub sent: u64,
    /// Symbols that a path called lost, wherever that was.
    pub path: u64,
    /// Of these and of the answers: dropped by the sending host, whose socket's queue was full.
    /// `null` if the system does not report it.
    pub send_socket: Option<u64>,
    /// Dropped by the receiving host, whose socket's queue was full.
    pub receive_socket: Option<u64>,
    /// Refused by the sending host's system when they were to leave.
    pub send_refused: u64,
    /// Symbols sent again.
    pub repeated: u64,
    /// Symbols that came twice.
    pub duplicate: u64,
}

/// How much the text tells about losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossDetail {
    /// The share of each path.
    Total,
    /// Also where datagrams were lost.
    ByPlace,
}

impl Report {
    /// As one line of JSON.
    ///
    /// # Errors
    /// The output is gone.
    pub fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let line = serde_json::to_string(self).expect("a report is plain data");
        Ok(writeln!(out, "{line}")?)
    }

    /// In words.
    ///
    /// # Errors
    /// The output is gone.
    pub fn write_text(&self, losses: LossDetail, out: &mut dyn Write) -> Result<(), Failure> {
        let Blocks { delivered, repaired, expired } = self.blocks;
        let LatencyQuantiles { p50, p99, p999, max } = self.latency_s;
        let (rate, amount) = (rate_text(self.goodput_bps), self.bytes as f64 / 1e6);
        writeln!(out, "goodput   {rate}, {amount:.1} MB in {:.3} s", self.seconds)?;
        writeln!(
            out,
            "blocks    {delivered} delivered, {repaired} after repair, {expired} expired"
        )?;
        writeln!(
            out,
            "latency   p50 {p50:.4} s, p99 {p99:.4} s, p99.9 {p999:.4} s, max {max:.4} s"
        )?;
        let per_gigabyte = 1e9 / (self.bytes.max(1) as f64);
        let (send, receive) = (self.cpu_s.send, self.cpu_s.receive);
        writeln!(
            out,
            "processor {send:.2} s sending, {receive:.2} s receiving; {:.2} and {:.2} s/GB",
            send * per_gigabyte,
            receive * per_gigabyte
        )?;
        for path in &self.paths {
            writeln!(
                out,
                "path      {} to {}: {}, rtt {:.4} s, loss {:.3} %, {} repair symbols, {} \
                datagrams recovered",
                path.local,
                path.remote,
                rate_text(path.goodput_bps),
                path.rtt_s,
                path.loss * 100.0,
                path.repair_sent,
                path.repair_used
            )?;
        }
        if let Some(disk) = self.evidence.disk_share {
            writeln!(
                out,
                "disk      the far end was in calls to its disk {:.0} % of the time",
                disk * 100.0
            )?;
        }
        for class in &self.classes {
            let (rate, from, until) = (rate_text(class.goodput_bps), class.from_s, class.until_s);
            writeln!(out, "class     {}: {rate} from {from:.1} s to {until:.1} s", class.name)?;
        }
        match losses {
            LossDetail::ByPlace => self.write_losses(out),
            LossDetail::Total => Ok(()),
        }
    }

    fn write_losses(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let LossPlaces {
            path, send_socket, receive_socket, send_refused, repeated, duplicate, ..
        } = self.losses;
        let told = |count: Option<u64>| {
            count.map_or("an unknown number".to_owned(), |count| count.to_string())
        };
        writeln!(out, "losses    {path} symbols that did not arrive, {repeated} sent again")?;
        writeln!(
            out,
            "          {} of all datagrams dropped by the receiving host's socket",
            told(receive_socket)
        )?;
        writeln!(
            out,
            "          {} of the answers dropped by the sending host's socket",
            told(send_socket)
        )?;
        writeln!(out, "          {send_refused} datagrams refused by the sending system")?;
        Ok(writeln!(out, "          {duplicate} duplicate symbols received")?)
    }
}
