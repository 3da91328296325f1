//! A node that has just been launched is as its NodePool says, whichever label the pool requires: or it would be replaced as soon as it is
//! there, and so would each one after it.

use std::sync::Arc;

use super::{PackingOptions, PackingSetup, PendingPod, PoolView, ReservedMode, Situation, TieBreak, Volumes, pack};
use crate::instance_types::{InstanceType, ProviderSettings, complete_pools, instance_types, labels_of_launched};
use crate::testing::facts;
use nodecast_model::catalog::{Price, Region, RegionType};
use nodecast_model::domain::labels::{is_restricted_in_pools, well_known_labels};
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::{
    Currency, KarpenterVersion, Labels, NodeClass, NodePool, PodSpec, Requirement, Requirements, SimTime, Symbol,
    well_known,
};

/// Types that have, among them, every label of types: a GPU, an accelerator, local disks.
const TYPES: [&str; 5] = ["m5.large", "m5d.large", "m6g.large", "g4dn.xlarge", "inf2.xlarge"];

fn region() -> Region {
    let price = Price::own("0.096").unwrap();
    let types = TYPES.map(|name| RegionType::everywhere(facts(name), price, Some(price), 2));
    Region::named("us-east-1", Currency::Usd, &["us-east-1a", "us-east-1b"], types)
}

/// The labels of the node that is launched for one pod of a pool with this requirement; none if there is no type for it.
fn launched(release: KarpenterVersion, class: &NodeClass, requirement: Requirement) -> Option<(NodePool, Labels)> {
    let mut pools = [NodePool { requirements: vec![requirement], ..NodePool::named("default") }];
    complete_pools(release, &mut pools);
    let [pool] = pools;
    let types = instance_types(&region(), class, &pool, ProviderSettings::for_version(release));
    let setup = PackingSetup {
        karpenter: release,
        options: PackingOptions::default(),
        pools: &[PoolView { pool: &pool, instance_types: &types }],
        daemons: &[],
        namespaces: &[],
        volumes: Volumes::default(),
        default_spread: None,
    };
    let spec = Arc::new(PodSpec::default());
    let pods =
        [PendingPod { namespace: Symbol::new("default"), name: "p", spec: &spec, created: SimTime::ZERO, uid_rank: 0 }];
    let ties = TieBreak::SmallestName;
    let plan = pack(setup, &Situation { nodes: &[], pods: &pods, reserved: ReservedMode::Strict, ties });
    let claim = plan.claims.first()?;
    let kind: &InstanceType = &types[claim.instance_types.first()?.index as usize];
    let terms =
        |key: Symbol, value: Symbol| claim.requirements.get(key).is_none_or(|requirement| requirement.has(value));
    let offering = kind.offerings.iter().find(|offering| {
        terms(well_known::ZONE, offering.zone)
            && terms(well_known::CAPACITY_TYPE, offering.capacity_type)
            && offering.zone_id.is_none_or(|id| terms(well_known::ZONE_ID, id))
    })?;
    let tenancy = [well_known::DEFAULT, Symbol::new("dedicated")];
    let tenancy = tenancy.into_iter().find(|&item| terms(well_known::INSTANCE_TENANCY, item))?;
    let mut labels = claim.labels.clone();
    labels.extend(&labels_of_launched(kind, offering.zone, offering.capacity_type, tenancy));
    Some((pool, labels))
}

/// Values under which some type is offered, or the class is called, or which are as good as any.
fn values(release: KarpenterVersion, class: &NodeClass, key: Symbol) -> Vec<Symbol> {
    if key == well_known::EC2_NODE_CLASS {
        // A pool that asks for nodes of another class than its own contradicts itself.
        return vec![class.name];
    }
    let types = instance_types(&region(), class, &NodePool::named("default"), ProviderSettings::for_version(release));
    let stated =
        types.iter().filter_map(|kind| kind.requirements.get(key)).filter(|requirement| !requirement.complement);
    let mut values: Vec<Symbol> = stated.flat_map(|item| item.values.iter().copied()).collect();
    values.extend([class.name, Symbol::new("7"), Symbol::new("us-east-1a")]);
    values
}

#[test]
fn pool_requirements_do_not_drift_new_nodes() {
    let others = ["team", "example.com/team", "eks.amazonaws.com/instance-family", "karpenter.k8s.aws/instance-pods"];
    let more = others.map(Symbol::new).into_iter().chain([well_known::EC2_NODE_CLASS]);
    let keys: Vec<Symbol> = well_known_labels().chain(more).filter(|key| !is_restricted_in_pools(*key)).collect();
    let linux = NodeClass::named("default");
    let windows = NodeClass { ami_family: AmiFamily::Windows2022, ..NodeClass::named("default") };
    let mut met = Vec::new();
    // Releases that replace what has drifted unasked.
    for release in ["v0.33", "v0.37", "v1.0", "v1.8", "v1.13", "v1.14"].map(|text| text.parse().unwrap()) {
        for &key in &keys {
            let class = if key == well_known::WINDOWS_BUILD { &windows } else { &linux };
            let named = values(release, class, key).into_iter().map(|value| Requirement::equals(key, value));
            let exists = Requirement::new(key, Operator::Exists, Vec::<Symbol>::new());
            for requirement in named.chain([exists]) {
                let shown = requirement.to_string();
                let Some((pool, labels)) = launched(release, class, requirement) else { continue };
                let wanted: Requirements = pool.requirements.iter().cloned().collect();
                let requirements = Requirements::from_labels(&labels);
                assert!(
                    requirements.compatible(&wanted, |_| false).is_ok(),
                    "{release}: {shown}, and the node is {labels:?}"
                );
                met.push(key);
            }
        }
    }
    let of_no_node = [well_known::PLACEMENT_GROUP_ID, well_known::PLACEMENT_GROUP_PARTITION];
    for key in keys {
        let reserved = crate::instance_types::RESERVATION_LABELS.contains(&key);
        assert!(met.contains(&key) || reserved || of_no_node.contains(&key), "no node is launched for {key}");
    }
}
