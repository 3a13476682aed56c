//! `keys.json` in the state folder: the change of the own key that is under way, keys that follow
//! others, and revoked keys.

use crate::fault::Fault;
use crate::state_file;
use serde::{Deserialize, Serialize};
use skyhaul_identity::{
    Fingerprint, KeyBirth, KeyRecord, KeyStage, KnownKeys, NextKey, Revocation, Rotation,
    Succession,
};
use skyhaul_store::Disk;
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The file in the state folder.
pub const KEYS_FILE: &str = "keys.json";
const VERSION: u32 = 1;
/// Twice what all bounds of [`KnownKeys`] allow.
const BYTES_MAX: u64 = 16 << 20;

/// The JSON; times are microseconds since 1970.
#[derive(Default, Serialize, Deserialize)]
struct Written {
    /// Of this form.
    version: u32,
    own: Option<WrittenBirth>,
    rotation: Option<WrittenRotation>,
    next: Vec<WrittenNext>,
    revoked: Vec<WrittenRevocation>,
}

#[derive(Serialize, Deserialize)]
struct WrittenBirth {
    key: String,
    since: i64,
}

#[derive(Serialize, Deserialize)]
struct WrittenRotation {
    /// The statement, in hexadecimal digits.
    succession: String,
    stage: Stage,
    since: i64,
    noted: BTreeMap<String, Stage>,
}

#[derive(Serialize, Deserialize)]
struct WrittenNext {
    from: String,
    to: String,
    stage: Stage,
    since: i64,
}

#[derive(Serialize, Deserialize)]
struct WrittenRevocation {
    key: String,
    reason: String,
    at: i64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    Staged,
    Switched,
}

impl From<KeyStage> for Stage {
    fn from(stage: KeyStage) -> Self {
        match stage {
            KeyStage::Staged => Self::Staged,
            KeyStage::Switched => Self::Switched,
        }
    }
}

impl From<Stage> for KeyStage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Staged => Self::Staged,
            Stage::Switched => Self::Switched,
        }
    }
}

/// Makes the record durable.
///
/// # Errors
/// The disk refuses.
pub fn save(disk: &dyn Disk, record: &KeyRecord) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(&Written::from(record)).map_err(io::Error::other)?;
    state_file::replace(disk, KEYS_FILE, &text)
}

/// Reads the record; an empty one where there is none.
///
/// # Errors
/// It cannot be read, or is of a later release.
pub fn load(disk: &dyn Disk) -> Result<KeyRecord, Fault> {
    let failed = |error: io::Error| unreadable(&error.to_string());
    let read = state_file::read(disk, KEYS_FILE, BYTES_MAX).map_err(failed)?;
    let Some(text) = read else { return Ok(KeyRecord::default()) };
    parse(&text).map_err(|error| unreadable(&error))
}

/// What a node knows of the keys of others, from its state folder, whether it runs or not: nothing
/// where it has never run.
///
/// # Errors
/// The file cannot be read.
pub fn known_keys(state: &Path) -> Result<KnownKeys, Fault> {
    let path = state.join(KEYS_FILE);
    let text = match std::fs::read(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(KnownKeys::default());
        }
        text => text.map_err(|error| unreadable(&error.to_string()))?,
    };
    parse(&text).map(|record| record.known).map_err(|error| unreadable(&error))
}

fn unreadable(error: &str) -> Fault {
    let help = "restore the file from a copy; without it the node forgets which keys are revoked, \
                and which follow those of the configuration";
    Fault::environment(format!("what is known of keys cannot be read ({error})"), KEYS_FILE, help)
}

/// Reads the text of a record.
fn parse(text: &[u8]) -> Result<KeyRecord, String> {
    let written: Written = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if written.version != VERSION {
        return Err(format!(
            "it is of version {}, and this release reads {VERSION}",
            written.version
        ));
    }
    let key = |text: &str| text.parse::<Fingerprint>().map_err(|error| error.to_string());
    let utc = Utc::from_micros;
    let own = written.own.map(|own| Ok(KeyBirth { key: key(&own.key)?, since: utc(own.since) }));
    let rotation = written.rotation.map(|rotation| {
        let bytes = unhex(&rotation.succession).ok_or("the statement is not hexadecimal")?;
        let succession = Succession::from_bytes(&bytes).map_err(|error| error.to_string())?;
        let noted = rotation.noted.into_iter().map(|(name, stage)| (name, stage.into())).collect();
        let (stage, since) = (rotation.stage.into(), utc(rotation.since));
        Ok::<_, String>(Rotation { succession, stage, since, noted })
    });
    let next = written.next.iter().map(|next| {
        let (stage, since) = (next.stage.into(), utc(next.since));
        Ok((key(&next.from)?, NextKey { to: key(&next.to)?, stage, since }))
    });
    let revoked = written
        .revoked
        .into_iter()
        .map(|one| Ok((key(&one.key)?, Revocation { reason: one.reason, at: utc(one.at) })));
    let next = next.collect::<Result<Vec<_>, String>>()?;
    let revoked = revoked.collect::<Result<Vec<_>, String>>()?;
    Ok(KeyRecord {
        own: own.transpose().map_err(|error: String| error)?,
        rotation: rotation.transpose()?,
        known: KnownKeys::new(next, revoked),
    })
}

impl From<&KeyRecord> for Written {
    fn from(record: &KeyRecord) -> Self {
        let own = record
            .own
            .map(|own| WrittenBirth { key: own.key.to_string(), since: own.since.as_micros() });
        let rotation = record.rotation.as_ref().map(|rotation| WrittenRotation {
            succession: hex(&rotation.succession.to_bytes()),
            stage: rotation.stage.into(),
            since: rotation.since.as_micros(),
            noted: {
                let noted = rotation.noted.iter();
                noted.map(|(name, stage)| (name.clone(), Stage::from(*stage))).collect()
            },
        });
        let next = record.known.next_keys().map(|(from, next)| WrittenNext {
            from: from.to_string(),
            to: next.to.to_string(),
            stage: next.stage.into(),
            since: next.since.as_micros(),
        });
        let revoked = record.known.revoked().map(|(key, why)| WrittenRevocation {
            key: key.to_string(),
            reason: why.reason.clone(),
            at: why.at.as_micros(),
        });
        let (next, revoked) = (next.collect(), revoked.collect());
        Self { version: VERSION, own, rotation, next, revoked }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16)?).ok();
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// For fuzzing.
///
/// # Errors
/// The text is no record.
pub fn check_record(text: &[u8]) -> Result<(), String> {
    let record = parse(text)?;
    let again = serde_json::to_vec(&Written::from(&record)).map_err(|error| error.to_string())?;
    match parse(&again) == Ok(record) {
        true => Ok(()),
        false => Err("a record is not what was read of it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_identity::Identity;
    use skyhaul_store::sim::SimDisk;
    use skyhaul_units::ByteCount;

    fn key(seed: u8) -> Identity {
        Identity::from_seed(&[seed; 32]).unwrap()
    }

    #[test]
    fn a_record_comes_back_after_a_crash_and_a_damaged_one_is_refused() {
        let disk = SimDisk::new(ByteCount::mib(1));
        assert_eq!(load(&disk).unwrap(), KeyRecord::default());
        let at = Utc::from_micros(1_800_000_000_000_000);
        let succession = Succession::make(&key(1), &key(2)).unwrap();
        let mut known = KnownKeys::default();
        known.follow(key(1).fingerprint(), KeyStage::Staged, &succession, at).unwrap();
        known.revoke(key(3).fingerprint(), "lost \"laptop\"", at).unwrap();
        let noted = BTreeMap::from([("centre".to_owned(), KeyStage::Staged)]);
        let record = KeyRecord {
            own: Some(KeyBirth { key: key(1).fingerprint(), since: at }),
            rotation: Some(Rotation { succession, stage: KeyStage::Switched, since: at, noted }),
            known,
        };
        save(&disk, &record).unwrap();
        disk.crash(1);
        assert_eq!(load(&disk).unwrap(), record);
        let file = disk.open(KEYS_FILE).unwrap();
        file.truncate(ByteCount::new(100)).unwrap();
        let error = load(&disk).unwrap_err().to_string();
        assert!(error.contains("keys.json") && error.contains("revoked"), "{error}");
        let later = br#"{"version":2,"own":null,"rotation":null,"next":[],"revoked":[]}"#;
        assert!(parse(later).unwrap_err().contains("version 2"));
    }
}
