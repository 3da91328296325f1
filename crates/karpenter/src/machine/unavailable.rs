//! Offerings that lacked capacity, and until when Karpenter avoids them.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/cache/unavailableofferings.go`.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use nodecast_model::domain::{SimTime, Symbol};

/// An instance type in a zone, as it is bought: a capacity type, or a reservation by its id.
pub type OfferingKey = (Symbol, Symbol, Symbol);

/// The offerings that are avoided. What comes and what goes is noted, so that who follows looks at those alone: in an
/// outage a thousand offerings are avoided for hours, and each launch adds sixty.
#[derive(Debug, Default)]
pub(super) struct UnavailableOfferings {
    until: FxHashMap<OfferingKey, SimTime>,
    /// By the time that was noted with them. One that was noted again since stands here twice, and the earlier entry says
    /// nothing.
    ends: BTreeMap<SimTime, Vec<OfferingKey>>,
    /// Those that came or went since somebody last asked, some perhaps twice.
    concerned: Vec<OfferingKey>,
}

impl UnavailableOfferings {
    /// Notes that an offering lacks capacity; what was noted of it before no longer counts.
    pub(super) fn insert(&mut self, offering: OfferingKey, until: SimTime) {
        if self.until.insert(offering, until).is_none() {
            self.concerned.push(offering);
        }
        self.ends.entry(until).or_default().push(offering);
    }

    /// Forgets what is to be avoided no longer.
    pub(super) fn expire(&mut self, now: SimTime) {
        while let Some(entry) = self.ends.first_entry().filter(|entry| *entry.key() <= now) {
            for offering in entry.remove() {
                if self.until.get(&offering).is_some_and(|until| *until <= now) {
                    self.until.remove(&offering);
                    self.concerned.push(offering);
                }
            }
        }
    }

    /// Whether an offering is remembered, which it is until the next [`Self::expire`] after its time.
    pub(super) fn contains(&self, offering: &OfferingKey) -> bool {
        self.until.contains_key(offering)
    }

    /// Whether an offering is avoided at this time.
    pub(super) fn is_avoided(&self, offering: &OfferingKey, now: SimTime) -> bool {
        self.until.get(offering).is_some_and(|&until| until > now)
    }

    /// The offerings that came or went since this was last asked; some may stand there twice.
    pub(super) fn take_concerned(&mut self) -> Vec<OfferingKey> {
        std::mem::take(&mut self.concerned)
    }
}

#[cfg(test)]
mod tests {
    use super::UnavailableOfferings;
    use nodecast_model::domain::{SimTime, Symbol};

    #[test]
    fn offering_is_avoided_until_latest_expiry() {
        let offering = |name| (Symbol::new(name), Symbol::new("a"), Symbol::new("spot"));
        let at = |seconds: i64| SimTime::from_micros(seconds * 1_000_000);
        let (large, small) = (offering("m5.large"), offering("m5.small"));
        let mut known = UnavailableOfferings::default();
        known.insert(large, at(180));
        known.insert(small, at(180));
        known.insert(large, at(200));
        assert_eq!(known.take_concerned().len(), 2);
        known.expire(at(179));
        assert!(known.contains(&small) && known.is_avoided(&small, at(179)) && !known.is_avoided(&small, at(180)));
        known.expire(at(180));
        assert!(known.contains(&large) && !known.contains(&small));
        assert_eq!(known.take_concerned(), [small]);
        // What is noted for a shorter time than before is forgotten sooner.
        known.insert(large, at(190));
        assert!(known.take_concerned().is_empty());
        known.expire(at(190));
        assert!(!known.contains(&large));
        assert_eq!(known.take_concerned(), [large]);
        known.expire(at(300));
        assert!(known.take_concerned().is_empty());
    }
}
