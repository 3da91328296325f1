//! How many simulations a search may take, and how many of them it keeps for later steps.

use super::search::KNOWN_WITH;

/// Fewer simulations than these leave nothing for a second choice.
const SECOND_CHOICE_FROM: usize = 400;

/// How much a search may do, and what it is after.
#[derive(Clone, Copy)]
pub struct Effort<'e> {
    /// Simulations, those that look again at what was chosen among them.
    pub simulations: usize,
    /// The first of the seeds with which settings are chosen.
    pub first_seed: u64,
    /// A change has to save this share of what is left to pay to be worth anybody's while.
    pub least_saving: f64,
    /// All changes together have surely to save this share of today's cost.
    pub worth: f64,
    /// Most changes in what is recommended.
    pub changes_max: usize,
    /// Whether time is too short for a round of the search. The argument is the number of simulations after that round.
    pub is_late: &'e dyn Fn(usize) -> bool,
}

impl Effort<'_> {
    /// Seeds with which each change is taken out of what was chosen.
    pub fn support_seeds(&self) -> usize {
        (self.simulations / 60).clamp(4, 12)
    }

    /// Seeds that compare the recommendation with today.
    pub fn confirmation_seeds(&self) -> usize {
        (self.simulations / 15).clamp(10, 40)
    }

    /// The effort whose answer is that of a search which had to end after choosing with `used` simulations: the largest whose search takes
    /// no more of them, between `least` and its own. Time says nothing in it, so that its answer can be had again.
    #[must_use]
    pub fn ended_after(self, used: usize, least: usize) -> Self {
        let of = |simulations| Self { simulations, is_late: &|_| false, ..self };
        let fits = |effort: &Self| effort.simulations.saturating_sub(effort.reserve()) <= used;
        // No effort keeps more for later than this.
        let largest = of(usize::MAX / 2).reserve();
        let most = self.simulations.min(used.saturating_add(largest)).max(least);
        (least..=most).rev().map(of).find(fits).unwrap_or_else(|| of(least))
    }

    /// The fewest simulations with which something can be confirmed.
    pub fn least(&self) -> usize {
        Self { simulations: 0, ..*self }.reserve()
    }

    /// Simulations that are kept for looking again.
    pub fn reserve(&self) -> usize {
        let first = self.support_seeds() * (self.changes_max + 2) * 2 + self.confirmation_seeds() * 2;
        first + 3 * KNOWN_WITH + self.second_choice()
    }

    /// Simulations that a larger search keeps for a second choice, where the first does not keep the limits.
    pub fn second_choice(&self) -> usize {
        (self.simulations.saturating_sub(SECOND_CHOICE_FROM) / 3).min(8 * self.confirmation_seeds())
    }
}
