//! From an observed bill to a simulated one.

use std::collections::BTreeMap;

use nodecast_model::domain::{HourlyRate, Money};
use nodecast_observed::bill::{
    Amount, CapacityType, Chain, ComparedBill, Group, LinkKind, RateSource, chain, price_held,
};

use super::{CUR, shop_prod, totals_of};

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

fn rate(text: &str) -> HourlyRate {
    HourlyRate::parse(text).unwrap()
}

/// A simulated day: fewer Spot hours of other types at other prices, no NAT.
fn simulated() -> ComparedBill {
    let groups = [
        (Group::Ebs, Money::from_nanos(180_000_001)),
        (Group::ControlPlane, Money::from_nanos(2_400_000_000)),
        (Group::LoadBalancers, Money::from_nanos(0)),
    ];
    let nodes = [
        (CapacityType::OnDemand, "m6i.large".to_owned(), amount("48"), rate("0.083040000")),
        (CapacityType::Spot, "m5zn.2xlarge".to_owned(), amount("31.7"), rate("0.153333333")),
        (CapacityType::Spot, "m7i.xlarge".to_owned(), amount("2.25"), rate("0.071")),
    ];
    ComparedBill::simulated(groups, nodes)
}

fn text(chain: &Chain) -> String {
    let mut text = format!("observed {:.6}\n", chain.observed);
    for link in &chain.links {
        text += &match &link.kind {
            LinkKind::NotSimulated(group) => format!("  not simulated: {}", group.name()),
            LinkKind::Price(capacity) => format!("  price of {}", capacity.name()),
            LinkKind::Hours(capacity, size) => format!("  hours of {} {size}", capacity.name()),
            LinkKind::Group(group) => format!("  {}", group.name()),
        };
        text += &format!(" {:.6}\n", link.amount);
    }
    text + &format!("simulated {:.6}\n", chain.simulated)
}

#[test]
fn bill_links_bridge_observed_and_simulated_bill() {
    let observed = ComparedBill::amortised(&totals_of(shop_prod(), &[CUR]));
    let chain = chain(&observed, &simulated());
    let links: Amount = chain.links.iter().map(|link| link.amount).sum();
    assert_eq!(chain.observed - links, chain.simulated);
    assert_eq!(format!("{:.3}", chain.observed), "13.268");
    insta::assert_snapshot!(text(&chain));
}

#[test]
fn a_bill_is_no_step_from_itself() {
    let observed = ComparedBill::amortised(&totals_of(shop_prod(), &[CUR]));
    let chain = chain(&observed, &observed);
    // A mean price is a nano-unit an hour at the finest; what it is off by cancels between price and hours.
    let links: Amount = chain.links.iter().map(|link| link.amount).sum();
    assert_eq!(links, Amount::ZERO);
    assert!(chain.links.iter().all(|link| link.amount.as_f64().abs() < 1e-6), "{:?}", chain.links);
}

#[test]
fn a_side_holds_the_whole_bill() {
    let totals = totals_of(shop_prod(), &[CUR]);
    assert_eq!(ComparedBill::amortised(&totals).total(), totals.total().amortised);
}

#[test]
fn hours_are_compared_at_one_price_list() {
    let totals = totals_of(shop_prod(), &[CUR]);
    let held = price_held(&ComparedBill::amortised(&totals), &simulated(), &totals.held_prices());
    let key = |capacity, name: &str| (capacity, name.to_owned());
    // On-Demand at the list price, though a Savings Plan covers half of it.
    let steady = &held.types[&key(CapacityType::OnDemand, "m6i.large")];
    assert_eq!((steady.rate.price, steady.observed, steady.simulated), (rate("0.096"), amount("48"), amount("48")));
    let only_simulated = &held.types[&key(CapacityType::Spot, "m7i.xlarge")];
    assert_eq!((only_simulated.rate.price, only_simulated.rate.source), (rate("0.071"), RateSource::Simulated));
    assert_eq!(format!("{:.3}", held.observed), "10.534");

    let none = price_held(&ComparedBill::default(), &ComparedBill::default(), &BTreeMap::new());
    assert_eq!((none.observed, none.simulated), (Amount::ZERO, Amount::ZERO));
}
