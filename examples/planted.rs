//! What takes too long for each change: whether the interval that `recommend` tells of a planted saving holds what five hundred fresh seeds say, and
//! how often a further search over what was recommended finds more. `cargo run --release --example planted -- PROGRAM intervals|again [NAME...]`.
//! Both ask with as many simulations as there is time for within two minutes on two processors that do nothing else.

#![allow(clippy::print_stdout)]

#[path = "../tests/it/planted/six.rs"]
mod six;

use std::path::Path;
use std::process::ExitCode;

use nodecast::recommend::presentation::recommendation::sentence;

use six::{COMMITMENT, CONSOLIDATION, FAMILIES, PIN, Planted, REQUESTS, Result, TARGET};

const SIX: [(&str, &Planted); 6] = [
    ("consolidation", &CONSOLIDATION),
    ("families", &FAMILIES),
    ("requests", &REQUESTS),
    ("pin", &PIN),
    ("commitment", &COMMITMENT),
    ("target", &TARGET),
];
/// Seeds that tell the truth.
const SEEDS: u64 = 500;
/// Simulations of each search.
const SIMULATIONS: Option<u32> = Some(1_500);
/// Searches of each of the six for intervals, and how many of all of them may miss: one of twenty does by chance, and what fresh seeds say is a
/// little off itself.
const INTERVALS: (u64, usize) = (3, 3);
/// Further searches of each of the six, and how many of all of them may find anything.
const SEARCHES: (u64, usize) = (5, 2);

/// How many of the intervals that are told of what is saved a month do not hold what fresh seeds say.
fn missed(program: &Path, (name, this_planted): (&str, &Planted)) -> Result<usize> {
    println!("{name}, planted to save {}:", this_planted.lever);
    let (mut missed, mut planted) = (0, None);
    for ordinal in 0..INTERVALS.0 {
        let asked = this_planted.asked_from(program, SIMULATIONS, (ordinal > 0).then_some(ordinal * 1_000))?;
        let paired = asked.answer.cost_per_month.as_ref().ok_or("nothing was confirmed")?;
        let (least, most) = paired.difference.low.zip(paired.difference.high).ok_or("there is no interval")?;
        let (low, high) = (-most, -least);
        // What was planted costs the same in each search.
        let truth = match planted {
            Some(planted) => planted - asked.cost(SEEDS)?,
            None => {
                let [_, before, after] = this_planted.costs(&asked, SEEDS)?;
                planted = Some(before);
                before - after
            }
        };
        let holds = (low..=high).contains(&truth);
        missed += usize::from(!holds);
        let word = if holds { "" } else { ", which it does not hold" };
        println!("  {low:.2} to {high:.2} a month are told, {SEEDS} seeds say {truth:.2}{word}");
    }
    Ok(missed)
}

/// How many further searches find anything.
fn again(program: &Path, (name, planted): (&str, &Planted)) -> Result<usize> {
    let found = planted.again(program, SIMULATIONS, SEARCHES.0)?;
    println!("{name}: {} of {} further searches find more", found.len(), SEARCHES.0);
    found.iter().for_each(|item| println!("  {}", sentence(item)));
    Ok(found.len())
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, what, names @ ..] = &words[..] else {
        return Err("planted PROGRAM intervals|again [NAME...]".into());
    };
    let program = std::path::absolute(program)?;
    let (mut holds, mut more, mut misses) = (true, 0, 0);
    for six in SIX.into_iter().filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name)) {
        holds &= match what.as_str() {
            "intervals" => {
                misses += missed(&program, six)?;
                misses <= INTERVALS.1
            }
            "again" => {
                more += again(&program, six)?;
                more <= SEARCHES.1
            }
            _ => return Err(format!("`{what}` is neither intervals nor again").into()),
        };
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
