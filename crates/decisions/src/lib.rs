//! What Kubernetes' autoscalers decide, as functions and machines without input and output: Karpenter's packing, choice of
//! instances and disruption, the Cluster Autoscaler, kube-scheduler, the HorizontalPodAutoscaler, KEDA and the Vertical Pod Autoscaler,
//! each release as it is.
//! [`nodecast`](https://crates.io/crates/nodecast) simulates clusters with them; a controller, a dashboard or a test can ask them
//! directly. Agreement with the real programs is tested on recorded answers of theirs.
//!
//! This crate has no code. It collects the names that a controller, a dashboard or a test needs from the crates that make the
//! decisions (`nodecast-karpenter`, `nodecast-scheduler`, `nodecast-cluster-autoscaler`, `nodecast-replicas`, `nodecast-vpa`) and from
//! those that they work on (`nodecast-model`, `nodecast-manifests`, `nodecast-single-pass`). What it names changes only with a line
//! in the changelog; what else those crates show may change at any time.
//!
//! # Pack pods onto a NodePool
//!
//! A [`Region`](catalog::Region) says what EC2 offers and at what price (`nodecast-prices` has the real ones), manifests say what
//! is asked of it, and a [`SinglePass`](single_pass::SinglePass) what Karpenter would launch now.
//!
//! ```
//! use std::sync::Arc;
//!
//! use nodecast_decisions::catalog::{InstanceFacts, Price, Region, RegionType};
//! use nodecast_decisions::domain::{Currency, Symbol};
//! use nodecast_decisions::manifests::read_manifests;
//! use nodecast_decisions::single_pass::{PackingQuestion, Setting, SinglePass};
//! use nodecast_decisions::text::Source;
//!
//! let types = [("m5.large", 2, 8_192, "0.096"), ("m5.xlarge", 4, 16_384, "0.192"), ("m5.4xlarge", 16, 65_536, "0.768")];
//! let types = types.map(|(name, vcpus, memory, price)| {
//!     RegionType::everywhere(InstanceFacts::plain(name, vcpus, memory), Price::own(price).unwrap(), None, 2)
//! });
//! let region = Region::named("us-east-1", Currency::Usd, &["us-east-1a", "us-east-1b"], types);
//!
//! let objects = read_manifests(&Source::new("cluster.yaml", "
//! { apiVersion: karpenter.sh/v1, kind: NodePool, metadata: { name: default },
//!   spec: { template: { spec: { requirements: [], nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default } } } } }
//! ---
//! { apiVersion: apps/v1, kind: Deployment, metadata: { name: web },
//!   spec: { replicas: 5, selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } },
//!     spec: { containers: [{ name: web, resources: { requests: { cpu: '1', memory: 1Gi } } }] } } } }
//! "))?;
//! let question = PackingQuestion::new(objects, Vec::new(), Setting::from_region(Arc::new(region)))?;
//! let pass = SinglePass::from_question(&question);
//!
//! let [claim] = pass.plan.claims.as_slice() else { panic!("one node holds them all") };
//! assert_eq!((claim.pods.len(), claim.instance_types[0].name), (5, Symbol::new("m5.4xlarge")));
//! # Ok::<(), nodecast_decisions::text::InputError>(())
//! ```
//!
//! # Decide a HorizontalPodAutoscaler
//!
//! One pass of its controller over what the caller read; [`HpaState`](policy::replicas::hpa::HpaState) is what it remembers from
//! pass to pass.
//!
//! ```
//! use nodecast_decisions::domain::SimTime;
//! use nodecast_decisions::manifests::read_manifests;
//! use nodecast_decisions::policy::replicas::hpa::{HpaParameters, HpaState, HpaView, MetricReading, SettledPods, sync};
//! use nodecast_decisions::text::Source;
//!
//! let objects = read_manifests(&Source::new("hpa.yaml", "
//! { apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: { name: web },
//!   spec: { scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: web }, maxReplicas: 10, metrics: [
//!     { type: Resource, resource: { name: cpu, target: { type: Utilization, averageUtilization: 60 } } }] } }
//! "))?;
//! // Three Ready pods request half a CPU each and use nine tenths of that.
//! let view = HpaView {
//!     now: SimTime::from_micros(60_000_000),
//!     spec_replicas: 3,
//!     status_replicas: 3,
//!     pods: &[],
//!     settled: SettledPods { pods: 3, usage_milli: 1_350, request_milli: 1_500 },
//!     readings: &[MetricReading::PerPod { samples: &[], unmatched: &[] }],
//!     selector_problem: None,
//! };
//! let decision = sync(&objects.autoscalers[0], &mut HpaState::default(), &view, &HpaParameters::default());
//! assert_eq!((decision.current, decision.desired), (3, 5));
//! # Ok::<(), nodecast_decisions::text::InputError>(())
//! ```
//!
//! # Recommend requests
//!
//! The Vertical Pod Autoscaler's [`Recommender`](policy::vertical::Recommender) is told what containers use, and
//! [`admit`](policy::vertical::admit) writes what it recommends into a pod that is being created.
//!
//! ```
//! use nodecast_decisions::domain::{LabelSelector, Labels, Resources, SimDuration, SimTime, Symbol};
//! use nodecast_decisions::domain::workload::ObjectName;
//! use nodecast_decisions::manifests::vertical_pod_autoscaler_from_json;
//! use nodecast_decisions::policy::vertical::{ContainerState, NamespaceLimits, Recommender, RecommenderSettings, admit};
//!
//! let mut vpa = vertical_pod_autoscaler_from_json(&serde_json::json!({
//!     "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "web"},
//!     "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
//! }))?;
//! let container = Symbol::new("app");
//! let pod = ObjectName { namespace: vpa.name.namespace, name: Symbol::new("web-1") };
//! let mut recommender = Recommender::new(RecommenderSettings::default());
//! // From midnight of 2027-01-01 on, a day of a whole core and 2 GB, once a minute.
//! let midnight = SimTime::from_micros(1_798_761_600_000_000);
//! recommender.add_pod(pod, &Labels::new(), [(container, 500)], midnight);
//! for minute in 0..24 * 60 {
//!     let now = midnight + SimDuration::from_secs(minute * 60);
//!     recommender.cpu_sample((pod, container), now, 1_000, now)?;
//!     recommender.memory_sample((pod, container), now, 2_000_000_000, now)?;
//! }
//! vpa.recommendation = Some(recommender.recommend(&vpa, &LabelSelector::default()));
//!
//! // A constant core gives the end of its bucket and 15 % more, and the limit stays twice the request.
//! let (requests, limits) = (Resources::cpu_memory(500, 1 << 30), Resources::cpu_memory(1_000, 2 << 30));
//! let admitted = admit(&vpa, &[ContainerState { name: container, requests, limits }], true, &NamespaceLimits::default());
//! assert_eq!(admitted.containers[0].requests.cpu_milli(), 1_168);
//! assert_eq!(admitted.containers[0].limits.cpu_milli(), 2_336);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Step Karpenter
//!
//! [`Karpenter`](policy::karpenter::Karpenter) is its controllers as a machine: an [`Input`](policy::karpenter::Input) goes in with
//! the instant, the [`Cluster`](cluster::Cluster) and what else there is to read; [`Action`](policy::karpenter::Action)s come out,
//! timers among them, and who drives it carries them out in order.
//!
//! ```
//! use nodecast_decisions::cluster::Cluster;
//! use nodecast_decisions::domain::{KarpenterVersion, KubernetesVersion, NodePool, SimTime};
//! use nodecast_decisions::policy::karpenter::{Action, Bare, Input, Karpenter, Settings, Timer};
//!
//! let settings = Settings::new(KarpenterVersion::default(), KubernetesVersion::default());
//! let mut karpenter = Karpenter::new(settings, vec![NodePool::named("default")], vec![Vec::new()]);
//! let (cluster, outside) = (Cluster::default(), Bare::default());
//! let actions = karpenter.step(SimTime::ZERO, &cluster, &outside, Input::Begin);
//! assert!(matches!(actions[1], Action::Wake(SimTime::ZERO, Timer::DisruptionPass)));
//! ```
//!
//! # What this is not
//!
//! No client of the API server and none of AWS, no price list, no clock and no simulation: who calls brings the time, the
//! prices and the state of the cluster. What is left out or differs from the real programs stands as a `Deviation:` in the
//! documentation of the item concerned.

/// Instance types, offerings and prices of a region.
pub mod catalog {
    pub use nodecast_model::catalog::{InstanceFacts, Price, PriceQuality, Region, RegionType, Zone};
}

/// The cluster as it is: pods, nodes and workloads.
pub mod cluster {
    pub use nodecast_model::cluster::{
        Cluster, NewNode, NewWorkload, Node, NodeOrigin, NodePhase, Pod, PodPhase, Workload, WorkloadKind,
    };
}

/// Vocabulary as plain data.
pub mod domain {
    /// What workloads and autoscalers are called.
    pub mod workload {
        pub use nodecast_model::domain::workload::ObjectName;
    }

    pub use nodecast_model::domain::{
        Currency, FeatureGates, HorizontalPodAutoscaler, HourlyRate, KarpenterVersion, KubernetesVersion,
        LabelSelector, Labels, NodeClass, NodeGroup, NodeId, NodePool, PodId, PodSpec, Requirement, Requirements,
        ResourceName, Resources, ScaledObject, SimDuration, SimTime, Symbol, Taint, TaintEffect, Toleration,
        VerticalPodAutoscaler, VerticalPodAutoscalerVersion, WorkloadId,
    };
}

/// Manifests, read.
pub mod manifests {
    pub use nodecast_manifests::{
        Manifests, PodObject, daemon_set_from_json, deployment_from_json, node_from_json, node_pool_from_json,
        pod_disruption_budget_from_json, pod_from_json, read_manifests, vertical_pod_autoscaler_from_json,
    };
}

/// The decisions.
pub mod policy {
    /// The Cluster Autoscaler.
    pub mod cluster_autoscaler {
        pub use nodecast_cluster_autoscaler::{
            ClusterAutoscaler, FlagError, Flags, GroupActions, Iteration, Observation, ResizeError,
        };
    }

    /// Karpenter's consolidation, drift and emptiness, each as a function.
    pub mod disruption {
        pub use nodecast_karpenter::disruption::{
            Candidate, ClusterView, Command, Decision, candidates, drift, emptiness, multi_node, single_node,
        };
    }

    /// What nodes of instance types offer to pods.
    pub mod instance_types {
        pub use nodecast_karpenter::instance_types::{
            InstanceType, Offering, ProviderSettings, instance_types, types_of_pools,
        };
    }

    /// Karpenter's controllers as one machine.
    pub mod karpenter {
        pub use nodecast_karpenter::machine::{
            Action, Bare, CallRefused, ClaimRequest, Input, Karpenter, LaunchAnswer, LaunchedInstance, NewClaim,
            OfferingError, Outside, ProposedCommand, Settings, Timer,
        };
    }

    /// kube-scheduler.
    pub mod kube_scheduler {
        pub use nodecast_scheduler::{
            Evaluation, PendingPod, Placement, Reason, Scheduler, SchedulerConfig, SchedulerNode, evaluate,
        };
    }

    /// Karpenter's scheduling pass: which nodes pending pods need.
    pub mod packing {
        pub use nodecast_karpenter::packing::{
            BoundPod, LowerBound, NodeView, Packer, PackerKind, PackingOptions, PackingPlan, PackingSetup, PendingPod,
            PlannedClaim, PoolView, Refusal, Situation, TieBreak, Unschedulable, lower_bound, pack,
        };
    }

    /// What differs between releases of Karpenter.
    pub mod release {
        pub use nodecast_karpenter::release::Behaviour;
    }

    /// Replica counts.
    pub mod replicas {
        /// The HorizontalPodAutoscaler.
        pub mod hpa {
            pub use nodecast_replicas::hpa::{
                HpaDecision, HpaParameters, HpaState, HpaView, MetricReading, PodSample, PodView, SettledPods, sync,
            };
        }

        /// KEDA.
        pub mod keda {
            pub use nodecast_replicas::keda::{
                PollDecision, PollView, TriggerState, TriggerValue, horizontal_pod_autoscaler, poll, trigger_value,
            };
        }

        /// Queries to Prometheus.
        pub mod promql {
            pub use nodecast_replicas::promql::{Query, QueryError, QueryValue, SeriesSource};
        }
    }

    /// The launch request that Karpenter makes of a claim.
    pub mod selection {
        pub use nodecast_karpenter::selection::{Choice, LaunchRequest, LaunchView, SelectionError, select};
    }

    /// The Vertical Pod Autoscaler.
    pub mod vertical {
        pub use nodecast_vpa::{
            Admission, Bounds, Checkpoint, ContainerState, NamespaceLimits, Recommender, RecommenderSettings, Updater,
            UpdaterSettings, UpdaterView, admit, cap,
        };
    }
}

/// What Karpenter would launch now for pods and pools that manifests describe.
pub mod single_pass {
    pub use nodecast_single_pass::{
        Explanation, Inventory, KarpenterSetup, NamedPod, NodeWithPods, PackingQuestion, PodOutcome, Setting,
        SinglePass,
    };
}

/// Texts of the input, and errors that show their place.
pub mod text {
    pub use nodecast_model::text::{InputError, Place, Source, Warning};
}
