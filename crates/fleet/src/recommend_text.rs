//! The recommended commitments in a terminal.

use nodecast_report::columns::printed;
use nodecast_report::figure::Figure;
use nodecast_report::format::{counted, money, percent};
use nodecast_report::table::Rows;

use crate::recommend::{CurvePoint, FleetRecommendation, GrowthCase, Offer, PlanToBuy, SpotCase};

/// Hours of a month.
const MONTH: f64 = 730.0;

/// The recommendation as people read it.
pub fn text(answer: &FleetRecommendation, width: Option<usize>) -> String {
    let mut lines = vec![headline(answer)];
    lines.push(format!(
        "{} of {} each; every offer minimises the cost of the usage that owned commitments leave",
        counted(answer.seeds as u64, "seed", "seeds"),
        counted(answer.hours as u64, "whole hour", "whole hours")
    ));
    for (number, offer) in answer.offers.iter().enumerate() {
        lines.push(String::new());
        offer_lines(offer, &answer.currency, number == 0, width, &mut lines);
    }
    lines.push(String::new());
    lines.extend(answer.warnings.iter().map(|warning| format!("note: {warning}")));
    printed(&lines, width)
}

/// The first line: what the best of the offers saves.
fn headline(answer: &FleetRecommendation) -> String {
    let best = answer.offers.iter().filter(|offer| offer.committed > 0.0);
    let Some(best) = best.min_by(|one, other| share_left(one).total_cmp(&share_left(other))) else {
        return format!("{}: no commitment saves money", answer.fleet);
    };
    let currency = answer.currency.as_str();
    format!(
        "{}: commit {} per hour, {}; saves {} per month ({})",
        answer.fleet,
        hourly(currency, best.committed),
        words(best),
        money(currency, (best.on_demand - best.cost) * MONTH),
        percent(best.savings_rate)
    )
}

/// Cost with fees at present value, as a share of the cost without plans.
fn share_left(offer: &Offer) -> f64 {
    offer.cost_today / offer.on_demand.max(f64::MIN_POSITIVE)
}

fn words(offer: &Offer) -> String {
    let years = counted(u64::from(offer.years), "year", "years");
    format!("{years}, {}", offer.payment.replace('_', " "))
}

fn hourly(currency: &str, amount: f64) -> String {
    let sign = nodecast_model::domain::Currency::from_code(currency).map_or("", |currency| currency.sign());
    format!("{sign}{amount:.3}")
}

/// The cost in other cases: growth, other Spot shares, and with `with_curve` less and more of the plans.
fn case_lines(offer: &Offer, currency: &str, with_curve: bool, width: Option<usize>, lines: &mut Vec<String>) {
    let price = |amount: f64| hourly(currency, amount);
    let growth = Rows::new(&offer.growth)
        .text("  load per year", |case: &&GrowthCase| format!("  {:+.0}%", case.per_year * 100.0))
        .number("cost per hour", |case| price(case.cost))
        .number("no plans", |case| price(case.on_demand))
        .number("coverage", |case| Figure::share(case.coverage))
        .number("utilisation", |case| Figure::share(case.utilisation))
        .number("best commitment", |case| price(case.best))
        .table();
    lines.extend(growth.lines(width));
    if !offer.spot.is_empty() {
        let spot = Rows::new(&offer.spot)
            .text("  Spot share", |case: &&SpotCase| {
                format!("  {} ({:+.0} points)", percent(case.spot_share), case.change * 100.0)
            })
            .number("cost per hour", |case| price(case.cost))
            .number("no plans", |case| price(case.on_demand))
            .number("coverage", |case| Figure::share(case.coverage))
            .number("utilisation", |case| Figure::share(case.utilisation))
            .number("best commitment", |case| price(case.best))
            .table();
        lines.extend(spot.lines(width));
    }
    if with_curve {
        let curve = Rows::new(&offer.curve)
            .text("  share bought", |point: &&CurvePoint| format!("  {:.0}%", point.share * 100.0))
            .number("cost per hour", |point| price(point.cost))
            .number("coverage", |point| Figure::share(point.coverage))
            .number("utilisation", |point| Figure::share(point.utilisation))
            .table();
        lines.extend(curve.lines(width));
    }
}

fn offer_lines(offer: &Offer, currency: &str, with_curve: bool, width: Option<usize>, lines: &mut Vec<String>) {
    let price = |amount: f64| hourly(currency, amount);
    lines.push(format!("{}, in account {}", nodecast_report::page::sentence(&words(offer)), offer.owner));
    if offer.plans.is_empty() {
        lines.push("  no plan saves money".to_owned());
        return;
    }
    if offer.years > 1 {
        lines.push("  means over the term with load of -20%, 0%, and +20% per year".to_owned());
    }
    let plans = Rows::new(&offer.plans)
        .text("  plan", |plan: &&PlanToBuy| match plan.kind {
            "compute" => "  Compute".to_owned(),
            _ => format!("  EC2 Instance {}", plan.class),
        })
        .number("per hour", |plan| price(plan.commitment))
        .number("discount", |plan| plan.discount.map(Figure::share))
        .table();
    lines.extend(plans.lines(width));
    let alone = offer.compute_alone.map(|cost| format!(", Compute alone {}", price(cost))).unwrap_or_default();
    lines.push(format!(
        "  cost per hour {} (no plans {}, families alone {}{alone}); no plans of these classes cost less than {}",
        price(offer.cost),
        price(offer.on_demand),
        price(offer.families_alone),
        price(offer.bound)
    ));
    lines.push(format!(
        "  coverage {}, utilisation {}, savings rate {}; with fees at present value {} per hour",
        percent(offer.coverage),
        percent(offer.utilisation),
        percent(offer.savings_rate),
        price(offer.cost_today)
    ));
    let [low, high] = offer.interval;
    if low < high {
        let range = format!("{} to {}", price(low), price(high));
        lines.push(format!("  best commitment in 90% of draws of the seeds: {range} per hour"));
    }
    match offer.break_even {
        Some(share) => lines.push(format!("  still saves if the load falls by up to {}", percent(1.0 - share))),
        None => lines.push("  saves nothing at this load".to_owned()),
    }
    case_lines(offer, currency, with_curve, width, lines);
}
