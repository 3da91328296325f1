//! The search for cheaper settings, whatever it is that is simulated.
//!
//! Every setting meets the same seeds, so that two of them are held against each other seed by seed. First each change is tried
//! alone, then the good ones together and settings drawn at random, then the neighbours of the best; few seeds go where a
//! setting is clearly worse, more where it is open. What is chosen so is looked at again with seeds that the choice never saw
//! ([`support`](super::support)): a search that takes the best of many takes the luckiest, too.
//!
//! Source of the allocation: sequential halving (Karnin, Koren and Somekh, 2013) within each round; of the pairing: common
//! random numbers (Glasserman and Yao, 1992).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::effort::Effort;
use super::limits::{Limit, strain};
use crate::engine::Streams;

/// A choice of levels, one for each lever; level 0 is what there is today.
pub type Choice = Vec<usize>;

/// What one simulation brings.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// What it costs.
    pub cost: f64,
    /// What is held against the limits, in their order; `None` where there was nothing to measure.
    pub measures: Vec<Option<f64>>,
}

/// What is searched.
pub trait Problem {
    /// Why simulations end before they are done.
    type Error;

    /// How many levels each lever has when the search begins, today's among them.
    fn levels(&self) -> &[usize];

    /// What settings have to keep.
    fn limits(&self) -> &[Limit];

    /// The lever whose level was worked out for what all others are set to and means little beside anything else, as a Savings Plan for
    /// one family does.
    fn bound(&self) -> Option<usize> {
        None
    }

    /// The lever whose levels change the cost alone: its results follow from those of the same choice without it.
    fn arithmetic(&self) -> Option<usize> {
        None
    }

    /// The group of levers that a lever belongs to. The best change of each group is tried closely, whatever another group saves.
    fn group(&self, lever: usize) -> usize {
        lever
    }

    /// Whether an earlier search simulated this: it does not count as a simulation of this search.
    fn is_free(&self, _choice: &Choice, _seed: u64) -> bool {
        false
    }

    /// Simulates each of the choices with its seed; the results come in the same order.
    ///
    /// # Errors
    /// If a simulation cannot be run, or nobody wants any more of them.
    fn simulate(&self, asked: &[(Choice, u64)]) -> Result<Vec<Sample>, Self::Error>;
}

/// Seeds beyond which no setting is looked at while settings are chosen.
const SEEDS_MAX: usize = 8;
/// Seeds of the looks before the last one, and how many settings of a round get each but the first, which all get.
const LOOKS: [(usize, usize); 3] = [(1, usize::MAX), (2, 24), (4, 12)];
/// Share of the search that each look at single changes may take.
const ALONE: f64 = 0.5;
/// Seeds of the last of these looks: what has had it counts as known.
pub(super) const KNOWN_WITH: usize = 4;
/// How many settings get the last look.
const LAST_LOOK: usize = 4;
/// Seeds of the looks at all that stands beside what was chosen, and by how much of today's cost a setting may then seem dearer to be looked at
/// with more. An objective that may be missed in a twentieth of the runs says something only of twenty runs and more.
const SECOND_LOOKS: [(usize, f64); 4] = [(4, 0.03), (10, 0.02), (20, 0.01), (40, 0.0)];
/// Share of the search that settings drawn at random may take.
const DRAWN: f64 = 0.15;
/// A setting that costs more than this share of today's cost above another in one run is clearly worse; in more runs, less divided by the root
/// of their number is enough.
const CLEARLY: f64 = 0.03;
/// A setting takes the place of the best only if it saves so much more, as a share of today's cost.
const STEP: f64 = 0.001;

/// How a setting stands against today over some seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Standing {
    /// What it saves, on average.
    pub saving: f64,
    /// How far it is beyond the limits; 0 within them.
    pub strain: f64,
}

impl Standing {
    /// Whether it is better: within the limits rather than beyond them, nearer to them, or as near and cheaper. What moves nobody, as a
    /// commitment does, is as far beyond them with few seeds as what it is held against.
    pub fn is_better_than(&self, other: &Self, step: f64) -> bool {
        match self.strain.max(0.0).total_cmp(&other.strain.max(0.0)) {
            Ordering::Less => true,
            Ordering::Equal => self.saving > other.saving + step,
            Ordering::Greater => false,
        }
    }
}

/// A search under way.
pub struct Search<'p, P: Problem> {
    pub(super) problem: &'p P,
    pub(super) effort: Effort<'p>,
    /// How many levels each lever has by now.
    levels: Vec<usize>,
    /// Every simulation so far.
    pub(super) known: BTreeMap<(Choice, u64), Sample>,
    /// How many simulations choosing may take.
    limit: usize,
    /// Whether a look was given up because there were no more simulations, or no more time.
    spent: bool,
    /// Whether it was for want of time.
    late: bool,
    /// Simulations that an earlier search had made.
    free: usize,
    /// What many seeds found to be worse than another: few seeds do not lead back to it.
    left: BTreeSet<Choice>,
    /// What was chosen, and did not keep the limits when each of its changes was looked at.
    pub(super) given_up: Option<Choice>,
}

/// Why a look was not taken.
pub(super) enum End<E> {
    /// There are no more simulations, or there is no more time.
    Spent,
    /// A simulation could not be run.
    Failed(E),
}

type Looked<T, E> = Result<T, End<E>>;

impl<'p, P: Problem> Search<'p, P> {
    /// One that has tried nothing.
    pub fn new(problem: &'p P, effort: Effort<'p>) -> Self {
        let limit = effort.simulations.saturating_sub(effort.reserve());
        let levels = problem.levels().to_vec();
        Self {
            problem,
            effort,
            levels,
            known: BTreeMap::new(),
            limit,
            spent: false,
            late: false,
            free: 0,
            left: BTreeSet::new(),
            given_up: None,
        }
    }

    /// How many simulations there were, without those of an earlier search.
    pub fn used(&self) -> usize {
        self.known.len() - self.free
    }

    /// How many of these simulations no earlier search has made, without those that follow from others.
    pub(super) fn cost(&self, missing: &[(Choice, u64)]) -> usize {
        let is_free = |choice: &Choice, seed| self.base(choice) != *choice || self.problem.is_free(choice, seed);
        missing.iter().filter(|(choice, seed)| !is_free(choice, *seed)).count()
    }

    /// The choice that has to be simulated for the results of `choice`.
    fn base(&self, choice: &Choice) -> Choice {
        self.problem.arithmetic().map_or_else(|| choice.clone(), |lever| with(choice, lever, 0))
    }

    /// The share of what `choice` saves that its changes of `levers` save alone; 0 if it saves nothing.
    pub fn share_alone(&self, choice: &Choice, levers: &[usize]) -> f64 {
        let today = self.today();
        let saving = |choice: &Choice| self.saves_more(choice, &today).unwrap_or(0.0);
        let changed = levers.iter().filter(|lever| choice[**lever] != 0);
        let alone: f64 = changed.map(|lever| saving(&with(&today, *lever, choice[*lever]))).sum();
        let all = saving(choice);
        if all > 0.0 { alone / all } else { 0.0 }
    }

    /// Whether it ended because there were no more simulations or no more time, and not because nothing near was better.
    pub fn is_spent(&self) -> bool {
        self.spent
    }

    /// Whether it ended because there was no more time.
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// What there is today.
    pub fn today(&self) -> Choice {
        vec![0; self.levels.len()]
    }

    /// The best setting that it finds; today's, if that is it.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn best(&mut self) -> Result<Choice, P::Error> {
        let mut best = self.today();
        match self.choose(&mut best) {
            Ok(()) => Ok(best),
            Err(End::Spent) => {
                self.spent = true;
                Ok(best)
            }
            Err(End::Failed(error)) => Err(error),
        }
    }

    /// Gives a lever levels that could only be told when the rest was chosen, and takes the best of them.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn open_lever(&mut self, lever: usize, levels: usize, best: &mut Choice) -> Result<(), P::Error> {
        self.levels[lever] = levels;
        let candidates: Vec<Choice> = (1..levels).map(|level| with(best, lever, level)).collect();
        let seeds: Vec<u64> = self.seeds(KNOWN_WITH).collect();
        let all: Vec<Choice> = candidates.iter().chain(std::iter::once(&*best)).cloned().collect();
        let missing = self.missing(&all, &seeds);
        self.ask(missing)?;
        for candidate in self.leading(&candidates, KNOWN_WITH, 1) {
            self.take_if_better(best, candidate, KNOWN_WITH);
        }
        Ok(())
    }

    fn choose(&mut self, best: &mut Choice) -> Looked<(), P::Error> {
        self.look(std::slice::from_ref(best), KNOWN_WITH)?;
        let singles = self.neighbours(best);
        self.narrow_alone(singles)?;
        self.put_together(best)?;
        self.draw(best)?;
        loop {
            self.climb(best)?;
            if !self.look_again(best)? {
                return Ok(());
            }
        }
    }

    /// Looks at single changes with one seed, at fewer and fewer with more. The best of each group of levers stays: a large saving of one
    /// group does not hide that of another.
    fn narrow_alone(&mut self, singles: Vec<Choice>) -> Looked<(), P::Error> {
        let mut open = self.affordable(singles);
        self.look(&open, 1)?;
        for (seeds, count) in &LOOKS[1..] {
            let half = (*count).min(open.len().div_ceil(2));
            let today = self.today();
            open.retain(|choice| !self.is_clearly_worse(choice, &today, seeds / 2) && self.differs(choice, seeds / 2));
            let leading = self.leading(&open, seeds / 2, open.len());
            let mut groups = BTreeSet::new();
            let saves =
                |choice: &Choice| self.standing(choice, seeds / 2).is_some_and(|standing| standing.saving > 0.0);
            let is_first = |choice: &Choice| saves(choice) && groups.insert(self.group_of(choice));
            let (first, others): (Vec<Choice>, Vec<Choice>) = leading.into_iter().partition(is_first);
            let rest = half.saturating_sub(first.len());
            open = first.into_iter().chain(others.into_iter().take(rest)).collect();
            open.truncate((self.part(ALONE) / seeds).max(1));
            self.look(&open, *seeds)?;
        }
        Ok(())
    }

    /// So many simulations as are a share of the search.
    fn part(&self, share: f64) -> usize {
        libm::floor(self.limit as f64 * share) as usize
    }

    /// The group of the first lever that a choice changes.
    fn group_of(&self, choice: &Choice) -> Option<usize> {
        choice.iter().position(|level| *level != 0).map(|lever| self.problem.group(lever))
    }

    /// As many single changes as the search can try: of each group the first, then of each the second, and so on.
    fn affordable(&self, singles: Vec<Choice>) -> Vec<Choice> {
        let most = self.part(ALONE);
        if singles.len() <= most {
            return singles;
        }
        let mut ranks: BTreeMap<Option<usize>, usize> = BTreeMap::new();
        let mut ranked: Vec<(usize, Choice)> = Vec::new();
        for choice in singles {
            let rank = ranks.entry(self.group_of(&choice)).or_default();
            ranked.push((*rank, choice));
            *rank += 1;
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().take(most).map(|(_, choice)| choice).collect()
    }

    /// Looks at all of `choices` with one seed, at fewer and fewer with more, and at none that is clearly worse than `best`; those that are left.
    fn narrow(&mut self, choices: Vec<Choice>, best: &Choice) -> Looked<Vec<Choice>, P::Error> {
        let mut open = choices;
        for (seeds, count) in LOOKS {
            open.retain(|choice| seeds == 1 || !self.is_clearly_worse(choice, best, seeds / 2));
            let known =
                if seeds == 1 { open } else { self.leading(&open, seeds / 2, count.min(open.len().div_ceil(2))) };
            self.look(&known, seeds)?;
            open = known;
        }
        Ok(open)
    }

    /// Takes the best level of each lever, the one that saves most first, as long as they go together.
    fn put_together(&mut self, best: &mut Choice) -> Looked<(), P::Error> {
        let today = self.today();
        let mut good: Vec<(f64, usize, usize)> = Vec::new();
        for (lever, levels) in self.levels.iter().enumerate() {
            let of_lever = (1..*levels).filter_map(|level| {
                let standing = self.standing(&with(&today, lever, level), KNOWN_WITH)?;
                (standing.strain <= 0.0 && standing.saving > 0.0).then_some((standing.saving, lever, level))
            });
            let mut of_lever: Vec<_> = of_lever.collect();
            of_lever.sort_by(|one, other| other.0.total_cmp(&one.0));
            good.extend(of_lever.into_iter().take(2));
        }
        good.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)).then(one.2.cmp(&other.2)));
        for (_, lever, level) in good {
            let candidate = with(best, lever, level);
            self.look(&[best.clone(), candidate.clone()], KNOWN_WITH)?;
            self.take_if_better(best, candidate, KNOWN_WITH);
        }
        Ok(())
    }

    /// Looks at settings drawn at random: changes that save only together are not found one by one.
    fn draw(&mut self, best: &mut Choice) -> Looked<(), P::Error> {
        let count = libm::floor(self.limit as f64 * DRAWN / 2.0) as usize;
        let levels = self.levels.clone();
        let mut stream = Streams::new(self.effort.first_seed).stream("recommend", "drawn");
        let mut pick = |of: usize| (libm::floor(stream.uniform() * of as f64) as usize).min(of.saturating_sub(1));
        let mut drawn: BTreeSet<Choice> = BTreeSet::new();
        for _ in 0..count {
            // Two or three changes of the best: with most levers moved at once little is kept of what works.
            let mut choice = best.clone();
            for _ in 0..2 + pick(2) {
                let lever = pick(levels.len().max(1));
                if let Some(place) = choice.get_mut(lever) {
                    *place = pick(levels[lever]);
                }
            }
            drawn.insert(choice);
        }
        drawn.remove(best);
        let drawn: Vec<Choice> = drawn.into_iter().collect();
        self.race(&drawn, best)
    }

    /// Goes to the best of the neighbours for as long as one is better.
    fn climb(&mut self, best: &mut Choice) -> Looked<(), P::Error> {
        loop {
            let before = best.clone();
            let mut neighbours = self.neighbours(best);
            neighbours.retain(|choice| !self.is_hopeless(choice, &before));
            self.race(&neighbours, best)?;
            if *best == before {
                return Ok(());
            }
        }
    }

    /// Looks at the neighbours of the best anew, with more and more seeds: what few seeds left out for their luck, or for a limit that one of
    /// them missed, whoever asks again would find. Whether one of them took the best's place.
    fn look_again(&mut self, best: &mut Choice) -> Looked<bool, P::Error> {
        let before = best.clone();
        let neighbours = self.neighbours(best).into_iter().filter(|choice| !self.is_hopeless(choice, best));
        let mut known: Vec<(f64, Choice)> =
            neighbours.map(|choice| (self.saves_more(&choice, best).unwrap_or(0.0), choice)).collect();
        known.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut open: Vec<Choice> = known.into_iter().map(|pair| pair.1).collect();
        for (seeds, margin) in SECOND_LOOKS {
            if open.is_empty() {
                return Ok(false);
            }
            self.look(std::slice::from_ref(best), seeds)?;
            let left = self.limit.saturating_sub(self.used());
            open.truncate((left / seeds).max(1));
            self.look(&open, seeds)?;
            open.retain(|choice| self.may_be_better(choice, best, seeds, margin));
        }
        let seeds = SECOND_LOOKS[SECOND_LOOKS.len() - 1].0;
        for candidate in self.leading(&open, seeds, open.len()) {
            self.take_if_better(best, candidate, seeds);
        }
        let found = *best != before;
        self.left.extend(found.then_some(before));
        Ok(found)
    }

    /// Whether more seeds may find `choice` better than `best`: it does something else, breaks no limit more often than it may, and
    /// costs at most `margin` more, as a share of today's cost. Prices that are seldom high are not yet seen in few seeds.
    fn may_be_better(&self, choice: &Choice, best: &Choice, seeds: usize, margin: f64) -> bool {
        let numbers: Vec<u64> = self.seeds(seeds).collect();
        let both = self.standing_over(choice, &numbers, 1.0).zip(self.standing_over(best, &numbers, 1.0));
        let least = margin * self.mean_today(seeds);
        let better = both
            .is_some_and(|(standing, best)| standing.strain <= best.strain && standing.saving > best.saving - least);
        better && self.samples(choice, &numbers) != self.samples(best, &numbers)
    }

    /// Whether the change that leads from `best` to `choice` is clearly worse than today by itself, or has no effect at all.
    fn is_hopeless(&self, choice: &Choice, best: &Choice) -> bool {
        let changed = choice.iter().zip(best).position(|(choice, best)| choice != best);
        let Some(lever) = changed.filter(|lever| choice[*lever] != 0) else { return false };
        let (today, alone) = (self.today(), with(&self.today(), lever, choice[lever]));
        let seeds = [KNOWN_WITH, 2, 1].into_iter().find(|seeds| self.standing(&alone, *seeds).is_some());
        seeds.is_some_and(|seeds| self.is_clearly_worse(&alone, &today, seeds) || !self.differs(&alone, seeds))
    }

    /// Whether `choice` costs clearly more than `other` over the first `seeds` runs.
    fn is_clearly_worse(&self, choice: &Choice, other: &Choice, seeds: usize) -> bool {
        let both = self.standing(choice, seeds).zip(self.standing(other, seeds));
        let least = CLEARLY * self.mean_today(seeds) / libm::sqrt(seeds as f64);
        both.is_some_and(|(standing, other)| standing.saving < other.saving - least)
    }

    /// Whether `choice` differs from today over the first `seeds` runs.
    fn differs(&self, choice: &Choice, seeds: usize) -> bool {
        let seeds: Vec<u64> = self.seeds(seeds).collect();
        self.samples(choice, &seeds) != self.samples(&self.today(), &seeds)
    }

    /// Holds settings against the best: all with one seed, those that lead with more.
    fn race(&mut self, choices: &[Choice], best: &mut Choice) -> Looked<(), P::Error> {
        if choices.is_empty() {
            return Ok(());
        }
        let mut open = self.narrow(choices.to_vec(), best)?;
        for (seeds, count) in [(KNOWN_WITH, LAST_LOOK), (SEEDS_MAX, 1)] {
            self.look(&open, seeds)?;
            self.look(std::slice::from_ref(best), seeds)?;
            let of_best = self.standing(best, seeds);
            let step = STEP * self.mean_today(seeds);
            open.retain(|choice| {
                self.standing(choice, seeds)
                    .zip(of_best)
                    .is_some_and(|(standing, best)| standing.is_better_than(&best, step))
            });
            open = self.leading(&open, seeds, count);
        }
        if let Some(first) = open.into_iter().next() {
            self.take_if_better(best, first, SEEDS_MAX);
        }
        Ok(())
    }

    /// Every setting that differs in one lever.
    fn neighbours(&self, of: &Choice) -> Vec<Choice> {
        let levers = self.levels.iter().enumerate();
        levers
            .flat_map(|(lever, levels)| (0..*levels).map(move |level| (lever, level)))
            .filter(|(lever, level)| of[*lever] != *level)
            .map(|(lever, level)| with(of, lever, level))
            .filter(|choice| !self.left.contains(choice))
            .collect()
    }

    fn take_if_better(&self, best: &mut Choice, candidate: Choice, seeds: usize) {
        let step = STEP * self.mean_today(seeds);
        let better = self
            .standing(&candidate, seeds)
            .zip(self.standing(best, seeds))
            .is_some_and(|(standing, best)| standing.is_better_than(&best, step));
        if better {
            *best = candidate;
        }
    }

    /// The best of `choices` over the first seeds, at most `count` of them.
    fn leading(&self, choices: &[Choice], seeds: usize, count: usize) -> Vec<Choice> {
        let mut standings: Vec<(Standing, &Choice)> =
            choices.iter().filter_map(|choice| Some((self.standing(choice, seeds)?, choice))).collect();
        standings.sort_by(|(one, a), (other, b)| {
            one.strain.total_cmp(&other.strain).then(other.saving.total_cmp(&one.saving)).then(a.cmp(b))
        });
        standings.into_iter().take(count).map(|(_, choice)| choice.clone()).collect()
    }

    /// The seeds with which settings are chosen.
    fn seeds(&self, count: usize) -> impl Iterator<Item = u64> + use<P> {
        let first = self.effort.first_seed;
        (0..count as u64).map(move |ordinal| first.wrapping_add(ordinal))
    }

    /// Simulates what is not known of `choices` and today with the first so many seeds.
    fn look(&mut self, choices: &[Choice], seeds: usize) -> Looked<(), P::Error> {
        let seeds: Vec<u64> = self.seeds(seeds).collect();
        let missing = self.missing(choices, &seeds);
        let after = self.used() + self.cost(&missing);
        if after > self.limit {
            return Err(End::Spent);
        }
        if !missing.is_empty() && (self.effort.is_late)(after) {
            self.late = true;
            return Err(End::Spent);
        }
        self.ask(missing).map_err(End::Failed)
    }

    /// What is not known of `choices` and of today with these seeds.
    pub(super) fn missing(&self, choices: &[Choice], seeds: &[u64]) -> Vec<(Choice, u64)> {
        let today = self.today();
        let bases: Vec<Choice> = choices.iter().map(|choice| self.base(choice)).collect();
        let all = std::iter::once(&today).chain(choices).chain(&bases);
        let wanted: BTreeSet<(Choice, u64)> =
            all.flat_map(|choice| seeds.iter().map(|seed| (choice.clone(), *seed))).collect();
        wanted.into_iter().filter(|item| !self.known.contains_key(item)).collect()
    }

    /// Simulates and remembers.
    pub(super) fn ask(&mut self, asked: Vec<(Choice, u64)>) -> Result<(), P::Error> {
        let samples = self.problem.simulate(&asked)?;
        self.free += asked.len() - self.cost(&asked);
        self.known.extend(asked.into_iter().zip(samples));
        Ok(())
    }

    /// How a setting stands over the first so many seeds; `None` if it was not tried with all of them.
    fn standing(&self, choice: &Choice, seeds: usize) -> Option<Standing> {
        let seeds: Vec<u64> = self.seeds(seeds).collect();
        // Half of what is allowed: what only just holds with few seeds does not hold with others.
        self.standing_over(choice, &seeds, 0.5)
    }

    /// How much one setting saves more than another over the most of the first seeds with which both were tried.
    pub(super) fn saves_more(&self, choice: &Choice, other: &Choice) -> Option<f64> {
        let mut seeds = SEEDS_MAX;
        while seeds > 0 {
            if let Some((standing, other)) = self.standing(choice, seeds).zip(self.standing(other, seeds)) {
                return Some(standing.saving - other.saving);
            }
            seeds /= 2;
        }
        None
    }

    /// How a setting stands over these seeds, with so much of the limits' slack.
    pub(super) fn standing_over(&self, choice: &Choice, seeds: &[u64], slack: f64) -> Option<Standing> {
        let (today, samples) = (self.samples(&self.today(), seeds)?, self.samples(choice, seeds)?);
        let saved = today.iter().zip(&samples).map(|(today, sample)| today.cost - sample.cost).sum::<f64>();
        let limits = self.problem.limits().iter().enumerate();
        let strain = limits.map(|(place, limit)| strain(limit, place, (&today, &samples), slack)).sum();
        Some(Standing { saving: saved / seeds.len().max(1) as f64, strain })
    }

    /// The results of a setting with these seeds; `None` if one is missing.
    pub(super) fn samples(&self, choice: &Choice, seeds: &[u64]) -> Option<Vec<&Sample>> {
        seeds.iter().map(|seed| self.known.get(&(choice.clone(), *seed))).collect()
    }

    fn mean_today(&self, seeds: usize) -> f64 {
        let seeds: Vec<u64> = self.seeds(seeds).collect();
        let samples = self.samples(&self.today(), &seeds).unwrap_or_default();
        samples.iter().map(|sample| sample.cost).sum::<f64>() / samples.len().max(1) as f64
    }

    /// Every setting that was tried, with its results in order of seeds.
    pub fn tried(&self) -> BTreeMap<&Choice, Vec<(u64, &Sample)>> {
        let mut all: BTreeMap<&Choice, Vec<(u64, &Sample)>> = BTreeMap::new();
        for ((choice, seed), sample) in &self.known {
            all.entry(choice).or_default().push((*seed, sample));
        }
        all
    }
}

/// `choice` with another level of one lever.
pub(super) fn with(choice: &Choice, lever: usize, level: usize) -> Choice {
    let mut other = choice.clone();
    other[lever] = level;
    other
}
