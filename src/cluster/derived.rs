//! Values that are worked out from the cluster and kept: each with the position that it holds for, and how it is made anew.

use std::fmt::Debug;

use super::{Change, Cluster, Position};

/// What can be kept up to date with a cluster.
pub trait Follow: Debug + PartialEq {
    /// Worked out from nothing.
    fn build(cluster: &Cluster) -> Self;

    /// Brought up to date with what these changes name.
    fn follow(&mut self, cluster: &Cluster, changes: &[Change]);
}

/// A value and the position of the journal that it holds for.
#[derive(Debug)]
pub struct Derived<T> {
    value: T,
    seen: Position,
}

impl<T: Follow> Derived<T> {
    /// The value for a cluster as it is.
    pub fn new(cluster: &Cluster) -> Self {
        Self { value: T::build(cluster), seen: cluster.changed() }
    }

    /// Brings the value up to date: with what has changed, or from nothing where that is too long ago to know.
    pub fn catch_up(&mut self, cluster: &Cluster) {
        match cluster.journal().since(self.seen) {
            Some([]) => {}
            Some(changes) => self.value.follow(cluster, changes),
            None => self.value = T::build(cluster),
        }
        debug_assert_eq!(self.value, T::build(cluster), "what follows changes comes to what is made from nothing");
        self.seen = cluster.changed();
    }

    /// The value as of the last time it was brought up to date.
    pub const fn value(&self) -> &T {
        &self.value
    }
}
