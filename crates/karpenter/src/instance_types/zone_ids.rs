//! What is doubtful about asking for zones by their ids: which name an account has for which id is assumed.

use nodecast_model::catalog::{Region, Zone};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{PodSpec, Requirement, Requirements, Symbol};

/// The requirements of a pod on its node, one set for each term of its affinity, any of which will do.
pub fn ways_of_pod(spec: &PodSpec) -> Vec<Requirements> {
    let selected = Requirements::from_labels(&spec.node_selector);
    if spec.node_affinity.required.is_empty() {
        return vec![selected];
    }
    let with = |term: Requirements| {
        let mut both = selected.clone();
        both.extend(&term);
        both
    };
    spec.node_affinity.required.iter().map(|term| with(term.requirements())).collect()
}

/// What is to be said where each of these ways to choose a node is shut by the id of a zone alone: of the zones called so (all of the
/// region, if none are) that it admits by name, none is taken to have an id that it admits. `None` where one way is open, or shut otherwise.
///
/// The letters of zones differ from account to account and their ids do not, so that the pairing of the price data is that of one
/// account ([`ZoneIdBasis`](nodecast_model::catalog::ZoneIdBasis)).
pub fn zone_id_doubt(region: &Region, zones: &[Symbol], ways: &[Requirements]) -> Option<String> {
    let zones: Vec<&Zone> = region.zones.iter().filter(|zone| zones.is_empty() || zones.contains(&zone.name)).collect();
    let shut: Option<Vec<(&Requirement, Vec<&Zone>)>> = ways.iter().map(|way| shut_by_id(&zones, way)).collect();
    let (wanted, named) = shut?.into_iter().next()?;
    let pairs: Vec<String> = named.iter().map(|zone| format!("{} is taken for {}", zone.name, zone.id)).collect();
    let ids: Vec<&str> = wanted.values.iter().map(|id| id.as_str()).collect();
    let asked = format!("{}{}", if wanted.complement { "none of " } else { "" }, ids.join(", "));
    Some(format!(
        "`{}` ({asked}) leaves no zone for a new node: {}. Which letter stands for which id differs from account to account; name the \
         zones that are paired here with the ids that you mean (`nodecast pricing show TYPE` lists them), or leave the id out",
        well_known::ZONE_ID,
        pairs.join(", ")
    ))
}

/// The requirement on ids that shuts a way, with the zones that it admits by name.
fn shut_by_id<'r>(zones: &[&'r Zone], way: &'r Requirements) -> Option<(&'r Requirement, Vec<&'r Zone>)> {
    let wanted = way.get(well_known::ZONE_ID).filter(|item| !item.values.is_empty())?;
    let by_name = |zone: &&&Zone| way.get(well_known::ZONE).is_none_or(|item| item.has(zone.name));
    let named: Vec<&Zone> = zones.iter().filter(by_name).copied().collect();
    (!named.is_empty() && !named.iter().any(|zone| wanted.has(zone.id))).then_some((wanted, named))
}

#[cfg(test)]
mod tests {
    use super::{ways_of_pod, zone_id_doubt};
    use nodecast_model::catalog::{Region, Zone, ZoneIdBasis};
    use nodecast_model::domain::pod::{NodeSelectorExpression, NodeSelectorTerm};
    use nodecast_model::domain::requirements::Operator;
    use nodecast_model::domain::{Currency, Labels, PodSpec, Symbol};

    fn region() -> Region {
        let zone = |name: &str, id: &str| Zone {
            name: Symbol::new(name),
            id: Symbol::new(id),
            id_basis: ZoneIdBasis::MatchedByOfferings,
        };
        Region::new(
            Symbol::new("us-east-1"),
            Currency::Usd,
            vec![zone("us-east-1a", "use1-az2"), zone("us-east-1b", "use1-az4")],
            Vec::new(),
        )
    }

    fn pod(selector: &[(&str, &str)]) -> PodSpec {
        let node_selector: Labels =
            selector.iter().map(|(key, value)| (Symbol::new(key), Symbol::new(value))).collect();
        PodSpec { node_selector, ..PodSpec::default() }
    }

    #[test]
    fn unmapped_zone_id_is_warned_about() {
        let region = region();
        let doubt = |zones: &[&str], spec: &PodSpec| {
            let zones: Vec<Symbol> = zones.iter().map(|zone| Symbol::new(zone)).collect();
            zone_id_doubt(&region, &zones, &ways_of_pod(spec))
        };
        let second = pod(&[("topology.k8s.aws/zone-id", "use1-az4")]);
        assert_eq!(doubt(&[], &second), None);
        let told = doubt(&["us-east-1a"], &second).unwrap();
        assert!(
            told.contains("(use1-az4) leaves no zone for a new node: us-east-1a is taken for use1-az2. Which"),
            "{told}"
        );
        let at_odds = pod(&[("topology.k8s.aws/zone-id", "use1-az4"), ("topology.kubernetes.io/zone", "us-east-1a")]);
        assert!(doubt(&[], &at_odds).is_some());
        let elsewhere = pod(&[("topology.k8s.aws/zone-id", "use1-az4"), ("topology.kubernetes.io/zone", "us-east-1f")]);
        assert_eq!(doubt(&[], &elsewhere), None, "the name alone shuts it");
        assert_eq!(doubt(&["us-east-1a"], &pod(&[("disk", "ssd")])), None);
    }

    #[test]
    fn one_open_term_of_affinity_is_enough() {
        let region = region();
        let term = |id: &str| NodeSelectorTerm {
            expressions: vec![NodeSelectorExpression {
                key: Symbol::new("topology.k8s.aws/zone-id"),
                operator: Operator::In,
                values: vec![Symbol::new(id)],
            }],
            fields: Vec::new(),
        };
        let mut spec = PodSpec::default();
        spec.node_affinity.required = vec![term("use1-az1"), term("use1-az4")];
        assert_eq!(zone_id_doubt(&region, &[], &ways_of_pod(&spec)), None);
        spec.node_affinity.required.pop();
        assert!(zone_id_doubt(&region, &[], &ways_of_pod(&spec)).is_some());
    }
}
