//! What people ask of a running simulation. Each answer comes from the code that decides; the run goes on as if nobody had
//! asked, if it goes on at all.

pub use super::cluster_autoscaler::inquiry::{
    GroupAnswer, OptionAnswer, SCALE_DOWN_DISABLED, ScaleDownAnswer, ScaleUpAnswer, Standing, scale_down, scale_up,
};
pub use super::karpenter::inquiry::{Keeper, drifted, kept, node, pod, removal};
pub use super::scheduler_loop::inquire as kube_scheduler;
pub use super::vertical::inquiry::{ContainerAnswer, VerticalAnswer, vertical};
pub use super::workload_controllers::deployments::stalled as stalled_rollouts;
pub use nodecast_karpenter::machine::inquiry::{Destination, Launch, NodeAnswer, PodAnswer, Removal};
