//! What a fitted value does to a scenario.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cloud::BootStages;
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, Symbol};
use crate::scenario::Scenario;

/// A time of a workload's pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PodTime {
    /// From the start of its containers to answering.
    Start,
    /// From start to end, of pods that end by themselves.
    Run,
    /// From the signal to stop to having stopped.
    Shutdown,
}

/// A value in the place of what a scenario assumes or states.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// The median of a CreateFleet call.
    FleetCall(SimDuration),
    /// The stages of a boot up to the node registering take so many times as long.
    BootUntilRegistered(f64, BootStages),
    /// The network plugin is ready so many seconds after that.
    CniReady(f64, BootStages),
    /// Images are pulled and unpacked at these rates.
    PullRates(i64, i64),
    /// Images have these compressed sizes.
    ImageSizes(BTreeMap<Symbol, i64>),
    /// A workload's pods take so long.
    PodTime(ObjectName, PodTime, SimDuration),
    /// Such a share of a workload's pods fails.
    PodFailures(ObjectName, f64),
    /// The instances behind the Spot Advisor's figures were held for so many hours.
    Exposure(f64),
    /// Such a share of launches is given up.
    Aborts(f64),
    /// Such a share of nodes never registers.
    NeverRegisters(f64),
    /// A request costs so much CPU time.
    CpuPerRequest(ObjectName, SimDuration),
}

/// Stages whose first four take `factor` times as long.
pub(crate) fn slowed(base: BootStages, factor: f64) -> BootStages {
    BootStages {
        vm_init: base.vm_init * factor,
        os_boot: base.os_boot * factor,
        bootstrap: base.bootstrap * factor,
        register: base.register * factor,
        ..base
    }
}

impl Change {
    /// Makes the change, also where the scenario states the value itself.
    pub fn apply(&self, scenario: &mut Scenario) {
        let cloud = &mut scenario.ec2.cloud;
        match self {
            Self::FleetCall(median) => Arc::make_mut(cloud).times.fleet_call_median = *median,
            Self::BootUntilRegistered(factor, base) => scenario.ec2.launch_latency = Some(slowed(*base, *factor)),
            Self::CniReady(seconds, base) => {
                // The other stages may have been changed before.
                let stages = scenario.ec2.launch_latency.unwrap_or(*base);
                scenario.ec2.launch_latency = Some(BootStages { cni_ready: *seconds, ..stages });
            }
            Self::PullRates(pull, unpack) => {
                (scenario.images.pull_rate, scenario.images.unpack_rate) = (*pull, *unpack);
            }
            Self::ImageSizes(sizes) => scenario.images.sizes.extend(sizes),
            Self::PodTime(workload, which, span) => {
                let times = scenario.times.entry(*workload).or_default();
                match which {
                    PodTime::Start => times.start_time = *span,
                    PodTime::Run => times.run_time = Some(*span),
                    PodTime::Shutdown => times.shutdown_time = *span,
                }
            }
            Self::PodFailures(workload, share) => {
                scenario.times.entry(*workload).or_default().failures = *share;
            }
            Self::Exposure(hours) => Arc::make_mut(cloud).interruptions.exposure_hours = Some(*hours),
            Self::Aborts(share) => Arc::make_mut(cloud).failures.abort = *share,
            Self::NeverRegisters(share) => Arc::make_mut(cloud).failures.never_registers = *share,
            Self::CpuPerRequest(workload, span) => {
                for load in scenario.load.iter_mut().filter(|load| load.workload == *workload) {
                    load.service.cpu_per_request = *span;
                }
            }
        }
    }
}
