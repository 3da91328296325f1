//! Invariants of bills over random fleets.

use std::collections::BTreeMap;

use nodecast_commitments::{
    Account, Accounts, Bearer, Bill, ChargebackRow, Commitments, FocusCategory, OtherCosts, PlanKind, PlanRates,
    Platform, ReservedInstance, RowKind, SavingsPlan, Sharing, Tenancy, Term, UnusedRule, UsageKind, UsageLine, apply,
    chargeback, focus_rows,
};
use nodecast_model::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol};
use proptest::prelude::*;

const HOUR: i64 = 3_600_000_000;
const TYPES: [(&str, i64); 5] = [
    ("m5.large", 96_000_000),
    ("m5.2xlarge", 384_000_000),
    ("c5.xlarge", 170_000_001),
    ("g5.xlarge", 1_006_000_000),
    ("m5.xlarge", 192_000_000),
];
const CLUSTERS: [(&str, &str); 5] = [("a1", "A"), ("a2", "A"), ("b1", "B"), ("c1", "C"), ("", "B")];
const ACCOUNTS: [&str; 4] = ["A", "B", "C", "P"];
const ZONES: [&str; 2] = ["use1-az1", "use1-az2"];

/// Commitments, and the usage of each hour.
#[derive(Clone, Debug)]
struct Fleet {
    sharing: Sharing,
    groups: Vec<bool>,
    bought: Commitments,
    hours: Vec<Vec<UsageLine>>,
}

impl Fleet {
    fn accounts(&self) -> Accounts {
        let accounts = ACCOUNTS.iter().zip(&self.groups).map(|(id, &in_group)| Account {
            group: in_group.then(|| Symbol::new("x")),
            is_payer: *id == "P",
            ..Account::new(id)
        });
        Accounts::new(accounts, self.sharing)
    }

    fn bill(&self) -> Bill {
        let hours = self.hours.iter().zip(0..).map(|(lines, number)| (at(number), at(number + 1), lines.clone()));
        Bill::price(&self.accounts(), &self.bought, hours)
    }

    fn map(&self, change: impl Fn(&UsageLine) -> Vec<UsageLine>) -> Self {
        let hours = self.hours.iter().map(|lines| lines.iter().flat_map(&change).collect()).collect();
        Self { hours, ..self.clone() }
    }

    fn with(&self, bought: Commitments) -> Self {
        Self { bought, ..self.clone() }
    }
}

fn at(hour: i64) -> SimTime {
    SimTime::from_micros(hour * HOUR)
}

fn line() -> impl Strategy<Value = UsageLine> {
    let place = (0..CLUSTERS.len(), 0..4_u32, 0..ZONES.len());
    let kind = (0..TYPES.len() + 2, prop::bool::weighted(0.2), prop::bool::weighted(0.1));
    (place, kind, 1..=HOUR, prop::bool::ANY).prop_map(|((cluster, node, zone), (kind, windows, held), ran, whole)| {
        let (cluster, account) = CLUSTERS[cluster];
        let fargate = [(UsageKind::FargateCpu, 40_480_000), (UsageKind::FargateMemory, 4_445_000)];
        let instance = |(name, rate): (&str, i64)| (UsageKind::Instance(Symbol::new(name)), rate);
        let (kind, rate) = TYPES.get(kind).map_or_else(|| fargate[kind - TYPES.len()], |pair| instance(*pair));
        UsageLine {
            cluster: Symbol::new(cluster),
            account: Symbol::new(account),
            node,
            region: Symbol::new("us-east-1"),
            zone: Symbol::new(ZONES[zone]),
            kind,
            platform: if windows { Platform::Windows } else { Platform::Linux },
            tenancy: Tenancy::Shared,
            list: HourlyRate::from_nanos(rate),
            rate: HourlyRate::from_nanos(rate),
            ran: SimDuration::from_micros(if whole { HOUR } else { ran }),
            is_reservation: held,
        }
    })
}

fn reserved() -> impl Strategy<Value = ReservedInstance> {
    (0..ACCOUNTS.len(), 0..TYPES.len(), prop::option::of(0..ZONES.len()), 1_u32..4, 0_i64..400_000_000).prop_map(
        |(owner, kind, zone, count, rate)| ReservedInstance {
            id: Symbol::new("set later"),
            owner: Symbol::new(ACCOUNTS[owner]),
            region: Symbol::new("us-east-1"),
            zone: zone.map(|zone| Symbol::new(ZONES[zone])),
            instance_type: Symbol::new(TYPES[kind].0),
            platform: Platform::Linux,
            tenancy: Tenancy::Shared,
            count,
            rate: HourlyRate::from_nanos(rate),
            term: Term::default(),
        },
    )
}

fn plan() -> impl Strategy<Value = SavingsPlan> {
    let term = prop::option::of((0..2 * HOUR, 0..2 * HOUR));
    (0..ACCOUNTS.len(), prop::bool::ANY, 1_i64..1_500_000_000, 0_u32..700_000, 0_u32..700_000, term).prop_map(
        |(owner, of_family, commitment, discount, other, term)| SavingsPlan {
            id: Symbol::new("set later"),
            owner: Symbol::new(ACCOUNTS[owner]),
            kind: if of_family {
                PlanKind::Instance { family: Symbol::new("m5"), region: Symbol::new("us-east-1") }
            } else {
                PlanKind::Compute
            },
            commitment: HourlyRate::from_nanos(commitment),
            rates: PlanRates {
                discount: Some(discount),
                families: vec![(Symbol::new("c5"), other)],
                fargate_cpu: Some(other / 2),
                fargate_memory: Some(discount / 2),
                ..PlanRates::default()
            },
            term: term.map_or_else(Term::default, |(from, span)| Term {
                from: Some(SimTime::from_micros(from)),
                to: Some(SimTime::from_micros(from + span)),
            }),
        },
    )
}

fn bought() -> impl Strategy<Value = Commitments> {
    (prop::collection::vec(reserved(), 0..3), prop::collection::vec(plan(), 0..4)).prop_map(
        |(mut reserved, mut plans)| {
            for (number, reserved) in reserved.iter_mut().enumerate() {
                reserved.id = Symbol::new(&format!("ri-{number}"));
            }
            for (number, plan) in plans.iter_mut().enumerate() {
                plan.id = Symbol::new(&format!("sp-{number}"));
            }
            Commitments { reserved, plans }
        },
    )
}

fn fleet() -> impl Strategy<Value = Fleet> {
    let sharing =
        prop::sample::select(vec![Sharing::Organization, Sharing::Prioritized, Sharing::Restricted, Sharing::Off]);
    let hours = prop::collection::vec(prop::collection::vec(line(), 0..12), 1..4);
    (sharing, prop::collection::vec(prop::bool::ANY, 4), bought(), hours)
        .prop_map(|(sharing, groups, bought, hours)| Fleet { sharing, groups, bought, hours })
}

/// One Compute or Instance plan of an account without usage, in an organisation.
fn pool() -> impl Strategy<Value = Fleet> {
    (fleet(), plan()).prop_map(|(fleet, plan)| {
        let plan = SavingsPlan { id: Symbol::new("sp"), owner: Symbol::new("P"), term: Term::default(), ..plan };
        Fleet {
            sharing: Sharing::Organization,
            bought: Commitments { reserved: Vec::new(), plans: vec![plan] },
            ..fleet
        }
    })
}

fn sum(amounts: impl Iterator<Item = Money>) -> Money {
    amounts.sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn all_sums_are_the_bill(fleet in fleet(), discount in 0_u32..300_000, spot in 0_i64..1_000_000) {
        let (accounts, bill) = (fleet.accounts(), fleet.bill());
        let spent = OtherCosts { spot: Money::from_nanos(spot.into()), ..OtherCosts::default() };
        let others = BTreeMap::from([(Bearer { cluster: Symbol::new("z"), account: Symbol::new("A") }, spent)]);
        for rule in [UnusedRule::Owner, UnusedRule::Usage, UnusedRule::Central] {
            let rows = chargeback(&accounts, &bill, &others, rule, discount);
            let (total, parts) = rows.split_last().unwrap();
            for column in 0..ChargebackRow::COLUMNS.len() - 3 {
                prop_assert_eq!(sum(parts.iter().map(|row| row.amounts()[column])), total.amounts()[column]);
            }
            prop_assert_eq!(total.net - total.discount, bill.total() + spent.spot);
            prop_assert!(parts.iter().all(|row| row.net >= Money::ZERO), "{parts:?}");
            prop_assert!(parts.iter().all(|row| (row.kind == RowKind::Cluster) == row.cluster.is_some()));
        }
        let by_account: Money = bill.accounts().values().map(nodecast_commitments::Amounts::effective).sum();
        prop_assert_eq!(by_account + bill.unused(), bill.total());
    }

    #[test]
    fn focus_rows_sum_to_each_hour(fleet in fleet()) {
        let (accounts, bill) = (fleet.accounts(), fleet.bill());
        for (number, lines) in fleet.hours.iter().enumerate() {
            let hour = apply(&accounts, &fleet.bought, lines, (bill.hours[number].from, bill.hours[number].to));
            let rows = focus_rows(&fleet.bought, lines, &hour);
            prop_assert_eq!(sum(rows.iter().map(|row| row.effective)), bill.hours[number].total());
            prop_assert_eq!(sum(rows.iter().map(|row| row.billed)), bill.hours[number].total());
            for commitment in &bill.commitments {
                let of_this: Vec<_> = rows
                    .iter()
                    .filter(|row| row.commitment.as_ref().is_some_and(|named| named.id == commitment.id))
                    .collect();
                let is_fee = |row: &nodecast_commitments::FocusRow| row.category == FocusCategory::Purchase;
                let quantity = |fee: bool| -> i128 {
                    let quantities = of_this.iter().filter(|row| is_fee(row) == fee);
                    quantities.filter_map(|row| row.commitment.as_ref()).map(|named| named.quantity).sum()
                };
                let fees = sum(of_this.iter().filter(|row| is_fee(row)).map(|row| row.billed));
                prop_assert_eq!(fees, commitment.hours[number].fee);
                prop_assert_eq!(sum(of_this.iter().map(|row| row.effective)), fees);
                prop_assert!((quantity(true) - quantity(false)).abs() <= 1, "{of_this:?}");
            }
        }
    }

    #[test]
    fn shares_stay_between_zero_and_one(fleet in fleet()) {
        let bill = fleet.bill();
        for commitment in &bill.commitments {
            let used: Money = commitment.used.values().copied().sum();
            prop_assert_eq!(used, commitment.total.used());
            for hour in &commitment.hours {
                prop_assert!(hour.unused >= Money::ZERO && hour.unused <= hour.fee);
            }
        }
        for (lines, number) in fleet.hours.iter().zip(0..) {
            let hour = apply(&fleet.accounts(), &fleet.bought, lines, (at(number), at(number + 1)));
            let mut covered = vec![SimDuration::ZERO; lines.len()];
            for part in &hour.parts {
                covered[part.line] = covered[part.line] + part.covered;
                prop_assert!(part.covered > SimDuration::ZERO && part.fee >= Money::ZERO);
            }
            for (at, line) in lines.iter().enumerate() {
                prop_assert_eq!(covered[at] + hour.left[at], line.ran);
            }
        }
        let unit = |share: Option<f64>| share.is_none_or(|share| (0.0..=1.0).contains(&share));
        let figures = bill.figures();
        prop_assert!(unit(figures.coverage) && unit(figures.utilisation), "{figures:?}");
    }

    #[test]
    fn order_of_input_changes_nothing(fleet in fleet()) {
        let mut other = fleet.clone();
        other.bought.reserved.reverse();
        other.bought.plans.reverse();
        other.hours.iter_mut().for_each(|lines| lines.reverse());
        prop_assert_eq!(fleet.bill(), other.bill());
    }

    #[test]
    fn division_of_usage_changes_no_total(fleet in fleet()) {
        let total = fleet.bill().total();
        let halves = fleet.map(|line| {
            let half = SimDuration::from_micros(line.ran.as_micros() / 2);
            vec![UsageLine { ran: half, ..*line }, UsageLine { ran: line.ran - half, ..*line }]
        });
        prop_assert_eq!(halves.bill().total(), total);
        let clusters = fleet.map(|line| {
            let cluster = Symbol::new(&format!("{}-{}", line.cluster, line.node % 2));
            vec![UsageLine { cluster, ..*line }]
        });
        let found = clusters.bill().total();
        prop_assert!((found - total).as_nanos().abs() <= 3, "{found} {total}");
    }

    #[test]
    fn account_of_clusters_changes_no_total(fleet in fleet()) {
        let mut fleet = Fleet { sharing: Sharing::Organization, ..fleet };
        fleet.bought.reserved.iter_mut().for_each(|reserved| reserved.owner = Symbol::new("P"));
        fleet.bought.plans.iter_mut().for_each(|plan| plan.owner = Symbol::new("P"));
        let one = fleet.map(|line| vec![UsageLine { account: Symbol::new("C"), ..*line }]);
        let (one, many) = (one.bill().total(), fleet.bill().total());
        prop_assert!((one - many).as_nanos().abs() <= 3, "{one} {many}");
    }

    #[test]
    fn narrower_sharing_covers_no_more(fleet in pool(), owner in 0..ACCOUNTS.len()) {
        let mut fleet = fleet;
        fleet.bought.plans[0].owner = Symbol::new(ACCOUNTS[owner]);
        let with = |sharing: Sharing| Fleet { sharing, ..fleet.clone() }.bill();
        let organization = with(Sharing::Organization);
        for sharing in [Sharing::Restricted, Sharing::Off] {
            prop_assert!(with(sharing).usage().covered_list <= organization.usage().covered_list + Money::from_nanos(9));
        }
        let unused = with(Sharing::Prioritized).unused() - organization.unused();
        prop_assert!(unused.as_nanos().abs() <= 9, "{unused}");
    }

    #[test]
    fn larger_plan_covers_no_less(fleet in pool(), more in 1_i64..500_000_000) {
        let mut larger = fleet.clone();
        larger.bought.plans[0].commitment = fleet.bought.plans[0].commitment + HourlyRate::from_nanos(more);
        let (before, after) = (fleet.bill(), larger.bill());
        prop_assert!(after.usage().covered_list + Money::from_nanos(9) >= before.usage().covered_list);
        let slope = (after.total() - before.total()).as_f64() / (more as f64 * 1e-9 * fleet.hours.len() as f64);
        prop_assert!((1.0 - 1.0 / 0.3 - 1e-3..=1.0 + 1e-3).contains(&slope) || more < 10_000, "{slope}");
    }

    #[test]
    fn fees_alone_remain_without_usage(fleet in fleet()) {
        let none = fleet.with(Commitments::default()).bill();
        prop_assert_eq!(none.total(), none.usage().list);
        let idle = fleet.map(|_| Vec::new()).bill();
        prop_assert_eq!(idle.total(), idle.unused());
        prop_assert_eq!(idle.total(), idle.commitments.iter().map(|commitment| commitment.total.fee).sum());
    }

    #[test]
    fn larger_fleet_costs_its_multiple(fleet in fleet(), factor in 2_u32..5) {
        let mut larger = fleet.map(|line| vec![UsageLine { ran: line.ran * i64::from(factor), ..*line }]);
        larger.bought.reserved.iter_mut().for_each(|reserved| reserved.count *= factor);
        for plan in &mut larger.bought.plans {
            plan.commitment = plan.commitment.scaled(i64::from(factor), 1);
        }
        let (one, many) = (fleet.bill().total().as_nanos() * i128::from(factor), larger.bill().total().as_nanos());
        prop_assert!((one - many).abs() <= 100, "{one} {many}");
    }

    #[test]
    fn plan_without_discount_costs_nothing_more(fleet in pool()) {
        let mut fleet = fleet;
        let on_demand = fleet.with(Commitments::default()).bill().total();
        let plan = &mut fleet.bought.plans[0];
        plan.rates = PlanRates { discount: Some(0), fargate_cpu: Some(0), fargate_memory: Some(0), ..PlanRates::default() };
        let bill = fleet.bill();
        let difference = (bill.total() - bill.unused() - on_demand).as_nanos();
        prop_assert!(difference.abs() <= 20, "{difference}");
    }
}
