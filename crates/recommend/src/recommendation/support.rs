//! A second look at what the search chose, with seeds that the choice never saw: what each change is for, and what all of them
//! save.

use super::search::{Choice, KNOWN_WITH, Problem, Search, with};
use crate::statistics::{Estimate, Paired, confidence_per_look, mean};

/// How far the seeds of the second look are from those of the search, and those of the confirmation from them: no scenario has
/// as many replications.
const APART: u64 = 1_000_000;
/// Seeds with which each change is taken out at most.
const SUPPORT_SEEDS_MAX: usize = 16;
/// The look that confirms, after those that choose and support.
const CONFIRMED: u64 = 2;
/// How often a choice that does not keep the limits is tried again with a change less. Each time with seeds of its own, so that each claim is as
/// sure as the first; of all there are at most so many more.
const RETRIES: u64 = 4;

/// What each change adds to the saving: the lever, and the cost without the change less the cost with it.
pub type Shares = Vec<(usize, Estimate)>;

/// What was chosen, after the second look.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// The setting; that of today if nothing is recommended.
    pub choice: Choice,
    /// What comes of it.
    pub advice: Advice,
    /// What each change adds to the saving: the lever, and the cost without the change less the cost with it.
    pub shares: Shares,
    /// What all of them save, as a cost against today's: negative where it is less. `None` if nothing was left to confirm.
    pub cost: Option<Paired>,
    /// The seeds that it was confirmed with.
    pub seeds: Vec<u64>,
}

/// Whether a choice that does not keep the limits with the seeds of the second look loses a change for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strain {
    Counts,
    Passed,
}

/// Whether to change anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Change it.
    Change,
    /// Nothing that was tried saves anything worth a change.
    NothingSaves,
    /// Something seemed to save, but with fresh seeds it is not sure.
    NotSure,
    /// It saves, but not surely so much that it is worth changing anything.
    TooLittle,
    /// It saves, but with fresh seeds it does not keep the limits.
    BeyondLimits,
}

/// The levers that a choice changes.
fn changed(choice: &Choice) -> Vec<usize> {
    (0..choice.len()).filter(|lever| choice[*lever] != 0).collect()
}

impl<P: Problem> Search<'_, P> {
    /// Takes out of `choice` what does not save enough, and confirms the rest; what then breaks a limit goes, too, if the rest keeps them.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn verdict(&mut self, choice: Choice) -> Result<Verdict, P::Error> {
        let (mut choice, mut shares) = self.supported(choice, self.effort.second_choice(), Strain::Counts)?;
        let mut look = CONFIRMED;
        loop {
            let verdict = self.confirmed(choice, shares, look)?;
            look += 1;
            if verdict.advice != Advice::BeyondLimits || look > CONFIRMED + RETRIES {
                return self.or_given_up(verdict, look);
            }
            // One change less, and seeds that this choice has not seen either.
            let Some(lever) = self.most_straining(&verdict)? else { return Ok(verdict) };
            (choice, shares) = self.supported(with(&verdict.choice, lever, 0), 0, Strain::Counts)?;
        }
    }

    /// `choice` without the changes that would not stay, before a lever is [opened](Self::open_lever) whose levels are worked out for it: what is
    /// worked out for a change that goes means little.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn thinned_out(&mut self, choice: Choice) -> Result<Choice, P::Error> {
        let for_lever = 3 * KNOWN_WITH + 2 * self.effort.support_seeds();
        Ok(self.supported(choice, self.effort.second_choice() + for_lever, Strain::Counts)?.0)
    }

    /// `verdict`, or, where nothing is to be changed by it, that of what saved more and was given up because it did not keep the limits in the few
    /// runs of the second look: with more of them it may, and if not, whoever states limits may want to know what they cost.
    fn or_given_up(&mut self, verdict: Verdict, look: u64) -> Result<Verdict, P::Error> {
        let given_up = self.given_up.take().filter(|_| verdict.advice != Advice::Change);
        let is_enough = self.used() + 2 * self.effort.confirmation_seeds() <= self.effort.simulations;
        let Some(choice) = given_up.filter(|_| is_enough) else { return Ok(verdict) };
        let (choice, shares) = self.supported(choice, 0, Strain::Passed)?;
        let other = self.confirmed(choice, shares, look)?;
        Ok(if matches!(other.advice, Advice::Change | Advice::BeyondLimits) { other } else { verdict })
    }

    /// Holds a choice against today with the seeds of a look of its own.
    fn confirmed(&mut self, choice: Choice, shares: Shares, look: u64) -> Result<Verdict, P::Error> {
        if choice == self.today() {
            let (advice, seeds) = (Advice::NothingSaves, Vec::new());
            return Ok(Verdict { choice, advice, shares: Vec::new(), cost: None, seeds });
        }
        let most = self.effort.confirmation_seeds();
        let mut seeds = self.fresh(look, most / 2);
        self.know(std::slice::from_ref(&choice), &seeds)?;
        if !self.is_clear(&choice, &seeds) {
            seeds = self.fresh(look, most);
            self.know(std::slice::from_ref(&choice), &seeds)?;
        }
        let costs = |choice: &Choice| -> Vec<f64> {
            self.samples(choice, &seeds).unwrap_or_default().iter().map(|sample| sample.cost).collect()
        };
        let cost = Paired::new(&costs(&self.today()), &costs(&choice));
        let strain = self.standing_over(&choice, &seeds, 1.0).map_or(1.0, |standing| standing.strain);
        let sure = cost.as_ref().is_some_and(|cost| cost.difference.high.is_some_and(|high| high < 0.0));
        let least = self.effort.worth * mean(&costs(&self.today())).unwrap_or(0.0);
        let worth = cost.as_ref().is_some_and(|cost| cost.difference.high.is_some_and(|high| -high >= least));
        let advice = match (sure, worth, strain > 0.0) {
            (false, ..) => Advice::NotSure,
            (true, false, _) => Advice::TooLittle,
            (true, true, true) => Advice::BeyondLimits,
            (true, true, false) => Advice::Change,
        };
        // A change without others saves what all of them save.
        let shares = match (changed(&choice).as_slice(), &cost) {
            ([lever], Some(cost)) => vec![(*lever, cost.difference.negated())],
            _ => shares,
        };
        Ok(Verdict { choice, advice, shares, cost, seeds })
    }

    /// Whether half of the runs of a choice leave no doubt: it surely saves enough, or surely does not, and misses no limit more often than today.
    /// Two looks may each be wrong half as often as one.
    fn is_clear(&self, choice: &Choice, seeds: &[u64]) -> bool {
        let costs = |choice: &Choice| -> Option<Vec<f64>> {
            Some(self.samples(choice, seeds)?.iter().map(|sample| sample.cost).collect())
        };
        let Some((today, with)) = costs(&self.today()).zip(costs(choice)) else { return true };
        let saved: Vec<f64> = today.iter().zip(with).map(|(today, with)| today - with).collect();
        let least = self.effort.worth * mean(&today).unwrap_or(0.0);
        let strain = self.standing_over(choice, seeds, 0.0).map_or(1.0, |standing| standing.strain);
        let saving = Estimate::with_confidence(&saved, confidence_per_look(2));
        let is_sure = |saving: Estimate| {
            saving.low.is_some_and(|low| low >= least && strain <= 0.0) || saving.high.is_some_and(|high| high < 0.0)
        };
        saving.is_some_and(is_sure)
    }

    /// The change without which the limits are kept best; `None` if there is no other change, or too few simulations are left to look.
    fn most_straining(&mut self, verdict: &Verdict) -> Result<Option<usize>, P::Error> {
        let changed = self.moving(&verdict.choice);
        let seeds = &verdict.seeds[..verdict.seeds.len() / 2];
        let again = changed.len() * self.effort.support_seeds();
        let needed = changed.len() * seeds.len() + again + 2 * self.effort.confirmation_seeds();
        let is_alone = verdict.choice.iter().filter(|level| **level != 0).count() < 2;
        if is_alone || changed.is_empty() || self.used() + needed > self.effort.simulations {
            return Ok(None);
        }
        let without: Vec<Choice> = changed.iter().map(|lever| with(&verdict.choice, *lever, 0)).collect();
        self.know(&without, seeds)?;
        let altering = changed.iter().zip(&without).filter(|(_, item)| self.alters(&verdict.choice, item, seeds));
        let standings = altering.filter_map(|(lever, without)| {
            let standing = self.standing_over(without, seeds, 1.0)?;
            Some((standing.strain, -standing.saving, *lever))
        });
        let best = standings.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        Ok(best.map(|best| best.2))
    }

    /// `choice` without the changes that do not save enough, and what each of the rest saves; `kept` simulations are for what follows.
    fn supported(&mut self, choice: Choice, kept: usize, strain: Strain) -> Result<(Choice, Shares), P::Error> {
        let mut choice = self.thinned(choice);
        let kept = kept + 2 * self.effort.confirmation_seeds();
        let seeds = self.fresh(1, self.support_seeds(&choice, kept));
        let mut last = Shares::new();
        loop {
            let changed = changed(&choice);
            // One change is confirmed with fresh seeds as it is.
            if changed.len() < 2 {
                return Ok((choice, Vec::new()));
            }
            // What was worked out for the other changes goes first: beside any of them alone it would be paid for nothing, and the loss would
            // seem to be what that one saves.
            let bound = self.problem.bound().filter(|lever| choice[*lever] != 0);
            let base = bound.map_or_else(|| choice.clone(), |lever| with(&choice, lever, 0));
            let without: Vec<Choice> = changed.iter().map(|lever| with(&base, *lever, 0)).collect();
            let all: Vec<Choice> = without.iter().chain([&choice]).cloned().collect();
            let needed = self.cost(&self.missing(&all, &seeds)) + kept;
            if self.used() + needed > self.effort.simulations {
                // What is left goes as it was seen last, or, never looked at, not at all.
                last.retain(|(lever, _)| choice[*lever] != 0);
                let choice = if last.is_empty() { self.today() } else { choice };
                return Ok((choice, last));
            }
            self.know(&all, &seeds)?;
            let shares: Shares = changed
                .iter()
                .zip(&without)
                .filter_map(|(lever, without)| {
                    let with = if bound == Some(*lever) { &choice } else { &base };
                    Some((*lever, self.share(with, without, &seeds)?))
                })
                .collect();
            let strained = strain == Strain::Counts && self.strain(&choice, &seeds) > 0.0;
            let weak = if strained {
                self.given_up.get_or_insert_with(|| choice.clone());
                self.straining(&choice, &without, &shares, &seeds)
            } else {
                self.idle(&choice, &shares, &seeds)
            };
            if weak.is_empty() {
                return Ok((choice, shares));
            }
            choice = self.without_weak(choice, &weak, &seeds, kept)?;
            last = shares;
        }
    }

    /// With how many seeds each change is taken out: with more where the search has left simulations over, twice for each change.
    fn support_seeds(&self, choice: &Choice, kept: usize) -> usize {
        let changed = choice.iter().filter(|level| **level != 0).count();
        let left = self.effort.simulations.saturating_sub(self.used() + kept);
        (left / (2 * (changed + 2))).clamp(self.effort.support_seeds(), SUPPORT_SEEDS_MAX)
    }

    /// `choice` without half of the `weak` changes, the weakest first. Where two do each other's work, each is weak while the other is there:
    /// if more is lost than they seemed to save, the weakest alone goes.
    fn without_weak(&mut self, choice: Choice, weak: &[usize], seeds: &[u64], kept: usize) -> Result<Choice, P::Error> {
        let mut alone = choice.clone();
        alone[weak[0]] = 0;
        // Every round that is left costs simulations of all changes that are left.
        let left = self.effort.simulations.saturating_sub(self.used() + kept);
        let rounds = left / (seeds.len() * (self.effort.changes_max + 2)).max(1);
        let count = if rounds == 0 { weak.len() } else { weak.len().div_ceil(2) };
        if count == 1 {
            return Ok(alone);
        }
        let mut several = choice.clone();
        weak[..count].iter().for_each(|lever| several[*lever] = 0);
        if rounds == 0 {
            return Ok(several);
        }
        self.know(std::slice::from_ref(&several), seeds)?;
        let saving = |choice: &Choice| self.standing_over(choice, seeds, 1.0).map_or(0.0, |standing| standing.saving);
        let lost = saving(&choice) - saving(&several);
        Ok(if lost > self.least(&choice, seeds) * count as f64 { alone } else { several })
    }

    /// `choice` without changes that the search itself saw to save next to nothing, and with no more than can be looked at.
    fn thinned(&self, choice: Choice) -> Choice {
        let mut shares: Vec<(f64, usize)> = (0..choice.len())
            .filter(|lever| choice[*lever] != 0)
            .map(|lever| (self.saves_more(&choice, &with(&choice, lever, 0)).unwrap_or(f64::INFINITY), lever))
            .collect();
        shares.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let surplus = shares.len().saturating_sub(self.effort.changes_max + 2);
        let mut thinned = choice;
        for (place, (share, lever)) in shares.into_iter().enumerate() {
            if place < surplus || share <= 0.0 {
                thinned[lever] = 0;
            }
        }
        thinned
    }

    fn strain(&self, choice: &Choice, seeds: &[u64]) -> f64 {
        self.standing_over(choice, seeds, 1.0).map_or(0.0, |standing| standing.strain)
    }

    /// The levers of `choice` that may strain a limit: all that are changed, but for the one that was worked out for the others and moves
    /// nobody. It would go first, as the limits are kept as well without it.
    fn moving(&self, choice: &Choice) -> Vec<usize> {
        let changed = |lever: &usize| choice[*lever] != 0;
        (0..choice.len()).filter(changed).filter(|lever| self.problem.bound() != Some(*lever)).collect()
    }

    /// Whether a limited measure of `choice` differs from that of `without` in one of these runs. A change that alters no such measure cannot
    /// break a limit, and removing it does not help.
    fn alters(&self, choice: &Choice, without: &Choice, seeds: &[u64]) -> bool {
        let runs = self.samples(choice, seeds).zip(self.samples(without, seeds));
        runs.is_some_and(|(with, without)| with.iter().zip(without).any(|(one, other)| one.measures != other.measures))
    }

    /// The change without which the limits are kept best; of those that are alike, the one that saves least.
    fn straining(&self, choice: &Choice, without: &[Choice], shares: &Shares, seeds: &[u64]) -> Vec<usize> {
        let moving = self.moving(choice);
        let strains = |lever: usize, item: &Choice| moving.contains(&lever) && self.alters(choice, item, seeds);
        let of = shares.iter().zip(without).filter(|((lever, _), item)| strains(*lever, item));
        let of = of.map(|((lever, share), item)| (self.strain(item, seeds), share.mean, *lever));
        of.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|pair| pair.2).into_iter().collect()
    }

    /// The changes that do not save enough, or are more than may be changed, the weakest first; none if all stay.
    fn idle(&self, choice: &Choice, shares: &[(usize, Estimate)], seeds: &[u64]) -> Vec<usize> {
        let least = self.least(choice, seeds);
        let idle = |share: &Estimate| share.mean < least || share.low.is_none_or(|low| low <= 0.0);
        let mut all: Vec<&(usize, Estimate)> = shares.iter().collect();
        all.sort_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean));
        let surplus = all.len().saturating_sub(self.effort.changes_max);
        let weak = all.iter().enumerate().filter(|(place, (_, share))| *place < surplus || idle(share));
        weak.map(|(_, (lever, _))| *lever).collect()
    }

    /// What a change of `choice` has to save: a share of what is left to pay. As a share of today's cost it would be less for whoever asks again
    /// when all is changed, and what was too little before would be found then.
    fn least(&self, choice: &Choice, seeds: &[u64]) -> f64 {
        let samples = self.samples(choice, seeds).unwrap_or_default();
        self.effort.least_saving * samples.iter().map(|sample| sample.cost).sum::<f64>() / samples.len().max(1) as f64
    }

    /// What a setting costs less than without one of its changes.
    fn share(&self, choice: &Choice, without: &Choice, seeds: &[u64]) -> Option<Estimate> {
        let (with, without) = (self.samples(choice, seeds)?, self.samples(without, seeds)?);
        let saved: Vec<f64> = without.iter().zip(with).map(|(without, with)| without.cost - with.cost).collect();
        Estimate::from_values(&saved)
    }

    /// Seeds of a look of their own.
    fn fresh(&self, look: u64, count: usize) -> Vec<u64> {
        let first = self.effort.first_seed.wrapping_add(look * APART);
        (0..count as u64).map(|ordinal| first.wrapping_add(ordinal)).collect()
    }

    /// Simulates what is not known of `choices` with `seeds`.
    fn know(&mut self, choices: &[Choice], seeds: &[u64]) -> Result<(), P::Error> {
        let missing = self.missing(choices, seeds);
        self.ask(missing)
    }
}
