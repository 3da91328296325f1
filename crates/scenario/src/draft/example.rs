//! The example: files with comments, in which a few names are filled in.

use super::{Draft, DraftFile, SCENARIO_FILE, Wishes, region};
use crate::ScenarioError;
use crate::catalog::{Catalog, Region};
use crate::domain::Symbol;

/// The files with their places to fill in, which are written `{{so}}`.
const FILES: [(&str, &str); 5] = [
    (SCENARIO_FILE, include_str!("example/scenario.yaml")),
    ("cluster.yaml", include_str!("example/cluster.yaml")),
    ("nodepool.yaml", include_str!("example/nodepool.yaml")),
    ("nodepool-spot.yaml", include_str!("example/nodepool-spot.yaml")),
    ("workloads.yaml", include_str!("example/workloads.yaml")),
];
const REGION: &str = "us-east-1";
/// Types for the nodes that Karpenter does not manage, the first choice first; not every region has every one.
const SYSTEM_TYPES: [&str; 5] = ["m6i.large", "m5.large", "m7i.large", "m6a.large", "m6g.large"];
/// Zones in use: as many as most clusters have.
const ZONES: usize = 3;

/// The example in the region that is wished for.
pub(super) fn draft(wishes: &Wishes, catalog: &Catalog) -> Result<Draft, ScenarioError> {
    let karpenter = wishes.karpenter.unwrap_or_default();
    if !karpenter.is_since(1, 0) {
        return Err(ScenarioError::new(format!(
            "the example has a NodePool, which Karpenter {karpenter} does not know"
        ))
        .help(
            "scenarios/provisioners and scenarios/eks-101 of nodecast's repository show releases with Provisioners",
        ));
    }
    let region = region(wishes.region.as_deref().unwrap_or(REGION), catalog)?;
    let zones: Vec<&str> = region.zones.iter().take(ZONES).map(|zone| zone.name.as_str()).collect();
    let filled = |text: &str| {
        text.replace("{{name}}", &wishes.name)
            .replace("{{region}}", region.name.as_str())
            .replace("{{zones}}", &zones.join(", "))
            .replace("{{karpenter}}", &karpenter.to_string())
            .replace("{{system_type}}", system_type(&region).as_str())
    };
    let files = FILES.iter().map(|&(name, text)| DraftFile { name: name.into(), text: filled(text) }).collect();
    Ok(Draft { files, warnings: Vec::new(), remark: None })
}

/// A type for the system's nodes that the region sells.
fn system_type(region: &Region) -> Symbol {
    let sold = |name: Symbol| region.instance_type(name).is_some_and(|kind| kind.on_demand.is_some());
    let wanted = SYSTEM_TYPES.map(Symbol::new);
    wanted.into_iter().find(|name| sold(*name)).unwrap_or(wanted[0])
}

#[cfg(test)]
mod tests {
    use super::{FILES, draft};
    use crate::catalog::Catalog;
    use crate::domain::KarpenterVersion;
    use crate::draft::Wishes;
    use crate::error::Render;

    fn wishes(region: &str) -> Wishes {
        Wishes { name: "my-cluster".to_owned(), region: Some(region.to_owned()), ..Wishes::default() }
    }

    #[test]
    fn no_place_stays_empty_in_any_region() {
        let catalog = Catalog::embedded().unwrap();
        for region in catalog.regions() {
            let draft = draft(&wishes(region), catalog).unwrap();
            assert_eq!(draft.files.len(), FILES.len());
            for file in &draft.files {
                assert!(!file.text.contains("{{"), "{} in {region}", file.name);
            }
            assert!(draft.files[0].text.contains(&format!("region: {region}")));
        }
    }

    #[test]
    fn every_line_of_the_scenario_is_explained() {
        for line in FILES[0].1.lines().filter(|line| !line.trim().is_empty()) {
            let explained = line.contains('#') || line.contains("- \"") || line.contains("service: {");
            let again = [
                "  - workload: shop/api",
                "    requests:",
                "    autoscaler: karpenter",
                "  - { at: 20h",
                "- name: spot",
            ];
            assert!(explained || again.iter().any(|again| line.contains(again)), "{line}");
        }
    }

    #[test]
    fn example_rejects_unknown_region_or_release() {
        let catalog = Catalog::embedded().unwrap();
        let error = draft(&wishes("us-east-9"), catalog).unwrap_err();
        assert!(error.render().contains("did you mean `us-east-1`?"), "{}", error.render());
        let older = wishes("us-east-1");
        let older = super::Wishes { karpenter: Some(KarpenterVersion::V0_18), ..older };
        assert!(draft(&older, catalog).unwrap_err().message().contains("does not know"));
    }
}
