//! Expanders.

use std::sync::Arc;

use nodecast_cluster_autoscaler::expander::{
    ExpanderChain, ExpanderContext, ExpansionOption, GroupFacts, PodPrice, preferred_cpu, remaining,
};
use nodecast_cluster_autoscaler::view::NodeTemplate;
use nodecast_model::domain::GroupRanks;
use nodecast_model::domain::{Resources, Symbol};

use super::lab::template;

pub const ROWS: &[&str] = &["G1", "G2", "G3", "G4", "G5", "G6", "G7"];

const MIB: i64 = 1 << 20;

/// A group that a test offers.
struct Offer {
    id: &'static str,
    node: Arc<NodeTemplate>,
    nodes: usize,
    pods: usize,
    requested: Resources,
    price: Option<f64>,
    exists: bool,
}

fn offer(id: &'static str, milli_cpu: i64, memory: i64, nodes: usize, pods: usize) -> Offer {
    let node = Arc::new(template(milli_cpu, memory));
    let requested = Resources::cpu_memory(500 * pods as i64, 1_000 * MIB * pods as i64);
    Offer { id, node, nodes, pods, requested, price: None, exists: true }
}

fn left(chain: &str, offers: &[Offer], context: &ExpanderContext<'_>) -> Vec<&'static str> {
    let options: Vec<ExpansionOption> = offers
        .iter()
        .enumerate()
        .map(|(group, offer)| ExpansionOption {
            group,
            nodes: offer.nodes,
            pods: (0..offer.pods).collect(),
            similar: Vec::new(),
            requested: offer.requested.clone(),
        })
        .collect();
    let facts: Vec<GroupFacts<'_>> = offers
        .iter()
        .map(|offer| GroupFacts {
            auto_scaling_group: Symbol::new(offer.id),
            template: &offer.node,
            price_per_hour: offer.price,
            exists: offer.exists,
            has_gpu: false,
        })
        .collect();
    let chain: ExpanderChain = chain.parse().unwrap();
    remaining(&chain, &options, &facts, context).into_iter().map(|at| offers[at].id).collect()
}

const PLAIN: ExpanderContext<'static> = ExpanderContext { ranks: None, pod_price: None, cluster_nodes: 2 };

#[test]
fn least_waste_picks_best_fitting_node_shape() {
    let (cpu, memory) = (500, 1_000 * MIB);
    let balanced = || offer("balanced", 16 * cpu, 16 * memory, 1, 1);
    let memory_heavy = || offer("memory", 16 * cpu, 32 * memory, 1, 1);
    let low_cpu = || offer("low-cpu", 8 * cpu, 16 * memory, 1, 1);
    assert_eq!(left("least-waste", &[balanced(), memory_heavy(), low_cpu()], &PLAIN), ["low-cpu"]);
    assert_eq!(left("least-waste", &[balanced(), memory_heavy()], &PLAIN), ["balanced"]);
    assert_eq!(left("least-waste", &[offer("alone", 16 * cpu, 16 * memory, 1, 0)], &PLAIN), ["alone"]);
}

#[test]
fn least_nodes_and_most_pods_keep_ties() {
    let offers = [
        offer("none", 1_000, MIB, 0, 1),
        offer("two", 1_000, MIB, 2, 5),
        offer("also-two", 1_000, MIB, 2, 4),
        offer("three", 1_000, MIB, 3, 5),
    ];
    assert_eq!(left("least-nodes", &offers, &PLAIN), ["two", "also-two"]);
    assert_eq!(left("most-pods", &offers, &PLAIN), ["two", "three"]);
    assert_eq!(left("least-nodes", &offers[..1], &PLAIN), Vec::<&str>::new());
}

#[test]
fn priority_expander_keeps_highest_matching_rank() {
    let offers = [offer("spot-a", 1_000, MIB, 1, 1), offer("spot-b", 1_000, MIB, 1, 1), offer("od", 1_000, MIB, 1, 1)];
    let ranks = |all: &[(i64, &'static str)]| GroupRanks::new(all.iter().copied()).unwrap();
    let with = |ranks: &GroupRanks| {
        let context = ExpanderContext { ranks: Some(ranks), ..PLAIN };
        left("priority", &offers, &context)
    };
    assert_eq!(with(&ranks(&[(10, "spot"), (5, ".*"), (50, "gpu")])), ["spot-a", "spot-b"]);
    assert_eq!(with(&ranks(&[(10, "^spot-b$"), (5, "^od$")])), ["spot-b"]);
    assert_eq!(with(&ranks(&[(10, "gpu")])), ["spot-a", "spot-b", "od"]);
    assert_eq!(with(&ranks(&[(-5, "od")])), ["spot-a", "spot-b", "od"]);
    // An expression that cannot be read leaves the program without ranks.
    assert!(GroupRanks::new([(10, "(")]).is_err());
    assert_eq!(left("priority", &offers, &PLAIN), ["spot-a", "spot-b", "od"]);
}

/// Two groups of one and four CPUs, by price of a node and number of nodes; the pods are worth 30 together, or 20 and 10.
fn by_price(first: (f64, usize), second: (f64, usize), preferred: usize, worth: (f64, f64)) -> Vec<&'static str> {
    // CPU alone is priced: half a CPU is what is added on both sides, worth 10.
    let pod_price = Some(PodPrice { per_cpu: 20.0, ..PodPrice::default() });
    let mut offers = [offer("n1", 1_000, MIB, first.1, 1), offer("n2", 4_000, MIB, second.1, 1)];
    for (offer, (price, worth)) in offers.iter_mut().zip([(first.0, worth.0), (second.0, worth.1)]) {
        offer.price = Some(price);
        offer.requested = Resources::cpu_memory((worth / 20.0 * 1_000.0) as i64, 0);
    }
    left("price", &offers, &ExpanderContext { pod_price, cluster_nodes: preferred, ..PLAIN })
}

#[test]
fn price_expander_weighs_cost_against_pod_value() {
    // Clusters of these sizes prefer nodes of two and of four CPUs.
    let (two, four) = (3, 9);
    let all = (30.0, 30.0);
    assert_eq!(by_price((20.0, 2), (200.0, 1), two, all), ["n1"]);
    assert_eq!(by_price((50.0, 2), (200.0, 1), four, all), ["n2"]);
    assert_eq!(by_price((20.0, 80), (200.0, 40), four, all), ["n1"]);
    assert_eq!(by_price((200.0, 2), (100.0, 1), four, all), ["n2"]);
    assert_eq!(by_price((200.0, 2), (200.0, 1), four, (20.0, 30.0)), ["n2"]);
    let unpriced = [offer("n1", 1_000, MIB, 1, 1), offer("n2", 4_000, MIB, 1, 1)];
    assert_eq!(left("price", &unpriced, &PLAIN), Vec::<&str>::new());
}

#[test]
fn price_expander_doubles_cost_of_new_groups() {
    let choose = |price_of_new: f64| {
        let mut offers = [offer("there", 2_000, MIB, 1, 1), offer("new", 2_000, MIB, 1, 1)];
        (offers[0].price, offers[1].price, offers[1].exists) = (Some(200.0), Some(price_of_new), false);
        let pod_price = Some(PodPrice { per_cpu: 20.0, ..PodPrice::default() });
        left("price", &offers, &ExpanderContext { pod_price, cluster_nodes: 3, ..PLAIN })
    };
    assert_eq!(choose(200.0), ["there"]);
    assert_eq!(choose(90.0), ["new"]);
}

#[test]
fn preferred_node_size_grows_with_cluster() {
    assert_eq!([1, 3, 9, 27, 81, 243, 500].map(preferred_cpu), [1, 2, 4, 8, 16, 32, 32]);
}

#[test]
fn expander_chain_filters_until_one_remains() {
    let offers = [
        offer("one-node", 8_000, 8_000 * MIB, 1, 4),
        offer("one-tight-node", 4_000, 4_000 * MIB, 1, 4),
        offer("two-nodes", 1_000, 2_000 * MIB, 2, 4),
    ];
    assert_eq!(left("least-nodes", &offers, &PLAIN), ["one-node", "one-tight-node"]);
    assert_eq!(left("least-nodes,least-waste", &offers, &PLAIN), ["one-tight-node"]);
    assert_eq!(left("most-pods,least-nodes", &offers, &PLAIN), ["one-node", "one-tight-node"]);
    for wrong in ["least-waste,least-waste", "random,least-waste", "cheapest", ""] {
        assert!(wrong.parse::<ExpanderChain>().is_err(), "{wrong}");
    }
}
