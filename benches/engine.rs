//! The hold model: a queue of constant size from which the next event is taken and put back at a later time.

#![allow(missing_docs)] // the macros of criterion make functions without documentation

use criterion::{Criterion, criterion_group, criterion_main};
use nodecast::domain::SimDuration;
use nodecast::engine::{EventQueue, PriorityClass, Streams};

fn hold(c: &mut Criterion) {
    let pending = 10_000_u32;
    let mut stream = Streams::new(1).stream("hold", "");
    let delays: Vec<SimDuration> = (0..65_536).map(|_| SimDuration::from_secs_f64(stream.exponential(1.0))).collect();
    let mut queue = EventQueue::<u32>::new();
    for id in 0..pending {
        queue.schedule_in(delays[id as usize], PriorityClass::NORMAL, id);
    }
    let mut turn = 0_usize;
    c.bench_function("hold model, 10,000 pending events", |b| {
        b.iter(|| {
            let (_, event) = queue.pop().unwrap_or_default();
            turn = (turn + 1) % delays.len();
            queue.schedule_in(delays[turn], PriorityClass::NORMAL, event)
        });
    });
}

criterion_group!(benches, hold);
criterion_main!(benches);
