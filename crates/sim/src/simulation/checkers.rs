//! What holds of a cluster whatever happens, looked at after each event for what has changed since the last.
//!
//! A pod that is not gone and has a node stands in the list of that node and of no other, and stays there until it is gone. What
//! is requested of a node is the sum of what its pods request that have not ended, and fits what the node offers.
//!
//! What must not live here: what ought to happen, and anything that takes more than a look at what was touched.

use std::collections::BTreeSet;

use crate::cluster::{Change, Cluster, NodePhase, PodPhase, Position};
use crate::domain::{NodeId, PodId, Resources};

/// Where pods were when last looked at.
#[derive(Debug, Default)]
pub(super) struct Checkers {
    seen: Position,
    /// The node of each pod, by [`PodId`].
    places: Vec<Option<NodeId>>,
}

impl Checkers {
    /// Looks at what has changed since the last time.
    pub(super) fn look(&mut self, cluster: &Cluster, name: &dyn Fn(PodId) -> String) {
        let (check, mut pods, mut nodes) = (cluster.check(), BTreeSet::new(), BTreeSet::new());
        match cluster.journal().since(self.seen) {
            Some(changes) => changes.iter().for_each(|change| touched(*change, &mut pods, &mut nodes)),
            None => {
                pods.extend((0..cluster.pod_count()).map(PodId::from_index));
                nodes.extend(cluster.live_nodes());
            }
        }
        self.seen = cluster.changed();
        self.places.resize(cluster.pod_count(), None);
        for pod in pods {
            let place = place_of(cluster, pod);
            let before = std::mem::replace(&mut self.places[pod.index()], place);
            nodes.extend(before.into_iter().chain(place));
            let stays = before.is_none() || place.is_none() || place == before;
            check.hold(stays, || format!("pod {} went from one node to another", name(pod)));
            let listed = place.is_none_or(|node| cluster.node(node).pods.contains(&pod));
            check.hold(listed, || format!("pod {} is not among the pods of its node", name(pod)));
        }
        nodes.into_iter().for_each(|node| look_at_node(cluster, node, name));
    }
}

fn touched(change: Change, pods: &mut BTreeSet<PodId>, nodes: &mut BTreeSet<NodeId>) {
    match change {
        Change::Pod(pod) | Change::Placement(pod) => drop(pods.insert(pod)),
        Change::Node(node) => drop(nodes.insert(node)),
        Change::Workload(_) | Change::Budgets => {}
    }
}

/// The node that a pod is on.
fn place_of(cluster: &Cluster, pod: PodId) -> Option<NodeId> {
    let state = cluster.pod(pod);
    state.node.filter(|_| state.phase != PodPhase::Gone)
}

fn look_at_node(cluster: &Cluster, id: NodeId, name: &dyn Fn(PodId) -> String) {
    let (node, check) = (cluster.node(id), cluster.check());
    let mut requested = Resources::new();
    let mut known = BTreeSet::new();
    for &pod in &node.pods {
        let is = |what: &str| format!("pod {} {what} among the pods of node {}", name(pod), node.name);
        check.hold(place_of(cluster, pod) == Some(id), || is("is not bound to the node and is"));
        check.hold(known.insert(pod), || is("is twice"));
        let state = cluster.pod(pod);
        if !state.finished {
            requested.add(&state.requests);
        }
    }
    let (name, kept, offers) = (node.name, &node.requested, &node.allocatable);
    let same = requested.fits(kept) && kept.fits(&requested);
    check.hold(same, || format!("node {name} was known to have {kept} requested, and its pods request {requested}"));
    let fits = node.phase != NodePhase::Registered || requested.fits(offers);
    check.hold(fits, || format!("node {name} offers {offers}, and its pods request {requested}"));
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::Checkers;
    use crate::cluster::{Cluster, NewNode, NewWorkload, NodeOrigin, WorkloadKind};
    use crate::domain::pod::Container;
    use crate::domain::workload::ObjectName;
    use crate::domain::{
        Check, Disagreement, LabelSelector, Labels, NodeId, PodId, PodSpec, ResourceName, Resources, SimTime, Symbol,
    };

    /// A node of two CPUs, and three pods that request one each.
    fn cluster() -> (Cluster, NodeId, [PodId; 3]) {
        let mut cluster = Cluster::default();
        cluster.set_check(Check::Always);
        let container = Container { requests: Resources::cpu_memory(1_000, 1), ..Container::default() };
        let web = cluster.add_workload(NewWorkload {
            name: ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") },
            kind: WorkloadKind::Deployment,
            selector: LabelSelector::default(),
            template: Arc::new(PodSpec { containers: vec![container], ..PodSpec::default() }),
            replicas: 3,
        });
        let new = NewNode::called("first", NodeOrigin::NodePool(Symbol::new("default")));
        let node = cluster.add_node(new, SimTime::ZERO);
        let offers = Resources::cpu_memory(2_000, 1 << 30).with(ResourceName::PODS, 10);
        cluster.register_node(node, offers.clone(), offers, &Labels::new(), &[]);
        let pods = [0; 3].map(|_| cluster.create_pod(web, 0, None, SimTime::ZERO));
        (cluster, node, pods)
    }

    fn told(checkers: &mut Checkers, cluster: &Cluster) -> Option<String> {
        let look = AssertUnwindSafe(|| checkers.look(cluster, &|pod| format!("web-{}", pod.0)));
        catch_unwind(look).err().map(|caught| caught.downcast_ref::<Disagreement>().unwrap().to_string())
    }

    #[test]
    fn checker_reports_requests_above_allocatable() {
        let (mut cluster, node, pods) = cluster();
        let mut checkers = Checkers::default();
        assert_eq!(told(&mut checkers, &cluster), None);
        cluster.bind_pod(pods[0], node);
        cluster.bind_pod(pods[1], node);
        assert_eq!(told(&mut checkers, &cluster), None);
        cluster.remove_pod(pods[0]);
        assert_eq!(told(&mut checkers, &cluster), None);
        cluster.bind_pod(pods[2], node);
        assert_eq!(told(&mut checkers, &cluster), None);
        let (mut cluster, node, pods) = self::cluster();
        pods.into_iter().for_each(|pod| cluster.bind_pod(pod, node));
        let told = told(&mut Checkers::default(), &cluster).unwrap();
        assert!(
            told.starts_with("node first offers cpu 2, memory 1Gi, pods 10, and its pods request cpu 3,"),
            "{told}"
        );
    }

    #[test]
    fn checker_reports_pod_moved_without_deletion() {
        let (mut cluster, node, pods) = cluster();
        let mut checkers = Checkers::default();
        assert_eq!(told(&mut checkers, &cluster), None);
        cluster.bind_pod(pods[1], node);
        checkers.places[pods[1].index()] = Some(NodeId(7));
        assert_eq!(told(&mut checkers, &cluster).unwrap(), "pod web-1 went from one node to another");
    }
}
