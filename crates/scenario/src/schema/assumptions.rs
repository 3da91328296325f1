//! What a scenario's author assumed, and which part of the bill rests on it.

use super::Form;
use super::kind::{Or, Text, kind, words};
use super::names::{AnyWorkload, NodePoolName};
use crate::cloud::BillItem;
use crate::definition::{Assumption, CostOf};

/// A sentence, or a sentence with the part of the bill that rests on it.
pub type Assumed = Or<Sentence, SizedAssumption>;

kind! {
    /// A sentence of which nobody says what rests on it.
    Sentence: Assumption = Form::Text("sentence"), |reading, node, what| {
        Ok(Assumption { text: Text::read(reading, node, what)?, cost_of: None })
    };
    show |assumption| assumption.text.clone()
}

section! {
    /// An assumption with its size: reports show the cost of these parts of the bill next to the sentence.
    ASSUMPTION: "an assumption", "`assumptions[]`: an assumption with its size";
    becomes Assumption, |_, _, sized: Self| Ok(Assumption { text: sized.text, cost_of: Some(sized.cost_of) });
    struct SizedAssumption {
        /// The sentence.
        text["sentence"]: Text;
        /// The part of the bill that depends on it.
        cost_of: CostOf;
    }
}

section! {
    /// The parts that are listed are added up.
    COST_OF: "`cost_of`", "`assumptions[].cost_of`";
    example "assumptions:
  - text: The load of the shop doubles within a year.
    cost_of: { workloads: [shop/web], node_pools: [default], items: [NAT gateways, NAT transfer] }
";
    impl CostOf {
        /// Workloads: their share of the nodes, as in `cost.by_workload`.
        workloads: Vec<AnyWorkload> = Vec::new(), or "none";
        /// NodePools and node groups: their nodes, as in `cost.by_node_origin`.
        node_pools["name"]: Vec<NodePoolName> = Vec::new(), or "none";
        /// Items of the bill, as in `cost.by_item`.
        items: Vec<Item> = Vec::new(), or "none";
    }
}

words! {
    /// An item of the bill that is no node.
    Item: BillItem,
    BillItem::NatGateway.as_str() => BillItem::NatGateway,
    BillItem::NatTransfer.as_str() => BillItem::NatTransfer,
    BillItem::CrossZoneTransfer.as_str() => BillItem::CrossZoneTransfer,
    BillItem::LoadBalancer.as_str() => BillItem::LoadBalancer,
    BillItem::LoadBalancerCapacity.as_str() => BillItem::LoadBalancerCapacity,
    BillItem::PublicIpv4.as_str() => BillItem::PublicIpv4,
    BillItem::ControlPlane.as_str() => BillItem::ControlPlane,
    BillItem::RootVolume.as_str() => BillItem::RootVolume,
    BillItem::PersistentVolume.as_str() => BillItem::PersistentVolume
}
