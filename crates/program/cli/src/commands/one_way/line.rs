//! The flags of a line without return: its rate, the assumed loss, and the loss that may remain.

use crate::commands::ip::IpVersion;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_oneway::{Assumptions, HEADERS_IPV4, HEADERS_IPV6, assumptions_for};
use skyhaul_probe::report::percent;
use skyhaul_transport::oneway::{Design, SenderCounters};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// The assumed loss, and the loss that may remain after FEC repair.
#[derive(clap::Args)]
pub struct LossArguments {
    /// The share of datagrams that the line loses. It cannot be measured: give the worst case.
    #[arg(long, value_name = "SHARE", default_value = "1 %")]
    loss: Probability,
    /// The average number of datagrams lost in a row; 1 for single losses.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    burst: u32,
    /// The share of blocks that may stay lost under that loss.
    #[arg(long, value_name = "SHARE", default_value = "1 ppm")]
    residual: Probability,
    /// The longest time from sending a symbol to sending its repair. A longer time needs less
    /// repair, and survives longer bursts.
    #[arg(long, value_name = "DURATION")]
    budget: Option<Duration>,
}

/// The line, its losses, and the size of blocks.
#[derive(clap::Args)]
pub struct LineArguments {
    /// The line's rate, including IP headers. All of it is used: nothing can be measured.
    #[arg(long, value_name = "RATE")]
    rate: Rate,
    /// The largest IP packet of the line.
    #[arg(long, value_name = "SIZE", default_value = "1500 B")]
    mtu: ByteCount,
    /// The size of a block.
    #[arg(long, value_name = "SIZE", default_value = "64 KiB")]
    block: ByteCount,
    #[command(flatten)]
    losses: LossArguments,
}

/// A line without return.
#[derive(Debug, Clone, Copy)]
pub struct OneWayLine {
    /// Its rate, including IP headers.
    pub rate: Rate,
    /// Its largest IP packet.
    pub mtu: ByteCount,
}

impl LineArguments {
    /// The assumptions about this line.
    pub fn assumptions(&self, ip: IpVersion) -> Assumptions {
        self.losses.assumptions(OneWayLine { rate: self.rate, mtu: self.mtu }, self.block, ip)
    }

    /// Bytes of a block.
    ///
    /// # Errors
    /// No block has so many.
    pub fn block(&self) -> Result<usize, Failure> {
        if !(1_024..=8 << 20).contains(&self.block.as_u64()) {
            let what = format!("a block of {} is not possible", self.block);
            return Err(Failure::new(Exit::Usage, &what, "give --block 1 KiB to 8 MiB"));
        }
        Ok(self.block.as_usize())
    }
}

impl LossArguments {
    /// The assumptions for blocks of this size over this line.
    pub fn assumptions(&self, line: OneWayLine, block: ByteCount, ip: IpVersion) -> Assumptions {
        let headers = match ip {
            IpVersion::V4 => HEADERS_IPV4,
            IpVersion::V6 => HEADERS_IPV6,
        };
        Assumptions {
            loss: self.loss,
            burst: self.burst,
            residual: self.residual,
            block,
            budget: self.budget,
            ..assumptions_for(line.rate, line.mtu, headers)
        }
    }
}

/// The expected figures of a line, for programs.
#[derive(Debug, Clone, Serialize)]
pub struct Expected {
    /// Share of datagrams assumed lost.
    loss: f64,
    /// How many in a row, on average.
    burst: u32,
    /// Share of blocks that may stay lost.
    residual_target: f64,
    /// Share that stays lost under the assumed loss, at most.
    residual: f64,
    /// Repair ÷ source symbols.
    overhead: f64,
    /// Source and repair symbols of a group, and how many groups are dealt to in turn.
    sources: u8,
    repairs: u8,
    groups: u8,
    /// From a symbol's sending until its repair is sent, at most.
    repaired_within_s: f64,
    /// How fast blocks go.
    block_rate_bps: u64,
}

/// The sent blocks, for programs.
#[derive(Debug, Clone, Serialize)]
pub struct SentBlocks {
    /// Blocks sent with all their repair; whether they arrived is not known.
    pub sent: u64,
    /// Blocks given up before that.
    pub given_up: u64,
    /// Share of blocks that stays lost under the assumed loss, at most, by the groups as they were
    /// sent.
    pub residual: f64,
    /// Everything sent beside the blocks ÷ the blocks.
    pub overhead: f64,
}

impl Expected {
    /// Of a design.
    pub fn of(design: &Design) -> Self {
        let assumed = design.assumptions();
        Self {
            loss: assumed.loss.as_f64(),
            burst: assumed.burst,
            residual_target: assumed.residual.as_f64(),
            residual: design.residual(),
            overhead: design.overhead(),
            sources: design.sources(),
            repairs: design.repairs(),
            groups: design.lanes(),
            repaired_within_s: design.budget().as_secs_f64(),
            block_rate_bps: design.block_rate().as_bps(),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let Self { burst, sources, repairs, groups, .. } = self;
        let bursts =
            if *burst > 1 { format!("in bursts of {burst}") } else { "each alone".to_owned() };
        format!(
            "assumes: {} of datagrams lost, {bursts}\n\
             repairs: {repairs} for each {sources} datagrams, distributed over {groups} groups: \
             overhead \
             {:.1} %, sent within {:.3} s\n\
             carries: {:.3} Mbit/s of blocks\n\
             leaves:  {} lost at most; the limit is {}",
            percent(self.loss),
            self.overhead * 100.0,
            self.repaired_within_s,
            self.block_rate_bps as f64 / 1e6,
            in_blocks(self.residual),
            in_blocks(self.residual_target),
        )
    }
}

/// A share of blocks as people count it: one in so many, where it is small.
pub fn in_blocks(share: f64) -> String {
    match share {
        0.0 => "no block".to_owned(),
        0.001.. => format!("{} of blocks", percent(share)),
        1e-12.. => format!("1 block in {}", rounded(1.0 / share)),
        _ => "less than 1 block in a million millions".to_owned(),
    }
}

/// A count to two digits, in thousands, millions or billions.
fn rounded(count: f64) -> String {
    let (unit, word) = match count {
        1e9.. => (1e9, " billion"),
        1e6.. => (1e6, " million"),
        _ => (1.0, ""),
    };
    let scaled = count / unit;
    let step = 10f64.powf((scaled.log10().floor() - 1.0).max(if unit > 1.0 { -1.0 } else { 0.0 }));
    let decimals = usize::from(step < 1.0);
    format!("{:.decimals$}{word}", (scaled / step).round() * step)
}

impl SentBlocks {
    /// Of what a sender counted.
    pub fn of(counters: &SenderCounters) -> Self {
        Self {
            sent: counters.blocks_sent,
            given_up: counters.blocks_given_up,
            residual: counters.residual(),
            overhead: counters.overhead(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_of_blocks_are_one_in_so_many() {
        for (share, said) in [
            (0.0, "no block"),
            (0.012, "1.200 % of blocks"),
            (2.2e-4, "1 block in 4500"),
            (8.7e-7, "1 block in 1.1 million"),
            (1e-6, "1 block in 1.0 million"),
            (3.3e-8, "1 block in 30 million"),
            (5.4e-18, "less than 1 block in a million millions"),
        ] {
            assert_eq!(in_blocks(share), said);
        }
    }
}
