//! What a node of each EC2 instance type offers to pods, as Karpenter's AWS provider computes it: capacity, overhead, allocatable, labels and offerings, by release.
