//! The recommender's loop. It looks at what pods use every minute; what follows from it is worked out where somebody reads it.

use super::{Autoscaler, Vertical};
use crate::actors::event::{VerticalEvent, class};
use crate::actors::load_loop::Loads;
use crate::actors::metrics_server::MetricsServer;
use crate::actors::sim::Sim;
use crate::actors::usage_loop::Usages;
use crate::domain::vertical::ContainerRecommendation;
use crate::domain::{Check, ResourceName, SimTime, WorkloadId};
use crate::world::record::EventKind;

impl Vertical {
    /// The recommender's loop: it reads what pods use, and recommends.
    pub(in crate::actors) fn recommend(
        &mut self,
        sim: &mut Sim<'_>,
        loads: &mut Loads,
        metrics: &mut MetricsServer,
        usages: &Usages,
        now: SimTime,
    ) {
        let interval = self.recommending.interval;
        sim.queue.schedule_in(interval, class::REPLICA_AUTOSCALER, VerticalEvent::Recommend);
        self.catch_up(&sim.world);
        for place in 0..self.autoscalers.len() {
            let own = &mut self.autoscalers[place];
            let Some(target) = own.target.filter(|_| own.is_recommended_for()) else { continue };
            if std::mem::take(&mut own.pods_changed) {
                self.follow_pods(sim, now, (place, target));
            }
            self.read(sim, loads, metrics, usages, now, (place, target));
            self.conclude(sim, now, (place, target));
        }
    }

    /// A look is over: what it recommends is worked out at once where it may be the first that is recommended, or nothing any more.
    fn conclude(&mut self, sim: &mut Sim<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
        let at = self.calendar(now);
        let own = &mut self.autoscalers[place];
        own.recommender.forget(at);
        own.looked = true;
        let recommends = own.spec.recommendation.as_ref().is_some_and(|all| !all.is_empty());
        if !recommends || !own.recommender.knows_all_of(&own.estimates) {
            self.bring_up(place, sim.setup.check);
            let own = &self.autoscalers[place];
            if !recommends && own.spec.recommendation.as_ref().is_some_and(|all| !all.is_empty()) {
                let message = format!("VerticalPodAutoscaler {}", own.spec.name);
                sim.world.note(now, EventKind::RecommendationProvided, Some(target), message);
            }
        }
        self.note(sim, now, (place, target));
    }
}

impl Autoscaler {
    /// Whether the default recommender, which is the one that is simulated, recommends for it, and anything is known of its pods.
    fn is_recommended_for(&self) -> bool {
        let asks_another =
            !self.spec.recommenders.is_empty() && self.spec.recommenders.iter().all(|name| name.as_str() != "default");
        !self.retired && !asks_another && self.stated.of_any() != (false, false)
    }

    /// Takes out what nothing is known of: resources of containers, and containers of which nothing at all is known.
    pub(super) fn without_unknown(
        &self,
        mut recommended: Vec<ContainerRecommendation>,
    ) -> Vec<ContainerRecommendation> {
        let known = |container| self.observed.known(container).unwrap_or_else(|| self.stated.of_any());
        recommended.retain(|own| known(own.container) != (false, false));
        for container in &mut recommended {
            let (cpu, memory) = known(container.container);
            let unknown = [(ResourceName::CPU, cpu), (ResourceName::MEMORY, memory)];
            for (resource, _) in unknown.into_iter().filter(|(_, known)| !known) {
                for amounts in [
                    &mut container.target,
                    &mut container.lower_bound,
                    &mut container.upper_bound,
                    &mut container.uncapped_target,
                ] {
                    amounts.remove(resource);
                }
            }
        }
        recommended
    }
}

impl Vertical {
    /// Works out what was recommended at the last look, if nobody has read it yet. Nothing that it rests on changes between looks but by a
    /// kill for memory and by another form of the VerticalPodAutoscaler, before which it is worked out.
    pub(super) fn bring_up(&mut self, place: usize, check: Check) {
        let own = &mut self.autoscalers[place];
        if !std::mem::take(&mut own.looked) {
            return;
        }
        let whole = check.compares().then(|| own.recommender.clone());
        let changed = own.estimates.changed();
        let recommended = own.recommender.recommend_again(&mut own.estimates, &own.spec, &own.selector);
        // Who rested on the percentiles as they were is to look again.
        own.quiet = own.quiet.filter(|_| own.estimates.changed() == changed);
        if let Some(mut whole) = whole {
            let whole = whole.recommend(&own.spec, &own.selector);
            check.hold(whole == recommended, || {
                format!("VerticalPodAutoscaler {} recommends {recommended:?}, and anew {whole:?}", own.spec.name)
            });
        }
        own.spec.recommendation = Some(own.without_unknown(recommended));
    }
}
