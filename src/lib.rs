//! **nodecast** forecasts what a Kubernetes cluster on EKS will cost, and how long its pods and requests will
//! wait, under an autoscaling policy. It is a discrete-event simulator; the decisions inside it (packing, instance
//! selection, replica counts, scheduling) are plain functions that a real controller could call.
//!
//! This crate is the program: [`program`], what it does whoever asks, and [`cli`], the command line. Everything else stands in crates of its
//! own, which build side by side (docs/architecture.md) and which this one hands on:
//!
//! | module | holds |
//! | --- | --- |
//! | [`domain`], [`cluster`], [`control_plane`] | the vocabulary of Kubernetes, a cluster as it is, what the API server answers |
//! | [`manifests`], [`catalog`], [`load`] | Kubernetes objects, prices, load curves |
//! | [`nodecast_karpenter`], [`nodecast_scheduler`], [`nodecast_cluster_autoscaler`], [`nodecast_replicas`], [`nodecast_vpa`] | the decisions |
//! | [`single_pass`], [`standing`] | one pass of Karpenter over a cluster in files |
//! | [`engine`], [`cloud`], [`world`] | event queue and random streams, the simulated EC2, the simulated cluster with its record |
//! | [`scenario`] | scenario files and Kubernetes manifests, resolved and validated |
//! | [`actors`], [`simulation`] | event handlers, and one runnable simulation from a scenario, a policy and a seed |
//! | [`report`] | summaries and the files a run emits |
//! | [`experiment`] | many runs: comparisons, sweeps, baselines |
//! | [`recommend`] | changes that save money: levers, requests that fit, commitments |
//! | [`evidence`] | recordings compared with simulations: backtests, calibration |
//! | [`explain`] | why a node stays, a decision was made, a pod waits |
//!
//! # Simulate
//!
//! A scenario file names everything else. A run is a function of scenario, policy, prices and seed; what it leaves behind is an
//! [`Outcome`](simulation::Outcome), and a [`Summary`](report::Summary) has its figures.
//!
//! ```
//! use std::path::Path;
//!
//! use nodecast::catalog::Catalog;
//! use nodecast::report::Summary;
//! use nodecast::{scenario, simulation};
//!
//! let (scenario, warnings) = scenario::load(Path::new("scenarios/eks-101/scenario.yaml"))?;
//! let policy = scenario.for_policy(None)?;
//! let outcome = simulation::run(&scenario, policy, Catalog::embedded()?, scenario.seed, &mut |_| {})?;
//!
//! let summary = Summary::from_outcome(&outcome);
//! println!("{} {:.2}, {} warnings", summary.about.currency, summary.cost.total, warnings.len());
//! assert!(summary.cost.total > 0.0 && summary.nodes.max_ready > 0);
//! // The same figures as text, and back.
//! let read: Summary = serde_json::from_str(&summary.to_json()?)?;
//! assert_eq!(read, summary);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Compare policies
//!
//! Policies that run with the same seeds meet the same load, prices and capacity, so that their differences are paired.
//!
//! ```
//! # use std::path::Path;
//! # use nodecast::catalog::Catalog;
//! # use nodecast::scenario;
//! use nodecast::experiment::statistics::Paired;
//! use nodecast::experiment::{Plan, figures, points};
//!
//! # let catalog = Catalog::embedded()?;
//! # let (scenario, _) = scenario::load(Path::new("scenarios/spot-interruption/scenario.yaml"))?;
//! let policies: Vec<String> = scenario.policies.iter().take(2).map(|policy| policy.name.clone()).collect();
//! let plan = Plan { settings: 1, policies, seeds: points::seeds(scenario.seed, 2) };
//! let answers: Result<Vec<_>, _> = plan.cells().map(|cell| points::simulate(&scenario, catalog, cell)).collect();
//! let answers = answers?;
//!
//! let (cost, _) = figures::find("cost_per_month").ok_or("no such figure")?;
//! let of = |policy: &str| -> Vec<f64> {
//!     answers.iter().filter(|point| point.policy == policy).filter_map(|point| point.figures[cost]).collect()
//! };
//! let paired = Paired::new(&of(&plan.policies[0]), &of(&plan.policies[1])).ok_or("nothing to compare")?;
//! println!("{} costs {:+.2} a month more than {}", plan.policies[1], paired.difference.mean, plan.policies[0]);
//! assert_eq!((answers.len(), paired.difference.count), (4, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Pack pods, and ask for prices
//!
//! The decisions need no simulation: what would Karpenter launch for these pods right now?
//!
//! ```
//! use nodecast::catalog::Catalog;
//! use nodecast::domain::Symbol;
//! use nodecast::scenario::packing_question::{Circumstances, load};
//! use nodecast::single_pass::SinglePass;
//!
//! let catalog = Catalog::embedded()?;
//! let files = ["scenarios/pack/provisioners.yaml", "scenarios/pack/inflate.yaml"];
//! let circumstances = Circumstances { region: Some("us-east-1".to_owned()), ..Circumstances::default() };
//! let question = load(&files, &circumstances, catalog)?;
//! let pass = SinglePass::from_question(&question);
//! assert!(!pass.plan.claims.is_empty());
//! for claim in &pass.plan.claims {
//!     let cheapest = &claim.instance_types[0];
//!     println!("{}: {} pods, {} types from {}", claim.node_pool, claim.pods.len(), claim.instance_types.len(), cheapest.name);
//! }
//!
//! let region = catalog.region("us-east-1")?;
//! let kind = region.instance_type(Symbol::new("m7g.xlarge")).ok_or("no such type")?;
//! let on_demand = kind.on_demand.ok_or("no price")?;
//! println!("m7g.xlarge: {} an hour On-Demand, as of {}", on_demand.rate, on_demand.as_of);
//! for zone in kind.zones_offered() {
//!     let spot = kind.spot(zone).ok_or("no Spot price")?;
//!     assert!(spot.rate < on_demand.rate);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use nodecast_ec2 as cloud;
pub use nodecast_engine as engine;
pub use nodecast_evidence as evidence;
pub use nodecast_explain as explain;
pub use nodecast_load as load;
pub use nodecast_manifests as manifests;
pub use nodecast_model::{cluster, control_plane, domain};
pub use nodecast_prices as catalog;
pub use nodecast_recommend as recommend;
pub use nodecast_report as report;
pub use nodecast_scenario as scenario;
pub use nodecast_sim::{actors, coupled, simulation};
pub use nodecast_single_pass as single_pass;
pub use nodecast_single_pass::standing;
pub use nodecast_study as experiment;
pub use nodecast_world as world;

pub mod cli;
pub mod program;
