//! From the accepted launch request to a Ready node: the stages of a boot and how long each takes.

use nodecast_engine::Stream;
use nodecast_model::catalog::InstanceFacts;
use nodecast_model::domain::SimDuration;
use nodecast_model::domain::node_group::WarmPoolState;
use nodecast_model::domain::node_pool::AmiFamily;

/// The median and spread of each stage of a boot, in seconds. Stages follow one another and are independent but for a
/// common factor, the quality of the host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BootStages {
    /// Request accepted to the machine being up.
    pub vm_init: f64,
    /// To the network being up.
    pub os_boot: f64,
    /// User data, container runtime, kubelet start.
    pub bootstrap: f64,
    /// Kubelet started to node registered.
    pub register: f64,
    /// Registered to the network plugin being ready.
    pub cni_ready: f64,
    /// To the kubelet's next post of its status, which says Ready; exactly so long. `None`: at any time of its period.
    pub status: Option<f64>,
    /// Request accepted to the API saying `running`; at most until the network is up. `None` for what is assumed of all instances.
    pub running: Option<f64>,
    /// Whether bare metal, GPUs, local disks and Xen make a boot longer.
    pub by_type: bool,
    /// Whether draws are replaced by the medians: for tests and what-if questions.
    pub fixed: bool,
}

/// What is special about the instance type's boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct BootTraits {
    /// Bare metal.
    pub metal: bool,
    /// Has GPUs whose driver must load.
    pub gpu: bool,
    /// Has local disks.
    pub local_disk: bool,
    /// Runs on the Xen hypervisor.
    pub xen: bool,
}

impl BootTraits {
    /// Those of an instance type.
    pub fn from_facts(facts: &InstanceFacts) -> Self {
        Self {
            metal: facts.bare_metal,
            gpu: facts.gpu.is_some(),
            local_disk: facts.local_storage_gb > 0,
            xen: facts.hypervisor.is_some_and(|hypervisor| hypervisor.as_str() == "xen"),
        }
    }
}

/// When the milestones of one boot are reached, counted from the accepted request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BootTimes {
    /// The instance enters `running`; billing begins.
    pub running: SimDuration,
    /// The node registers.
    pub registered: SimDuration,
    /// The network plugin is ready: from then on pods outside the host's network start.
    pub network: SimDuration,
    /// The node is Ready.
    pub ready: SimDuration,
}

impl BootTimes {
    /// The same boot, taking `permille` thousandths of the time.
    #[must_use]
    pub fn slowed(self, permille: u32) -> Self {
        let slow = |span: SimDuration| SimDuration::from_micros(span.as_micros() * i64::from(permille) / 1_000);
        Self {
            running: slow(self.running),
            registered: slow(self.registered),
            network: slow(self.network),
            ready: slow(self.ready),
        }
    }
}

/// Spread (standard deviation of the logarithm) of each stage, from vm_init to cni_ready.
const SIGMAS: [f64; 5] = [0.25, 0.20, 0.25, 0.30, 0.35];
/// Spread of the factor that all stages of one host share.
const HOST_SIGMA: f64 = 0.12;
/// Median and spread of the time from accepted to `running`, and its bounds, in seconds.
const RUNNING: (f64, f64, f64, f64) = (12.0, 0.35, 3.0, 90.0);
/// Bounds of the time that a stopped instance takes to start, in seconds: measured.
const WARM_START: (f64, f64) = (10.0, 15.0);
/// The kubelet posts its status at this period.
const STATUS_PERIOD: f64 = 10.0;

impl BootStages {
    /// The defaults for a family of machine images: assumptions fitted to published measurements.
    pub const fn from_family(family: AmiFamily) -> Self {
        let (vm_init, os_boot, bootstrap, register, cni_ready) = match family {
            AmiFamily::AL2 | AmiFamily::Ubuntu | AmiFamily::Custom => (11.0, 7.0, 9.0, 2.0, 6.0),
            AmiFamily::AL2023 => (11.0, 6.0, 11.0, 2.0, 6.0),
            AmiFamily::Bottlerocket => (11.0, 5.0, 5.0, 2.0, 6.0),
            AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => (12.0, 75.0, 150.0, 10.0, 30.0),
        };
        let (status, running) = (None, None);
        Self { vm_init, os_boot, bootstrap, register, cni_ready, status, running, by_type: true, fixed: false }
    }

    /// Draws one boot.
    pub fn draw(&self, traits: BootTraits, stream: &mut Stream) -> BootTimes {
        let traits = if self.by_type { traits } else { BootTraits::default() };
        let host = self.lognormal(stream, 1.0, HOST_SIGMA);
        let mut vm_init = self.lognormal(stream, self.vm_init, SIGMAS[0]) * host;
        if traits.metal {
            vm_init = self.lognormal(stream, 300.0, 0.35).clamp(120.0, 900.0);
        }
        for (applies, factor) in [(traits.gpu, 2.0), (traits.local_disk, 1.15), (traits.xen, 1.5)] {
            vm_init *= if applies { factor } else { 1.0 };
        }
        let os_boot = self.lognormal(stream, self.os_boot, SIGMAS[1]) * host;
        let driver = if traits.gpu { 15.0 } else { 0.0 };
        let bootstrap = self.lognormal(stream, self.bootstrap, SIGMAS[2]) * host + driver;
        let register = self.lognormal(stream, self.register, SIGMAS[3]);
        let cni_ready = self.lognormal(stream, self.cni_ready, SIGMAS[4]);
        let posted = if self.fixed { STATUS_PERIOD / 2.0 } else { stream.between(0.0, STATUS_PERIOD) };
        let posted = self.status.unwrap_or(posted);
        let (assumed, sigma, least, most) = RUNNING;
        let kubelet = vm_init + os_boot + bootstrap;
        // The state is polled, so that the machine may be up before the API says `running`; but by the time that its network
        // answers, it does.
        let drawn = self.lognormal(stream, self.running.unwrap_or(assumed), sigma);
        let running = if self.running.is_some() { drawn } else { drawn.clamp(least, most) }.min(vm_init + os_boot);
        let registered = kubelet + register;
        BootTimes {
            running: SimDuration::from_secs_f64(running),
            registered: SimDuration::from_secs_f64(registered),
            network: SimDuration::from_secs_f64(registered + cni_ready),
            ready: SimDuration::from_secs_f64(registered + cni_ready + posted),
        }
    }

    /// Draws the boot of an instance of a warm pool, which was bootstrapped before: a stopped one starts, then the kubelet registers.
    ///
    /// Assumption: a hibernated instance starts as fast as a stopped one.
    pub fn draw_warm(&self, state: WarmPoolState, stream: &mut Stream) -> BootTimes {
        let (least, most) = WARM_START;
        let drawn = if self.fixed { (least + most) / 2.0 } else { stream.between(least, most) };
        let start = if state == WarmPoolState::Running { 0.0 } else { drawn };
        let registered = start + self.lognormal(stream, self.register, SIGMAS[3]);
        let network = registered + self.lognormal(stream, self.cni_ready, SIGMAS[4]);
        let posted = if self.fixed { STATUS_PERIOD / 2.0 } else { stream.between(0.0, STATUS_PERIOD) };
        BootTimes {
            running: SimDuration::from_secs_f64(start),
            registered: SimDuration::from_secs_f64(registered),
            network: SimDuration::from_secs_f64(network),
            ready: SimDuration::from_secs_f64(network + self.status.unwrap_or(posted)),
        }
    }

    fn lognormal(&self, stream: &mut Stream, median: f64, sigma: f64) -> f64 {
        let drawn = stream.lognormal(median, sigma);
        if self.fixed { median } else { drawn }
    }
}

/// Time from TerminateInstances to the instance being gone: median 35 s, metal 180 s.
pub fn shutdown_time(metal: bool, stream: &mut Stream) -> SimDuration {
    SimDuration::from_secs_f64(stream.lognormal(if metal { 180.0 } else { 35.0 }, 0.5))
}

/// Time that a CreateFleet call for one instance takes: `median` and 0.02 s for the instance.
pub fn fleet_call_time(median: SimDuration, stream: &mut Stream) -> SimDuration {
    SimDuration::from_secs_f64(stream.lognormal(median.as_secs_f64() + 0.02, 0.35))
}

#[cfg(test)]
mod tests {
    use super::{BootStages, BootTraits};
    use nodecast_engine::Streams;
    use nodecast_model::domain::SimDuration;
    use nodecast_model::domain::node_pool::AmiFamily;

    #[test]
    fn al2023_node_is_ready_after_40_seconds() {
        let stages = BootStages::from_family(AmiFamily::AL2023);
        let streams = Streams::new(1);
        let mut ready: Vec<f64> = (0..10_000)
            .map(|n| stages.draw(BootTraits::default(), &mut streams.nth("boot", "pool", n)).ready.as_secs_f64())
            .collect();
        ready.sort_by(f64::total_cmp);
        assert!((36.0..46.0).contains(&ready[5_000]), "median {}", ready[5_000]);
        assert!(ready[9_500] < 75.0, "p95 {}", ready[9_500]);
    }

    #[test]
    fn milestones_come_in_order_and_metal_takes_minutes() {
        let stages = BootStages::from_family(AmiFamily::Bottlerocket);
        let streams = Streams::new(2);
        for n in 0..1_000 {
            let metal = n % 2 == 0;
            let boot = stages.draw(BootTraits { metal, ..BootTraits::default() }, &mut streams.nth("boot", "pool", n));
            assert!(boot.registered < boot.ready, "{boot:?}");
            // User data, container runtime and kubelet come between the two.
            assert!(boot.registered - boot.running >= SimDuration::from_secs(3), "{boot:?}");
            assert!(!metal || boot.registered.as_secs() >= 120, "{boot:?}");
        }
    }

    #[test]
    fn explicit_boot_stages_are_exact() {
        let traits = BootTraits { metal: true, gpu: true, local_disk: true, xen: true };
        let stages = BootStages {
            vm_init: 3.0,
            os_boot: 2.0,
            bootstrap: 1.0,
            register: 0.5,
            cni_ready: 0.25,
            status: Some(0.25),
            running: Some(4.0),
            by_type: false,
            fixed: true,
        };
        let millis = SimDuration::from_millis;
        let of = |stages: BootStages, traits| {
            let boot = stages.draw(traits, &mut Streams::new(3).nth("boot", "pool", 0));
            [boot.running, boot.registered, boot.ready]
        };
        assert_eq!(of(stages, traits), [millis(4_000), millis(6_500), millis(7_000)]);
        assert_ne!(of(BootStages { by_type: true, ..stages }, traits), of(stages, traits));
        assert_ne!(of(BootStages { status: None, ..stages }, traits)[2], millis(7_000));
        let none = BootStages { vm_init: 0.0, os_boot: 0.0, bootstrap: 0.0, register: 0.0, cni_ready: 0.0, ..stages };
        let none = BootStages { status: Some(0.0), running: Some(0.0), ..none };
        assert_eq!(of(none, traits), [SimDuration::ZERO; 3]);
    }
}
