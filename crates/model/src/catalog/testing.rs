//! Real instance types for unit tests.

use super::{Cells, InstanceFacts};

/// The instance type `name` as the price data have it. No cell of that table is quoted.
pub(crate) fn facts(name: &str) -> InstanceFacts {
    const TABLE: &str = include_str!("../../../../pricing-data/instance-types.csv");
    let (header, lines) = TABLE.split_once('\n').unwrap();
    let header: Vec<&str> = header.split(',').collect();
    let position = |column: &&str| header.iter().position(|title| title == column).unwrap();
    let line = lines.lines().find(|line| line.split(',').next() == Some(name)).unwrap();
    let cells: Vec<&str> = line.split(',').collect();
    let texts: Vec<&str> = InstanceFacts::COLUMNS.iter().map(|column| cells[position(column)]).collect();
    InstanceFacts::from_cells(&mut Cells::new(InstanceFacts::COLUMNS, &texts, 0)).unwrap()
}
