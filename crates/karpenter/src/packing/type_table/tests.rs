use std::sync::Arc;

use super::{RequirementTable, ResourceTable, TypeQuery, TypeTable, bits, levels};
use crate::instance_types::{InstanceType, Offering};
use nodecast_model::domain::symbol::{Symbol, well_known};
use nodecast_model::domain::{HourlyRate, KarpenterVersion, Requirements, Resources};

fn instance_type(index: i64) -> InstanceType {
    let capacity = Resources::cpu_memory(1_000 * (1 + index * 7 % 64), (1 + index * 11 % 90) << 30);
    let offering = Offering {
        zone: Symbol::new("a"),
        zone_id: None,
        capacity_type: well_known::ON_DEMAND,
        price: HourlyRate::from_nanos(1),
        available: index % 5 != 0,
        reservation: None,
        overlay: None,
    };
    InstanceType {
        name: Symbol::new(&format!("t{index}")),
        requirements: Arc::default(),
        allocatable: capacity.clone(),
        capacity,
        offerings: vec![offering],
    }
}

#[test]
fn types_lost_pod_by_pod_match_single_step() {
    let types: Vec<InstanceType> = (0..200).map(instance_type).collect();
    let (mut table, mut resources) = (RequirementTable::new(KarpenterVersion::V1_13), ResourceTable::default());
    let mut compiled = TypeTable::new(&types, well_known::CAPACITY_TYPE, (&[], &mut table));
    let set = table.intern(&Requirements::new());
    let pod = resources.dense(&Resources::cpu_memory(700, 3 << 28));
    compiled.prepare(set, &mut table);
    compiled.prepare_resources(&resources);
    let (mut left, mut least, mut most) = (bits::full(types.len()), Vec::new(), Vec::new());
    let mut requests = vec![0; pod.len()];
    for pods in 1.. {
        super::resource_table::add(&mut requests, &pod);
        let mut at_once = bits::full(types.len());
        let some = compiled.filter(&mut at_once, TypeQuery { set, requests: &requests, met: &[] });
        assert_eq!(some, compiled.filter(&mut left, TypeQuery { set, requests: &requests, met: &least }));
        assert_eq!(left, at_once, "{pods} pods");
        if !some {
            assert!(pods > 50, "{pods} pods");
            break;
        }
        compiled.least_room(&requests, &mut least);
        compiled.most_room(&left, &mut most);
        for (index, column) in compiled.levels.iter().map(|level| &level.column).enumerate() {
            let room = || bits::iter(&left).map(|item| column[item]);
            assert_eq!(room().max(), Some(most[index].amount), "{pods} pods");
            assert!(room().min() >= Some(least[index]) && least[index] >= requests[index], "{pods} pods");
        }
    }
}

#[test]
fn first_reachable_level_matches_linear_scan() {
    let table = levels([5, 9, 1, 9, 4, 7, 3, 2, 8, 6, 0, 11].into());
    for chosen in 0_u64..1 << 12 {
        for from in 0..=table.amounts.len() {
            let mut found = table.at_least.iter().enumerate().skip(from);
            let expected = found.find(|(_, least)| bits::intersects(&[chosen], least)).map(|(level, _)| level);
            assert_eq!(
                table.first_with(&[chosen], from),
                expected.unwrap_or(table.amounts.len()),
                "{chosen:b} from {from}"
            );
        }
    }
}
