//! What the recommender makes of histories, looked at again only where it can have become something else.
//!
//! A percentile is the edge of a bucket. How much weight must come before it can be another edge is known as soon as it has been looked
//! for; until then only the length of the history changes, and with it the bounds. So a program that recommends once a minute goes through
//! its histograms a few times a day.

use super::aggregation::Aggregation;
use super::estimate::{Base, Bases, Extent, estimate};
use super::histogram::{Counted, Filled, Histogram};
use super::post_processing::post_process;
use super::recommender::Recommender;
use nodecast_model::domain::vertical::ContainerRecommendation;
use nodecast_model::domain::{LabelSelector, SimTime, Symbol, VerticalPodAutoscaler};

/// What a recommender knows of the percentiles for one VerticalPodAutoscaler, whose target and pods it is not told of again: to be made
/// anew where these change.
#[derive(Clone, Debug, Default)]
pub struct Estimates {
    /// The count of the recommender's histories that this is of.
    histories: Option<u64>,
    containers: Vec<OfContainer>,
    searched: u64,
    changed: u64,
}

/// A container, with the histories that count for it.
#[derive(Clone, Debug)]
struct OfContainer {
    container: Symbol,
    places: Vec<usize>,
    /// Whether one was restored from a checkpoint.
    restored: bool,
    /// `None` before they were first looked for.
    bases: Option<Bases>,
}

impl Estimates {
    /// How often the percentiles of a resource of a container were looked for.
    pub fn searched(&self) -> u64 {
        self.searched
    }

    /// How often percentiles, or the containers that they are of, turned out to be others than before. While it stays the same only the
    /// length of histories has changed.
    pub fn changed(&self) -> u64 {
        self.changed
    }
}

impl Recommender {
    /// What is recommended for the containers of the pods that `selector` selects in the namespace of the VerticalPodAutoscaler, in
    /// order of name. Containers of which nothing is known or that are off are not among them.
    ///
    /// Histories that decay are brought to the same reference here, which is why they change.
    pub fn recommend(&mut self, vpa: &VerticalPodAutoscaler, selector: &LabelSelector) -> Vec<ContainerRecommendation> {
        self.recommend_again(&mut Estimates::default(), vpa, selector)
    }

    /// The same, by what is known of the percentiles as far as it holds; what does not is looked for.
    pub fn recommend_again(
        &mut self,
        known: &mut Estimates,
        vpa: &VerticalPodAutoscaler,
        selector: &LabelSelector,
    ) -> Vec<ContainerRecommendation> {
        if !self.knows_all_of(known) {
            known.containers = self.containers(vpa, selector);
            known.histories = Some(self.histories.changed);
            known.changed += 1;
        }
        for own in &mut known.containers {
            let (cpu, searched_cpu) = self.base(own, vpa, Counted::Cores);
            let (memory, searched_memory) = self.base(own, vpa, Counted::Bytes);
            known.searched += u64::from(searched_cpu) + u64::from(searched_memory);
            let bases = Bases { cpu, memory };
            known.changed += u64::from(own.bases.is_none_or(|before| !before.says_what(&bases)));
            own.bases = Some(bases);
        }
        self.estimated(known, vpa, |own| Some(self.extent(own, vpa)))
    }

    /// Whether it has no other histories than those that these estimates are of.
    pub fn knows_all_of(&self, known: &Estimates) -> bool {
        known.histories == Some(self.histories.changed)
    }

    /// Whether the percentiles are still what is known of them, so that the targets are what they were when they were last asked for.
    pub fn holds(&self, known: &Estimates, vpa: &VerticalPodAutoscaler) -> bool {
        self.knows_all_of(known)
            && known.containers.iter().all(|own| {
                let both = [Counted::Cores, Counted::Bytes];
                own.bases.is_some_and(|bases| {
                    both.iter().all(|counted| bases.of(*counted).holds(self.filled(own, vpa, *counted)))
                })
            })
    }

    /// What would be recommended if histories went on without gaps until an instant, or for ever: as long as they [hold](Self::holds) no
    /// lower bound is above these until then, and no upper bound below.
    pub fn narrowest(
        &self,
        known: &Estimates,
        vpa: &VerticalPodAutoscaler,
        until: Option<SimTime>,
    ) -> Vec<ContainerRecommendation> {
        self.estimated(known, vpa, |own| {
            let until = Extent { last: Some(until?), samples: u64::MAX, ..self.extent(own, vpa) };
            Some(until)
        })
    }

    fn estimated(
        &self,
        known: &Estimates,
        vpa: &VerticalPodAutoscaler,
        extent: impl Fn(&OfContainer) -> Option<Extent>,
    ) -> Vec<ContainerRecommendation> {
        let is_off = |container| vpa.policy_of(container).is_some_and(|policy| policy.off);
        let all = || known.containers.iter().filter(|own| !is_off(own.container));
        let containers = all().count();
        let recommended = all().filter_map(|own| {
            let estimated = estimate(&self.settings, own.container, (own.bases.as_ref()?, extent(own)), containers);
            Some(post_process(&self.settings, vpa, estimated))
        });
        recommended.collect()
    }

    /// The containers of the pods that are selected, in order of name, each with its histories in their order.
    fn containers(&self, vpa: &VerticalPodAutoscaler, selector: &LabelSelector) -> Vec<OfContainer> {
        let mut all: Vec<OfContainer> = Vec::new();
        let mut of = |container: Symbol| {
            let known = all.iter().position(|own| own.container == container);
            let at = known.unwrap_or_else(|| {
                all.push(OfContainer { container, places: Vec::new(), restored: false, bases: None });
                all.len() - 1
            });
            (at, container)
        };
        let mut found: Vec<(usize, Option<usize>)> = Vec::new();
        for (key, place) in &self.histories.places {
            if self.histories.all[*place].is_some() && key.is_selected(vpa, selector) {
                found.push((of(key.container).0, Some(*place)));
            }
        }
        for container in self.restored.get(&vpa.name).into_iter().flat_map(|own| own.keys()) {
            found.push((of(*container).0, None));
        }
        for (at, place) in found {
            match place {
                Some(place) => all[at].places.push(place),
                None => all[at].restored = true,
            }
        }
        all.sort_by_key(|own| own.container);
        all
    }

    fn of<'a>(&'a self, own: &'a OfContainer, vpa: &VerticalPodAutoscaler) -> impl Iterator<Item = &'a Aggregation> {
        let restored = own.restored.then(|| self.restored.get(&vpa.name)?.get(&own.container)).flatten();
        own.places.iter().filter_map(|place| self.histories.all[*place].as_ref()).chain(restored)
    }

    fn extent(&self, own: &OfContainer, vpa: &VerticalPodAutoscaler) -> Extent {
        self.of(own, vpa).fold(Extent::default(), |sum, history| sum.with(history.extent))
    }

    fn filled(&self, own: &OfContainer, vpa: &VerticalPodAutoscaler, counted: Counted) -> Filled {
        let all = self.of(own, vpa).map(|history| history.histogram(counted).filled());
        all.fold(Filled::default(), Filled::with)
    }

    /// What a resource of a container comes to, and whether that had to be looked for.
    fn base(&mut self, own: &OfContainer, vpa: &VerticalPodAutoscaler, counted: Counted) -> (Base, bool) {
        let known = own.bases.map(|bases| *bases.of(counted));
        if let Some(known) = known.filter(|known| known.holds(self.filled(own, vpa, counted))) {
            return (known, false);
        }
        if let ([only], false) = (&own.places[..], own.restored)
            && let Some(history) = &self.histories.all[*only]
        {
            let histogram = history.histogram(counted);
            return (Base::of(&self.settings, counted, (histogram, histogram.filled())), true);
        }
        let mut merged = Histogram::new(counted, self.settings.half_life(counted));
        for place in &own.places {
            if let Some(history) = &mut self.histories.all[*place] {
                merged.merge(history.histogram_mut(counted));
            }
        }
        if let Some(restored) = self.restored.get_mut(&vpa.name).and_then(|all| all.get_mut(&own.container)) {
            merged.merge(restored.histogram_mut(counted));
        }
        // Only now, as histories that are brought to another reference weigh something else.
        let filled = self.filled(own, vpa, counted);
        (Base::of(&self.settings, counted, (&merged, filled)), true)
    }
}
