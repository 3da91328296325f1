//! Whose a line is: the rules by which lines of an account's bill are one cluster's, each line by the first that fits.
//!
//! Tag keys: EKS user guide (`aws:eks:cluster-name`, `eks:cluster-name`), Karpenter v1.1 (`eks:eks-cluster-name`, `karpenter.sh/nodepool`), the
//! Kubernetes tag `kubernetes.io/cluster/NAME`, AWS Load Balancer Controller (`elbv2.k8s.aws/cluster`).

use std::collections::BTreeSet;

use nodecast_model::text::InputError;

use super::amount::Amount;
use super::line::{BillLine, ChargeKind};

/// One whole, in millionths.
pub(super) const WHOLE: u32 = 1_000_000;

/// A cluster, by what its lines show of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Ids of instances and volumes that it is known to have had (`i-...`, `vol-...`).
    pub resources: BTreeSet<String>,
    /// Names of its NodePools. The tag `karpenter.sh/nodepool` names no cluster, so it counts only with one of these.
    pub node_pools: BTreeSet<String>,
    /// What it has of charges that nothing ties to a cluster.
    pub shares: Vec<Share>,
}

/// A share of charges that nothing ties to a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// Of which usage types: a pattern in which `*` stands for any text. The words `nat` and `commitments` stand for all of NAT gateways
    /// and for fees and unused parts of Savings Plans and reservations.
    pub pattern: String,
    /// How much of them, in millionths.
    pub millionths: u32,
}

/// The rule by which a line is the cluster's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Its resource is one that the cluster is known to have had: the only rule that needs no tag.
    Resource,
    /// A tag names the cluster, or one of its NodePools.
    Tag,
    /// Its resource is the cluster itself, or has its name in its ARN: control plane, node groups, pods on Fargate.
    Arn,
    /// A share that was asked for, by its pattern.
    Share(String),
}

impl Rule {
    /// Its name for a table.
    pub fn name(&self) -> String {
        match self {
            Self::Resource => "resource of the cluster".to_owned(),
            Self::Tag => "tag".to_owned(),
            Self::Arn => "ARN of the cluster".to_owned(),
            Self::Share(pattern) => format!("share of {pattern}"),
        }
    }
}

impl Share {
    /// Reads `nat=100%` or `DataTransfer-*=40%`.
    ///
    /// # Errors
    /// If it is not a pattern and a share between 0 % and 100 %.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let wrong = |what: &str| {
            InputError::new(format!("the share `{text}` {what}")).help(
                "write a usage type, `*` standing for any text, and a percentage: `nat=100%`, `DataTransfer-*=40%`",
            )
        };
        let (pattern, share) = text.rsplit_once('=').ok_or_else(|| wrong("has no `=`"))?;
        let percent = share.trim().strip_suffix('%').ok_or_else(|| wrong("does not end with `%`"))?;
        let percent = Amount::parse(percent.trim()).ok_or_else(|| wrong("has no number before the `%`"))?;
        // A percent is 10,000 millionths.
        let millionths = u32::try_from(percent.as_picos() / 100_000_000).ok().filter(|&share| share <= WHOLE);
        let millionths = millionths.ok_or_else(|| wrong("is not between 0% and 100%"))?;
        match pattern.trim() {
            "" => Err(wrong("names no usage type")),
            pattern => Ok(Self { pattern: pattern.to_owned(), millionths }),
        }
    }

    fn covers(&self, line: &BillLine) -> bool {
        match self.pattern.as_str() {
            "nat" => line.usage_type.starts_with("NatGateway-"),
            "commitments" => matches!(line.kind, ChargeKind::CommitmentFee | ChargeKind::UnusedCommitment),
            pattern => fits(pattern, &line.usage_type),
        }
    }
}

/// Whether `text` fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

/// A cluster with what is worked out once of its name.
#[derive(Debug)]
pub(super) struct Selection {
    cluster: Cluster,
    /// The tag `kubernetes.io/cluster/NAME` as exports spell it.
    owned_keys: [String; 2],
    /// Ends or middles of ARNs that name the cluster.
    arn_end: String,
    arn_parts: [String; 4],
}

/// What tags say of whose a line is.
enum Tagged {
    This,
    /// Names of a cluster that is another.
    Another(String),
    Not,
}

/// Keys of tags whose value is the name of a cluster, normalised.
const NAMING: [&str; 4] = ["aws_eks_cluster_name", "eks_eks_cluster_name", "eks_cluster_name", "elbv2_k8s_aws_cluster"];
const OWNED: &str = "kubernetes_io_cluster_";

impl Selection {
    pub(super) fn new(cluster: Cluster) -> Self {
        let part = |kind: &str| format!(":{kind}/{}/", cluster.name);
        Self {
            owned_keys: [snake(&cluster.name, false), snake(&cluster.name, true)],
            arn_end: format!(":cluster/{}", cluster.name),
            arn_parts: [part("pod"), part("nodegroup"), part("fargateprofile"), part("addon")],
            cluster,
        }
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The rule by which a line is the cluster's, and how much of it in millionths; or else the name of the cluster that its tags name.
    pub(super) fn rule(&self, line: &BillLine) -> Result<(Rule, u32), Option<String>> {
        let resource = line.resource.as_str();
        let id = resource.rsplit('/').next().unwrap_or(resource);
        if !id.is_empty() && (self.cluster.resources.contains(id) || self.cluster.resources.contains(resource)) {
            return Ok((Rule::Resource, WHOLE));
        }
        let tagged = self.tagged(line);
        if matches!(tagged, Tagged::This) {
            return Ok((Rule::Tag, WHOLE));
        }
        let eks = resource.starts_with("arn:") && resource.contains(":eks:");
        if eks && (resource.ends_with(&self.arn_end) || self.arn_parts.iter().any(|part| resource.contains(part))) {
            return Ok((Rule::Arn, WHOLE));
        }
        if let Tagged::Another(name) = tagged {
            return Err(Some(name));
        }
        match self.cluster.shares.iter().find(|share| share.covers(line)) {
            Some(share) => Ok((Rule::Share(share.pattern.clone()), share.millionths)),
            None => Err(None),
        }
    }

    fn tagged(&self, line: &BillLine) -> Tagged {
        let (mut another, mut pool) = (None, false);
        for (key, value) in &line.tags {
            let key = snake(key.strip_prefix("user:").or(key.strip_prefix("user_")).unwrap_or(key), false);
            if NAMING.contains(&key.as_str()) {
                if *value == self.cluster.name {
                    return Tagged::This;
                }
                another = Some(value.clone());
            } else if let Some(name) = key.strip_prefix(OWNED).filter(|_| value == "owned") {
                if self.owned_keys.iter().any(|owned_key| owned_key == name) {
                    return Tagged::This;
                }
                another.get_or_insert_with(|| name.to_owned());
            } else if key == "karpenter_sh_nodepool" {
                pool = self.cluster.node_pools.contains(value);
            }
        }
        match another.filter(|name| !name.is_empty()) {
            Some(name) => Tagged::Another(name),
            None if pool => Tagged::This,
            None => Tagged::Not,
        }
    }
}

/// A name as exports spell keys: in lower case, with `_` for whatever is no letter or digit; with `words`, before each capital too.
fn snake(name: &str, words: bool) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        if words && character.is_ascii_uppercase() && !text.is_empty() && !text.ends_with('_') {
            text.push('_');
        }
        text.push(if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Share, fits, snake};

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in
            [("DataTransfer-*", "DataTransfer-Out-Bytes"), ("*", ""), ("*Bytes", "NatGateway-Bytes"), ("a*b*c", "abbc")]
        {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("DataTransfer-*", "NatGateway-Bytes"), ("a*b*c", "acb"), ("ab*b", "ab"), ("x", "xy")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn shares_read_as_written() {
        assert_eq!(Share::parse("DataTransfer-*=37.5%").unwrap().millionths, 375_000);
        assert_eq!(Share::parse("nat = 100 %").unwrap().pattern, "nat");
        for bad in ["nat", "nat=1", "nat=101%", "nat=-1%", "=5%", "nat=x%", ""] {
            assert!(Share::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_spelled_as_exports_do() {
        assert_eq!(snake("aws:eks:cluster-name", false), "aws_eks_cluster_name");
        assert_eq!(snake("ShopProd", true), "shop_prod");
        assert_eq!(snake("kubernetes.io/cluster/shop-prod", false), "kubernetes_io_cluster_shop_prod");
    }
}
