use super::talk::{Span, UnavailableReason};
use super::*;
use proptest::prelude::*;
use skyhaul_ccsds::count::Modulus;
use skyhaul_ccsds::id::{Apid, Channel, Scid, Vcid};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_units::Utc;
use std::collections::VecDeque;

const CHANNEL: Channel = Channel { scid: Scid::from_bits(157), vcid: Vcid::from_bits(16) };

fn id(station: &str, flow: u32) -> ContactId {
    ContactId { station: station.to_owned(), flow: FlowId(flow) }
}

fn opened(completes: Option<u32>) -> ContactStart {
    ContactStart {
        channel: "x-band".to_owned(),
        mission: "snpp".to_owned(),
        at: Utc::from_micros(0),
        completes: completes.map(FlowId),
    }
}

/// Frame number `at` of the downlink: 1 ms and 1000 bits each, the count from just below where it
/// wraps.
fn seen(at: u64) -> DurableFrame {
    let modulus = Modulus::AOS_FRAME;
    DurableFrame {
        channel: CHANNEL,
        count: (modulus.values() - 5 + at) % modulus.values(),
        modulus,
        place: Place {
            received: Utc::from_micros(1_000 * at as i64),
            position: BitPosition::from_bits(1_000 * at),
        },
        packet: None,
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A ledger that has seen so many frames but those of `missing`.
fn ledger(frames: u64, missing: &[u64]) -> Ledger {
    let mut ledger = Ledger::new(100);
    ledger.open(&id("polar", 1), opened(None));
    let there: Vec<DurableFrame> =
        (0..frames).filter(|at| !missing.contains(at)).map(seen).collect();
    ledger.block(&id("polar", 1), Seq(0), &there);
    ledger
}

fn gaps(ledger: &Ledger) -> Vec<(u64, u64, GapState)> {
    let all = ledger.contacts().flat_map(|known| known.gaps);
    all.map(|gap| (gap.missed, gap.missing(), gap.state)).collect()
}

fn refill(ledger: &mut Ledger, flow: u32, frames: &[u64]) {
    let frames: Vec<DurableFrame> = frames.iter().map(|at| seen(*at)).collect();
    ledger.open(&id("polar", flow), opened(Some(1)));
    ledger.block(&id("polar", flow), Seq(0), &frames);
}

#[test]
fn what_is_missing_is_asked_for_exactly_and_filled_by_what_completes_the_contact() {
    let mut ledger = ledger(20, &[3, 4, 5, 6, 12]);
    assert_eq!(gaps(&ledger), [(4, 4, GapState::Open), (1, 1, GapState::Open)]);
    let ask = ledger.ask("polar", at(0)).unwrap();
    assert_eq!((ask.number, ask.contact, ask.channel.as_str()), (100, FlowId(1), "x-band"));
    let (from, to) = (seen(2).place, seen(7).place);
    assert_eq!(ask.spans[0], Span { channel: CHANNEL, first: seen(3).count, count: 4, from, to });
    assert_eq!((ask.spans[1].first, ask.spans[1].count), (seen(12).count, 1));
    assert_eq!(ledger.ask("polar", at(500)), None, "once");
    refill(&mut ledger, 2, &[3, 4, 5]);
    ledger.answer(
        "polar",
        &GapAnswer {
            number: 100,
            outcomes: vec![(4, UnavailableReason::Found), (0, UnavailableReason::NotDecodable)],
        },
    );
    let waits =
        GapState::Requested { ask: 100, wanted: 4, answer: Some((0, UnavailableReason::Found)) };
    assert_eq!(
        gaps(&ledger),
        [(4, 1, waits), (1, 1, GapState::Unrecoverable(UnavailableReason::NotDecodable))]
    );
    ledger.block(&id("polar", 2), Seq(1), &[seen(6)]);
    assert_eq!(gaps(&ledger)[0], (4, 0, GapState::Filled));
}

#[test]
fn what_was_not_to_be_had_is_asked_for_again_when_somebody_wants_it() {
    let mut ledger = ledger(30, &[3, 4, 12, 20]);
    let ask = ledger.ask("polar", at(0)).unwrap();
    ledger.answer(
        "polar",
        &GapAnswer {
            number: ask.number,
            outcomes: vec![
                (0, UnavailableReason::NotCovered),
                (0, UnavailableReason::Disabled),
                (1, UnavailableReason::Found),
            ],
        },
    );
    refill(&mut ledger, 2, &[20]);
    assert_eq!(ledger.ask("polar", at(500)), None);
    assert_eq!(ledger.ask_again(|id, _, _| id.station == "wallops"), AskedAgain::default());
    let again = ledger.ask_again(|_, _, gap| gap.first == seen(3).count);
    assert_eq!(again, AskedAgain { contacts: 1, gaps: 1, frames: 2, left: 0 });
    let ask = ledger.ask("polar", at(500)).unwrap();
    assert_eq!(
        ask.spans.iter().map(|span| (span.first, span.count)).collect::<Vec<_>>(),
        [(seen(3).count, 2)]
    );
    assert_eq!(
        ledger.contacts().next().unwrap().gaps.map(|gap| gap.asked).collect::<Vec<_>>(),
        [1, 1, 1]
    );
    // What is under way or filled stays so; what no station can be asked for too.
    ledger.stations(&BTreeSet::new());
    ledger.disconnected("polar");
    ledger.stations(&BTreeSet::new());
    let again = ledger.ask_again(|_, _, _| true);
    assert_eq!(again, AskedAgain { contacts: 1, gaps: 1, frames: 1, left: 1 });
}

#[test]
fn a_part_of_a_gap_that_came_back_is_not_asked_for_again() {
    let mut ledger = ledger(20, &[3, 4, 5, 6, 7]);
    ledger.ask("polar", at(0)).unwrap();
    refill(&mut ledger, 2, &[5]);
    ledger.disconnected("polar");
    let ask = ledger.ask("polar", at(50)).unwrap();
    let spans: Vec<(u64, u64)> = ask.spans.iter().map(|span| (span.first, span.count)).collect();
    assert_eq!(spans, [(seen(3).count, 2), (seen(6).count, 2)]);
    let outcomes = vec![(2, UnavailableReason::Found), (1, UnavailableReason::NotDecodable)];
    ledger.answer("polar", &GapAnswer { number: ask.number, outcomes });
    ledger.block(&id("polar", 2), Seq(1), &[seen(3), seen(4), seen(7)]);
    assert_eq!(gaps(&ledger), [(5, 1, GapState::Unrecoverable(UnavailableReason::NotDecodable))]);
}

#[test]
fn another_station_that_saw_the_same_frames_fills_a_gap_and_one_that_saw_others_does_not() {
    let mut ledger = ledger(20, &[3, 4]);
    ledger.open(&id("desert", 1), opened(None));
    let shifted = |at: u64, ms: i64| {
        let frame = seen(at);
        let received = Utc::from_micros(frame.place.received.as_micros() + 1_000 * ms);
        DurableFrame { place: Place { received, ..frame.place }, ..frame }
    };
    ledger.block(&id("desert", 1), Seq(0), &[shifted(2, 5_000), shifted(3, 5_000)]);
    assert_eq!(gaps(&ledger), [(2, 2, GapState::Open)], "five seconds are no difference of clocks");
    ledger.open(&id("desert", 2), opened(None));
    ledger.block(&id("desert", 2), Seq(0), &[shifted(2, 300), shifted(3, 300), shifted(4, 300)]);
    assert_eq!(gaps(&ledger), [(2, 0, GapState::Filled)]);
}

/// Regression: all gaps of the frame's own station were walked through before those of others: the
/// work grew with their square, and a gap behind 256 of them was not filled.
#[test]
fn gaps_of_the_own_station_hide_none_of_another_one() {
    let mut ledger = Ledger::new(100);
    let every_second: Vec<DurableFrame> = (0..1_200).step_by(2).map(seen).collect();
    for (contact, frames) in [
        (id("desert", 1), &every_second[..]),
        (id("polar", 1), &[seen(0), seen(1_999)]),
        (id("desert", 2), &[seen(1_101)]),
    ] {
        ledger.open(&contact, opened(None));
        ledger.block(&contact, Seq(0), frames);
    }
    let gaps = gaps(&ledger);
    assert_eq!((gaps.len(), gaps.last().unwrap().1), (599 + 1, 1_998 - 1));
}

#[test]
fn a_count_that_repeats_or_goes_back_is_no_gap() {
    let mut ledger = ledger(5, &[]);
    let frames: Vec<DurableFrame> = [4, 2, 3, 4, 5].map(seen).to_vec();
    ledger.block(&id("polar", 1), Seq(1), &frames);
    assert_eq!((gaps(&ledger), ledger.totals().restarts), (Vec::new(), 2));
}

/// Frame number `at` of a TM downlink, whose count has 8 bits; two packets begin in each.
fn short(at: u64) -> DurableFrame {
    let packet = Some((Apid::from_bits(801), (2 * at % (1 << 14)) as u16));
    DurableFrame { count: at % 256, modulus: Modulus::TM_FRAME, packet, ..seen(at) }
}

#[test]
fn a_loss_of_most_of_a_short_count_is_asked_for_and_filled_and_a_reset_is_not() {
    for missed in [129, 200, 254] {
        let (main, completing) = (id("polar", 1), id("polar", 2));
        let mut ledger = Ledger::new(100);
        ledger.open(&main, opened(None));
        // Places tell nothing: what was lost is not in the input.
        let close = |at: u64| DurableFrame { place: seen(at.min(300)).place, ..short(at) };
        let there: Vec<DurableFrame> = (0..300).chain(300 + missed..700).map(close).collect();
        ledger.block(&main, Seq(0), &there);
        assert_eq!(gaps(&ledger), [(missed, missed, GapState::Open)]);
        let ask = ledger.ask("polar", at(0)).unwrap();
        assert_eq!((ask.spans[0].first, ask.spans[0].count), (300 % 256, missed));
        ledger.open(&completing, opened(Some(1)));
        let between = Place { position: BitPosition::from_bits(299_500), ..seen(300).place };
        let back: Vec<DurableFrame> =
            (300..300 + missed).map(|at| DurableFrame { place: between, ..short(at) }).collect();
        ledger.block(&completing, Seq(0), &back);
        assert_eq!(gaps(&ledger), [(missed, 0, GapState::Filled)]);
        assert_eq!(ledger.totals().restarts, 0);
    }
    let mut ledger = Ledger::new(100);
    ledger.open(&id("polar", 1), opened(None));
    let set_back = |at: u64| DurableFrame { count: (at + 156) % 256, ..short(at) };
    let frames: Vec<DurableFrame> = (0..300).map(short).chain((300..500).map(set_back)).collect();
    ledger.block(&id("polar", 1), Seq(0), &frames);
    assert_eq!((gaps(&ledger), ledger.totals().restarts), (Vec::new(), 1));
}

#[test]
fn a_loss_of_most_of_a_short_count_is_found_by_a_centre_that_was_killed_before_it_too() {
    let main = id("polar", 1);
    let blocks = [(0..300).map(short).collect::<Vec<_>>(), (500..700).map(short).collect()];
    let mut killed = Ledger::new(0);
    killed.open(&main, opened(None));
    killed.block(&main, Seq(0), &blocks[0]);
    let mut again = Ledger::new(9);
    again.restore(&killed.record(&main).unwrap()).unwrap();
    for (seq, block) in (0..).map(Seq).zip(&blocks) {
        again.block(&main, seq, block);
    }
    assert_eq!(gaps(&again), [(200, 200, GapState::Open)]);
}

#[test]
fn a_station_that_does_not_answer_is_asked_again_and_given_up_in_the_end() {
    let mut ledger = ledger(20, &[3]);
    for round in 0..5 {
        assert!(ledger.ask("polar", at(130_000 * round)).is_some(), "{round}");
    }
    assert_eq!(ledger.ask("polar", at(130_000 * 5)), None);
    assert_eq!(gaps(&ledger), [(1, 1, GapState::Unrecoverable(UnavailableReason::NoAnswer))]);
    refill(&mut ledger, 2, &[3]);
    assert_eq!(gaps(&ledger), [(1, 0, GapState::Filled)], "should it come after all");
}

#[test]
fn questions_that_a_line_took_with_it_are_put_again_at_once_however_often() {
    let mut ledger = ledger(20, &[3]);
    for round in 0..20 {
        let ask = ledger.ask("polar", at(60 * round)).unwrap();
        if round % 2 == 0 { ledger.disconnected("polar") } else { ledger.not_asked(ask.number) }
    }
    assert_eq!(gaps(&ledger), [(1, 1, GapState::Open)]);
}

#[test]
fn questions_are_bounded_and_a_late_answer_says_nothing() {
    let missing: Vec<u64> = (1..6_000).step_by(2).collect();
    let mut ledger = ledger(6_001, &missing);
    let asked: Vec<usize> =
        (0..9).filter_map(|round| Some(ledger.ask("polar", at(50 * round))?.spans.len())).collect();
    assert_eq!(asked, [SPANS_MAX; 4]);
    assert_eq!(ledger.ask("desert", at(1_000)), None);
    ledger.answer(
        "desert",
        &GapAnswer { number: 100, outcomes: vec![(0, UnavailableReason::Disabled); SPANS_MAX] },
    );
    assert!(
        gaps(&ledger).iter().all(|gap| !matches!(gap.2, GapState::Unrecoverable(_))),
        "not theirs to say"
    );
}

#[test]
fn at_its_end_the_station_is_told_that_no_more_will_be_asked() {
    let mut ledger = ledger(20, &[3]);
    let first = ledger.ask("polar", at(0)).unwrap();
    ledger.close(&id("polar", 1), Vec::new());
    let last = ledger.ask("polar", at(50)).unwrap();
    assert_eq!((first.is_last, last.is_last, last.spans.len()), (false, true, 0));
    assert_eq!(ledger.ask("polar", at(100)), None);
}

#[test]
fn what_was_promised_and_did_not_come_is_asked_for_again_but_not_for_ever() {
    let mut ledger = ledger(20, &[3]);
    for round in 0..5 {
        let ask = ledger.ask("polar", at(100 * round)).unwrap();
        ledger.answer(
            "polar",
            &GapAnswer { number: ask.number, outcomes: vec![(1, UnavailableReason::Found)] },
        );
        let flow = 2 + round as u32;
        refill(&mut ledger, flow, &[]);
        ledger.close(&id("polar", flow), Vec::new());
    }
    assert_eq!(ledger.ask("polar", at(1_000)), None);
    assert_eq!(gaps(&ledger), [(1, 1, GapState::Unrecoverable(UnavailableReason::Refused))]);
}

#[test]
fn packets_are_missing_as_long_as_frames_are_where_they_are() {
    let mut ledger = ledger(20, &[3, 12]);
    let gap = |from: i64, to: i64| PacketGap {
        vcids: vec![CHANNEL.vcid],
        apid: Apid::from_bits(801),
        first: 7,
        missed: 2,
        from: Utc::from_micros(from),
        to: Utc::from_micros(to),
    };
    ledger
        .close(&id("polar", 1), vec![gap(1_000, 5_000), gap(11_000, 14_000), gap(16_000, 17_000)]);
    let ask = ledger.ask("polar", at(0)).unwrap();
    refill(&mut ledger, 2, &[3]);
    ledger.answer(
        "polar",
        &GapAnswer {
            number: ask.number,
            outcomes: vec![(1, UnavailableReason::Found), (0, UnavailableReason::NotCovered)],
        },
    );
    let states: Vec<PacketGapState> =
        ledger.packets(&id("polar", 1)).map(|(_, state)| state).collect();
    let lost = PacketGapState::Unrecoverable;
    assert_eq!(
        states,
        [PacketGapState::Filled, lost(PacketLoss::Frames), lost(PacketLoss::NotSent)]
    );
}

#[test]
fn the_oldest_contact_without_gaps_is_forgotten_first() {
    let mut ledger = ledger(20, &[3]);
    ledger.close(&id("polar", 1), Vec::new());
    for flow in 2..=CONTACTS_MAX as u32 {
        ledger.open(&id("polar", flow), opened(None));
    }
    ledger.open(&id("polar", 5_000), opened(None));
    assert_eq!(
        (ledger.totals().unfollowed, ledger.forgotten()),
        (0, vec![id("polar", 1)]),
        "closed, at least"
    );
    ledger.open(&id("polar", 5_001), opened(None));
    assert_eq!(ledger.totals().unfollowed, 1);
}

#[test]
fn a_station_that_answers_nothing_is_not_told_for_ever_that_it_was_the_last_question() {
    let mut ledger = ledger(20, &[3]);
    ledger.close(&id("polar", 1), Vec::new());
    let asked = (0..50).filter(|round| ledger.ask("polar", at(130_000 * round)).is_some()).count();
    assert_eq!(asked, 6, "five times for the frame, and once to say that it was the last");
}

#[test]
fn what_a_station_had_that_is_no_more_is_not_to_be_had_until_it_is_back() {
    let mut ledger = ledger(20, &[3]);
    ledger.stations(&BTreeSet::from(["desert".to_owned()]));
    assert_eq!(gaps(&ledger), [(1, 1, GapState::Unrecoverable(UnavailableReason::NoStation))]);
    assert_eq!(ledger.ask("polar", at(0)), None);
    let mut again = Ledger::new(0);
    again.restore(&ledger.record(&id("polar", 1)).unwrap()).unwrap();
    again.stations(&BTreeSet::from(["polar".to_owned()]));
    assert_eq!(gaps(&again), [(1, 1, GapState::Open)]);
    assert!(again.ask("polar", at(0)).is_some());
}

#[test]
fn gaps_of_all_contacts_together_are_bounded() {
    let mut ledger = Ledger::new(0);
    let every_second: Vec<DurableFrame> = (0..12_000).step_by(2).map(seen).collect();
    for flow in 0..50 {
        ledger.open(&id("polar", flow), opened(None));
        ledger.block(&id("polar", flow), Seq(0), &every_second);
    }
    let kept = ledger.contacts().map(|known| known.gaps.count()).sum::<usize>();
    assert_eq!((kept, ledger.totals().overflow), (ALL_GAPS_MAX, 50 * 5_999 - ALL_GAPS_MAX as u64));
}

/// Regression: a gap stayed as it was although its frame had come. Behind a relay nobody waits for
/// the question, and blocks of one contact overtake those of another.
#[test]
fn frames_that_come_before_their_gap_is_found_fill_it() {
    let (main, completing) = (id("polar", 1), id("polar", 2));
    let mut before = ledger(4, &[]);
    refill(&mut before, 2, &[5, 6, 9]);
    // A kill in between forgets none of them.
    let mut ledger = Ledger::new(200);
    for contact in [&main, &completing] {
        ledger.restore(&before.record(contact).unwrap()).unwrap();
    }
    ledger.block(&main, Seq(1), &[4, 7, 8, 12].map(seen));
    assert_eq!(gaps(&ledger), [(2, 0, GapState::Filled), (3, 2, GapState::Open)]);
    let ask = ledger.ask("polar", at(0)).unwrap();
    let asked: Vec<_> = ask.spans.iter().map(|span| (span.first, span.count)).collect();
    assert_eq!(asked, [(seen(10).count, 2)]);
    // They are of no use to anyone else, nor when their contact has ended.
    ledger.open(&id("north", 1), opened(None));
    ledger.block(&id("north", 1), Seq(0), &[4, 7].map(seen));
    assert_eq!(gaps(&ledger)[0], (2, 2, GapState::Open));
    ledger.close(&main, Vec::new());
    ledger.block(&completing, Seq(1), &[seen(14)]);
    let kept = String::from_utf8(ledger.record(&completing).unwrap()).unwrap();
    assert!(kept.contains(r#""newest":[]"#), "{kept}");
}

#[test]
fn early_frames_are_bounded_and_the_others_are_asked_for() {
    let many = 2 * early::EARLY_MAX as u64;
    let mut ledger = ledger(2, &[]);
    refill(&mut ledger, 2, &(2..many).collect::<Vec<_>>());
    ledger.block(&id("polar", 1), Seq(1), &[seen(many)]);
    let [(missed, missing, GapState::Open)] = gaps(&ledger)[..] else { panic!("one gap") };
    assert_eq!((missed, missed - missing), (many - 2, early::EARLY_MAX as u64));
    assert!(ledger.record(&id("polar", 2)).unwrap().len() < 1 << 20);
}

/// A centre and a station in virtual time: what is said and sent takes the one-way delay, and
/// refilling has the rate. Returns when each gap was found and when it was filled, and how many
/// messages went to the station.
fn play(
    lost: &BTreeSet<u64>,
    frames: u64,
    delay: u64,
    frame_ms: u64,
) -> (BTreeMap<u64, (u64, u64)>, usize) {
    const LOOK: u64 = 50;
    let (main, mut ledger) = (id("polar", 1), Ledger::new(0));
    ledger.open(&main, opened(None));
    ledger.open(&id("polar", 2), opened(Some(1)));
    let mut questions: Vec<(u64, Ask)> = Vec::new();
    let mut coming: Vec<(u64, Vec<u64>, GapAnswer)> = Vec::new();
    let (mut found, mut line_free, mut asks, mut refills) = (BTreeMap::new(), 0, 0, 0);
    for tick in 0..frames + 20 * delay + 60_000 {
        // Live frames are a millisecond each.
        if let Some(frame) =
            tick.checked_sub(delay).filter(|frame| *frame < frames && !lost.contains(frame))
        {
            ledger.block(&main, Seq(frame), &[seen(frame)]);
            let before = (0..frame).rev().take_while(|frame| lost.contains(frame));
            found.extend(before.map(|frame| (frame, (tick, 0))));
        }
        if tick % LOOK == 0 {
            while let Some(ask) = ledger.ask("polar", at(tick)) {
                asks += 1;
                questions.push((tick + delay, ask));
            }
        }
        for (_, ask) in questions.extract_if(.., |(then, _)| *then == tick) {
            let places = ask.spans.iter().flat_map(|span| {
                (0..span.count).map(|at| (span.first + at + 5) % Modulus::AOS_FRAME.values())
            });
            let places: Vec<u64> = places.collect();
            line_free = tick.max(line_free) + frame_ms * places.len() as u64;
            let outcomes =
                ask.spans.iter().map(|span| (span.count, UnavailableReason::Found)).collect();
            coming.push((line_free + delay, places, GapAnswer { number: ask.number, outcomes }));
        }
        for (_, places, answer) in coming.extract_if(.., |(then, ..)| *then == tick) {
            ledger.answer("polar", &answer);
            let block: Vec<DurableFrame> = places.iter().map(|place| seen(*place)).collect();
            ledger.block(&id("polar", 2), Seq(refills), &block);
            refills += 1;
            for place in places {
                found.entry(place).or_insert((0, 0)).1 = tick;
            }
        }
    }
    assert!(
        ledger.contacts().flat_map(|known| known.gaps).all(|gap| gap.state == GapState::Filled)
    );
    assert!(ledger.contacts().flat_map(|known| known.gaps).all(|gap| gap.asked == 1));
    (found, asks)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// One in a hundred is lost at random: each is back within two round trips and what its
    /// transfer takes, and is asked for once.
    #[test]
    fn what_is_lost_is_back_within_two_round_trips_and_its_transfer(
        seed in any::<u64>(), delay in 100u64..600, frame_ms in 1u64..4,
    ) {
        const FRAMES: u64 = 4_000;
        let mut state = seed;
        let lost = (1..FRAMES - 1).filter(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 100 == 0
        });
        let lost: BTreeSet<u64> = lost.collect();
        let (times, asks) = play(&lost, FRAMES, delay, frame_ms);
        prop_assert_eq!(times.len(), lost.len());
        // What one question and the one before it ask for.
        let transfer = 2 * frame_ms * lost.len() as u64;
        for (frame, (found, filled)) in times {
            let round_trips = 2 * 2 * delay;
            prop_assert!(found > 0 && filled <= found + round_trips + transfer, "{frame}: {found} \
                                                                                to {filled}");
        }
        prop_assert!(asks <= lost.len());
    }
}

#[test]
fn a_damaged_record_is_refused() {
    let ledger = ledger(20, &[3]);
    let record = String::from_utf8(ledger.record(&id("polar", 1)).unwrap()).unwrap();
    for (from, to) in
        [("\"version\":1", "\"version\":2"), ("[[0,0]]", "[[0,9]]"), ("16777216", "100"), ("{", "")]
    {
        assert!(record.contains(from), "{record}");
        assert!(Ledger::new(0).restore(record.replacen(from, to, 1).as_bytes()).is_err(), "{from}");
    }
}

proptest! {
    /// Whatever is lost, comes back, before or behind what it completes, and whenever the centre is
    /// killed: in the end exactly what never came is missing, and what was asked for is what was
    /// missing.
    #[test]
    fn a_kill_at_any_place_changes_nothing(
        lost in proptest::collection::btree_set(1u64..200, 0..60),
        back in proptest::collection::vec(1u64..200, 0..60),
        kill in 0usize..40, blocks in 1u64..20,
        turns in proptest::collection::vec(any::<bool>(), 40),
    ) {
        let there: Vec<DurableFrame> = (0..=200).filter(|at|
            !lost.contains(at)).map(seen).collect();
        let back: Vec<DurableFrame> = back.into_iter().filter(|at|
            lost.contains(at)).map(seen).collect();
        let (main, completing) = (id("polar", 1), id("polar", 2));
        type Step = (ContactId, ContactStart, Seq, Vec<DurableFrame>);
        let (mut first, mut second) = (VecDeque::<Step>::new(), VecDeque::<Step>::new());
        for (number, frames) in there.chunks(there.len().div_ceil(blocks as usize)).enumerate() {
            first.push_back((main.clone(), opened(None), Seq(number as u64), frames.to_vec()));
        }
        for (number, frames) in back.chunks(7).enumerate() {
            let seq = Seq(number as u64);
            second.push_back((completing.clone(), opened(Some(1)), seq, frames.to_vec()));
        }
        let mut steps: Vec<Step> = Vec::new();
        for is_first in turns {
            steps.extend(if is_first { first.pop_front() } else { second.pop_front() });
        }
        steps.extend(first.into_iter().chain(second));
        let take = |ledger: &mut Ledger, (id, opened, seq, frames): &Step| {
            ledger.open(id, opened.clone());
            if ledger.takes(id, *seq) {
                ledger.block(id, *seq, frames);
            }
        };
        let mut whole = Ledger::new(0);
        steps.iter().for_each(|step| take(&mut whole, step));
        let mut killed = Ledger::new(0);
        steps.iter().take(kill).for_each(|step| take(&mut killed, step));
        let mut again = Ledger::new(9);
        for id in [&main, &completing] {
            if let Some(record) = killed.record(id) {
                again.restore(&record).unwrap();
            }
        }
        steps.iter().for_each(|step| take(&mut again, step));
        prop_assert_eq!(gaps(&again), gaps(&whole));
        let returned: BTreeSet<u64> = back.iter().map(|seen| seen.count).collect();
        let missing: u64 = gaps(&whole).iter().map(|gap| gap.1).sum();
        prop_assert_eq!(missing, lost.len() as u64 - returned.len() as u64);
        let mut asked = 0;
        for round in 0..4 {
            if let Some(ask) = again.ask("polar", at(100 * round)) {
                asked += ask.spans.iter().map(|span| span.count).sum::<u64>();
            }
        }
        prop_assert_eq!(asked, missing);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = talk::Talk::decode(&bytes);
        let _ = Ledger::new(0).restore(&bytes);
    }
}
