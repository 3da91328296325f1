//! vCPU quotas and addresses of subnets that an update of a node group needs.
//!
//! Only node groups count, each with its desired size: nodes of Karpenter and growth during the run need more. So a warning is never in vain, but
//! its absence promises nothing.

use super::UpdateStart;
use crate::cloud::quotas::QuotaKey;
use crate::domain::words::{counted, some_of};
use crate::domain::{NodeGroup, Symbol};
use nodecast_model::catalog::InstanceFacts;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

impl UpdateStart<'_> {
    pub(super) fn warn_of_capacity(&self, when: &str, group: &NodeGroup, warnings: &mut Caveats) {
        let surge = self.surge(group);
        if surge == 0 {
            return;
        }
        let all = counted(u64::from(group.desired_size + surge), "node", "nodes");
        let effect = "It launches fewer nodes than it needs, and is rolled back with `NodeCreationFailure` if a zone has no new Ready node";
        for (quota, needed) in self.vcpus(group, surge) {
            let limit = self.setup.scenario.ec2.cloud.quotas.limit(quota);
            if needed > limit {
                warnings.add(&setup::UPDATE_WITHOUT_ROOM, format!(
                    "{when}: with {all} of this group, the node groups need {needed} vCPUs of the {quota} quota, which has {limit}. {effect}. \
                     Raise the quota, or set `updateStrategy: MINIMAL`"
                ));
            }
        }
        let short = self.zones_without_addresses(group, surge);
        if !short.is_empty() {
            warnings.add(&setup::UPDATE_WITHOUT_ROOM, format!(
                "{when}: the subnets in {} have too few addresses for their share of {all}. {effect}. Use larger subnets, or set \
                 `updateStrategy: MINIMAL`",
                some_of(&short)
            ));
        }
    }

    /// vCPUs of each quota that the groups need with `surge` additional nodes of the updated one, with the smallest type of each group.
    fn vcpus(&self, updated: &NodeGroup, surge: u32) -> Vec<(QuotaKey, u32)> {
        let mut keys: Vec<(QuotaKey, u32)> = Vec::new();
        for spot in [false, true] {
            let Some(facts) = self.smallest(updated) else { continue };
            let key = QuotaKey::from_facts(facts, spot);
            let more = |group: &NodeGroup| if group.name == updated.name { surge } else { 0 };
            if instances(updated, surge, spot) > instances(updated, 0, spot) {
                let needed = self.groups.iter().map(|group| self.vcpus_of(group, more(group), key));
                keys.push((key, needed.fold(0, u32::saturating_add)));
            }
        }
        keys
    }

    fn vcpus_of(&self, group: &NodeGroup, more: u32, key: QuotaKey) -> u32 {
        let smallest = self.smallest(group).filter(|facts| QuotaKey::from_facts(facts, key.spot) == key);
        smallest.map_or(0, |facts| facts.vcpus.saturating_mul(instances(group, more, key.spot)))
    }

    fn smallest(&self, group: &NodeGroup) -> Option<&InstanceFacts> {
        let types = group.instance_types.iter().filter_map(|&name| self.setup.region.instance_type(name));
        types.map(|kind| &*kind.facts).min_by_key(|facts| facts.vcpus)
    }

    /// Zones of the group whose subnets lack addresses for an even share of its nodes, each old one with a pod.
    fn zones_without_addresses(&self, updated: &NodeGroup, surge: u32) -> Vec<String> {
        let network = &self.setup.scenario.ec2.cloud.network;
        if network.subnets.is_empty() {
            return Vec::new();
        }
        let is_short = |zone: &Symbol| {
            let subnets = network.subnets.iter().filter(|subnet| subnet.zone == *zone);
            let there: u32 = subnets.map(|subnet| subnet.addresses).fold(0, u32::saturating_add);
            let needed = self.groups.iter().map(|group| {
                let more = if group.name == updated.name { surge } else { 0 };
                self.addresses(group, more, *zone)
            });
            needed.fold(0, u32::saturating_add) > there
        };
        self.spec(updated).zones.iter().filter(|zone| is_short(zone)).map(Symbol::to_string).collect()
    }

    /// Addresses that a group needs in a zone: those of its nodes with a pod, and of `more` nodes without pods.
    fn addresses(&self, group: &NodeGroup, more: u32, zone: Symbol) -> u32 {
        let zones = self.spec(group).zones;
        let Some(facts) = self.smallest(group).filter(|_| zones.contains(&zone)) else { return 0 };
        let (network, zones) = (&self.setup.scenario.ec2.cloud.network, zones.len() as u32);
        let pods = u32::from(!self.setup.pod_addresses().ipv6);
        let (old, all) = (group.desired_size / zones, (group.desired_size + more) / zones);
        old * network.addresses_of(facts, pods) + (all - old) * network.addresses_of(facts, 0)
    }
}

/// Instances of a group with `more` than its desired size, On-Demand or Spot.
fn instances(group: &NodeGroup, more: u32, spot: bool) -> u32 {
    if group.weights.iter().any(|weight| *weight != 1) {
        return 0;
    }
    let size = group.desired_size + more;
    let on_demand = group.distribution.on_demand_of(size);
    if spot { size - on_demand } else { on_demand }
}
