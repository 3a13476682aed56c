//! The probe over modelled links under a virtual clock: it must find what the links were made to
//! do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::{AHEAD, Virtual};
use skyhaul_link::{GilbertElliott, LinkConfig, Loss, Policer, Reordering};
use skyhaul_probe::losses::losses;
use skyhaul_probe::stats::{Character, VlbiRule};
use skyhaul_probe::survey::{Survey, SurveyPlan, survey};
use skyhaul_probe::sweep::{SweepPlan, sweep};
use skyhaul_probe::{NearError, ProbeClient, Spec, StreamDirection, Trace};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

fn near(config: LinkConfig, seed: u64) -> ProbeClient<Virtual> {
    ProbeClient::open(Virtual::new(config.clone(), config, seed), 4).unwrap()
}

fn surveyed(up: LinkConfig, down: LinkConfig, seed: u64) -> Survey {
    let mut near = ProbeClient::open(Virtual::new(up, down, seed), 4).unwrap();
    let plan = SurveyPlan {
        time: Duration::from_secs(60),
        rate_max: Rate::from_mbps(400),
        payload_max: ByteCount::new(8_972),
        headers: ByteCount::new(28),
    };
    survey(&mut near, &plan, &mut |_| {}).unwrap()
}

fn line(rate: u64, one_way: u64, loss: Loss) -> LinkConfig {
    LinkConfig { loss, ..LinkConfig::line(Rate::from_mbps(rate), Duration::from_millis(one_way)) }
}

fn independent(percent: u32) -> Loss {
    Loss::Independent(Probability::from_ppb(percent * 10_000_000))
}

#[track_caller]
fn near_to(found: f64, set: f64, within: f64) {
    assert!((found - set).abs() <= within * set.abs(), "{found} is not {set}");
}

#[test]
fn a_survey_finds_rate_delay_loss_and_mtu_of_a_line_whose_ways_differ() {
    let found = surveyed(line(93, 80, independent(1)), line(20, 120, Loss::None), 3);
    near_to(found.round_trip_ms.min, 200.0, 0.01);
    near_to(found.up.available.ip_bits_per_second as f64, 93e6, 0.02);
    near_to(found.down.available.ip_bits_per_second as f64, 20e6, 0.02);
    assert!(!found.up.available.is_at_least && !found.down.available.is_at_least);
    assert!(
        found.up.loss.loss_95[0] <= 0.01 && 0.01 <= found.up.loss.loss_95[1],
        "{:?}",
        found.up.loss
    );
    assert_eq!(
        (found.up.loss.character, found.down.loss.character),
        (Character::Random, Character::None)
    );
    assert_eq!((found.up.path_mtu, found.down.path_mtu), (1_500, 1_500));
    near_to(found.bandwidth_delay_bytes as f64, 93e6 / 8.0 * 0.2, 0.03);
    for (way, set) in [(&found.up, 80.0), (&found.down, 120.0)] {
        assert!((way.one_way_ms.min - set).abs() <= found.clocks.uncertainty_ms);
        assert_eq!((way.account.unexplained, way.account.offered), (0, way.sum.packets));
        assert_eq!(way.account.lost_on_path, way.sum.lost_packets);
    }
    near_to(found.clocks.ahead_ms, AHEAD.as_secs_f64() * 1e3, 1e-4);
    assert!(found.notes.iter().any(|note| note.contains("2.0 hours ahead")), "{:?}", found.notes);
}

#[test]
fn what_the_links_lost_is_what_the_account_says_the_path_lost() {
    for seed in 0..4 {
        let mut near = near(line(50, 20, independent(5)), seed);
        let spec = Spec {
            payload: ByteCount::new(1_000),
            spacing: Duration::from_micros(400),
            count: 5_000,
        };
        let trace = near.stream(StreamDirection::Up, spec).unwrap();
        let account = skyhaul_probe::StreamAccount::of(&trace);
        assert_eq!((account.unexplained, account.offered), (0, 5_000));
        assert_eq!(account.lost_on_path, 5_000 - trace.arrivals.len() as u64);
        // The link lost pings and questions too, some two hundred of them.
        let lost = near.close().up.counters().lost;
        assert!(
            (account.lost_on_path..account.lost_on_path + 60).contains(&lost),
            "{lost} {account:?}"
        );
    }
}

#[test]
fn bursts_reordering_and_a_policer_are_seen() {
    let bursts = Loss::GilbertElliott(
        GilbertElliott::with_bursts(
            Probability::from_ppb(20_000_000),
            core::num::NonZeroU32::new(8).unwrap(),
        )
        .unwrap(),
    );
    let found = surveyed(line(40, 30, bursts), line(40, 30, Loss::None), 1);
    assert_eq!(found.up.loss.character, Character::Bursts);
    near_to(found.up.loss.run_mean, 8.0, 0.3);
    let reordering = Reordering {
        probability: Probability::from_ppb(20_000_000),
        extra_delay: Duration::from_millis(4),
    };
    let policer = Policer { rate: Rate::from_mbps(30), burst: ByteCount::kib(64) };
    let up = LinkConfig { reordering: Some(reordering), ..line(90, 10, Loss::None) };
    let down = LinkConfig { policer: Some(policer), ..line(90, 10, Loss::None) };
    let found = surveyed(up, down, 2);
    near_to(found.up.reordering.ppm as f64, 20_000.0, 0.2);
    near_to(found.down.available.ip_bits_per_second as f64, 30e6, 0.03);
    assert_eq!(found.down.loss.character, Character::None);
}

#[test]
fn the_same_seed_gives_the_same_survey() {
    let run = || surveyed(line(10, 40, independent(10)), line(10, 40, independent(10)), 5);
    assert_eq!(run(), run());
}

#[test]
fn datagrams_arrive_when_the_link_lets_them() {
    let mut near = near(line(8, 25, Loss::None), 1);
    near.ping_for(Duration::from_secs(1), Duration::from_millis(50)).unwrap();
    let spec = Spec { payload: ByteCount::new(972), spacing: Duration::from_millis(2), count: 50 };
    for direction in [StreamDirection::Up, StreamDirection::Down] {
        let trace: Trace = near.stream(direction, spec).unwrap();
        assert_eq!((trace.arrivals.len(), trace.duplicates, trace.refused), (50, 0, 0));
        assert_eq!(trace.sent_rate(), Rate::from_bps(3_888_000));
        assert!(trace.pacing_errors().iter().all(|error| *error == 0), "{direction:?}");
    }
}

#[test]
fn a_sweep_shows_the_narrowest_place_where_spacing_falls_below_a_datagrams_time() {
    // 1,000 bytes and 28 of headers take 411 us at 20 Mbit/s.
    let mut near = near(LinkConfig { queue: ByteCount::kib(16), ..line(20, 10, Loss::None) }, 1);
    let plan = SweepPlan {
        direction: StreamDirection::Down,
        payloads: vec![ByteCount::new(1_000)],
        spacings: [100, 300, 500, 1_000].map(Duration::from_micros).to_vec(),
        count: 2_000,
        rate_max: Rate::from_mbps(40),
        headers: ByteCount::new(28),
    };
    let found = sweep(&mut near, &plan, &mut |_| {}).unwrap();
    assert_eq!((found.left_out, found.points.len()), (1, 3));
    let [full, half, quarter] = &found.points[..] else { panic!("three points") };
    near_to(full.received_bps as f64, 20e6 * 1_000.0 / 1_028.0, 0.01);
    near_to(full.inter_arrival_us.p50, 411.2, 0.01);
    near_to(full.sum.lost_percent, 100.0 * (1.0 - 300.0 / 411.2), 0.1);
    for (point, spacing) in [(half, 500.0), (quarter, 1_000.0)] {
        assert_eq!((point.sum.lost_packets, point.account.unexplained), (0, 0));
        near_to(point.received_bps as f64, 8e9 / spacing, 0.001);
        near_to(point.inter_arrival_us.p50, spacing, 0.001);
        assert!(point.pacing_error_us.max == 0.0 && point.reordering.reordered == 0);
    }
    assert_eq!(full.account.lost_on_path, full.sum.lost_packets);
}

#[test]
fn the_loss_process_of_a_line_is_found_and_what_it_does_to_a_correlator() {
    let spec =
        Spec { payload: ByteCount::new(1_000), spacing: Duration::from_millis(1), count: 60_000 };
    let rule = VlbiRule { datagrams_a_frame: 1, frames_in_a_row: 3 };
    let of = |loss, seed| {
        let mut near =
            ProbeClient::open(Virtual::new(line(50, 20, loss), line(50, 20, Loss::None), seed), 4)
                .unwrap();
        losses(&mut near, StreamDirection::Up, spec, rule).unwrap()
    };
    let random = of(independent(2), 1);
    assert_eq!(random.process.character, Character::Random);
    assert!(random.process.intervals.is_some_and(|fit| fit.probability >= 0.01));
    near_to(random.vlbi.snr, 0.98f64.sqrt(), 0.005);
    // Three of three lost, once in p^3 (1 - p) frames or so, in 3.6 million an hour: certain.
    assert!(random.vlbi.sync_loss_an_hour > 0.999 && random.account.unexplained == 0);
    let chain = GilbertElliott::with_bursts(
        Probability::from_ppb(20_000_000),
        core::num::NonZeroU32::new(5).unwrap(),
    );
    let bursts = of(Loss::GilbertElliott(chain.unwrap()), 2);
    assert_eq!(bursts.process.character, Character::Bursts);
    near_to(bursts.process.gilbert.unwrap().to_good, 0.2, 0.2);
    assert!(bursts.vlbi.seen > random.vlbi.seen && bursts.vlbi.seen > 50, "{:?}", bursts.vlbi);
    let total: u64 = bursts.interval_counts.iter().map(|(_, number)| number).sum();
    assert_eq!(total + 1, bursts.process.lost);
    let none = of(Loss::None, 3);
    assert_eq!((none.process.character, none.vlbi.sync_loss_an_hour), (Character::None, 0.0));
}

#[test]
fn a_line_that_is_cut_ends_the_measurement_with_a_reason() {
    let outage =
        skyhaul_link::Outage { start: Duration::from_secs(2), length: Duration::from_secs(3_600) };
    let mut near = near(LinkConfig { outages: vec![outage], ..line(8, 25, Loss::None) }, 1);
    let spec =
        Spec { payload: ByteCount::new(972), spacing: Duration::from_millis(2), count: 5_000 };
    assert!(matches!(near.stream(StreamDirection::Down, spec), Err(NearError::Lost(_))));
    let cut = skyhaul_link::Outage { start: Duration::ZERO, length: Duration::from_secs(3_600) };
    let dead = LinkConfig { outages: vec![cut], ..line(8, 25, Loss::None) };
    let opened = ProbeClient::open(Virtual::new(dead, line(8, 25, Loss::None), 1), 4);
    assert!(matches!(opened.err(), Some(NearError::Silent(_))));
}

#[test]
fn a_survey_takes_the_time_it_was_given_however_long_the_queue() {
    let full = |rate, one_way, millis: u64| LinkConfig {
        queue: Rate::from_mbps(rate) * Duration::from_millis(millis),
        ..line(rate, one_way, Loss::None)
    };
    let lossy = |config: LinkConfig| LinkConfig { loss: independent(10), ..config };
    let taken = |seconds: u64, config: LinkConfig| {
        let mut near = ProbeClient::open(Virtual::new(config.clone(), config, 7), 4).unwrap();
        let plan = SurveyPlan {
            time: Duration::from_secs(seconds),
            rate_max: Rate::from_mbps(400),
            payload_max: ByteCount::new(8_972),
            headers: ByteCount::new(28),
        };
        let found = survey(&mut near, &plan, &mut |_| {}).unwrap();
        near_to(
            found.up.available.ip_bits_per_second as f64,
            found.down.available.ip_bits_per_second as f64,
            0.1,
        );
        found.seconds
    };
    // A home line, one whose modem holds two seconds, and geostationary hops: a minute is enough
    // for all.
    for config in [
        full(8, 20, 50),
        full(8, 20, 2_000),
        full(50, 300, 500),
        full(2, 300, 2_000),
        lossy(full(20, 300, 1_000)),
    ] {
        let seconds = taken(60, config.clone());
        assert!((45.0..66.0).contains(&seconds), "{seconds} s over {config:?}");
    }
    for config in [full(8, 20, 50), full(8, 20, 2_000)] {
        let seconds = taken(12, config.clone());
        assert!((9.0..13.5).contains(&seconds), "{seconds} s over {config:?}");
    }
    // Forty round trips of 600 ms are more than there is.
    for config in [full(50, 300, 500), lossy(full(20, 300, 1_000))] {
        let seconds = taken(12, config.clone());
        assert!(seconds < 12.0 + 40.0 * 0.6, "{seconds} s over {config:?}");
    }
}
