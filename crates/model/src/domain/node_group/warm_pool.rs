//! Warm pools of Auto Scaling groups.
//!
//! Must not: hold the instances of a pool in a run.

/// State in which instances of a warm pool wait.
///
/// Source: EC2 Auto Scaling API reference, `WarmPoolConfiguration`, `PoolState`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WarmPoolState {
    /// Only their volumes are billed.
    #[default]
    Stopped,
    /// They are billed like instances in service.
    Running,
    /// Stopped, with their memory on the root volume.
    Hibernated,
}

/// The warm pool of a group.
///
/// Source: EKS API reference, `WarmPoolConfig` (2026); EC2 Auto Scaling user guide, warm pools.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WarmPool {
    /// `maxGroupPreparedCapacity`: instances of the pool and the group together; `None` for the largest size of the group.
    pub max_prepared: Option<u32>,
    /// `minSize`: least number of instances in the pool.
    pub min_size: u32,
    /// `poolState`.
    pub state: WarmPoolState,
    /// `reuseOnScaleIn`: instances return to the pool on scale-in.
    pub reuse_on_scale_in: bool,
}

impl WarmPool {
    /// Instances that the pool of a group with this largest and desired size has.
    pub fn size(&self, max: u32, desired: u32) -> u32 {
        self.min_size.max(self.max_prepared.unwrap_or(max).saturating_sub(desired))
    }
}

#[cfg(test)]
mod tests {
    use super::WarmPool;

    #[test]
    fn warm_pool_prepares_up_to_group_maximum() {
        let size = |max_prepared, min_size| WarmPool { max_prepared, min_size, ..WarmPool::default() }.size(10, 4);
        assert_eq!([size(None, 0), size(Some(8), 0), size(Some(8), 5), size(Some(3), 0)], [6, 4, 5, 0]);
    }
}
