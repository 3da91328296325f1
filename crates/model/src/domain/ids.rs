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

/// A command of Karpenter's disruption, numbered in the order in which they are proposed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u32);

impl CommandId {
    /// The id that `text` writes, as `d7` for the seventh decision of a run.
    pub fn parse(text: &str) -> Option<Self> {
        let number: u32 = text.strip_prefix('d').unwrap_or(text).parse().ok()?;
        number.checked_sub(1).map(Self)
    }
}

impl std::fmt::Display for CommandId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "d{}", u64::from(self.0) + 1)
    }
}
