//! What is shown of keys.

use super::NodeKeys;
use crate::status::{KeyReport, NextKeyStatus, PeerKeyStatus, RevokedKeyStatus, RotationStage};
use skyhaul_identity::{KeyStage, Rotation};

impl NodeKeys {
    /// The keys of the node, and of others.
    pub fn report(&self) -> KeyReport {
        let kept = self.kept();
        let record = kept.keeper.record();
        let next = record.rotation.as_ref().map(|rotation| NextKeyStatus {
            key: rotation.succession.to().to_string(),
            former: rotation.succession.from().to_string(),
            stage: stage(rotation.stage),
            since: rotation.since.to_string(),
            noted: noted(rotation),
            waits_for: rotation.unaware(&kept.must_know()),
            stuck: kept.keeper.stuck().map(str::to_owned),
        });
        let peers = kept.listed.iter().map(|(name, listed)| {
            let accepted = kept.accepted_of(name);
            let all = listed.iter().flat_map(|key| record.known.all(*key));
            let mut out_of_use: Vec<String> = Vec::new();
            for key in all.filter(|key| !accepted.contains(key)) {
                if !out_of_use.contains(&key.to_string()) {
                    out_of_use.push(key.to_string());
                }
            }
            PeerKeyStatus {
                name: name.clone(),
                accepted: accepted.iter().map(ToString::to_string).collect(),
                out_of_use,
            }
        });
        let revoked = record.known.revoked().map(|(key, why)| RevokedKeyStatus {
            key: key.to_string(),
            reason: why.reason.clone(),
            at: why.at.to_string(),
            peer: kept.peer_of(key).map(str::to_owned),
        });
        KeyReport {
            key: self.own().fingerprint().to_string(),
            since: record.own.map(|birth| birth.since.to_string()).unwrap_or_default(),
            next,
            peers: peers.collect(),
            revoked: revoked.collect(),
        }
    }
}

const fn stage(stage: KeyStage) -> RotationStage {
    match stage {
        KeyStage::Staged => RotationStage::Staged,
        KeyStage::Switched => RotationStage::Switched,
    }
}

fn noted(rotation: &Rotation) -> std::collections::BTreeMap<String, RotationStage> {
    rotation.noted.iter().map(|(name, noted)| (name.clone(), stage(*noted))).collect()
}
