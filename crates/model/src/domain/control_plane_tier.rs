//! Tiers of an EKS control plane, and the limits that come with each.
//!
//! Source: Amazon EKS user guide, `clusters/eks-provisioned-control-plane-introduction.adoc` of 2026-08 (request seats, pods scheduled per
//! second); AWS announcement of 2026-07-28 (HorizontalPodAutoscalers at a time: up to 40 times upstream's 5; the numbers by tier are
//! second-hand); Kubernetes 1.36 `cmd/kube-scheduler` and `cmd/kube-controller-manager` (standard).
//!
//! Assumed: the burst of kube-scheduler's client on a provisioned tier is its rate; a standard control plane has twice the rate from
//! [`LARGE`] nodes on, because EKS's own scale tests demand 70 to 90 pods a second of large ones.

use std::fmt;

use super::controller_time::CallRate;
use super::{KubernetesVersion, SimDuration};

/// Nodes from which on a standard control plane counts as large.
pub const LARGE: usize = 500;

/// A tier of the control plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ControlPlaneTier {
    /// Grows with the cluster, without a promise.
    #[default]
    Standard,
    /// Provisioned, as all that follow.
    Xl,
    /// Twice its request seats.
    Xl2,
    /// Four times its request seats.
    Xl4,
    /// Eight times its request seats; schedules no faster than the tier before.
    Xl8,
}

impl ControlPlaneTier {
    /// All tiers, the smallest first.
    pub const ALL: [Self; 5] = [Self::Standard, Self::Xl, Self::Xl2, Self::Xl4, Self::Xl8];
    /// The first minor release of Kubernetes with provisioned control planes.
    pub const FIRST_RELEASE: u8 = 28;

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Xl => "xl",
            Self::Xl2 => "2xl",
            Self::Xl4 => "4xl",
            Self::Xl8 => "8xl",
        }
    }

    /// The tier of a name, as EKS's API writes it too: `4xl`, `tier-4xl`.
    pub fn parse(name: &str) -> Option<Self> {
        let short = name.strip_prefix("tier-").unwrap_or(name);
        Self::ALL.into_iter().find(|tier| tier.as_str() == short && (tier.is_provisioned() || short == name))
    }

    /// Whether it is ordered and paid for by the hour.
    pub const fn is_provisioned(self) -> bool {
        !matches!(self, Self::Standard)
    }

    /// Whether a control plane of this release may have the tier.
    pub const fn is_offered(self, version: KubernetesVersion) -> bool {
        !self.is_provisioned() || version.minor() >= Self::FIRST_RELEASE
    }

    /// The limit of kube-scheduler's client in a cluster with this many nodes.
    pub const fn scheduler_calls(self, version: KubernetesVersion, nodes: usize) -> CallRate {
        match (self, version.minor()) {
            (Self::Standard, _) if nodes < LARGE => CallRate::new(50, 100),
            (Self::Standard, _) | (_, ..=29) => CallRate::new(100, 100),
            (Self::Xl, _) => CallRate::new(167, 167),
            (Self::Xl2, _) => CallRate::new(283, 283),
            (Self::Xl4 | Self::Xl8, _) => CallRate::new(400, 400),
        }
    }

    /// How long kube-scheduler takes for an attempt to place a pod.
    ///
    /// Source: Kubernetes 1.36.2 with Karpenter v1.13 on two busy processors, clients of kube-controller-manager and kube-scheduler raised to
    /// 500 calls a second: 300 pods on five new nodes were bound at about 140 a second, which is within the 100 to 300 of a usual cluster. A
    /// provisioned tier schedules up to 400 a second, so it takes less (assumed).
    pub const fn scheduler_attempt(self) -> SimDuration {
        SimDuration::from_millis(if self.is_provisioned() { 1 } else { 7 })
    }

    /// How many HorizontalPodAutoscalers are evaluated at a time.
    pub const fn autoscaler_syncs(self) -> u32 {
        match self {
            Self::Standard => 5,
            Self::Xl => 50,
            Self::Xl2 => 100,
            Self::Xl4 | Self::Xl8 => 200,
        }
    }

    /// Requests that the API server works on at a time: at first, and at most.
    pub const fn request_seats(self, version: KubernetesVersion) -> (u32, u32) {
        let of_xl = if version.minor() >= 34 { 2_000 } else { 1_700 };
        let times = match self {
            Self::Standard => return (600, 2_000),
            Self::Xl => 1,
            Self::Xl2 => 2,
            Self::Xl4 => 4,
            Self::Xl8 => 8,
        };
        (times * of_xl, times * of_xl)
    }
}

impl fmt::Display for ControlPlaneTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{CallRate, ControlPlaneTier, KubernetesVersion, LARGE};

    fn version(minor: u8) -> KubernetesVersion {
        KubernetesVersion::from_minor(minor).unwrap()
    }

    #[test]
    fn names_of_api_are_read() {
        let tiers = ["standard", "tier-2xl", "8xl"].map(ControlPlaneTier::parse);
        assert_eq!(tiers, [ControlPlaneTier::Standard, ControlPlaneTier::Xl2, ControlPlaneTier::Xl8].map(Some));
        assert_eq!(["tier-standard", "tier-ultra", "XL"].map(ControlPlaneTier::parse), [None; 3]);
    }

    #[test]
    fn large_standard_control_plane_schedules_twice_as_fast() {
        let calls = |nodes| ControlPlaneTier::Standard.scheduler_calls(version(35), nodes);
        assert_eq!([calls(LARGE - 1), calls(LARGE)], [CallRate::new(50, 100), CallRate::new(100, 100)]);
    }

    #[test]
    fn early_releases_schedule_alike_on_all_tiers() {
        let calls = |minor| ControlPlaneTier::ALL.map(|tier| tier.scheduler_calls(version(minor), 3).per_second);
        assert_eq!(calls(29), [50, 100, 100, 100, 100]);
        assert_eq!(calls(30), [50, 167, 283, 400, 400]);
    }

    #[test]
    fn provisioned_scheduler_keeps_up_with_its_client() {
        for tier in ControlPlaneTier::ALL {
            let attempts = 1_000_000 / tier.scheduler_attempt().as_micros();
            assert!(attempts >= i64::from(tier.scheduler_calls(version(34), LARGE).per_second), "{tier}");
        }
    }

    #[test]
    fn request_seats_grow_with_tier_and_release() {
        let seats = |minor| ControlPlaneTier::ALL.map(|tier| tier.request_seats(version(minor)).1);
        assert_eq!(seats(33), [2_000, 1_700, 3_400, 6_800, 13_600]);
        assert_eq!(seats(34), [2_000, 2_000, 4_000, 8_000, 16_000]);
        assert_eq!(ControlPlaneTier::Standard.request_seats(version(34)).0, 600);
    }
}
