//! Dense identifiers: indices into the vectors that hold the things they name.

macro_rules! dense_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The identifier as a vector index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The identifier of the element at `index`.
            ///
            /// # Panics
            /// If `index` does not fit 32 bits; every collection indexed by an id is bounded well below that.
            pub fn from_index(index: usize) -> Self {
                match u32::try_from(index) {
                    Ok(raw) => Self(raw),
                    Err(_) => panic!("more than 2^32 {}s", stringify!($name)),
                }
            }
        }
    };
}

dense_id!(
    /// A pod of one simulation, numbered in order of creation.
    PodId
);
dense_id!(
    /// A node (or a node claim that will become one), numbered in order of creation.
    NodeId
);
dense_id!(
    /// A workload (Deployment, DaemonSet, ...), numbered in scenario order.
    WorkloadId
);
