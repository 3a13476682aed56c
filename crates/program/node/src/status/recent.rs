//! Lists of bounded length in the status: the newest items, each once.

/// The newest items, oldest first; beyond the bound the oldest goes.
#[derive(Debug)]
pub struct Recent<T>(Vec<T>);

/// The most items: months of passes, and 300 kB.
const MOST: usize = 1_000;

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> Recent<T> {
    /// Shows an item in place of the one that is the `same`, or as the newest.
    pub fn show(&mut self, item: &T, same: impl Fn(&T) -> bool) {
        if let Some(shown) = self.0.iter_mut().rev().find(|shown| same(shown)) {
            *shown = item.clone();
            return;
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(item.clone());
    }

    /// The newest item that matches.
    pub fn newest(&self, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.0.iter().rev().find(|shown| is(shown))
    }

    /// The items, oldest first.
    pub fn to_vec(&self) -> Vec<T> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_shown_each_once() {
        let mut recent = Recent::default();
        for number in 0..MOST + 5 {
            recent.show(&(number, "new"), |shown| shown.0 == number);
        }
        recent.show(&(7, "changed"), |shown| shown.0 == 7);
        let shown = recent.to_vec();
        assert_eq!((shown.len(), shown[0].0), (MOST, 5));
        assert_eq!(shown[2], (7, "changed"));
    }
}
