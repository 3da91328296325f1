//! What an answer cannot know where load is CPU in cores: the transfer of its requests, and the bursts that a smooth curve lacks.

use super::balancers;
use crate::actors::Sim;
use crate::cloud::billing::network::LoadBalancers;
use crate::domain::words::counted;
use crate::domain::{SimDuration, SimTime};
use crate::load::{Curve, Uncertainty};
use nodecast_settings::Scenario;
use nodecast_settings::{LoadSpec, Requests};

/// By how much of the larger rate two neighbouring steps of a smooth curve differ at most (assumed).
const SMOOTH: f64 = 0.1;

/// A warning that names the transfer that is not in the bill of a run that ends at `end`: that of `in_cores` workloads of which nobody
/// knows the requests, or of requests of which nobody knows the bytes.
pub(super) fn traffic(sim: &Sim<'_>, in_cores: usize, end: SimTime) -> Option<String> {
    let network = &sim.setup.scenario.ec2.cloud.billing.network;
    let no_bytes = network.cross_zone.is_some_and(|cross_zone| cross_zone.bytes_per_request.is_none());
    let because = match in_cores {
        0 if !no_bytes => return None,
        0 => "nobody measured the bytes of a request".to_owned(),
        count => {
            let workloads = counted(count as u64, "workload is", "workloads is");
            format!("the load of {workloads} CPU in cores, without requests")
        }
    };
    let by_load = |stated: LoadBalancers| {
        stated.count.is_none() && (stated.milli_units.is_none() || no_bytes && stated.milli_units == Some(0))
    };
    let are_balanced = network.load_balancers.is_some_and(by_load)
        && !balancers::of_run(sim.setup.scenario, sim.setup.policy, end).is_empty();
    let unknown = match (sim.setup.scenario.zones.len() > 1, are_balanced) {
        (true, true) => "cross-zone transfer and capacity units of load balancers are",
        (true, false) => "cross-zone transfer is",
        (false, true) => "capacity units of load balancers are",
        (false, false) => return None,
    };
    let keys = match (in_cores, are_balanced) {
        (0, false) => "`ec2.billing.cross_zone.bytes_per_request`",
        (0, true) => "`bytes_per_request` of `ec2.billing.cross_zone` and `ec2.billing.load_balancers`",
        _ => "`load[].requests` (`nodecast observe` records them) and `ec2.billing.cross_zone.bytes_per_request`",
    };
    Some(format!("{unknown} not known: {because}. It is not in the bill, so the cost is too low. Set {keys}"))
}

/// Whether there is load, and none of it in requests.
pub(super) fn is_all_in_cores(scenario: &Scenario) -> bool {
    let in_cores = |load: &LoadSpec| matches!(load.requests, Requests::Cpu(_));
    !scenario.load.is_empty() && scenario.load.iter().all(in_cores)
}

/// A warning where loads in cores have neither bursts nor noise, as those that `init` derives from one look at a cluster.
pub(super) fn smooth(scenario: &Scenario) -> Option<String> {
    let end = SimTime::ZERO + scenario.duration;
    let is_smooth = |load: &&LoadSpec| match &load.requests {
        Requests::Cpu(cores) => {
            let length = load.until.unwrap_or(end).min(end).saturating_since(load.at);
            cores.uncertainty == Uncertainty::default() && is_smooth(&cores.curve, length)
        }
        Requests::Open(_) | Requests::ClosedLoop { .. } => false,
    };
    let count = scenario.load.iter().filter(is_smooth).count();
    (count > 0).then(|| {
        let loads = counted(count as u64, "load in cores is a smooth curve", "loads in cores are smooth curves");
        format!(
            "{loads} without bursts or noise. Pod waits, scaling delays and missing replicas are too low. Replay recorded load (`nodecast \
             observe`) or set `load[].cpu.uncertainty`"
        )
    })
}

/// Whether no step within `length` differs much from the one before.
fn is_smooth(curve: &Curve, length: SimDuration) -> bool {
    let rates: Vec<f64> =
        curve.steps_from_start().take_while(|step| step.from < length).map(|step| step.rate).collect();
    rates.windows(2).all(|pair| (pair[1] - pair[0]).abs() <= SMOOTH * pair[0].max(pair[1]))
}
