//! The comparison of the delivered data with the captured data: one sentence for each difference.

use super::contact_row::{ApidSummary, ChannelSummary, ContactRow};
use super::truth::{ExpectedChannel, ExpectedContact};
use std::collections::BTreeSet;

/// Compares what an input's contacts delivered with what its pass held.
pub fn judge(input: &str, truth: &ExpectedContact, contacts: &[ContactRow]) -> Vec<String> {
    let contact = match contacts {
        [] => {
            return vec![format!(
                "{input}: no contact arrived, {} frames are missing",
                truth.frames
            )];
        }
        [contact] => contact,
        [..] => return vec![format!("{input}: one pass became {} contacts", contacts.len())],
    };
    let mut found = Differences { place: input.to_owned(), sentences: Vec::new() };
    found.text("mission", &contact.mission, &truth.mission);
    found.count("spacecraft id", contact.scid.map(u64::from), Some(u64::from(truth.scid)));
    found.count("frames captured", Some(contact.frames.captured), Some(truth.frames));
    found.count("frames delivered", Some(contact.frames.delivered), Some(truth.frames));
    let missing = truth.channels.values().map(|channel| channel.missing).sum();
    found.count("frames missing by their counters", Some(contact.frames.missing), Some(missing));
    found.count("frames set aside", Some(contact.frames.set_aside), Some(truth.set_aside));
    found.count(
        "symbols corrected",
        Some(contact.frames.corrected_symbols),
        Some(truth.corrected_symbols),
    );
    found.count(
        "blocks that could not be read from a disk",
        Some(contact.frames.damaged_blocks),
        Some(0),
    );
    found.count("frames that could not be read", Some(contact.frames.unreadable), Some(0));
    if contact.frames.unaccounted != 0 {
        let count = contact.frames.unaccounted;
        found.say(format!("the station's closing record counts {count} frames more than arrived"));
    }
    let digest = contact.frames.sha256.as_deref().unwrap_or("none");
    found.text("digest of all frames", digest, &truth.frames_sha256);
    let numbers: BTreeSet<u8> =
        truth.channels.keys().chain(contact.channels.keys()).copied().collect();
    for vcid in numbers {
        found.place = format!("{input}, virtual channel {vcid}");
        channel(&mut found, contact.channels.get(&vcid), truth.channels.get(&vcid));
    }
    applications(input, &mut found, contact, truth);
    found.sentences
}

fn channel(
    found: &mut Differences,
    got: Option<&ChannelSummary>,
    wanted: Option<&ExpectedChannel>,
) {
    let got = got.cloned().unwrap_or_default();
    let wanted = wanted.cloned().unwrap_or_default();
    found.count("frames", Some(got.frames), Some(wanted.frames));
    found.count("frames missing", Some(got.missing), Some(wanted.missing));
    found.count("packets", Some(got.packets), Some(wanted.packets));
}

/// Each packet of a pass is in a product, or set aside with its bytes and a reason, or an idle one.
fn applications(
    input: &str,
    found: &mut Differences,
    contact: &ContactRow,
    truth: &ExpectedContact,
) {
    let wanted = |apid: u16| -> u64 {
        truth.channels.values().filter_map(|channel| channel.apids.get(&apid)).sum()
    };
    let known = truth.channels.values().flat_map(|channel| channel.apids.keys());
    let numbers: BTreeSet<u16> = known.chain(contact.packets.apids.keys()).copied().collect();
    let mut short = Vec::new();
    for apid in numbers {
        let got = contact.packets.apids.get(&apid).copied().unwrap_or_default();
        if got.delivered + got.set_aside != wanted(apid) {
            short.push((apid, got, wanted(apid)));
        }
    }
    // An account lists the first packets set aside one by one and counts the others: these fill
    // what lacks.
    let lacking: u64 = short
        .iter()
        .map(|(_, got, wanted)| wanted.saturating_sub(got.delivered + got.set_aside))
        .sum();
    let is_over = short.iter().any(|(_, got, wanted)| got.delivered + got.set_aside > *wanted);
    if is_over || lacking != contact.packets.unlisted_aside {
        for (apid, ApidSummary { delivered, set_aside }, wanted) in short {
            found.place = format!("{input}, APID {apid}");
            let what = match set_aside {
                0 => "packets".to_owned(),
                _ => format!("packets ({set_aside} of them set aside)"),
            };
            found.count(&what, Some(delivered + set_aside), Some(wanted));
        }
        found.place = input.to_owned();
        if contact.packets.unlisted_aside > 0 {
            let what = "packets set aside and not listed";
            found.count(what, Some(contact.packets.unlisted_aside), Some(lacking));
        }
    }
    found.place = input.to_owned();
    found.count("packets dropped as duplicates", Some(contact.packets.duplicates), Some(0));
    found.count("packets dropped for lack of space", Some(contact.packets.rejected), Some(0));
    if !contact.packets.balanced {
        found.say("a product's account does not balance".to_owned());
    }
}

/// Differences found so far, and the place that is being looked at.
struct Differences {
    place: String,
    sentences: Vec<String>,
}

impl Differences {
    fn say(&mut self, what: String) {
        self.sentences.push(format!("{}: {what}", self.place));
    }

    fn count(&mut self, what: &str, got: Option<u64>, wanted: Option<u64>) {
        if got != wanted {
            let text =
                |count: Option<u64>| count.map_or("none".to_owned(), |count| count.to_string());
            self.say(format!("{what}: {} instead of {}", text(got), text(wanted)));
        }
    }

    fn text(&mut self, what: &str, got: &str, wanted: &str) {
        if got != wanted {
            self.say(format!("{what}: {got} instead of {wanted}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contact_row::FrameCounts;
    use super::super::truth::bundled;
    use super::*;

    /// A contact that delivered exactly the `truth`.
    fn delivered(truth: &ExpectedContact) -> ContactRow {
        let mut contact = ContactRow {
            input: "antenna-1".to_owned(),
            mission: truth.mission.clone(),
            scid: Some(truth.scid),
            frames: FrameCounts {
                captured: truth.frames,
                delivered: truth.frames,
                sha256: Some(truth.frames_sha256.clone()),
                ..FrameCounts::default()
            },
            ..ContactRow::default()
        };
        for (vcid, channel) in &truth.channels {
            let ExpectedChannel { frames, missing, packets, .. } = *channel;
            contact.channels.insert(*vcid, ChannelSummary { frames, missing, packets });
            for (apid, packets) in &channel.apids {
                contact.packets.apids.entry(*apid).or_default().delivered += packets;
            }
        }
        contact
    }

    fn truth() -> ExpectedContact {
        bundled("aqua.20241206T175646.dat", "aqua")
    }

    #[test]
    fn a_complete_contact_has_no_differences() {
        assert_eq!(judge("antenna-1", &truth(), &[delivered(&truth())]), Vec::<String>::new());
        let mut contact = delivered(&truth());
        contact.packets.apids.insert(404, ApidSummary { delivered: 20, set_aside: 4 });
        assert_eq!(
            judge("antenna-1", &truth(), &[contact]),
            Vec::<String>::new(),
            "set aside is not lost"
        );
    }

    #[test]
    fn every_single_change_is_found_and_named() {
        type Change = fn(&mut ContactRow);
        let cases: [(Change, &str); 15] = [
            (|c| c.mission = "terra".to_owned(), "mission: terra instead of aqua"),
            (|c| c.scid = None, "spacecraft id: none instead of 154"),
            (|c| c.frames.captured -= 1, "frames captured: 1022 instead of 1023"),
            (|c| c.frames.delivered -= 1, "frames delivered: 1022 instead of 1023"),
            (|c| c.frames.missing += 1, "frames missing by their counters: 1 instead of 0"),
            (|c| c.frames.set_aside += 1, "frames set aside: 1 instead of 0"),
            (|c| c.frames.corrected_symbols += 1, "symbols corrected: 1 instead of 0"),
            (|c| c.frames.damaged_blocks += 1, "could not be read from a disk: 1 instead of 0"),
            (|c| c.frames.unaccounted = 2, "counts 2 frames more than arrived"),
            (|c| c.frames.sha256 = None, "digest of all frames: none instead of d3116831"),
            (|c| c.packets.duplicates = 1, "packets dropped as duplicates: 1 instead of 0"),
            (|c| c.packets.rejected = 1, "packets dropped for lack of space: 1 instead of 0"),
            (|c| c.packets.balanced = false, "does not balance"),
            (|c| c.packets.unlisted_aside = 1, "packets set aside and not listed: 1 instead of 0"),
            (|c| c.frames.unreadable = 1, "frames that could not be read: 1 instead of 0"),
        ];
        for (change, sentence) in cases {
            let mut contact = delivered(&truth());
            change(&mut contact);
            let found = judge("antenna-1", &truth(), &[contact]);
            assert!(matches!(&found[..], [one] if one.contains(sentence)), "{sentence}: {found:?}");
        }
    }

    #[test]
    fn every_single_count_of_a_channel_or_application_counts() {
        for vcid in truth().channels.into_keys() {
            let changes: [fn(&mut ChannelSummary); 3] =
                [|c| c.frames += 1, |c| c.missing += 1, |c| c.packets += 1];
            for change in changes {
                let mut contact = delivered(&truth());
                change(contact.channels.get_mut(&vcid).unwrap());
                assert_eq!(judge("antenna-1", &truth(), &[contact]).len(), 1);
            }
        }
        let apids: Vec<u16> = delivered(&truth()).packets.apids.into_keys().chain([1]).collect();
        for apid in apids {
            let mut contact = delivered(&truth());
            contact.packets.apids.entry(apid).or_default().delivered += 1;
            let found = judge("antenna-1", &truth(), &[contact]);
            assert!(
                matches!(&found[..], [one] if one.contains(&format!("APID {apid}: packets"))),
                "{found:?}"
            );
        }
    }

    #[test]
    fn packets_set_aside_beyond_an_accounts_list_fill_exactly_the_difference() {
        let mut contact = delivered(&truth());
        contact.packets.apids.insert(404, ApidSummary { delivered: 20, set_aside: 1 });
        contact.packets.unlisted_aside = 3;
        assert_eq!(judge("antenna-1", &truth(), &[contact.clone()]), Vec::<String>::new());
        contact.packets.unlisted_aside = 2;
        let found = judge("antenna-1", &truth(), &[contact]);
        assert_eq!(
            found[0],
            "antenna-1, APID 404: packets (1 of them set aside): 21 instead of 24"
        );
    }

    #[test]
    fn a_pass_is_one_contact() {
        let none = judge("antenna-1", &truth(), &[]);
        assert_eq!(none, ["antenna-1: no contact arrived, 1023 frames are missing"]);
        let two = [delivered(&truth()), delivered(&truth())];
        assert_eq!(judge("antenna-1", &truth(), &two), ["antenna-1: one pass became 2 contacts"]);
    }
}
