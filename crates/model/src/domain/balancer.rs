//! Kinds of load balancers.

/// A kind of load balancer; they have their own prices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BalancerKind {
    /// An Application Load Balancer.
    Application,
    /// A Network Load Balancer.
    Network,
    /// A Classic Load Balancer.
    Classic,
}
