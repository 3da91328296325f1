//! EKS on Fargate: which pods a profile takes, what size they are billed as, what Fargate does not run, and how fast it launches.
//!
//! Source: EKS user guide, `fargate-profile`, `fargate-pod-configuration`, `fargate` (considerations), 2024-12 and later; ECS developer
//! guide, Fargate throttling quotas.
//!
//! What must not live here: how long a pod takes to start, what it costs (`ec2`), when anything happens.

mod profile;
mod rate;
mod size;

pub use profile::{PROFILE_LABEL, Profile, SELECTORS_MOST, Selector, chosen, matches_pattern};
pub use rate::LaunchRate;
pub use size::{Billed, STORAGE_INCLUDED_GIB, Unsupported, size, unsupported};

#[cfg(test)]
mod tests;
