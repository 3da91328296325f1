//! What instance types have to offer to claims with the same requirements. It stays the same from launch to launch until
//! prices, availability or amounts of types change, and lies together where the types themselves lie apart.

use smallvec::SmallVec;

use super::Choice;
use super::price::Terms;
use crate::instance_types::{InstanceType, Offering};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, ResourceName, Resources, Symbol};

/// The open offerings of some instance types of a list, for claims with the same requirements.
#[derive(Clone, Debug, Default)]
pub struct OpenTypes {
    /// By position in the list, where each is among the rows; [`UNKNOWN`] where it is not.
    places: Vec<u32>,
    /// Those that have been learnt, which mostly are few.
    rows: Vec<Row>,
    /// Those of each row together.
    offerings: Vec<Offering>,
}

/// The place of a type that has not been learnt.
const UNKNOWN: u32 = u32::MAX;

/// What is known of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: Symbol,
    pub(super) exotic: bool,
    /// Whether an overlay lies over one of its prices.
    pub(super) overlaid: bool,
    cpu_milli: i64,
    memory_bytes: i64,
    pods: i64,
    pub(super) lowest: Lowest,
    /// The same of all available offerings, whatever the terms.
    pub(super) anywhere: Lowest,
    /// The lowest of `lowest`; `None` without an open offering, as every type is that does not meet the requirements.
    price: Option<HourlyRate>,
    first: u32,
    end: u32,
    /// Whether it holds: what was forgotten keeps its place for when it is learnt again.
    known: bool,
}

/// The lowest price of open offerings of each capacity type.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lowest {
    pub(super) reserved: Option<HourlyRate>,
    pub(super) spot: Option<HourlyRate>,
    pub(super) on_demand: Option<HourlyRate>,
}

impl Lowest {
    fn from_offerings<'o>(offerings: impl IntoIterator<Item = &'o Offering>) -> Self {
        let mut this_lowest = Self::default();
        for offering in offerings {
            let lowest = match offering.capacity_type {
                well_known::RESERVED => &mut this_lowest.reserved,
                well_known::SPOT => &mut this_lowest.spot,
                _ => &mut this_lowest.on_demand,
            };
            *lowest = Some(lowest.map_or(offering.price, |lowest| lowest.min(offering.price)));
        }
        this_lowest
    }

    /// The lowest of all.
    pub(super) fn of_all(&self) -> Option<HourlyRate> {
        [self.reserved, self.spot, self.on_demand].into_iter().flatten().min()
    }
}

impl Row {
    /// Whether nodes of this type, which `entry` is, hold what is asked for.
    fn holds(&self, asked: &TotalRequests, entry: &InstanceType) -> bool {
        let holds = |amount: i64, offered: i64| amount <= 0 || amount <= offered;
        holds(asked.cpu_milli, self.cpu_milli)
            && holds(asked.memory_bytes, self.memory_bytes)
            && holds(asked.pods, self.pods)
            && asked.others.iter().all(|&(name, amount)| holds(amount, entry.allocatable.get(name)))
    }
}

/// What a claim's daemons and pods request together, for comparing it with many types.
pub(super) struct TotalRequests {
    cpu_milli: i64,
    memory_bytes: i64,
    pods: i64,
    /// Everything else.
    others: SmallVec<[(ResourceName, i64); 2]>,
}

impl TotalRequests {
    pub(super) fn from_requests(requests: &Resources) -> Self {
        let other = |(name, _): &(ResourceName, i64)| {
            ![ResourceName::CPU, ResourceName::MEMORY, ResourceName::PODS].contains(name)
        };
        Self {
            cpu_milli: requests.cpu_milli(),
            memory_bytes: requests.memory_bytes(),
            pods: requests.pods(),
            others: requests.iter().filter(other).collect(),
        }
    }
}

impl OpenTypes {
    /// Whether the type at this position of the list has been learnt.
    pub fn knows(&self, at: usize) -> bool {
        self.row(at).is_some()
    }

    /// Forgets the type at this position, whose offerings or amounts have changed. How many offerings it has must not have.
    pub fn forget(&mut self, at: usize) {
        if let Some(row) = self.places.get(at).and_then(|&place| self.rows.get_mut(place as usize)) {
            row.known = false;
        }
    }

    fn row(&self, at: usize) -> Option<&Row> {
        self.rows.get(*self.places.get(at)? as usize).filter(|row| row.known)
    }

    /// Learns the type at this position of the list. The terms are those of the claims.
    pub fn learn(&mut self, at: usize, &Choice { entry, compatible, exotic }: &Choice<'_>, terms: &Terms<'_>) {
        if self.places.len() <= at {
            self.places.resize(at + 1, UNKNOWN);
        }
        // A type that was forgotten has its row and room for all of its offerings already, of which any may be open by now.
        let earlier = self.rows.get(self.places[at] as usize).map(|row| row.first as usize);
        let first = earlier.unwrap_or_else(|| {
            let first = self.offerings.len();
            self.offerings.extend_from_slice(&entry.offerings);
            self.places[at] = self.rows.len() as u32;
            first
        });
        let mut end = first;
        for offering in &entry.offerings {
            if compatible && offering.available && terms.allow(offering) {
                self.offerings[end] = *offering;
                end += 1;
            }
        }
        let lowest = Lowest::from_offerings(&self.offerings[first..end]);
        let row = Row {
            name: entry.name,
            exotic,
            overlaid: entry.offerings.iter().any(|offering| offering.overlay.is_some()),
            cpu_milli: entry.allocatable.cpu_milli(),
            memory_bytes: entry.allocatable.memory_bytes(),
            pods: entry.allocatable.pods(),
            lowest,
            anywhere: Lowest::from_offerings(entry.offerings.iter().filter(|offering| offering.available)),
            price: lowest.of_all(),
            first: first as u32,
            end: end as u32,
            known: true,
        };
        match earlier {
            Some(_) => self.rows[self.places[at] as usize] = row,
            None => self.rows.push(row),
        }
    }

    /// The type at this position of the list, which `entry` is, and its lowest price, if it meets the requirements, holds what is asked
    /// for and has an open offering.
    pub(super) fn open(&self, at: usize, entry: &InstanceType, asked: &TotalRequests) -> Option<(&Row, HourlyRate)> {
        let row = self.row(at)?;
        // Only what is open has a price.
        row.price.filter(|_| row.holds(asked, entry)).map(|price| (row, price))
    }

    /// The open offerings of a type.
    pub(super) fn offerings(&self, row: &Row) -> &[Offering] {
        &self.offerings[row.first as usize..row.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Shape, requirements, shape};
    use super::super::{Choice, LaunchView, select, select_known};
    use super::OpenTypes;
    use crate::instance_types::InstanceType;
    use crate::packing::MinValuesPolicy;
    use crate::selection::price::Terms;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{KarpenterVersion, ResourceName, Resources};

    fn list() -> Vec<InstanceType> {
        let types = [
            shape("c5.large", 2).on_demand("a", 85).spot("a", 40).spot("b", 90),
            shape("g5.xlarge", 4).gpus(1).on_demand("a", 80),
            shape("m5.4xlarge", 16).on_demand("b", 768).spot("a", 300).unavailable(),
            shape("m5.large", 2)
                .on_demand("a", 96)
                .on_demand("b", 97)
                .reserved("a", "cr-1", 2)
                .reserved("a", "cr-2", 5),
            shape("m5.xlarge", 4).on_demand("b", 85).unavailable(),
            shape("r5.large", 2).on_demand("b", 85).spot("b", 33),
        ];
        types.into_iter().map(Shape::build).collect()
    }

    #[test]
    fn forgotten_type_is_relearned_with_current_offerings() {
        let (mut list, requirements) = (list(), requirements(""));
        let terms = Terms::new(&requirements, well_known::CAPACITY_TYPE);
        let requests = &Resources::cpu_memory(1_000, 1 << 30);
        let (karpenter, min_values) = (KarpenterVersion::V1_13, MinValuesPolicy::Strict);
        let mut open = OpenTypes::default();
        for closed in [[true; 6], [false; 6], [true, false, true, false, true, false], [false; 6]] {
            for (at, entry) in list.iter_mut().enumerate() {
                entry.offerings.iter_mut().for_each(|offering| offering.available = !closed[at]);
                open.forget(at);
                assert!(!open.knows(at));
            }
            let choices: Vec<Choice<'_>> = list.iter().map(|entry| Choice::new(entry, &requirements)).collect();
            choices.iter().enumerate().for_each(|(at, choice)| open.learn(at, choice, &terms));
            let view = LaunchView { karpenter, requirements: &requirements, requests, types: &choices, min_values };
            let known = select_known(&LaunchView { types: &[], ..view }, &list, &[0, 1, 2, 3, 4, 5], &open);
            assert_eq!(known, select(&view), "{closed:?}");
        }
    }

    #[test]
    fn cached_type_request_matches_fresh_evaluation() {
        let (karpenter, min_values) = (KarpenterVersion::V1_13, MinValuesPolicy::Strict);
        let list = list();
        let mut different = Vec::new();
        for asked in
            ["", "zone=a", "zone=b", "zone=c", "capacity=spot", "capacity=on-demand zone=b", "reservation=cr-1"]
        {
            let requirements = &requirements(asked);
            let terms = Terms::new(requirements, well_known::CAPACITY_TYPE);
            let mut open = OpenTypes::default();
            for (cpu, gpus) in [(1_000, 0), (3_000, 0), (1_000, 1)] {
                let requests = &Resources::cpu_memory(cpu, 1 << 30).with(ResourceName::NVIDIA_GPU, gpus);
                for types in [vec![5, 0, 2, 3, 1, 4], vec![1, 2], vec![0, 4, 5], vec![3]] {
                    let choices: Vec<Choice<'_>> =
                        types.iter().map(|&at| Choice::new(&list[at as usize], requirements)).collect();
                    for (&at, choice) in types.iter().zip(&choices) {
                        if !open.knows(at as usize) {
                            open.learn(at as usize, choice, &terms);
                        }
                    }
                    let view = LaunchView { karpenter, requirements, requests, types: &choices, min_values };
                    let anew = select(&view);
                    assert_eq!(select_known(&LaunchView { types: &[], ..view }, &list, &types, &open), anew, "{asked}");
                    different.push(anew);
                }
            }
        }
        different.dedup();
        assert!(different.len() > 20, "only {} different answers", different.len());
    }
}
