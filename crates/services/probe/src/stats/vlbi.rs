//! What loss means for very-long-baseline interferometry: signal-to-noise, and whether a correlator
//! keeps its synchronisation.

use super::chain::FrameMoves;
use super::gilbert::GilbertFit;
use serde::Serialize;
use skyhaul_units::Duration;

/// How a correlator takes the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VlbiRule {
    /// Datagrams of which a data frame consists; losing one of them loses the frame.
    pub datagrams_a_frame: u32,
    /// So many damaged frames one after the other lose the synchronisation.
    pub frames_in_a_row: u32,
}

/// What loss means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Vlbi {
    /// The rule that holds.
    pub rule: VlbiRule,
    /// Part of the data frames lost.
    pub frames_lost: f64,
    /// Signal-to-noise ratio against that without loss, lost samples left out of the correlation:
    /// sqrt(1 - f).
    pub snr: f64,
    /// The same where lost samples are noise that is correlated: 1 - f.
    pub snr_unmasked: f64,
    /// Losses of synchronisation per frame, by the fitted model.
    pub sync_losses_a_frame: f64,
    /// Probability of at least one loss of synchronisation in an hour, at the measured spacing of
    /// datagrams.
    pub sync_loss_an_hour: f64,
    /// Losses of synchronisation that this measurement itself would have had.
    pub seen: u64,
}

impl Vlbi {
    /// Of a sequence of losses with datagrams at `spacing`, and the model fitted to it.
    pub fn of(
        lost: &[bool],
        model: Option<&GilbertFit>,
        spacing: Duration,
        rule: VlbiRule,
    ) -> Self {
        let rule = VlbiRule {
            datagrams_a_frame: rule.datagrams_a_frame.max(1),
            frames_in_a_row: rule.frames_in_a_row.clamp(1, super::chain::RULE_MAX),
        };
        let frames: Vec<bool> = lost
            .chunks_exact(rule.datagrams_a_frame as usize)
            .map(|frame| frame.contains(&true))
            .collect();
        let hurt = frames.iter().filter(|hurt| **hurt).count() as f64;
        let frames_lost = if frames.is_empty() { 0.0 } else { hurt / frames.len() as f64 };
        let in_a_row = rule.frames_in_a_row as usize;
        let long = frames.chunk_by(|one, other| one == other).filter(|run| run[0]);
        let seen = long.map(|run| (run.len() / in_a_row) as u64).sum();
        let moves = model.map(|model| (model, FrameMoves::new(model, rule.datagrams_a_frame)));
        let rate = match moves {
            Some((model, moves)) => moves.runs(model, rule.frames_in_a_row),
            None if hurt > 0.0 => 1.0 / f64::from(rule.frames_in_a_row),
            None => 0.0,
        };
        let frame = spacing * u64::from(rule.datagrams_a_frame);
        let frames_an_hour = 3_600.0 / frame.as_secs_f64().max(1e-9);
        Self {
            rule,
            frames_lost,
            snr: (1.0 - frames_lost).sqrt(),
            snr_unmasked: 1.0 - frames_lost,
            sync_losses_a_frame: rate,
            sync_loss_an_hour: -(-rate * frames_an_hour).exp_m1(),
            seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: VlbiRule = VlbiRule { datagrams_a_frame: 1, frames_in_a_row: 3 };

    #[test]
    fn a_fifth_lost_costs_a_tenth_of_the_signal_to_noise_ratio() {
        let lost: Vec<bool> = (0..1_000).map(|n| n % 5 == 0).collect();
        let vlbi = Vlbi::of(&lost, None, Duration::from_micros(60), RULE);
        assert!(
            (vlbi.snr - 0.8f64.sqrt()).abs() < 1e-12 && (vlbi.snr_unmasked - 0.8).abs() < 1e-12
        );
        assert_eq!(vlbi.seen, 0);
    }

    #[test]
    fn runs_of_three_lose_the_synchronisation() {
        let lost = [0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1].map(|bit| bit == 1);
        let vlbi = Vlbi::of(&lost, None, Duration::from_millis(1), RULE);
        assert_eq!(vlbi.seen, 3);
        let two = VlbiRule { datagrams_a_frame: 2, frames_in_a_row: 2 };
        assert_eq!(Vlbi::of(&lost, None, Duration::from_millis(1), two).seen, 3);
        let none = Vlbi::of(&[false; 50], None, Duration::from_millis(1), RULE);
        assert_eq!((none.snr, none.sync_loss_an_hour), (1.0, 0.0));
    }
}
