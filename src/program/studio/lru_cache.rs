//! What is kept of what was simulated: so much, and what was not asked for longest goes first.

use std::collections::BTreeMap;

/// Values by a key, so many of them.
#[derive(Debug)]
pub(super) struct LruCache<K, V> {
    most: usize,
    clock: u64,
    values: BTreeMap<K, (u64, V)>,
}

impl<K: Ord + Clone, V: Clone> LruCache<K, V> {
    /// Nothing yet, and never more than `most`.
    pub(super) fn at_most(most: usize) -> Self {
        Self { most, clock: 0, values: BTreeMap::new() }
    }

    /// The value of a key.
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        self.clock += 1;
        let (used, value) = self.values.get_mut(key)?;
        *used = self.clock;
        Some(value.clone())
    }

    /// Keeps a value; another one goes if there are too many.
    pub(super) fn put(&mut self, key: K, value: V) {
        self.clock += 1;
        self.values.insert(key, (self.clock, value));
        if self.values.len() > self.most {
            let oldest = self.values.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.values.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LruCache;

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let mut kept = LruCache::at_most(2);
        kept.put("a", 1);
        kept.put("b", 2);
        assert_eq!(kept.get(&"a"), Some(1));
        kept.put("c", 3);
        assert_eq!((kept.get(&"a"), kept.get(&"b"), kept.get(&"c")), (Some(1), None, Some(3)));
    }
}
