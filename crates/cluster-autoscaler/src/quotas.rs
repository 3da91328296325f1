//! Limits on what the whole cluster may have of a resource: `cores-total`, `memory-total`, `gpu-total`.
//!
//! Source: Cluster Autoscaler 1.36 `resourcequotas/`, `core/scaledown/resource/limits.go`.

use super::view::NodeTemplate;
use nodecast_model::domain::{Labels, ResourceName, Resources, Symbol};

/// The label that says which GPU a node has.
pub const GPU_LABEL: &str = "k8s.amazonaws.com/accelerator";

/// What a limit is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Limited {
    /// Whole cores of capacity.
    Cores,
    /// Bytes of memory capacity.
    Memory,
    /// GPUs of one type.
    Gpu(Symbol),
}

impl Limited {
    /// The resource's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cores => "cpu",
            Self::Memory => "memory",
            Self::Gpu(kind) => kind.as_str(),
        }
    }
}

/// The least and the most of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceLimit {
    /// The resource.
    pub resource: Limited,
    /// Scale-down keeps at least so much.
    pub min: i64,
    /// Scale-up adds up to so much.
    pub max: i64,
}

/// What a node counts for.
pub fn amount(resource: Limited, labels: &Labels, capacity: &Resources, allocatable: &Resources) -> i64 {
    match resource {
        Limited::Cores => capacity.cpu_milli().saturating_add(999).div_euclid(1_000),
        Limited::Memory => capacity.memory_bytes(),
        Limited::Gpu(kind) if labels.get(Symbol::new(GPU_LABEL)) == Some(kind) => {
            let ready = allocatable.get(ResourceName::NVIDIA_GPU);
            if ready > 0 { ready } else { capacity.get(ResourceName::NVIDIA_GPU) }
        }
        Limited::Gpu(_) => 0,
    }
}

/// What is left of each limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Left(Vec<(Limited, i64)>);

impl Left {
    /// What may still be added to nodes that count for `used`.
    pub fn to_add(limits: &[ResourceLimit], used: impl Fn(Limited) -> i64) -> Self {
        Self(limits.iter().map(|limit| (limit.resource, (limit.max - used(limit.resource)).max(0))).collect())
    }

    /// What may still go.
    pub fn to_remove(limits: &[ResourceLimit], used: impl Fn(Limited) -> i64) -> Self {
        Self(limits.iter().map(|limit| (limit.resource, (used(limit.resource) - limit.min).max(0))).collect())
    }

    /// How many of `wanted` nodes like the template may be added, and the limits that allow fewer.
    pub fn allowed(&self, template: &NodeTemplate, wanted: i64) -> (i64, Vec<Limited>) {
        let mut allowed = wanted;
        let mut exceeded = Vec::new();
        for &(resource, left) in &self.0 {
            let each = of_template(resource, template);
            if each > 0 && each.saturating_mul(wanted) > left {
                exceeded.push(resource);
                allowed = allowed.min(left / each);
            }
        }
        (allowed, exceeded)
    }

    /// Takes off what nodes like the template count for.
    pub fn consume(&mut self, template: &NodeTemplate, nodes: i64) {
        for (resource, left) in &mut self.0 {
            *left -= of_template(*resource, template).saturating_mul(nodes);
        }
    }

    /// Takes off what one node counts for, if every limit allows it.
    pub fn try_remove(&mut self, amounts: impl Fn(Limited) -> i64) -> bool {
        let fits = self.0.iter().all(|&(resource, left)| amounts(resource) <= left);
        if fits {
            for (resource, left) in &mut self.0 {
                *left -= amounts(*resource);
            }
        }
        fits
    }
}

fn of_template(resource: Limited, template: &NodeTemplate) -> i64 {
    amount(resource, &template.labels, &template.capacity, &template.allocatable)
}
