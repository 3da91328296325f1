//! What differs between releases of the AWS provider: which types they leave out, which labels they set, and what their
//! admission webhooks added to a Provisioner.

use crate::release::{Behaviour, ListedTypes, PoolDefaults};
use nodecast_model::auto_mode;
use nodecast_model::catalog::{AcceleratorKind, InstanceFacts};
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{KarpenterVersion, NodePool, Requirement, Symbol};

/// The families that EC2 called previous-generation in 2022, when the releases lived that filter by it. EC2's own flag has
/// moved since: it now covers m5 and c5, which the tutorials use.
const PREVIOUS_GENERATION_2022: [&str; 13] =
    ["c1", "c3", "cc2", "cr1", "g2", "hi1", "hs1", "i2", "m1", "m2", "m3", "r3", "t1"];

/// The label of the capacity type in the oldest releases.
pub(super) const OLD_CAPACITY_TYPE: &str = "node.k8s.aws/capacity-type";

/// Whether `family` was previous-generation in 2022.
pub(super) fn was_previous_generation(family: Symbol) -> bool {
    PREVIOUS_GENERATION_2022.contains(&family.as_str())
}

/// Whether nodes are labelled with the id of their zone, and offerings with that of theirs.
pub(super) fn labels_zone_ids(version: KarpenterVersion) -> bool {
    Behaviour::for_release(version).labels_zone_ids
}

/// Whether a type keeps its zones and capacity types when an offering becomes unavailable: then [`super::refresh_offerings`]
/// changes no label.
pub fn has_fixed_places(version: KarpenterVersion) -> bool {
    Behaviour::for_release(version).lists_all_zones
}

/// Which types a release lists at all.
pub(super) struct Filter {
    behaviour: &'static Behaviour,
    opinionated: bool,
}

impl Filter {
    /// The filter of `version` for `pool`: v0.16 and v0.18 leave out old types unless the Provisioner itself chooses
    /// among types.
    pub(super) fn new(version: KarpenterVersion, pool: &NodePool) -> Self {
        let behaviour = Behaviour::for_release(version);
        let opinionated = behaviour.leaves_out_old_types
            && !pool.requirements.iter().any(|requirement| {
                let chooses =
                    matches!(requirement.operator(), Operator::In | Operator::Exists | Operator::DoesNotExist);
                let bounded = requirement.gte.is_some() || requirement.lte.is_some();
                CHOICE_KEYS.contains(&requirement.key) && chooses && !bounded
            });
        Self { behaviour, opinionated }
    }

    /// Whether it leaves out old types for its pool.
    pub(super) const fn opinionated(&self) -> bool {
        self.opinionated
    }

    /// Source: AWS provider v1.13 `pkg/providers/instancetype/instancetype.go`; v0.4.1 and v0.6.3
    /// `pkg/cloudprovider/aws/instancetypes.go`; v0.16.0 and v0.18.1 `pkg/cloudprovider/aws/instancetypes.go` and
    /// `cloudprovider.go`.
    /// Deviation: the previous-generation types are a list of 2022, not the current flag.
    pub(super) fn keeps(&self, facts: &InstanceFacts) -> bool {
        let runs = facts.arch == well_known::AMD64 || facts.arch == well_known::ARM64;
        if !runs || facts.cpu_manufacturer.is_some_and(|maker| maker.as_str() == "apple") {
            return false;
        }
        let family = facts.family.as_str();
        // The catalog knows no accelerators of the withdrawn f1.
        let fpga = family == "f1" || facts.accelerator.is_some_and(|device| device.kind == AcceleratorKind::Fpga);
        match self.behaviour.types {
            ListedTypes::Few => is_of_v0_4(facts),
            ListedTypes::FewAndI3 => is_of_v0_4(facts) || (family.starts_with("i3") && !facts.bare_metal),
            ListedTypes::WithoutFpga => {
                let dropped = fpga || family.starts_with("g2") || (self.opinionated && self.is_old(facts));
                !dropped
            }
            ListedTypes::All => true,
            ListedTypes::AutoMode => auto_mode::refusal(facts).is_none(),
        }
    }

    /// Whether the opinionated filter drops the type. Third-generation c, m and r were meant to stay; v0.16.0 dropped them
    /// by mistake.
    fn is_old(&self, facts: &InstanceFacts) -> bool {
        let family = facts.family.as_str();
        let pardoned = self.behaviour.pardons_third_generation && matches!(family, "c3" | "m3" | "r3");
        (was_previous_generation(facts.family) && !pardoned) || family.starts_with("t2") || family.starts_with("u-")
    }
}

/// The keys with which a Provisioner chooses among types.
const CHOICE_KEYS: [Symbol; 4] = [
    well_known::INSTANCE_TYPE,
    well_known::INSTANCE_FAMILY,
    well_known::INSTANCE_CATEGORY,
    well_known::INSTANCE_GENERATION,
];

fn is_of_v0_4(facts: &InstanceFacts) -> bool {
    let family = facts.family.as_str();
    !facts.bare_metal && ["m", "c", "r", "a", "t3", "t4", "p", "inf", "g"].iter().any(|start| family.starts_with(start))
}

/// The label under which a release knows the capacity type. v0.4 knows `karpenter.sh/capacity-type` no more than any
/// other foreign label.
///
/// Source: v0.4.1 `pkg/cloudprovider/aws/apis/v1alpha1/register.go`; v0.4.3 on `pkg/apis/provisioning/v1alpha5`.
pub fn capacity_type_key(version: KarpenterVersion) -> Symbol {
    if Behaviour::for_release(version).old_capacity_type_label {
        Symbol::new(OLD_CAPACITY_TYPE)
    } else {
        well_known::CAPACITY_TYPE
    }
}

/// The region whose On-Demand price list the release orders types by. Releases before v1 read only prices in US dollars; the
/// lists of China are in yuan, so the built-in list of us-east-1 stays in force there.
///
/// Source: v0.18.1 `pkg/cloudprovider/aws/pricing.go`.
pub fn price_list_of(version: KarpenterVersion, region: Symbol) -> Symbol {
    if !Behaviour::for_release(version).reads_yuan && region.as_str().starts_with("cn-") {
        Symbol::new("us-east-1")
    } else {
        region
    }
}

/// The requirements that the release's admission webhook adds to `pool`: those of its defaults whose key neither a
/// requirement nor a label of the pool states. v0.16.0 adds nothing, because its webhook was not connected; v1 has no
/// defaults.
///
/// Source: v0.4.1 and v0.6.3 `pkg/cloudprovider/aws/apis/v1alpha1/provider_defaults.go`; v0.18.1
/// `pkg/cloudprovider/aws/cloudprovider.go`, `defaultLabels`; v0.22.1 `pkg/apis/v1alpha5/provisioner.go`.
pub fn default_requirements(version: KarpenterVersion, pool: &NodePool) -> Vec<Requirement> {
    let is_stated = |key: Symbol| {
        pool.requirements.iter().any(|requirement| requirement.key == key) || pool.labels.get(key).is_some()
    };
    let mut defaults = Vec::new();
    let mut add = |key, value| {
        if !is_stated(key) {
            defaults.push(Requirement::equals(key, value));
        }
    };
    let behaviour = Behaviour::for_release(version);
    let defaulted = pool.legacy || behaviour.defaults_for_node_pools;
    match behaviour.defaults {
        _ if !defaulted => {}
        PoolDefaults::Nothing => {}
        PoolDefaults::OnDemand => add(capacity_type_key(version), well_known::ON_DEMAND),
        PoolDefaults::OnDemandAmd64 => {
            add(well_known::CAPACITY_TYPE, well_known::ON_DEMAND);
            add(well_known::ARCH, well_known::AMD64);
        }
        PoolDefaults::CommonFamilies => {
            add(well_known::OS, well_known::LINUX);
            add(well_known::ARCH, well_known::AMD64);
            add(well_known::CAPACITY_TYPE, well_known::ON_DEMAND);
            if !CHOICE_KEYS.iter().any(|&key| is_stated(key)) {
                let categories = ["c", "m", "r"].map(Symbol::new);
                defaults.push(Requirement::new(well_known::INSTANCE_CATEGORY, Operator::In, categories));
                let above_two = [Symbol::new("2")];
                defaults.push(Requirement::new(well_known::INSTANCE_GENERATION, Operator::Gt, above_two));
            }
        }
    }
    defaults
}

#[cfg(test)]
mod tests {
    use super::{Filter, default_requirements};
    use crate::testing::facts;
    use nodecast_model::domain::requirements::Operator;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{KarpenterVersion, NodePool, Requirement, Symbol};

    fn kept(version: KarpenterVersion, pool: &NodePool, names: &[&str]) -> Vec<String> {
        let filter = Filter::new(version, pool);
        names.iter().filter(|name| filter.keeps(&facts(name))).map(|&name| name.to_owned()).collect()
    }

    fn defaults(version: KarpenterVersion, pool: &NodePool) -> Vec<String> {
        default_requirements(version, pool).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_release_leaves_out_its_own_types() {
        let pool = NodePool::named("default");
        let names =
            ["c3.large", "m5.large", "t2.large", "t3.large", "i3.large", "f1.2xlarge", "m5.metal", "mac2.metal"];
        let kept = |version| kept(version, &pool, &names).join(" ");
        assert_eq!(kept(KarpenterVersion::V0_4), "c3.large m5.large t3.large");
        assert_eq!(kept(KarpenterVersion::V0_6), "c3.large m5.large t3.large i3.large");
        assert_eq!(kept(KarpenterVersion::V0_16), "m5.large t3.large i3.large m5.metal");
        assert_eq!(kept(KarpenterVersion::V0_18), "c3.large m5.large t3.large i3.large m5.metal");
        assert_eq!(kept(KarpenterVersion::V0_22), "c3.large m5.large t2.large t3.large i3.large m5.metal");
        assert_eq!(kept(KarpenterVersion::V1_13), "c3.large m5.large t2.large t3.large i3.large f1.2xlarge m5.metal");
    }

    #[test]
    fn provisioner_type_requirement_disables_default_type_filter() {
        let with = |operator, key| {
            let mut pool = NodePool::named("default");
            pool.requirements.push(Requirement::new(key, operator, [Symbol::new("t2")]));
            kept(KarpenterVersion::V0_18, &pool, &["t2.large"]).len()
        };
        assert_eq!(with(Operator::In, well_known::INSTANCE_FAMILY), 1);
        assert_eq!(with(Operator::NotIn, well_known::INSTANCE_FAMILY), 0);
        assert_eq!(with(Operator::In, well_known::INSTANCE_SIZE), 0);
    }

    #[test]
    fn webhooks_add_what_the_provisioner_leaves_open() {
        let pool = NodePool::named("default");
        assert_eq!(defaults(KarpenterVersion::V0_4, &pool), ["node.k8s.aws/capacity-type In [on-demand]"]);
        assert_eq!(
            defaults(KarpenterVersion::V0_18, &pool),
            ["karpenter.sh/capacity-type In [on-demand]", "kubernetes.io/arch In [amd64]"]
        );
        assert_eq!(defaults(KarpenterVersion::V0_16, &pool), Vec::<String>::new());
        assert_eq!(defaults(KarpenterVersion::V1_13, &pool), Vec::<String>::new());
        assert_eq!(defaults(KarpenterVersion::V0_22, &pool).len(), 5);
    }

    #[test]
    fn a_stated_key_gets_no_default() {
        let mut pool = NodePool::named("default");
        pool.requirements.push(Requirement::equals(well_known::CAPACITY_TYPE, well_known::SPOT));
        pool.labels.set(well_known::ARCH, well_known::ARM64);
        pool.requirements.push(Requirement::equals(well_known::INSTANCE_FAMILY, Symbol::new("m5")));
        assert_eq!(defaults(KarpenterVersion::V0_18, &pool), Vec::<String>::new());
        assert_eq!(defaults(KarpenterVersion::V0_22, &pool), ["kubernetes.io/os In [linux]"]);
    }
}
