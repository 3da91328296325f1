//! The discrete-event engine: integer clock, event queue, cancellable timers, random streams.
//!
//! What must not live here: any word of Kubernetes or EC2.
