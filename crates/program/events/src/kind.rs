//! The kinds of alarms: what each means and what to do. `docs/reference/alarms.md` is made of them.

use crate::event::Severity;
use serde::{Deserialize, Serialize};
use skyhaul_units::Duration;

/// How long a condition lasts before it is an alarm, unless it is one at once.
pub const HOLD_ON: Duration = Duration::from_secs(1);
/// How long it is over before the alarm is cleared.
pub const HOLD_OFF: Duration = Duration::from_secs(5);

/// Declares the kinds: the name in JSON, the severity, when it is announced, what stands behind
/// the subject in a sentence, what it means, what to do.
macro_rules! kinds {
    ($( $name:ident $text:literal $severity:ident $hold:ident
        $says:literal, $meaning:literal, $action:literal; )+) => {
        /// What an alarm is about.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum AlarmKind {
            $( #[doc = $meaning] #[serde(rename = $text)] $name, )+
        }

        impl AlarmKind {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Self] = &[$( Self::$name, )+];

            /// The name in JSON and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )+ }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self { $( Self::$name => Severity::$severity, )+ }
            }

            /// What a sentence says behind the subject; empty where the reason says it.
            pub const fn says(self) -> &'static str {
                match self { $( Self::$name => $says, )+ }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$name => $meaning, )+ }
            }

            /// What an operator does.
            pub const fn action(self) -> &'static str {
                match self { $( Self::$name => $action, )+ }
            }

            /// How long the condition lasts before it is an alarm.
            pub const fn hold_on(self) -> Duration {
                match self { $( Self::$name => hold::$hold, )+ }
            }
        }
    };
}

mod hold {
    use skyhaul_units::Duration;
    /// It does not come and go: it is an alarm at once.
    pub const NOW: Duration = Duration::ZERO;
    /// It may be over in a moment.
    pub const LASTING: Duration = super::HOLD_ON;
}

kinds! {
    NodeStops "node-stops" Critical NOW
        "stops",
        "The node cannot go on, and ends.",
        "Do what the sentence says, and start the node again. What it captured or \
         receipted is on its disk.";
    PeerSilent "peer-silent" Critical NOW
        "is silent",
        "No session with this node for `silent_after` of its `[[peer]]`. It hides the \
         alarms of that node's paths, contacts, mirrors, streams and deliveries.",
        "Look at the other node and at the line: `skyhaul why`, `skyhaul status` there.";
    KeyShared "key-shared" Major NOW
        "",
        "Two nodes use one key.",
        "Give each node its own key (`skyhaul keygen`).";
    KeyOld "key-old" Minor NOW
        "is old",
        "The key of this node is older than `key_old_after` in `[node]`. It works on.",
        "Run `skyhaul key rotate`.";
    KeyStuck "key-stuck" Major NOW
        "cannot go on",
        "The next key cannot take the place of the one in use, or the state folder takes no \
         note of it.",
        "Do what the sentence says.";
    KeyRevoked "key-revoked" Major NOW
        "has a revoked key",
        "The configuration lists a key that was revoked; it is refused.",
        "Remove it from `fingerprints`, or take the revocation back (`skyhaul key allow`).";
    StandbyFailed "standby-failed" Major NOW
        "cannot stand by",
        "A standby sends everything, because the destination does not help it.",
        "Do what the sentence says at the destination.";
    ForwardUnheard "forward-unheard" Minor LASTING
        "does not listen for a forward",
        "The other node refuses to listen for a forward of this one.",
        "Allow it there (`allow_listen`), or remove the forward.";
    ProgramsShut "programs-shut" Minor LASTING
        "cannot connect to the block service",
        "The block service has no descriptor left for another program.",
        "Close programs, or raise the limit of open files.";
    AlarmRecordDamaged "alarm-record-damaged" Minor NOW
        "is damaged",
        "Who works on which alarm is lost. Nothing else is.",
        "Acknowledge again what stands; check the disk of the state folder.";
    EventsLost "events-lost" Major NOW
        "are not kept",
        "Events came faster than the disk took them, or the disk refused them. The \
         numbers that lack are a hole.",
        "Look at the disk of the state folder.";
    HistoryStopped "history-stopped" Minor LASTING
        "is not kept",
        "The history of the node's figures cannot be written. What comes meanwhile is \
         missing in it; nothing else is.",
        "Free space on the disk of the state folder, or do what the sentence says.";
    NoticeFailed "notice-failed" Major LASTING
        "cannot be reached",
        "A webhook, a command or a mail of an event failed. It is tried again.",
        "Look at the receiver; the sentence has its answer.";
    InputFailed "input-failed" Major NOW
        "",
        "An input cannot be read any more.",
        "Do what the sentence says; a restart opens the input again.";
    DownlinkUnknown "downlink-unknown" Major LASTING
        "",
        "An input brings bits in which no known downlink is found.",
        "Check the demodulator, and the missions that the node knows.";
    InputUnusable "input-unusable" Major LASTING
        "receives unusable input",
        "Packets come in that no frame can be taken from.",
        "Check what sends to the channel.";
    OtherDownlink "other-downlink" Major LASTING
        "receives another downlink",
        "One of several inputs has another downlink than the others.",
        "Check that receiver's tuning.";
    InputLags "input-lags" Minor LASTING
        "lags too far behind",
        "One of several inputs is later than `select_wait`.",
        "Check that receiver, or raise `select_wait`.";
    TwoSpacecraft "two-spacecraft" Minor NOW
        "carries two spacecraft",
        "Frames of two spacecraft come in one downlink.",
        "None, if that is expected.";
    OtherMission "other-mission" Major NOW
        "receives another mission than configured",
        "The channel decodes only its `mission`; the frames are discarded.",
        "Correct the channel's `mission`, or remove it.";
    ContactUnopened "contact-unopened" Critical LASTING
        "cannot open a contact",
        "Frames come, and the state folder takes no contact.",
        "Free space on the disk of the state folder.";
    ChannelPaused "channel-paused" Critical LASTING
        "is paused",
        "The input waits, because the state folder has no room.",
        "Free space on the disk of the state folder.";
    PositionUnsaved "position-unsaved" Major LASTING
        "cannot save its position",
        "After a restart, part of the input would be captured again.",
        "Check the disk and the permissions of the state folder.";
    NotRecorded "not-recorded" Major LASTING
        "is not recorded",
        "The raw input is not recorded, or not whole. The capture goes on.",
        "Check the disk that `record_raw` names.";
    RecordingUnreadable "recording-unreadable" Minor NOW
        "cannot be read",
        "Missing frames cannot be looked for in a recording.",
        "Check the disk of the recording.";
    RefillUnsent "refill-unsent" Major LASTING
        "cannot be sent",
        "Frames that were requested again are found and cannot be sent.",
        "Do what the sentence says.";
    RefillUnsaved "refill-unsaved" Minor NOW
        "cannot be saved",
        "The state of a search for missing frames is not on the disk.",
        "Check the disk of the state folder.";
    SpoolNearlyFull "spool-nearly-full" Major LASTING
        "is nearly full",
        "The spool will soon have to let data go, or the inputs wait.",
        "Restore the line, or make room; the sentence says who is waited for.";
    InputsPaused "inputs-paused" Critical LASTING
        "are paused",
        "The spool has no room: the inputs wait.",
        "Free space on the disk, or restore the line.";
    SpoolDamaged "spool-damaged" Critical NOW
        "is damaged",
        "Blocks cannot be read back; they are reported as lost.",
        "Check the disk.";
    SpoolMended "spool-mended" Minor NOW
        "was repaired",
        "Damage was repaired from parity; no data is lost.",
        "Check the disk.";
    SpoolStateMended "spool-state-mended" Minor NOW
        "was damaged",
        "One of two copies of the spool's state was damaged.",
        "Check the disk.";
    SpoolUnreadable "spool-unreadable" Critical LASTING
        "cannot be read",
        "The disk does not give blocks back.",
        "Check the disk.";
    SpoolUnsendable "spool-unsendable" Critical LASTING
        "cannot be transmitted",
        "Blocks in the spool do not fit the session.",
        "Do what the sentence says.";
    SpoolUnfreed "spool-unfreed" Major LASTING
        "cannot be freed",
        "Old segments cannot be removed.",
        "Check the disk and the permissions.";
    SpoolCopied "spool-copied" Critical NOW
        "exists in two copies",
        "The state folder was restored from a copy, or two nodes use it.",
        "Make sure that one node uses it.";
    SpoolUnrenewed "spool-unrenewed" Critical NOW
        "cannot get a new identity",
        "The spool cannot note its new identity.",
        "Check the disk of the state folder.";
    DataGaveWay "data-gave-way" Critical NOW
        "",
        "A full disk made data leave before a destination had it.",
        "Restore the line, or give the spool more room.";
    ContactContinued "contact-continued" Minor NOW
        "",
        "A contact goes on under another number.",
        "Do what the sentence says.";
    RelayStuck "relay-stuck" Critical LASTING
        "cannot be passed on, retrying",
        "What was received cannot be written to the spool.",
        "Check the disk.";
    ContactHeld "contact-held" Major NOW
        "is not passed on",
        "A contact does not go on from this relay.",
        "Correct the subscriptions; the sentence says which.";
    RelayRecordDamaged "relay-record-damaged" Minor NOW
        "is damaged",
        "A relay may send part of a contact again.",
        "Check the disk.";
    PathBlackHole "path-black-hole" Major LASTING
        "",
        "Only short packets arrive on a path.",
        "Ask the line's operator for packets of 1280 bytes.";
    PathShortened "path-shortened" Minor LASTING
        "",
        "Long packets are lost on a path; shorter ones are sent.",
        "Set `mtu`, or have the line repaired.";
    FeedStale "feed-stale" Minor LASTING
        "",
        "The feed of a path says nothing, or nothing that can be read.",
        "Check the program or file that feeds it.";
    PlanFaulty "plan-faulty" Minor LASTING
        "",
        "The contact plan of a path cannot be used.",
        "Correct the file.";
    ContactLate "contact-late" Major NOW
        "",
        "At the present rate a contact misses its deadline.",
        "Look at the line: `skyhaul why`.";
    PassNoLock "pass-no-lock" Major NOW
        "has no lock",
        "A planned pass has begun, and no frame comes.",
        "Look at the antenna, the receiver and its line to the node.";
    PassMissed "pass-missed" Major NOW
        "was missed",
        "A planned pass is over, and no frame of it came. It stands for an hour.",
        "Ask for the data by another pass or station; correct the plan if it was none.";
    PassPlanUnread "pass-plan-unread" Minor LASTING
        "cannot be used",
        "The file of planned passes is not there, or wrong, or its orbital elements are old.",
        "Correct the file; get new elements.";
    MirrorFailed "mirror-failed" Major LASTING
        "",
        "A mirror is not up to date.",
        "Do what the sentence says; it is tried again.";
    StreamFailed "stream-failed" Major LASTING
        "",
        "A stream does not run.",
        "Do what the sentence says; it is tried again.";
    FolderUnlisted "folder-unlisted" Major LASTING
        "cannot be listed",
        "The folder is not there, or not readable.",
        "Mount or make it, or correct its permissions.";
    FolderUnread "folder-unread" Major LASTING
        "has a file that cannot be read",
        "A file is not handed over.",
        "Correct its permissions.";
    FolderUnsent "folder-unsent" Major LASTING
        "has a file that cannot be sent",
        "A file is not handed over; it is tried again.",
        "Do what the sentence says.";
    FolderUnwritten "folder-unwritten" Major LASTING
        "cannot write its ledger",
        "What was handed over cannot be noted.",
        "Check the disk of the state folder.";
    FolderSetAside "folder-set-aside" Minor NOW
        "has files set aside",
        "Files could not be handed over, and are in `failed`.",
        "Read the note beside each; move it back to try again.";
    FolderUnmoved "folder-unmoved" Minor LASTING
        "cannot set a file aside",
        "A file cannot be moved to `failed`.",
        "Correct the permissions of the folder.";
    FolderStaying "folder-staying" Minor LASTING
        "cannot remove a file that was handed over",
        "Files stay in the folder.",
        "Correct the permissions of the folder.";
    FolderFull "folder-full" Major LASTING
        "takes no more files",
        "Too many files that were handed over are still there.",
        "Remove some, or set `done`.";
    FolderLacking "folder-lacking" Critical NOW
        "does not get all files",
        "Files left the folder before a destination had them.",
        "Restore the line, or make room.";
    StationsPaused "stations-paused" Critical LASTING
        "are paused",
        "The store has no room: stations wait, and lose nothing.",
        "Free space on the disk, or raise `max_size` in `[store]`.";
    StoreDamaged "store-damaged" Critical NOW
        "is damaged",
        "Blocks of a contact cannot be read back.",
        "Check the disk.";
    StoreMended "store-mended" Minor NOW
        "was repaired",
        "Damage was repaired from parity; no data is lost.",
        "Check the disk.";
    ContactListMended "contact-list-mended" Minor NOW
        "was damaged",
        "One of two copies of a list was damaged.",
        "Check the disk.";
    StationRefused "station-refused" Major NOW
        "was closed",
        "A station said something that cannot be.",
        "Install the same release there; see the log.";
    OtherSpool "other-spool" Major NOW
        "has another spool",
        "A station's disk was replaced, or two nodes use one key.",
        "Make sure that one node uses the key.";
    StationDiskFailed "station-disk-failed" Critical NOW
        "could not read blocks",
        "A station's spool does not give blocks back.",
        "Check that station's disk.";
    ContactRing "contact-ring" Major NOW
        "came back to this node",
        "Relays pass a contact on in a ring.",
        "Correct the `[[subscription]]` of one of them.";
    ProductRecordDamaged "product-record-damaged" Minor NOW
        "is damaged",
        "A record of products is lost.",
        "Check the disk.";
    GapRecordDamaged "gap-record-damaged" Minor NOW
        "is damaged",
        "A record of missing frames is lost.",
        "Check the disk.";
    RecordsUnmade "records-unmade" Major NOW
        "were not made",
        "Raw Data Records of some products lack.",
        "Do what the sentence says.";
    GapsUnsaved "gaps-unsaved" Major LASTING
        "cannot be saved, retrying",
        "The list of gaps is not on the disk.",
        "Check the disk of the state folder.";
    ProductsUnwritten "products-unwritten" Critical LASTING
        "cannot be written, retrying",
        "Contacts wait for their products.",
        "Free space, or repair the folder of `[products]`.";
    ContactFailed "contact-failed" Critical NOW
        "cannot be processed",
        "A contact gets no products.",
        "See the sentence; keep the contact for analysis.";
    AssemblyFailed "assembly-failed" Critical LASTING
        "cannot be made, retrying",
        "Products of several contacts wait.",
        "Do what the sentence says.";
    RemakeFailed "remake-failed" Major LASTING
        "cannot be made again, retrying",
        "An order to make products again waits.",
        "Do what the sentence says.";
    PollersUnserved "pollers-unserved" Major LASTING
        "cannot be offered by CADIP, retrying",
        "Pollers get no contacts.",
        "Do what the sentence says.";
    RemovalHeld "removal-held" Major NOW
        "are not removed",
        "The clock jumped: nothing leaves by its time.",
        "Set the clock, or see `skyhaul archive evict`.";
    RemovalBehind "removal-behind" Minor LASTING
        "are due than leave in a day",
        "A rule would remove more than is usual.",
        "See `skyhaul archive evict --dry-run`.";
    RemovalFailed "removal-failed" Major LASTING
        "cannot be removed, retrying",
        "Products or contacts stay over their time.",
        "Check the disk and the catalogue.";
    StoreEvicted "store-evicted" Major NOW
        "removed contacts before their time",
        "The store was full, and removed contacts early.",
        "Give the store more room.";
    DeliveryFailed "delivery-failed" Major LASTING
        "cannot be delivered, retrying",
        "A destination takes no products now.",
        "See the sentence; `skyhaul destination test`.";
    DeliveryLost "delivery-lost" Major NOW
        "is not delivered",
        "One product does not go to a destination.",
        "Correct the cause, then `skyhaul deliveries again`.";
    DeliveryRefused "delivery-refused" Major NOW
        "refuses products",
        "A consumer refused a product, or does not answer.",
        "Correct the cause, then `skyhaul deliveries again`.";
    DeliveryLate "delivery-late" Major LASTING
        "are late",
        "The `deadline` of a subscription is over.",
        "See `skyhaul deliveries list --destination`.";
}

impl std::fmt::Display for AlarmKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for AlarmKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|kind| kind.name() == text);
        found.copied().ok_or_else(|| {
            format!("there is no kind `{text}` of alarms; docs/reference/alarms.md has the list")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_name_of_its_own_which_leads_back_to_it() {
        for kind in AlarmKind::ALL {
            assert_eq!(kind.name().parse(), Ok(*kind));
            let json = serde_json::to_string(kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
        }
        assert!("no-such".parse::<AlarmKind>().is_err());
    }

    #[test]
    fn the_reference_has_each_kind_with_its_words() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/alarms.md");
        let page = std::fs::read_to_string(path).unwrap();
        for kind in AlarmKind::ALL {
            let row = format!(
                "| `{kind}` | {} | {} | {} |",
                kind.severity(),
                kind.meaning(),
                kind.action()
            );
            assert!(page.contains(&row), "docs/reference/alarms.md lacks: {row}");
        }
    }
}
