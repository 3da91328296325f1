//! The discrete-event engine: integer clock, event queue, cancellable timers, random streams.
//!
//! The queue decides what happens next: events are ordered by time, then by priority class, then by the order in which
//! they were scheduled, so a run never depends on how a heap breaks ties. Random numbers come from streams that are
//! named, so that drawing from one never moves another.
//!
//! What must not live here: any word of Kubernetes or EC2.
//!
//! ```
//! use nodecast_model::domain::{SimDuration, SimTime};
//! use nodecast_engine::{EventQueue, PriorityClass};
//!
//! let mut queue = EventQueue::<&str>::new();
//! queue.schedule(SimTime::ZERO + SimDuration::from_secs(5), PriorityClass::NORMAL, "late");
//! let cancelled = queue.schedule(SimTime::ZERO, PriorityClass::NORMAL, "never");
//! queue.schedule(SimTime::ZERO, PriorityClass::NORMAL, "early");
//! queue.cancel(cancelled);
//! assert_eq!(queue.pop(), Some((SimTime::ZERO, "early")));
//! assert_eq!(queue.pop().map(|(_, event)| event), Some("late"));
//! assert_eq!(queue.pop(), None);
//! ```

pub mod hash;
pub mod queue;
pub mod streams;

pub use hash::{EventHash, StableHasher};
pub use queue::{EventQueue, PriorityClass, TimerId};
pub use streams::{Ordinals, Stream, Streams};
