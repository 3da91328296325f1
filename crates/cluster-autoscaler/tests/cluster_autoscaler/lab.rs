//! A small cluster to try the autoscaler on.

use std::sync::Arc;

use nodecast_cluster_autoscaler::view::{
    BudgetView, Controller, ControllerKind, DaemonSetView, Deletions, GroupOptions, GroupView, InstanceError,
    InstanceView, NodeTemplate, NodeView, PodPlace, PodTraits, PodView,
};
use nodecast_cluster_autoscaler::{
    ClusterAutoscaler, ExpanderInputs, Flags, GroupActions, Iteration, Observation, ResizeError,
};
use nodecast_model::domain::pod::{PodPhase, PodSpec};
use nodecast_model::domain::topology::{NodeInclusionPolicy, TopologySpread, WhenUnsatisfiable};
use nodecast_model::domain::{
    Container, KubernetesVersion, LabelSelector, Labels, NodeId, PodId, ResourceName, Resources, SimDuration, SimTime,
    Symbol, Taint, TaintEffect,
};

/// When every test begins.
pub const START: SimTime = SimTime::from_micros(1_000_000_000_000_000);

pub const fn seconds(seconds: i64) -> SimDuration {
    SimDuration::from_secs(seconds)
}

pub const fn minutes(minutes: i64) -> SimDuration {
    seconds(minutes * 60)
}

/// Flags over the defaults.
pub fn flags(given: &[(&str, &str)]) -> Flags {
    Flags::parse(KubernetesVersion::default(), given.iter().copied()).unwrap()
}

/// A program that was started at [`START`].
pub fn program(given: &[(&str, &str)]) -> ClusterAutoscaler {
    ClusterAutoscaler::new(flags(given), ExpanderInputs::default(), START)
}

pub fn label(key: &str, value: &str) -> Labels {
    Labels::new().with(key, value)
}

pub fn app(name: &str) -> LabelSelector {
    LabelSelector { match_labels: label("app", name), ..LabelSelector::default() }
}

pub fn taint(key: &str) -> Taint {
    Taint::new(Symbol::new(key), TaintEffect::NoSchedule)
}

/// CPU in thousandths, memory in bytes, and slots for pods.
pub fn offered(milli_cpu: i64, memory: i64, pods: i64) -> Resources {
    Resources::cpu_memory(milli_cpu, memory).with(ResourceName::PODS, pods)
}

pub fn template(milli_cpu: i64, memory: i64) -> NodeTemplate {
    let capacity = offered(milli_cpu, memory, 10);
    NodeTemplate { allocatable: capacity.clone(), capacity, ..NodeTemplate::default() }
}

pub fn controller(kind: ControllerKind, name: &str) -> Controller {
    Controller { kind, name: Symbol::new(name), exists: true, replicas: 1, current_replicas: 1 }
}

/// A specification that asks for this, labelled `app: name`.
pub fn spec(name: &str, milli_cpu: i64, memory: i64) -> PodSpec {
    let container = Container { requests: Resources::cpu_memory(milli_cpu, memory), ..Container::default() };
    PodSpec { labels: label("app", name), containers: vec![container], ..PodSpec::default() }
}

/// Pods of a ReplicaSet.
pub fn traits(name: &str, spec: PodSpec) -> Arc<PodTraits> {
    let owner = controller(ControllerKind::ReplicaSet, name);
    Arc::new(PodTraits::new(Symbol::new("default"), Arc::new(spec), Some(owner)))
}

/// Pods of a DaemonSet.
pub fn daemon(name: &str, milli_cpu: i64, memory: i64) -> Arc<PodTraits> {
    let owner = controller(ControllerKind::DaemonSet, name);
    Arc::new(PodTraits::new(Symbol::new("default"), Arc::new(spec(name, milli_cpu, memory)), Some(owner)))
}

/// A hard spread over `key` of pods labelled `app: name`.
pub fn spread(name: &str, key: &str, max_skew: i64, min_domains: Option<i64>) -> TopologySpread {
    TopologySpread {
        topology_key: Symbol::new(key),
        max_skew,
        when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
        selector: Some(app(name)),
        min_domains,
        node_affinity_policy: NodeInclusionPolicy::Honor,
        node_taints_policy: NodeInclusionPolicy::Ignore,
        match_label_keys: Vec::new(),
    }
}

/// The groups as the cloud has them.
#[derive(Default, Debug)]
pub struct Cloud {
    pub targets: Vec<i64>,
    /// Increases that will be refused, of any group.
    pub refusals: usize,
    /// Calls that were accepted.
    pub calls: Vec<String>,
    /// Whether lowering the target is refused.
    pub refuses_decrease: bool,
}

impl GroupActions for Cloud {
    fn increase_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(ResizeError("refused".to_owned()));
        }
        self.targets[group] += by;
        self.calls.push(format!("{group} +{by}"));
        Ok(())
    }

    fn decrease_target_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        self.calls.push(format!("{group} -{by}"));
        if self.refuses_decrease {
            return Err(ResizeError("refused".to_owned()));
        }
        self.targets[group] -= by;
        Ok(())
    }

    fn delete_instances(&mut self, group: usize, instances: &[Arc<str>]) -> Result<(), ResizeError> {
        self.targets[group] -= instances.len() as i64;
        self.calls.push(format!("{group} deletes {}", instances.join(" ")));
        Ok(())
    }

    fn target_size(&self, group: usize) -> i64 {
        self.targets[group]
    }
}

/// A cluster.
#[derive(Default, Debug)]
pub struct Lab {
    pub groups: Vec<GroupView>,
    pub nodes: Vec<NodeView>,
    pub pods: Vec<PodView>,
    pub daemon_sets: Vec<DaemonSetView>,
    pub budgets: Vec<BudgetView>,
    pub deletions: Deletions,
    pub recent_evictions: Vec<PodView>,
    pub cloud: Cloud,
    /// Time since [`START`].
    pub elapsed: SimDuration,
    /// What draws among equals.
    pub draw: usize,
}

impl Lab {
    pub fn now(&self) -> SimTime {
        START + self.elapsed
    }

    /// Adds a group (min, max, target) whose nodes offer this.
    pub fn group(&mut self, id: &str, sizes: (i64, i64, i64), milli_cpu: i64, memory: i64) -> usize {
        self.cloud.targets.push(sizes.2);
        self.groups.push(GroupView {
            id: Symbol::new(id),
            auto_scaling_group: Symbol::new(id),
            min: sizes.0,
            max: sizes.1,
            target: sizes.2,
            template: Some(Arc::new(template(milli_cpu, memory))),
            instances: Vec::new(),
            options: GroupOptions::default(),
            price_per_hour: None,
            exists: true,
        });
        self.groups.len() - 1
    }

    /// Changes a group's template.
    pub fn with_template(&mut self, group: usize, change: impl FnOnce(&mut NodeTemplate)) {
        let mut template = (**self.groups[group].template.as_ref().unwrap()).clone();
        change(&mut template);
        self.groups[group].template = Some(Arc::new(template));
    }

    /// Adds a ready node of a group, two hours old.
    pub fn node(&mut self, group: usize) -> usize {
        let template = self.groups[group].template.clone().unwrap();
        let at = self.lone_node(template.allocatable.cpu_milli(), template.allocatable.memory_bytes());
        let node = &mut self.nodes[at];
        node.group = Some(group);
        node.labels.extend(&template.labels);
        node.taints.clone_from(&template.taints);
        node.allocatable = template.allocatable.clone();
        node.capacity = template.capacity.clone();
        at
    }

    /// Adds a node of no group.
    pub fn lone_node(&mut self, milli_cpu: i64, memory: i64) -> usize {
        let name = format!("n{}", self.nodes.len());
        let capacity = offered(milli_cpu, memory, 10);
        self.nodes.push(NodeView {
            id: NodeId::from_index(self.nodes.len()),
            name: Arc::from(name.as_str()),
            group: None,
            labels: label("kubernetes.io/hostname", &name),
            annotations: Labels::new(),
            taints: Vec::new(),
            unschedulable: false,
            allocatable: capacity.clone(),
            capacity,
            created: START - minutes(120),
            ready: true,
            ready_since: START - minutes(119),
            volume_limits: Vec::new(),
            suspended: false,
            instance_gone: false,
        });
        self.nodes.len() - 1
    }

    /// Makes a node unready and so old.
    pub fn unready(&mut self, node: usize, age: SimDuration) {
        self.nodes[node].ready = false;
        self.nodes[node].created = START - age;
        self.nodes[node].ready_since = START - age;
        self.nodes[node].taints.push(taint("node.kubernetes.io/not-ready"));
    }

    pub fn pod(&mut self, traits: &Arc<PodTraits>, place: PodPlace) -> usize {
        self.pods.push(PodView {
            id: PodId::from_index(self.pods.len()),
            traits: Arc::clone(traits),
            created: START - minutes(10),
            phase: PodPhase::Running,
            deleted_at: None,
            place,
        });
        self.pods.len() - 1
    }

    /// Adds pending pods of a ReplicaSet.
    pub fn pending(&mut self, name: &str, count: usize, milli_cpu: i64, memory: i64) -> Vec<usize> {
        let traits = traits(name, spec(name, milli_cpu, memory));
        (0..count).map(|_| self.pod(&traits, PodPlace::Unschedulable)).collect()
    }

    /// Adds running pods of a ReplicaSet.
    pub fn running(&mut self, name: &str, node: usize, milli_cpu: i64, memory: i64) -> usize {
        let place = PodPlace::Bound(self.nodes[node].id);
        self.pod(&traits(name, spec(name, milli_cpu, memory)), place)
    }

    pub fn instance(&mut self, group: usize, id: &str, error: Option<InstanceError>) {
        self.groups[group].instances.push(InstanceView { id: Arc::from(id), node: None, deleting: false, error });
    }

    pub fn budget(&mut self, name: &str, disruptions_allowed: i64) {
        let namespace = Symbol::new("default");
        self.budgets.push(BudgetView { namespace, selector: Some(app(name)), disruptions_allowed });
    }

    /// What there is to see.
    pub fn seen(&self) -> Observation<'_> {
        Observation {
            now: self.now(),
            nodes: &self.nodes,
            pods: &self.pods,
            listing: None,
            groups: &self.groups,
            daemon_sets: &self.daemon_sets,
            budgets: &self.budgets,
            namespaces: &[],
            deletions: &self.deletions,
            recent_evictions: &self.recent_evictions,
        }
    }

    /// One iteration.
    pub fn run(&mut self, program: &mut ClusterAutoscaler) -> Iteration {
        let draw = self.draw;
        self.run_by(|seen, cloud| program.run_once(seen, cloud, &mut |options| draw % options))
    }

    /// An iteration that the caller runs.
    pub fn run_by(&mut self, run: impl FnOnce(&Observation<'_>, &mut Cloud) -> Iteration) -> Iteration {
        let mut cloud = std::mem::take(&mut self.cloud);
        let iteration = run(&self.seen(), &mut cloud);
        self.cloud = cloud;
        for (group, target) in self.groups.iter_mut().zip(&self.cloud.targets) {
            group.target = *target;
        }
        iteration
    }

    /// One iteration so much later.
    pub fn run_after(&mut self, wait: SimDuration, program: &mut ClusterAutoscaler) -> Iteration {
        self.elapsed += wait;
        self.run(program)
    }
}
