//! The zones that the subnets of a ClusterConfig lie in, and those of its node groups.

use crate::common::symbols;
use crate::lints;
use nodecast_model::domain::Symbol;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader};
use nodecast_model::text::tree::Node;

/// A subnet of `vpc.subnets`.
struct Subnet {
    /// The key under which it stands: its zone, or whatever its owner calls it.
    name: String,
    id: Option<String>,
    zone: Option<Symbol>,
}

/// `vpc.subnets`: those with and without public addresses.
#[derive(Default)]
pub(super) struct Subnets {
    private: Vec<Subnet>,
    public: Vec<Subnet>,
}

impl Subnets {
    /// `vpc` of a ClusterConfig. Of a subnet whose zone nothing names, neither key nor `az`, is warned.
    ///
    /// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/vpc.go`, `AZSubnetMapping`.
    pub(super) fn read<'s>(reader: &mut Reader<'s>, vpc: Option<&Node<'s>>) -> Result<Self, InputError> {
        let mut subnets = Self::default();
        let Some(stated) = vpc.and_then(|vpc| vpc.get("subnets")) else { return Ok(subnets) };
        for (key, list) in [("private", &mut subnets.private), ("public", &mut subnets.public)] {
            for entry in stated.get(key).map_or(&[][..], Node::entries) {
                let text = |key| entry.value.get(key).and_then(Node::as_text).filter(|text| !text.is_empty());
                let name = entry.key.to_string();
                let zone = text("az").or_else(|| is_zone(reader, &name).then_some(name.as_str())).map(Symbol::new);
                if zone.is_none() {
                    let shown: String = name.chars().take(80).collect();
                    let message = format!("unknown zone for subnet `{shown}`");
                    reader.left_out(&lints::SUBNET_ZONE, entry.key_at, message, "set its `az`");
                }
                list.push(Subnet { id: text("id").map(str::to_owned), zone, name });
            }
        }
        Ok(subnets)
    }

    /// The zones of all of them.
    pub(super) fn zones(&self) -> Vec<Symbol> {
        zones_of(self.private.iter().chain(&self.public))
    }

    /// The zones of a node group: those that it names, and those of the subnets that it names by key or id; without either those of all
    /// private or all public subnets, else those of the cluster. Of a subnet whose zone is not known is warned.
    ///
    /// Source: eksctl `pkg/cfn/builder/nodegroup.go`, `AssignSubnets`, and `pkg/vpc/vpc.go`, `SelectNodeGroupSubnets`.
    pub(super) fn zones_of_group<'s>(
        &self,
        reader: &mut Reader<'s>,
        group: Fields<'_, 's>,
        of_cluster: &[Symbol],
    ) -> Result<Vec<Symbol>, InputError> {
        let private = group.optional("privateNetworking", |n, what| reader.truth(n, what))?.unwrap_or(false);
        let (item, others) = if private { (&self.private, &self.public) } else { (&self.public, &self.private) };
        let mut zones = symbols(reader, group, "availabilityZones")?;
        for node in group.optional("subnets", |n, what| reader.list(n, what))?.unwrap_or_default() {
            let name = reader.text(node, "subnets")?;
            let all = || item.iter().chain(others);
            let found = all().find(|subnet| subnet.name == name);
            let found = found.or_else(|| all().find(|subnet| subnet.id.as_deref() == Some(name)));
            let zone = match found {
                Some(subnet) => subnet.zone,
                None => is_zone(reader, name).then(|| Symbol::new(name)),
            };
            match zone {
                Some(zone) if zones.contains(&zone) => {}
                Some(zone) => zones.push(zone),
                None => {
                    let shown: String = name.chars().take(80).collect();
                    let message = format!("in which zone the subnet `{shown}` of a node group lies is not known");
                    reader.left_out(
                        &lints::SUBNET_ZONE,
                        node.at,
                        message,
                        "set the zone in the group's `availabilityZones`",
                    );
                }
            }
        }
        if zones.is_empty() {
            zones = zones_of(item.iter());
        }
        Ok(if zones.is_empty() { of_cluster.to_vec() } else { zones })
    }
}

/// The zones of some subnets, in order of name.
fn zones_of<'n>(subnets: impl Iterator<Item = &'n Subnet>) -> Vec<Symbol> {
    let mut zones: Vec<Symbol> = subnets.filter_map(|subnet| subnet.zone).collect();
    zones.sort_unstable();
    zones.dedup();
    zones
}

/// Whether a name is one of a zone of the region; where none is known, whether it looks like one (`us-east-1a`).
fn is_zone(reader: &Reader<'_>, name: &str) -> bool {
    if let Some(region) = reader.region() {
        return region.zone_index(Symbol::new(name)).is_some();
    }
    let mut last = name.chars().rev();
    let letter = last.next().is_some_and(|letter| letter.is_ascii_lowercase());
    letter && last.next().is_some_and(|digit| digit.is_ascii_digit()) && name.matches('-').count() >= 2
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::text::Source;

    /// Zones of the cluster and of its group, and how many warnings there are.
    fn zones(vpc: &str, group: &str) -> (String, String, usize) {
        let text = format!(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n{vpc}\
             managedNodeGroups:\n- {{name: a, instanceType: m5.large{group}}}\n"
        );
        let read = read_manifests(&Source::new("cluster.yaml", text)).unwrap();
        let letters = |zones: &[nodecast_model::domain::Symbol]| {
            zones.iter().map(|zone| zone.as_str().trim_start_matches("us-east-1")).collect::<Vec<_>>().join("")
        };
        let cluster = read.cluster.as_ref().map_or_else(String::new, |cluster| letters(&cluster.zones));
        (cluster, letters(&read.node_groups[0].zones), read.warnings.len())
    }

    fn group_subnets(cluster: &str, group: &str, warnings: usize) -> (String, String, usize) {
        (cluster.to_owned(), group.to_owned(), warnings)
    }

    #[test]
    fn subnets_say_in_which_zones_groups_are() {
        let vpc = "vpc:\n  id: vpc-1\n  subnets:\n    private:\n      us-east-1b: {id: subnet-0b}\n      us-east-1a: {id: subnet-0a}\n      \
                   data: {id: subnet-0c, az: us-east-1c}\n    public:\n      us-east-1a: {id: subnet-1a}\n      us-east-1d: {id: subnet-1d}\n";
        assert_eq!(zones(vpc, ""), group_subnets("abcd", "ad", 0), "the public ones");
        assert_eq!(zones(vpc, ", privateNetworking: true"), group_subnets("abcd", "abc", 0));
        assert_eq!(zones(vpc, ", subnets: [us-east-1a]"), group_subnets("abcd", "a", 0));
        assert_eq!(zones(vpc, ", subnets: [data, subnet-0b], privateNetworking: true"), group_subnets("abcd", "cb", 0));
        assert_eq!(zones(vpc, ", availabilityZones: [us-east-1b]"), group_subnets("abcd", "b", 0));
        assert_eq!(zones(vpc, ", subnets: [subnet-99]"), group_subnets("abcd", "ad", 1));
        let private = "vpc: {subnets: {private: {us-east-1a: {id: subnet-0a}, us-east-1b: {}}}}\n";
        assert_eq!(zones(private, ""), group_subnets("ab", "ab", 0), "there are no public ones");
        assert_eq!(zones("vpc: {subnets: {private: {data: {id: subnet-0a}}}}\n", ""), group_subnets("", "", 1));
        assert_eq!(zones("availabilityZones: [us-east-1c]\n", ", subnets: [us-east-1a]"), group_subnets("c", "a", 0));
    }
}
