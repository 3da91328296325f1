//! Whole timelines of Karpenter's real controllers, replayed in the simulated world and compared: the suite
//! `karpenter-timeline` of tests/cases. What needs only decisions is in `agreement`.

pub mod karpenter_timeline;
mod karpenter_timeline_events;
pub mod karpenter_timeline_scenario;
pub mod replay;
