//! From the instance types that a node claim may have to the launch request that Karpenter sends: filters, price order, truncation, allocation strategy.

pub mod strategy;

pub use strategy::AllocationStrategy;
