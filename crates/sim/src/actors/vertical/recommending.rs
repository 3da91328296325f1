//! The recommender's loop: every minute it looks at what pods use, and recommends.

use super::{Autoscaler, Vertical};
use crate::actors::event::{VerticalEvent, class};
use crate::actors::load_loop::Loads;
use crate::actors::metrics_server::MetricsServer;
use crate::actors::sim::Sim;
use crate::actors::usage_loop::Usages;
use crate::domain::vertical::ContainerRecommendation;
use crate::domain::{ResourceName, SimTime, WorkloadId};
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
        for place in 0..self.autoscalers.len() {
            let autoscaler = &self.autoscalers[place];
            let Some(target) = autoscaler.target.filter(|_| autoscaler.is_recommended_for()) else { continue };
            self.follow_pods(sim, now, (place, target));
            self.read(sim, loads, metrics, usages, now, (place, target));
            self.conclude(sim, now, (place, target));
        }
    }

    /// A look is over: what it recommends is worked out.
    fn conclude(&mut self, sim: &mut Sim<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
        let at = self.calendar(now);
        let autoscaler = &mut self.autoscalers[place];
        autoscaler.recommender.forget(at);
        let recommends =
            |autoscaler: &Autoscaler| autoscaler.spec.recommendation.as_ref().is_some_and(|all| !all.is_empty());
        let before = recommends(autoscaler);
        let recommended = autoscaler.recommender.recommend(&autoscaler.spec, &autoscaler.selector);
        autoscaler.spec.recommendation = Some(autoscaler.without_unknown(recommended));
        if !before && recommends(autoscaler) {
            let message = format!("VerticalPodAutoscaler {}", autoscaler.spec.name);
            sim.world.note(now, EventKind::RecommendationProvided, Some(target), message);
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
        recommended.retain(|item| known(item.container) != (false, false));
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
