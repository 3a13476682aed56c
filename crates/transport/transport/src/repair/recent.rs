//! What was computed lately, by what it was computed from.

/// The last [`RECENT_MAX`] values that were asked for.
#[derive(Debug)]
pub struct RecentlyComputed<K, V> {
    /// The one that was asked for last is the last.
    entries: Vec<(K, V)>,
}

/// Two loss rates by five strides, and some.
const RECENT_MAX: usize = 16;

impl<K, V> Default for RecentlyComputed<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: PartialEq, V: Clone> RecentlyComputed<K, V> {
    /// The value of `key`, which `compute` gives where it is not known.
    pub fn of(&mut self, key: K, compute: impl FnOnce(&K) -> V) -> V {
        let known = self.entries.iter().position(|(known, _)| *known == key);
        let entry = match known {
            Some(at) => self.entries.remove(at),
            None => {
                let value = compute(&key);
                (key, value)
            }
        };
        if self.entries.len() == RECENT_MAX {
            self.entries.remove(0);
        }
        let value = entry.1.clone();
        self.entries.push(entry);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_is_computed_once_and_the_oldest_goes() {
        let mut recent = RecentlyComputed::default();
        let mut computed = Vec::new();
        for key in [1, 2, 1, 2].into_iter().chain(3..=17).chain([2, 1]) {
            let value = recent.of(key, |key| {
                computed.push(*key);
                key * 10
            });
            assert_eq!(value, key * 10);
        }
        let once: Vec<i32> = (1..=17).chain([1]).collect();
        assert_eq!(computed, once);
    }
}
