//! Karpenter's scheduler: which pods go on which nodes, existing or new, and which instance types a new node may have.
