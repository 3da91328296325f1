//! What a comparison says, in sentences: what cannot be compared first, then cost, objectives and how well they are known.

use super::table::limit;
use super::{causes, counted, known, known_difference};
use crate::comparison::{Comparison, FigureResult, ObjectiveRow, PolicyResult, Wording};
use crate::deciding::{ENOUGH, Matter};
use crate::figures::find;
use crate::points::MET_IN;
use crate::report::format::{self, percent, span};
use crate::report::page::sentence;
use crate::statistics::Paired;
use crate::unfinished_work::{MEASURES, Measure};

/// From this share of a bill at estimated prices on, a difference of a few percent says nothing.
const ESTIMATED_MUCH: f64 = 0.1;
/// What is said of differences that one replication shows.
pub(super) const NO_INTERVAL: &str = "One replication gives no confidence interval; use --replications to run more.";

/// What the comparison says, in sentences.
pub fn verdict(comparison: &Comparison) -> Vec<String> {
    let Some((first, others)) = comparison.policies.split_first() else { return Vec::new() };
    let mut sentences: Vec<String> =
        (1..comparison.policies.len()).filter_map(|position| incomparable(comparison, position)).collect();
    for (position, policy) in others.iter().enumerate() {
        let paired = against_first(comparison, position + 1, comparison.cost_figure());
        let Some(paired) = paired.filter(|_| incomparable(comparison, position + 1).is_none()) else { continue };
        let waits = against_first(comparison, position + 1, "pending_p99").map_or_else(String::new, waiting);
        let by = if comparison.about.other_duration_seconds.is_some() { " per month" } else { "" };
        let subject = comparison.wording.subject(&policy.name);
        sentences.push(format!("{subject} {} than {}{by}{waits}.", cost_words(paired), first.name));
    }
    sentences.extend(cost_aware(comparison));
    sentences.extend((1..comparison.policies.len()).filter_map(|position| causes::unchanged(comparison, position)));
    sentences.extend((1..comparison.policies.len()).filter_map(|position| availability(comparison, position)));
    sentences.extend(causes::workloads_at_zero(comparison));
    sentences.extend(uneven(comparison));
    sentences.extend(estimated(comparison));
    sentences.extend(comparison.objectives().iter().map(|row| objective_words(comparison, row)));
    sentences.extend(failed_boots(comparison));
    sentences.extend(sequential(comparison));
    sentences.extend(precision(comparison));
    sentences.extend(unseen(comparison));
    match comparison.wording {
        // Names of policies keep their case.
        Wording::Policies => sentences,
        Wording::Phrases => sentences.iter().map(|words| sentence(words)).collect(),
    }
}

/// Why a comparison ended that was to end when differences are sure.
fn sequential(comparison: &Comparison) -> Option<String> {
    let (sequential, first) = (comparison.sequential.as_ref()?, comparison.policies.first()?);
    let (have, share) = (comparison.about.replications, percent(sequential.share));
    let run = format::counted(have, "replication", "replications");
    let known =
        format!("either certain in sign or below {share} of the cost {}", comparison.wording.under(&first.name));
    Some(if sequential.sure {
        format!("After {run} of at most {} each cost difference is {known}.", sequential.replications_max)
    } else {
        format!("After {run} not every cost difference is {known}.")
    })
}

/// That a policy with the cost-aware packer costs clearly more than one without, and which costs that packer leaves out.
fn cost_aware(comparison: &Comparison) -> Vec<String> {
    let Some((first, others)) = comparison.policies.split_first() else { return Vec::new() };
    let is_cost_aware = |name: &String| comparison.about.cost_aware.contains(name);
    let mut sentences = Vec::new();
    for (position, policy) in (1..).zip(others) {
        let paired = against_first(comparison, position, comparison.cost_figure());
        let Some(relative) = paired.and_then(|paired| paired.relative.as_ref()) else { continue };
        let (more, less) = if relative.mean > 0.0 { (policy, first) } else { (first, policy) };
        let is_clear = relative.excludes_zero() && incomparable(comparison, position).is_none();
        if is_clear && is_cost_aware(&more.name) && !is_cost_aware(&less.name) {
            sentences.push(format!(
                "{} uses the cost-aware packer but costs more than {}. The packer minimises the price of the nodes for each batch of \
                 pods. It ignores later pods, consolidation, volumes, and image pulls.",
                more.name, less.name
            ));
        }
    }
    sentences
}

fn against_first<'c>(comparison: &'c Comparison, position: usize, figure: &str) -> Option<&'c Paired> {
    comparison.figure(position, figure)?.against_first.as_ref()
}

/// That the policy at `position` or the first does much less of the work than the other, so that their costs say nothing.
fn incomparable(comparison: &Comparison, position: usize) -> Option<String> {
    let more = |measure: &Measure| comparison.leaves_more(position, measure);
    let other_is_worse = MEASURES.iter().find_map(more)?;
    let (worse, better) = if other_is_worse { (position, 0) } else { (0, position) };
    let name = |position: usize| comparison.policies.get(position).map_or("", |policy| policy.name.as_str());
    let mean = |position, figure| {
        let figure: Option<&FigureResult> = comparison.figure(position, figure);
        figure.and_then(|figure| figure.mean).map_or(0.0, |mean| mean.mean)
    };
    let clear = MEASURES.iter().filter(|measure| more(measure) == Some(other_is_worse)).map(|measure| measure.figure);
    let parts: Vec<String> =
        clear.map(|figure| left_undone(figure, mean(worse, figure), name(better), mean(better, figure))).collect();
    let subject = comparison.wording.subject(name(worse));
    Some(format!("{subject} leaves {}, so its cost is not comparable.", parts.join(" and ")))
}

/// Unfinished work, by the figure that measures it, next to that of `other`:
/// `2 pods unscheduled (small: 0)`.
pub(super) fn left_undone(figure: &str, amount: f64, other: &str, others: f64) -> String {
    let share = |what: &str| format!("{} of its {what} ({other}: {})", percent(amount), percent(others));
    match figure {
        "requests_lost" => return share("requests unanswered"),
        "messages_undone" => return share("messages unprocessed"),
        "jobs_undone" => return share("Jobs not completed"),
        _ => {}
    }
    let pods = if (amount - 1.0).abs() > 0.0 { "pods" } else { "pod" };
    format!("{} {pods} unscheduled ({other}: {})", counted(amount), counted(others))
}

/// Pod-minutes from which on a difference between two policies is worth a sentence: one replica for a minute.
const MISSING_MUCH: f64 = 1.0;

/// That clearly more replicas are missing under the policy at `position` than under the first, or fewer.
fn availability(comparison: &Comparison, position: usize) -> Option<String> {
    let (name, first) = (&comparison.policies.get(position)?.name, &comparison.policies.first()?.name);
    let difference = &against_first(comparison, position, "unavailable_pod_minutes")?.difference;
    if !difference.is_off_zero() || difference.mean.abs() < MISSING_MUCH {
        return None;
    }
    let word = if difference.mean > 0.0 { "more" } else { "fewer" };
    let amount = format::minutes(difference.mean.abs());
    let longest = |position| comparison.figure(position, "at_zero")?.mean.map(|mean| mean.mean);
    let (longest, other) = (longest(position)?, longest(0)?);
    let none = if (longest - other).abs() >= 60.0 {
        format!("; one workload had zero Ready replicas for {} ({first}: {})", span(longest), span(other))
    } else {
        String::new()
    };
    let subject = comparison.wording.subject(name);
    Some(format!("{subject} has {amount} {word} pod-minutes of missing replicas than {first}{none}."))
}

/// What decides the answer without being what was asked.
fn uneven(comparison: &Comparison) -> impl Iterator<Item = String> {
    let deciding = comparison.uneven.iter().filter(|uneven| uneven.decides);
    deciding.map(|deciding| format!("This determines the result: {}.", deciding.message))
}

/// That a large share of some bill rests on prices that nobody published.
fn estimated(comparison: &Comparison) -> Option<String> {
    let share = |position| comparison.figure(position, "cost_estimated")?.mean.map(|mean| mean.mean);
    let shares: Vec<(&str, f64)> = comparison
        .policies
        .iter()
        .enumerate()
        .filter_map(|(position, policy)| Some((policy.name.as_str(), share(position)?)))
        .filter(|(_, share)| *share > 0.0)
        .collect();
    let much = shares.iter().any(|(_, share)| *share >= ESTIMATED_MUCH);
    let each: Vec<String> = shares.iter().map(|(name, share)| format!("{name}: {}", percent(*share))).collect();
    (much && comparison.policies.len() > 1).then(|| {
        let each = each.join("; ");
        format!("Much of the cost uses estimated prices ({each}); ignore differences of a few percent.")
    })
}

fn cost_words(paired: &Paired) -> String {
    let Some(relative) = &paired.relative else {
        return "is more expensive (no percentage: the other cost is zero)".to_owned();
    };
    let word = if relative.mean > 0.0 { "more expensive" } else { "cheaper" };
    if relative.low.is_none() {
        return format!("is {} {word} in the only replication", percent(relative.mean.abs()));
    }
    // What is printed decides: the interval of the difference in money is another, and may hold zero where this one does not.
    if !relative.excludes_zero() {
        let by = known_difference(relative).range(format::Measure::Share);
        return format!("is not clearly cheaper or more expensive ({by})");
    }
    // The size of what is saved, or of what is paid more.
    let size = if relative.mean < 0.0 { relative.negated() } else { *relative };
    format!("is {} {word}", known(&size).text(format::Measure::Share))
}

/// What happens to waiting, if that is clear.
fn waiting(paired: &Paired) -> String {
    let difference = &paired.difference;
    if !difference.excludes_zero() {
        return String::new();
    }
    let word = if difference.centre() > 0.0 { "longer" } else { "shorter" };
    format!(", and its p99 pod wait is {} {word}", span(difference.centre().abs()))
}

fn objective_words(comparison: &Comparison, (objective, cells): &ObjectiveRow<'_>) -> String {
    let each: Vec<String> = comparison
        .policies
        .iter()
        .zip(cells)
        .filter_map(|(policy, cell)| Some((policy, (*cell)?)))
        .map(|(policy, cell)| match cell.judged {
            0 => format!("{} (no data)", policy.name),
            judged => format!("{} in {} of {} runs", policy.name, cell.met, judged),
        })
        .collect();
    let by = match comparison.wording {
        Wording::Policies => "by ",
        Wording::Phrases => "",
    };
    format!("Objective {} \u{2264} {}: met {by}{}.", objective.name, limit(objective), each.join(", "))
}

/// How well the cost differences are known, and the replications that would settle the figure that decides.
fn precision(comparison: &Comparison) -> Option<String> {
    let known = cost_precision(comparison);
    let Some(deciding) = &comparison.deciding else { return known.map(|known| format!("{known}.")) };
    let more = format!("about {}", format::counted(deciding.replications, "replication", "replications"));
    let figure = &deciding.figure;
    let (subject, under) = (comparison.wording.subject(&deciding.policy), comparison.wording.under(&deciding.policy));
    if deciding.matter == Matter::CostSize {
        let target = comparison.precision.map_or_else(|| percent(ENOUGH), as_asked);
        return known.map(|known| format!("{known}; {more} would narrow this to \u{b1}{target}."));
    }
    let known = known.map_or_else(String::new, |known| format!("{known}. "));
    let enough = |share: f64| format!("{:.0}%", share * 100.0);
    Some(match deciding.matter {
        Matter::CostSize | Matter::CostSign => format!(
            "{known}The sign of the cost difference {under} decides: {more} would show it, or a difference below {}.",
            percent(ENOUGH)
        ),
        Matter::Objective => format!(
            "{known}The objective {figure} decides: {more} would show whether {subject} meets it in {} of runs.",
            enough(MET_IN)
        ),
        Matter::WaitSign => format!(
            "{known}Costs are alike, so waits decide: {more} would show whether p99 waits {under} are longer or shorter."
        ),
    })
}

/// How well the cost differences are known, without a full stop.
fn cost_precision(comparison: &Comparison) -> Option<String> {
    let comparable = comparison.comparable().count();
    if comparable == 0 {
        return None;
    }
    let Some(known) = comparison.cost_precision() else {
        // Without an interval after several replications the first bill is nothing, and the sentence above says so.
        return (comparison.about.replications < 2).then(|| NO_INTERVAL.trim_end_matches('.').to_owned());
    };
    let of_what = format!("of the cost {}", comparison.wording.under(&comparison.policies.first()?.name));
    let differences = if comparable == 1 { "The cost difference is" } else { "Cost differences are" };
    Some(format!("{differences} known to within \u{b1}{} {of_what}, with 95% confidence", percent(known)))
}

/// Seeds in which a node never registered, apart from typical waits: one such boot makes a p99 of many minutes.
fn failed_boots(comparison: &Comparison) -> Option<String> {
    let (wait, _) = find("pending_p99")?;
    let of_policy = |policy: &PolicyResult| {
        let points = || comparison.points.iter().filter(|point| point.policy == policy.name);
        let failed = points().filter(|point| point.never_registered > 0);
        let longest = failed.clone().filter_map(|point| *point.figures.get(wait)?).max_by(f64::total_cmp);
        let (failed, all) = (failed.count(), points().count());
        let waits = longest.map_or_else(String::new, |longest| {
            let level = policy.figures.get(wait).and_then(|figure| figure.mean);
            let typical = level.map_or_else(String::new, |level| format!(", typically {}", span(level.centre())));
            format!(", p99 pod wait up to {}{typical}", span(longest))
        });
        (failed > 0).then(|| format!("{} in {failed} of {all} seeds{waits}", policy.name))
    };
    let each: Vec<String> = comparison.policies.iter().filter_map(of_policy).collect();
    (!each.is_empty()).then(|| format!("Rare: a node never registers ({}).", each.join("; ")))
}

/// What no seed showed may still happen.
fn unseen(comparison: &Comparison) -> Option<String> {
    let have = comparison.about.replications;
    let share = comparison.unseen_share.filter(|_| have > 1)?;
    Some(format!(
        "In up to {:.0}% of runs something may happen that none of these {have} seeds showed (rule of three).",
        share * 100.0
    ))
}

/// A share as somebody has asked for it, which may be finer than figures are printed: `2%`, `0.001%`.
fn as_asked(share: f64) -> String {
    let digits = format!("{:.6}", share * 100.0);
    format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::{as_asked, cost_words, failed_boots, unseen};
    use crate::comparison::{About, compare};
    use crate::figures::{FIGURES, find};
    use crate::points::Point;
    use crate::scenario::Caveats;
    use crate::statistics::Paired;

    /// A run with a p99 wait, in which this many nodes never registered.
    fn run(seed: u64, wait: f64, never_registered: u64) -> Point {
        let mut figures = vec![None; FIGURES.len()];
        figures[find("pending_p99").unwrap().0] = Some(wait);
        Point {
            setting: 0,
            policy: "p".into(),
            seed,
            figures,
            objectives: Vec::new(),
            event_hash: seed.to_string(),
            unconfirmed: 0.0,
            cost_by_origin: Default::default(),
            spot: false,
            never_registered,
            silent: Vec::new(),
            at_zero_seconds: Default::default(),
            price_date: String::new(),
            warnings: Caveats::new(),
        }
    }

    #[test]
    fn failed_boots_are_apart_from_typical_waits() {
        let points = (0..12).map(|seed| if seed == 4 { run(seed, 942.0, 1) } else { run(seed, 48.0, 0) });
        let comparison = compare(About::of_test(0, 12), &["p".to_owned()], points.collect(), Caveats::new());
        let words = failed_boots(&comparison).unwrap();
        assert!(words.contains("p in 1 of 12 seeds") && words.contains("15m42s, typically 48 s"), "{words}");
        assert!(unseen(&comparison).unwrap().starts_with("In up to 22% of runs"));
        let none = compare(About::of_test(0, 1), &["p".to_owned()], vec![run(0, 48.0, 0)], Caveats::new());
        assert_eq!((failed_boots(&none), unseen(&none)), (None, None));
    }

    #[test]
    fn precision_is_shown_as_requested() {
        assert_eq!([0.02, 0.00001, 0.125, 1.0].map(as_asked), ["2%", "0.001%", "12.5%", "100%"]);
    }

    #[test]
    fn cost_verdict_uses_printed_interval() {
        // +0.50 and +1.30, which says nothing of the mean in money, but 0.45 ± 0.32 of what the first costs.
        let paired = Paired::new(&[1.0, 3.0], &[1.5, 4.3]).unwrap();
        assert!(!paired.difference.excludes_zero());
        let words = cost_words(&paired);
        assert!(
            words.starts_with("is ") && words.ends_with(" more expensive") && !words.contains("clearly"),
            "{words}"
        );
        // +1.00 and +1.05: surely more, though by what share of the first nobody can say.
        let paired = Paired::new(&[1.0, 10.0], &[2.0, 11.05]).unwrap();
        assert!(paired.difference.excludes_zero());
        let words = cost_words(&paired);
        assert!(words.starts_with("is not clearly cheaper or more expensive (\u{2212}"), "{words}");
    }
}
