//! A running hash of what happened, so that two runs that should be equal can be compared at a glance.

use std::hash::{Hash, Hasher};

use nodecast_model::domain::SimTime;

/// A hasher whose result depends on the values alone: not on the platform, the process or the release of the standard
/// library.
#[derive(Clone, Copy, Debug, Default)]
pub struct StableHasher(u64);

impl StableHasher {
    fn fold(&mut self, word: u64) {
        self.0 = mixed(self.0.rotate_left(23) ^ word);
    }
}

/// The finalizer of SplitMix64: every bit of the input reaches every bit of the output.
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Hasher for StableHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
        self.fold(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.fold(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.fold(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.fold(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.fold(value);
    }

    fn write_i64(&mut self, value: i64) {
        self.fold(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.fold(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.fold(value as u64);
    }
}

/// The running hash over every event of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventHash(StableHasher);

impl EventHash {
    /// Takes an event into account.
    pub fn record<E: Hash>(&mut self, at: SimTime, event: &E) {
        self.0.write_i64(at.as_micros());
        event.hash(&mut self.0);
    }

    /// The hash so far.
    pub fn value(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::EventHash;
    use nodecast_model::domain::SimTime;

    #[test]
    fn the_hash_tells_order_time_and_content_apart() {
        let hash = |events: &[(i64, u32)]| {
            let mut hash = EventHash::default();
            for (at, event) in events {
                hash.record(SimTime::from_micros(*at), event);
            }
            hash.value()
        };
        assert_eq!(hash(&[(1, 2), (3, 4)]), hash(&[(1, 2), (3, 4)]));
        assert_ne!(hash(&[(1, 2), (3, 4)]), hash(&[(3, 4), (1, 2)]));
        assert_ne!(hash(&[(1, 2)]), hash(&[(2, 2)]));
        assert_ne!(hash(&[(1, 2)]), hash(&[(1, 3)]));
    }
}
