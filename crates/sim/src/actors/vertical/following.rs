//! Which VerticalPodAutoscalers something has changed for since anybody looked: what the two loops rest on follows the cluster's journal.

use super::Vertical;
use crate::cluster::{Change, Cluster};

impl Vertical {
    /// Takes note of what has changed in the cluster.
    pub(super) fn catch_up(&mut self, cluster: &Cluster) {
        let journal = cluster.journal();
        match journal.since(self.seen) {
            None => self.autoscalers.iter_mut().for_each(|own| (own.pods_changed, own.quiet) = (true, None)),
            Some(changes) => {
                for change in changes {
                    let (Change::Pod(pod) | Change::Placement(pod)) = change else { continue };
                    let places = self.of_workloads.get(&cluster.pod(*pod).workload);
                    for &place in places.into_iter().flatten() {
                        let own = &mut self.autoscalers[place];
                        (own.pods_changed, own.quiet) = (true, None);
                    }
                }
            }
        }
        self.seen = journal.end();
    }

    /// Notes once more whose pods each is for.
    pub(super) fn index(&mut self) {
        self.of_workloads.clear();
        for (place, own) in self.autoscalers.iter().enumerate() {
            if let Some(target) = own.target {
                self.of_workloads.entry(target).or_default().push(place);
            }
        }
    }
}
