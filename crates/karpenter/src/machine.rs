//! Karpenter's controllers as a machine without input and output: batching and provisioning, launches and the memory of what
//! lacks capacity, registration, disruption with its queue, drain, expiry, interruption, repair, static pools.
//!
//! [`Karpenter`] has methods of three kinds. *Inputs*: [`Karpenter::step`] hands it one [`Input`] and returns what it does about
//! it, as [`Action`]s in order; [`Karpenter::read_prices`] hands it prices. *Getters* tell what it remembers. *Questions*
//! ([`inquiry`]) are answered by the code that decides, and change nothing that decides.
//!
//! Time is an argument, the cluster is looked at and never changed, chance and everything else that can be read comes from
//! [`Outside`]. **After each step carry out all actions, in their order, before the next.** An action may be answered by an input
//! (a claim is there, an eviction was refused): that input is stepped, and its actions are carried out, before the next action. So is
//! what [`Action::Next`] names: what goes on there reads in the cluster what was done before.
//!
//! The documentation of the crate has ten lines of it, without a cluster to speak of.
//!
//! Releases from v1.13 remove empty nodes by the disruption loop, older ones by a timer on each node; the rest differs
//! only where the release's decisions beside this folder do.
//!
//! What must not live here: how long calls take, what EC2 answers, when pods are bound, evicted or ended, what is recorded.

mod assignment;
mod batching;
mod buffers;
mod claims;
mod cluster_view;
mod consolidation;
mod daemons;
mod disruption;
mod emptiness;
mod eviction;
mod images;
pub mod inquiry;
mod interruption;
mod io;
mod launch;
mod look_memory;
mod node_pods_cache;
mod pace;
mod provisioning;
mod queue;
mod repair;
mod reservations;
mod settings;
mod static_pools;
mod step;
mod termination;
mod type_lists;
mod unavailable;
mod validation;

pub use io::{
    Action, Bare, Busy, CallRefused, ClaimRequest, Draw, Fact, FleetCall, Input, LateTimer, LaunchAnswer,
    LaunchedInstance, LaunchedNode, NewClaim, OfferingError, Outside, ProposedCommand, ProposedNode, Stage, Subject,
    Timer, Written,
};
pub use settings::{Buffer, ImageReleases, KarpenterSettings, Provider, Settings, Ties};
pub use unavailable::OfferingKey;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::instance_types::InstanceType;
use crate::release::Behaviour;
use crate::selection::LaunchRequest;
use nodecast_model::cluster::Cluster;
use nodecast_model::control_plane::call_limit::CallLimit;
use nodecast_model::domain::{
    FeatureGates, HourlyRate, KarpenterVersion, KubernetesVersion, NodeId, NodePool, PodId, Requirements, Resources,
    SimDuration, SimTime, Symbol,
};
use step::Step;

/// What Karpenter's controllers remember.
#[derive(Debug)]
pub struct Karpenter {
    settings: Settings,
    behaviour: &'static Behaviour,
    /// NodePools as they are now.
    pools: Vec<Arc<NodePool>>,
    /// Instance types of each NodePool, by the same position.
    instance_types: type_lists::TypeLists,
    open_types: launch::OpenTypesCache,
    /// The least memory that a node of a pool and type has reported.
    learned_memory: BTreeMap<(Symbol, Symbol), i64>,
    node_pods_cache: node_pods_cache::NodePodsCache,
    daemons: daemons::KnownDaemons,
    batch: batching::Batch,
    passes: u64,
    /// A pass whose time is not over.
    passing: Option<Box<provisioning::Passing>>,
    claims_made: BTreeMap<Symbol, u32>,
    /// Claims that have been asked for and are not there yet, in the order in which they were asked for.
    making: VecDeque<provisioning::Making>,
    /// The release of the control plane, as it was last read; that of the settings until it changes.
    kubernetes: Option<KubernetesVersion>,
    /// How many images have been released on the schedule of the settings.
    images: u32,
    /// Claims whose launch has not been answered.
    launching: BTreeMap<NodeId, Claim>,
    /// Nodes that Karpenter launched, from their claim on until they are gone.
    nodes: BTreeMap<NodeId, claims::ClaimState>,
    /// Offerings that lacked capacity, and until when they are avoided.
    unavailable: unavailable::UnavailableOfferings,
    /// Whether something else that the offerings rest on has changed since they were last brought up to date.
    offerings_stale: bool,
    /// Prices as of the last time they were read.
    prices: provisioning::PriceBook,
    launch_templates: BTreeSet<(Symbol, Symbol)>,
    buffers: buffers::Buffers,
    /// When the last of them is made.
    templates_ready: SimTime,
    /// The node that was launched for a pod, in releases that bind pods themselves.
    assigned: BTreeMap<PodId, NodeId>,
    empty_since: BTreeMap<NodeId, SimTime>,
    stamp: claims::Stamp,
    disruption: disruption::Loop,
    consolidation: consolidation::Loop,
    commands: queue::Commands,
    /// Instance types that are no longer to be had.
    withdrawn: BTreeSet<Symbol>,
    /// When pools with a fixed number of nodes are looked at next.
    static_look: Option<SimTime>,
    /// Pods in the eviction queue, with how often each was refused.
    evictions: BTreeMap<PodId, u32>,
    eviction_retries: eviction::RetryLimit,
    /// What its calls take, where they take time.
    pace: Option<pace::Pace>,
}

/// A node claim until its launch is answered.
#[derive(Debug)]
struct Claim {
    /// Position of the NodePool.
    pool: usize,
    requirements: Arc<Requirements>,
    requests: Resources,
    /// Positions of the instance types, cheapest first.
    types: Vec<u32>,
    /// Launch calls that the provider refused to take.
    refusals: u32,
    /// The request that is being answered.
    sent: Option<LaunchRequest>,
}

impl Karpenter {
    /// Karpenter before it starts, with NodePools and the instance types of each, by the same position.
    pub fn new(settings: Settings, pools: Vec<NodePool>, instance_types: Vec<Vec<InstanceType>>) -> Self {
        Self {
            pools: pools.into_iter().map(Arc::new).collect(),
            instance_types: type_lists::TypeLists::new(instance_types),
            pace: settings.time.map(pace::Pace::new),
            behaviour: Behaviour::for_release(settings.release),
            settings,
            open_types: launch::OpenTypesCache::default(),
            learned_memory: BTreeMap::new(),
            node_pods_cache: node_pods_cache::NodePodsCache::default(),
            daemons: daemons::KnownDaemons::default(),
            batch: batching::Batch::default(),
            passes: 0,
            passing: None,
            claims_made: BTreeMap::new(),
            making: VecDeque::new(),
            kubernetes: None,
            images: 0,
            launching: BTreeMap::new(),
            nodes: BTreeMap::new(),
            unavailable: unavailable::UnavailableOfferings::default(),
            offerings_stale: false,
            prices: provisioning::PriceBook::default(),
            launch_templates: BTreeSet::new(),
            buffers: buffers::Buffers::default(),
            templates_ready: SimTime::ZERO,
            assigned: BTreeMap::new(),
            empty_since: BTreeMap::new(),
            stamp: claims::Stamp::default(),
            disruption: disruption::Loop::default(),
            consolidation: consolidation::Loop::default(),
            commands: queue::Commands::default(),
            withdrawn: BTreeSet::new(),
            static_look: None,
            evictions: BTreeMap::new(),
            eviction_retries: eviction::RetryLimit::default(),
        }
    }

    /// Takes in one thing that it is told, and returns what it does about it, to be carried out in this order.
    pub fn step(&mut self, now: SimTime, cluster: &Cluster, outside: &dyn Outside, input: Input<'_>) -> Vec<Action> {
        let mut step = Step::new(self, cluster, outside);
        step.take_in(now, input);
        step.into_actions()
    }

    /// The instant as of which prices are to be read before the next step, if the time for it has come.
    ///
    /// Source: AWS provider v1.13 `pkg/controllers/providers/pricing/controller.go`.
    pub fn prices_due(&self, now: SimTime) -> Option<SimTime> {
        self.prices.due(now)
    }

    /// Reads the price of every offering of every type as of an instant; `None` where none is known.
    pub fn read_prices(
        &mut self,
        as_of: SimTime,
        price: impl FnMut(Symbol, &crate::instance_types::Offering) -> Option<HourlyRate>,
    ) {
        self.prices.read(as_of, self.instance_types.iter().flatten(), price);
        self.offerings_stale = true;
    }

    /// As of when prices were last read.
    pub const fn prices_read(&self) -> Option<SimTime> {
        self.prices.read_as_of()
    }

    /// The limit of its client, where calls take time.
    pub fn call_limit(&self) -> Option<&CallLimit> {
        self.pace.as_ref().map(pace::Pace::limit)
    }

    /// Nodes that the disruption loop last found it may take, in the order of `DisruptionReason::ALL`.
    pub const fn eligible(&self) -> [u32; 3] {
        self.disruption.eligible
    }

    /// Whether it acts on what AWS says of instances.
    pub fn reads_notices(&self) -> bool {
        self.behaviour.reads_notices && self.settings.flags.interruption_queue
    }

    /// Whether it waits for the instance of a node to be gone, so that the node goes when it looks and not before.
    pub fn awaits_instance(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|claim| claim.awaits_instance)
    }

    /// How long a node that is to receive pods is left alone.
    ///
    /// Source: Karpenter core v1.13 `pkg/controllers/state/cluster.go`, `nominationWindow`; v0.16.0 and v0.18.1
    /// `pkg/controllers/state/cluster.go`.
    fn nomination_window(&self) -> SimDuration {
        match self.behaviour.nomination_half_windows {
            0 => SimDuration::ZERO,
            halves => {
                let window = self.settings.flags.batch_max.as_micros() * halves / 2;
                SimDuration::from_micros(window).max(SimDuration::from_secs(10))
            }
        }
    }

    /// Whether an offering is avoided, because it lacked capacity a while ago or is no longer to be had.
    pub fn avoids(&self, offering: OfferingKey, now: SimTime) -> bool {
        self.withdrawn.contains(&offering.0) || self.unavailable.is_avoided(&offering, now)
    }
}

/// Whether a release with these gates launches into the capacity reservations that node classes select, so that instance types
/// have an offering for each.
pub fn uses_reservations(release: KarpenterVersion, gates: FeatureGates) -> bool {
    Behaviour::for_release(release).uses_reservations(gates)
}
