//! Values that are worked out from the cluster and kept: each with the position that it holds for, and how it is made anew.

use std::any::type_name;
use std::fmt::Debug;

use super::{Change, Cluster, Position};

/// What can be kept up to date with a cluster.
pub trait Follow: Debug + PartialEq {
    /// Worked out from nothing.
    fn build(cluster: &Cluster) -> Self;

    /// Brought up to date with what these changes name.
    fn follow(&mut self, cluster: &Cluster, changes: &[Change]);
}

/// A value and the position of the journal that it holds for; a new one is made from nothing when it is first brought up to date.
#[derive(Debug, Default)]
pub struct Derived<T> {
    value: T,
    seen: Option<Position>,
}

impl<T: Debug + PartialEq> Derived<T> {
    /// Brings the value up to date: with what has changed, or from nothing where that is too long ago to know. What the value is made
    /// of is the cluster, and of `context` what does not change without it, or what `follow` looks at each time.
    pub fn catch_up_with<C>(
        &mut self,
        context: &mut C,
        cluster: fn(&C) -> &Cluster,
        build: impl Fn(&mut C) -> T,
        follow: impl FnOnce(&mut T, &mut C, &[Change]),
    ) {
        match self.seen.and_then(|seen| cluster(context).journal().since(seen)).map(<[Change]>::to_vec) {
            Some(changes) => follow(&mut self.value, context, &changes),
            None => self.value = build(context),
        }
        let check = cluster(context).check();
        if check.compares() {
            let fresh = build(context);
            check.hold(self.value == fresh, || {
                format!("`{}` has followed the changes and is not what it is when made from nothing", type_name::<T>())
            });
        }
        self.seen = Some(cluster(context).changed());
    }

    /// The value as of the last time it was brought up to date.
    pub const fn value(&self) -> &T {
        &self.value
    }
}

impl<T: Follow> Derived<T> {
    /// The value for a cluster as it is.
    pub fn new(cluster: &Cluster) -> Self {
        Self { value: T::build(cluster), seen: Some(cluster.changed()) }
    }

    /// Whether nothing has changed since the value was brought up to date.
    pub fn is_current(&self, cluster: &Cluster) -> bool {
        self.seen == Some(cluster.changed())
    }

    /// Brings a value up to date that is made of the cluster alone.
    pub fn catch_up(&mut self, cluster: &Cluster) {
        self.catch_up_with(
            &mut &*cluster,
            |cluster| cluster,
            |cluster| T::build(cluster),
            |value, cluster, changes| {
                if !changes.is_empty() {
                    value.follow(cluster, changes);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::{Derived, Follow};
    use crate::cluster::{Change, Cluster, NewWorkload, WorkloadKind};
    use crate::domain::workload::ObjectName;
    use crate::domain::{Check, Disagreement, LabelSelector, SimTime, Symbol, WorkloadId};

    /// How many pods there have been; it forgets every third that it is told of.
    #[derive(PartialEq, Debug)]
    struct Forgetful(usize);

    impl Follow for Forgetful {
        fn build(cluster: &Cluster) -> Self {
            Self(cluster.pod_count())
        }

        fn follow(&mut self, cluster: &Cluster, changes: &[Change]) {
            self.0 += changes.len();
            if cluster.pod_count().is_multiple_of(3) {
                self.0 -= 1;
            }
        }
    }

    fn cluster() -> (Cluster, WorkloadId) {
        let mut cluster = Cluster::default();
        cluster.set_check(Check::Always);
        let web = cluster.add_workload(NewWorkload {
            name: ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") },
            kind: WorkloadKind::Deployment,
            selector: LabelSelector::default(),
            template: Arc::default(),
            replicas: 3,
        });
        (cluster, web)
    }

    #[test]
    fn wrong_derived_value_is_reported_at_first_use() {
        let (mut cluster, web) = cluster();
        let mut pods = Derived::<Forgetful>::new(&cluster);
        for count in 1..3 {
            cluster.create_pod(web, 0, None, SimTime::ZERO);
            pods.catch_up(&cluster);
            assert_eq!(pods.value(), &Forgetful(count));
        }
        cluster.create_pod(web, 0, None, SimTime::ZERO);
        let caught = catch_unwind(AssertUnwindSafe(|| pods.catch_up(&cluster))).unwrap_err();
        let told = caught.downcast_ref::<Disagreement>().unwrap().to_string();
        assert!(told.contains("Forgetful") && told.ends_with("is not what it is when made from nothing"), "{told}");
    }
}
