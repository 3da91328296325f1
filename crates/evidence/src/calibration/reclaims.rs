//! How often EC2 takes Spot instances: events over the hours that they ran, against the Spot Advisor's bands. Hours in which no source would have
//! told of an event are none of these.

use std::collections::BTreeMap;

use nodecast_observed::claims::{End, History, Instant, Life, Milestone, Window};
use nodecast_observed::estimate::{
    Estimate, Exposed, GammaPrior, Groups, Lifetime, Rate, empirical_bayes, groups, rate_in_groups, survival,
};

use super::change::Change;
use super::{Fit, FitOutcome, Parameter, Unit, counted};
use crate::cloud::market::reclaims::hazard;
use crate::domain::{SimDuration, Symbol};

/// The weight of what is assumed, in hours. An assumption.
const PRIOR_HOURS: f64 = 300.0;
/// The width of the 95 % interval of what is assumed, in the logarithm: a factor of two on either side, which about ten events beat.
const ASSUMED_WIDTH: f64 = 2.0 * std::f64::consts::LN_2;
/// Notices to one pool within so many seconds are one event.
const TOGETHER: f64 = 60.0;
/// Counts of reclaims are gone by where the nodes that nothing but samples tells of ran for so many times as long as the others.
const COUNTS_TELL_MORE: f64 = 4.0;
/// Ends are told of less than this share of the hours that were recorded: it is said.
const TOLD_MIN: f64 = 0.5;
/// Seconds for which a node that EC2 takes goes on after its notice: its end may come after the last that its source says.
const NOTICE: f64 = 120.0;
/// What stands for a type or a zone that nothing tells.
const UNKNOWN: &str = "?";
/// The least exposure that a scenario may state, in hours.
const EXPOSURE_MIN: f64 = 1.0;
/// Ages at which survival is shown, in hours.
const AGES: [f64; 4] = [1.0, 6.0, 24.0, 72.0];
/// Pools that are named.
const POOLS_SHOWN: usize = 5;

/// A Spot instance while it ran and was seen.
struct Stay<'h> {
    pool: (&'h str, &'h str),
    /// Hours assumed to pass between reclaims, as a rate.
    assumed: f64,
    lifetime: Lifetime,
    /// When it was taken, in seconds.
    taken: Option<f64>,
}

impl Stay<'_> {
    fn hours(&self) -> f64 {
        self.lifetime.until - self.lifetime.from
    }
}

pub(super) fn fit(fit: &mut Fit<'_>) -> Vec<Parameter> {
    let of = |sampled: bool| -> Vec<Stay<'_>> {
        let lives = fit.history.lives.iter().flatten().filter(|life| life.sampled == sampled);
        lives.flat_map(|life| stays(fit, life)).collect()
    };
    let (sampled, mut told) = (of(true), of(false));
    let recorded = recorded_hours(fit.history);
    told.extend(unknown(fit.history, &told));
    let counted_reclaims = fit.history.reclaims.as_ref();
    // Who counts does not say which nodes they were; of a node that is told of whole it is known.
    let by_count = counted_reclaims.filter(|_| hours(&sampled) > COUNTS_TELL_MORE * hours(&told));
    let (stays, grouped) = match by_count {
        Some(at) => (sampled, groups(&at.iter().map(|at| ((), at.0 as f64 / 1e6)).collect::<Vec<_>>(), TOGETHER)),
        None => {
            let events: Vec<_> = told.iter().filter_map(|stay| Some((stay.pool, stay.taken?))).collect();
            (told, groups(&events, TOGETHER))
        }
    };
    let hours = hours(&stays);
    if by_count.is_none() {
        fit.warnings.extend(untold(fit.history.ends_told, hours, recorded));
    }
    let Some(measured) = rate_in_groups(hours, &grouped) else { return Vec::new() };
    // What is assumed of the very instances that ran.
    let assumed = stays.iter().map(|stay| stay.assumed * stay.hours()).sum::<f64>() / hours;
    let from = format!("{} in {hours:.1} h", counted(grouped.events, "reclaim", "reclaims"));
    let mut shown = Parameter {
        assumed: Some(assumed),
        ..Parameter::shown("reclaims of a running Spot instance", Unit::PerHour, measured.per_hour, from)
    };
    let while_running = "per hour while running: consolidation may prefer the nodes that would have been taken";
    shown.notes.push(while_running.to_owned());
    shown.notes.extend(together(&grouped));
    if by_count.is_some() {
        shown.notes.push("counted by Karpenter, which does not say of which pools".to_owned());
    } else {
        shown.notes.extend(of_pools(&stays, assumed));
        shown.notes.extend(curve(fit, &stays, &measured.per_hour));
    }
    match fit.scenario.ec2.cloud.interruptions.exposure_hours {
        Some(exposure) if assumed > 0.0 => vec![exposed_for(fit, shown, &measured, exposure)],
        _ => vec![shown],
    }
}

fn hours(stays: &[Stay<'_>]) -> f64 {
    stays.iter().map(Stay::hours).sum()
}

/// Hours for which Spot instances that records tell of were seen, whether or not a source tells of ends.
fn recorded_hours(history: &History) -> f64 {
    let spot = history.lives.iter().flatten().filter(|life| !life.sampled && life.is_spot());
    let seconds = spot.filter_map(|life| {
        let until = life.ended().unwrap_or(life.window.until);
        Some(until.seconds_since(launched(life)?.max(life.window.from)).max(0.0))
    });
    seconds.sum::<f64>() / 3_600.0
}

/// That ends are not told of, or of a small part of what was recorded.
fn untold(any: bool, told: f64, recorded: f64) -> Option<String> {
    if recorded <= 0.0 || told >= recorded * TOLD_MIN {
        return None;
    }
    Some(if any {
        format!(
            "why nodes ended is told for {told:.1} h of the {recorded:.1} h of Spot instances: only those count for reclaims; a cluster keeps events for \
             an hour, `kubectl get events -A --watch --output-watch-events -o json` beside the watch of NodeClaims keeps them all"
        )
    } else {
        "no source says why nodes ended, so none says that EC2 took no Spot instance: events, Karpenter's log or its counters do".to_owned()
    })
}

/// How many instances an event took.
fn together(grouped: &Groups) -> Option<String> {
    let Groups { groups, largest, events, .. } = *grouped;
    let (instances, events_counted) = (counted(events, "instance", "instances"), counted(groups, "event", "events"));
    (events > groups).then(|| format!("{instances} in {events_counted}, {largest} in the largest"))
}

/// The exposure with which the scenario's instances are taken as often as was measured, or as is believed.
fn exposed_for(fit: &mut Fit<'_>, mut shown: Parameter, measured: &Rate, exposure: f64) -> Parameter {
    let assumed = shown.assumed.unwrap_or(0.0);
    let none = measured.exposed.events == 0;
    let is_measured =
        if none { measured.per_hour.high < assumed } else { measured.per_hour.log_width() < ASSUMED_WIDTH };
    let believed = GammaPrior { per_hour: assumed, hours: PRIOR_HOURS }.posterior(measured.exposed).value;
    // Without an event the rate itself would be none.
    let value = if is_measured && !none { measured.per_hour.value } else { believed };
    let wanted = exposure * assumed / value;
    let text = |hours: f64| SimDuration::from_secs(libm::round(hours * 60.0) as i64 * 60).to_string();
    let new = wanted.max(EXPOSURE_MIN);
    if wanted < EXPOSURE_MIN {
        let more = EXPOSURE_MIN / wanted;
        fit.warnings.push(format!(
            "reclaims are more frequent than an exposure of 1h makes them: state `stress: {more:.1}` too"
        ));
    }
    let key = fit.key(&["ec2", "spot", "interruptions", "exposure"], text(new), text(exposure));
    let weight = format!("of {PRIOR_HOURS} h of what is assumed and what was seen together: {believed:.4} per hour");
    shown.notes.push(weight);
    shown.notes.push(format!("an exposure of {} gives it with these instances", text(new)));
    Parameter {
        taken: if is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
        value,
        keys: vec![key],
        change: Some(Change::Exposure(new)),
        ..shown
    }
}

/// When an instance was there first.
fn launched(life: &Life) -> Option<Instant> {
    [Milestone::Running, Milestone::Launched, Milestone::Registered].iter().find_map(|milestone| life.at(*milestone))
}

/// When an instance ended. Of one that was taken, nobody says when, it is the last moment at which that could have been told.
fn ended(life: &Life) -> Option<Instant> {
    let last = || life.ends.last().filter(|_| life.end == Some(End::Interrupted)).map(|window| window.until);
    life.ended().or_else(last)
}

/// The stretches of the life of a Spot instance in which a source would have told of its end; where nothing but samples tells of it, all of it.
fn stays<'h>(fit: &Fit<'h>, life: &'h Life) -> Vec<Stay<'h>> {
    let Some(launched) = launched(life).filter(|_| life.is_spot()) else { return Vec::new() };
    let (name, zone) = (life.instance_type.as_deref().unwrap_or(UNKNOWN), life.zone.as_deref().unwrap_or(UNKNOWN));
    let kind = fit.region.instance_type(Symbol::new(name));
    let assumed = kind.map_or(0.0, |kind| hazard(&fit.scenario.ec2.cloud.interruptions, kind));
    let whole = [life.window];
    let told = if life.sampled { &whole[..] } else { &life.ends[..] };
    let stay = |window: &Window| Some(Stay { pool: (name, zone), assumed, ..within(life, launched, *window)? });
    told.iter().filter_map(stay).collect()
}

/// What a window has of a life, of no pool; `None` if nothing.
fn within<'h>(life: &Life, launched: Instant, window: Window) -> Option<Stay<'h>> {
    let from = launched.max(window.from).max(life.window.from);
    let ended = ended(life);
    // Of stretches that follow each other closely the later one has it.
    let its = ended.and_then(|at| life.ends.iter().rfind(|end| end.from <= at));
    let is_told = its == Some(&window) && ended.is_some_and(|at| at.seconds_since(window.until) <= NOTICE);
    let event = life.end == Some(End::Interrupted) && is_told;
    let last = window.until.min(life.window.until.max(window.from));
    let until = ended.filter(|at| event || *at < last).unwrap_or(last);
    let hours = until.seconds_since(from) / 3_600.0;
    let age = from.seconds_since(launched) / 3_600.0;
    (hours > 0.0).then(|| Stay {
        pool: (UNKNOWN, UNKNOWN),
        assumed: 0.0,
        lifetime: Lifetime { from: age, until: age + hours, event },
        taken: event.then(|| until.0 as f64 / 1e6),
    })
}

/// Instances of which nothing is known but that EC2 took them: they were there when their source began, and gone from every list. What is
/// assumed of them is the mean of the others.
fn unknown<'h>(history: &'h History, others: &[Stay<'_>]) -> Vec<Stay<'h>> {
    let expected: f64 = others.iter().map(|stay| stay.assumed * stay.hours()).sum();
    let assumed = expected / hours(others).max(f64::MIN_POSITIVE);
    let matches = |life: &&Life| life.end == Some(End::Interrupted) && life.capacity_type.is_none() && !life.sampled;
    let stays = history.lives.iter().flatten().filter(matches).flat_map(|life| {
        let stay = |window: &Window| within(life, launched(life).unwrap_or(window.from), *window);
        life.ends.iter().filter_map(stay).filter(|stay| stay.lifetime.event)
    });
    stays.map(|stay| Stay { assumed, ..stay }).collect()
}

/// The pools with the most events, each with what is believed of it.
fn of_pools(stays: &[Stay<'_>], assumed: f64) -> Vec<String> {
    let mut pools: BTreeMap<(&str, &str), (Exposed, f64)> = BTreeMap::new();
    for stay in stays {
        let (exposed, expected) = pools.entry(stay.pool).or_default();
        exposed.hours += stay.hours();
        exposed.events += usize::from(stay.lifetime.event);
        *expected += stay.assumed * stay.hours();
    }
    let all: Vec<Exposed> = pools.values().map(|(exposed, _)| *exposed).collect();
    let by_pools = empirical_bayes(&all);
    let mut shown: Vec<_> = pools.into_iter().filter(|(_, (exposed, _))| exposed.events > 0).collect();
    shown.sort_by_key(|(_, (exposed, _))| std::cmp::Reverse(exposed.events));
    let mut notes = Vec::new();
    if let Some(prior) = by_pools {
        notes.push(format!("by the cluster's own pools: {:.4} per hour, worth {:.0} h", prior.per_hour, prior.hours));
    }
    for ((name, zone), (exposed, expected)) in shown.into_iter().take(POOLS_SHOWN) {
        let gamma_prior = GammaPrior { per_hour: expected / exposed.hours, hours: PRIOR_HOURS };
        let prior = by_pools.unwrap_or(if expected > 0.0 {
            gamma_prior
        } else {
            GammaPrior { per_hour: assumed, ..gamma_prior }
        });
        if prior.per_hour > 0.0 {
            let Estimate { value, low, high, .. } = prior.posterior(exposed);
            let events = counted(exposed.events, "reclaim", "reclaims");
            notes.push(format!(
                "{name} in {zone}: {events} in {:.1} h, believed {value:.4} ({low:.4} to {high:.4}) per hour",
                exposed.hours
            ));
        }
    }
    notes
}

/// Survival by age beside what a constant rate makes of it; a warning where the two do not agree.
fn curve(fit: &mut Fit<'_>, stays: &[Stay<'_>], rate: &Estimate) -> Option<String> {
    // Of what no list knew any more the age is not known.
    let aged = stays.iter().filter(|stay| stay.pool.0 != UNKNOWN);
    let lives: Vec<Lifetime> = aged.map(|stay| stay.lifetime).collect();
    let seen: Vec<_> = survival(&lives, &AGES).into_iter().filter(|at| at.at_risk > 0).collect();
    if rate.n == 0 || seen.is_empty() {
        return None;
    }
    for at in &seen {
        let (least, most) = (libm::exp(-rate.high * at.hours), libm::exp(-rate.low * at.hours));
        if at.interval.is_some_and(|(low, high)| high < least || low > most) {
            fit.warnings.push(format!(
                "reclaims do not come at a constant rate: {:.0}% of Spot instances are left after {} h, {:.0} to {:.0}% by the rate",
                at.share * 100.0,
                at.hours,
                least * 100.0,
                most * 100.0
            ));
        }
    }
    let shares: Vec<String> = seen.iter().map(|at| format!("{:.0}% after {} h", at.share * 100.0, at.hours)).collect();
    Some(format!("not taken, by age (Kaplan-Meier): {}", shares.join(", ")))
}
