//! What is left of the subnets' addresses, and which subnet a launch goes to.

use super::{Ec2, InstanceId};
use nodecast_model::domain::{SimTime, Symbol};

impl Ec2 {
    /// Free addresses of the subnet in `zone` that has most of them; without limit where no subnet is stated.
    pub fn free_addresses(&self, zone: Symbol, now: SimTime) -> u32 {
        if self.are_addresses_withheld(zone, now) {
            return 0;
        }
        if self.settings.network.subnets.is_empty() {
            return u32::MAX;
        }
        self.roomiest_subnet(zone).map_or(0, |(_, free)| free)
    }

    /// The subnet in `zone` with the most free addresses, as Karpenter chooses it; the first of equals.
    ///
    /// Source: Karpenter AWS provider v1.13 `pkg/providers/subnet/subnet.go`, `ZonalSubnetsForLaunch`.
    pub(super) fn roomiest_subnet(&self, zone: Symbol) -> Option<(u32, u32)> {
        let subnets = self.settings.network.subnets.iter().zip(0_u32..).filter(|(subnet, _)| subnet.zone == zone);
        let free = subnets.map(|(subnet, number)| {
            let taken = self.addresses_taken.get(number as usize).copied().unwrap_or(0);
            (number, subnet.addresses.saturating_sub(taken))
        });
        free.max_by_key(|&(number, free)| (free, std::cmp::Reverse(number)))
    }

    /// One address of the subnet in `zone` that has most of them, for something that is no instance; the subnet's number, `None` where
    /// no subnet is stated.
    ///
    /// # Errors
    /// If no subnet of the zone has one.
    pub fn take_address(&mut self, zone: Symbol, now: SimTime) -> Result<Option<u32>, NoAddress> {
        if self.free_addresses(zone, now) == 0 {
            return Err(NoAddress);
        }
        let subnet = self.roomiest_subnet(zone).map(|(number, _)| number);
        if let Some(number) = subnet {
            self.change_taken(number, 0, 1);
        }
        Ok(subnet)
    }

    /// An address that was taken is free again.
    pub fn return_address(&mut self, subnet: u32) {
        self.change_taken(subnet, 1, 0);
    }

    /// A holder of `before` addresses of a subnet holds `now` of them.
    pub(super) fn change_taken(&mut self, subnet: u32, before: u32, now: u32) {
        if self.addresses_taken.len() <= subnet as usize {
            self.addresses_taken.resize(subnet as usize + 1, 0);
        }
        let taken = &mut self.addresses_taken[subnet as usize];
        *taken = taken.saturating_sub(before).saturating_add(now);
    }

    /// The node on the instance now has `pods` pods with addresses of their own.
    pub fn set_pods(&mut self, id: InstanceId, pods: u32) {
        let instance = &self.instances[id.0 as usize];
        let Some(kind) = self.region.instance_type(instance.pool.instance_type) else { return };
        if instance.terminated.is_none() {
            self.take_addresses(id, self.settings.network.addresses_of(&kind.facts, pods));
        }
    }

    /// The instance keeps `addresses` of its subnet from now on.
    pub(super) fn take_addresses(&mut self, id: InstanceId, addresses: u32) {
        let instance = &mut self.instances[id.0 as usize];
        let before = std::mem::replace(&mut instance.addresses, addresses);
        let Some(subnet) = instance.subnet else { return };
        self.change_taken(subnet, before, addresses);
    }
}

/// No subnet of the zone has an address left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no address is left")]
pub struct NoAddress;
