//! The master problem of a column generation: cover every row at the least cost with the columns known so far.
//!
//! A revised simplex with an explicit inverse of the basis. It starts from a basis that is feasible by construction, and
//! its answers need not be exact: the bound that is made of its prices is proved elsewhere.

/// A column: its cost and its entries by row.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Column {
    pub(super) cost: f64,
    pub(super) entries: Vec<(u32, f64)>,
}

/// A variable of the basis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Basic {
    Column(usize),
    /// What a row is covered beyond its demand.
    Surplus(usize),
}

/// Minimise the cost of columns under `columns * x - surplus = demand`.
pub(super) struct Master {
    rows: usize,
    demand: Vec<f64>,
    pub(super) columns: Vec<Column>,
    basis: Vec<Basic>,
    is_basic: Vec<bool>,
    /// Row by row.
    inverse: Vec<f64>,
    /// The values of the basic variables.
    values: Vec<f64>,
    /// The price of each row.
    pub(super) prices: Vec<f64>,
}

/// Reduced costs nearer to zero than this count as zero.
const REDUCED_COST: f64 = 1e-9;
/// Pivots smaller than this are not divided by.
const PIVOT: f64 = 1e-9;
/// After so many pivots the inverse is checked.
const CHECK_EVERY: usize = 64;

impl Master {
    /// A master with a first basis: for each row a column whose only entry stands in that row, or `None` for the row's
    /// surplus, whose demand must then be zero or less.
    pub(super) fn new(demand: Vec<f64>, first: Vec<Option<Column>>) -> Self {
        let rows = demand.len();
        let mut master = Self {
            rows,
            columns: Vec::new(),
            basis: Vec::with_capacity(rows),
            is_basic: Vec::new(),
            inverse: vec![0.0; rows * rows],
            values: Vec::with_capacity(rows),
            prices: vec![0.0; rows],
            demand,
        };
        for (row, column) in first.into_iter().enumerate() {
            let (entry, cost) = match column {
                Some(column) => {
                    let entry = column.entries[0].1;
                    let cost = column.cost;
                    master.basis.push(Basic::Column(master.columns.len()));
                    master.columns.push(column);
                    master.is_basic.push(true);
                    (entry, cost)
                }
                None => {
                    master.basis.push(Basic::Surplus(row));
                    (-1.0, 0.0)
                }
            };
            master.inverse[row * rows + row] = 1.0 / entry;
            master.values.push(master.demand[row] / entry);
            master.prices[row] = cost / entry;
        }
        master
    }

    /// Makes a column known.
    pub(super) fn add(&mut self, column: Column) {
        self.columns.push(column);
        self.is_basic.push(false);
    }

    /// What the basis costs.
    pub(super) fn cost(&self) -> f64 {
        let cost = |(basic, value): (&Basic, &f64)| self.cost_of(*basic) * value;
        self.basis.iter().zip(&self.values).map(cost).sum()
    }

    /// The columns in the basis by position, with their values.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.basis.iter().zip(&self.values).filter_map(|(basic, &value)| match basic {
            Basic::Column(column) => Some((*column, value)),
            Basic::Surplus(_) => None,
        })
    }

    /// Pivots until nothing improves or `most` pivots are done; the pivots done.
    pub(super) fn improve(&mut self, most: usize) -> usize {
        for pivot in 0..most {
            if pivot % CHECK_EVERY == CHECK_EVERY - 1 && !self.is_consistent() && !self.rebuild() {
                return pivot;
            }
            let Some(entering) = self.entering() else { return pivot };
            let direction = self.direction(entering);
            let Some(leaving) = self.leaving(&direction) else { return pivot };
            self.exchange(entering, leaving, &direction);
        }
        most
    }

    fn cost_of(&self, basic: Basic) -> f64 {
        match basic {
            Basic::Column(column) => self.columns[column].cost,
            Basic::Surplus(_) => 0.0,
        }
    }

    fn reduced_cost(&self, column: &Column) -> f64 {
        column.cost - column.entries.iter().map(|&(row, entry)| self.prices[row as usize] * entry).sum::<f64>()
    }

    /// The variable that improves most for its cost.
    fn entering(&self) -> Option<Basic> {
        let mut best: Option<(f64, Basic)> = None;
        let mut offer = |gain: f64, basic: Basic| {
            if gain > REDUCED_COST && best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, basic));
            }
        };
        for (position, column) in self.columns.iter().enumerate() {
            if !self.is_basic[position] {
                offer(-self.reduced_cost(column) / column.cost.max(1e-12), Basic::Column(position));
            }
        }
        for (row, &price) in self.prices.iter().enumerate() {
            offer(-price, Basic::Surplus(row));
        }
        best.map(|(_, basic)| basic)
    }

    /// The entering variable in terms of the basis.
    fn direction(&self, entering: Basic) -> Vec<f64> {
        let mut direction = vec![0.0; self.rows];
        let mut add = |row: usize, entry: f64| {
            for (position, direction) in direction.iter_mut().enumerate() {
                *direction += self.inverse[position * self.rows + row] * entry;
            }
        };
        match entering {
            Basic::Column(column) => {
                for &(row, entry) in &self.columns[column].entries {
                    add(row as usize, entry);
                }
            }
            Basic::Surplus(row) => add(row, -1.0),
        }
        direction
    }

    /// The position that reaches zero first; among equals the one with the largest pivot.
    fn leaving(&self, direction: &[f64]) -> Option<usize> {
        let mut best: Option<(f64, f64, usize)> = None;
        for (position, (&step, &value)) in direction.iter().zip(&self.values).enumerate() {
            if step <= PIVOT {
                continue;
            }
            let ratio = value.max(0.0) / step;
            let better =
                best.is_none_or(|(least, pivot, _)| ratio < least - 1e-12 || (ratio <= least + 1e-12 && step > pivot));
            if better {
                best = Some((ratio, step, position));
            }
        }
        best.map(|(_, _, position)| position)
    }

    fn exchange(&mut self, entering: Basic, leaving: usize, direction: &[f64]) {
        let rows = self.rows;
        let pivot = direction[leaving];
        let ratio = self.values[leaving].max(0.0) / pivot;
        let reduced = match entering {
            Basic::Column(column) => self.reduced_cost(&self.columns[column]),
            Basic::Surplus(row) => self.prices[row],
        };
        let mut pivot_row: Vec<f64> = self.inverse[leaving * rows..(leaving + 1) * rows].to_vec();
        for entry in &mut pivot_row {
            *entry /= pivot;
        }
        for (position, &step) in direction.iter().enumerate() {
            if position == leaving || step.abs() < 1e-14 {
                continue;
            }
            self.values[position] = (self.values[position] - step * ratio).max(0.0);
            let row = &mut self.inverse[position * rows..(position + 1) * rows];
            for (row, entry) in row.iter_mut().zip(&pivot_row) {
                *row -= step * entry;
            }
        }
        for (price, entry) in self.prices.iter_mut().zip(&pivot_row) {
            *price += reduced * entry;
        }
        self.inverse[leaving * rows..(leaving + 1) * rows].copy_from_slice(&pivot_row);
        self.values[leaving] = ratio;
        if let Basic::Column(column) = self.basis[leaving] {
            self.is_basic[column] = false;
        }
        if let Basic::Column(column) = entering {
            self.is_basic[column] = true;
        }
        self.basis[leaving] = entering;
    }

    /// Whether the prices still make the basic columns cost what they are worth.
    fn is_consistent(&self) -> bool {
        self.basis.iter().all(|basic| match *basic {
            Basic::Column(column) => {
                let column = &self.columns[column];
                self.reduced_cost(column).abs() <= 1e-7 * column.cost.max(1.0)
            }
            Basic::Surplus(row) => self.prices[row].abs() <= 1e-7,
        })
    }

    /// Computes the inverse anew by elimination; false if the basis is singular.
    fn rebuild(&mut self) -> bool {
        let rows = self.rows;
        let mut matrix = vec![0.0; rows * rows];
        for (position, basic) in self.basis.iter().enumerate() {
            match *basic {
                Basic::Column(column) => {
                    for &(row, entry) in &self.columns[column].entries {
                        matrix[row as usize * rows + position] = entry;
                    }
                }
                Basic::Surplus(row) => matrix[row * rows + position] = -1.0,
            }
        }
        let Some(inverse) = inverted(matrix, rows) else { return false };
        self.inverse = inverse;
        for position in 0..rows {
            let row = &self.inverse[position * rows..(position + 1) * rows];
            self.values[position] = row.iter().zip(&self.demand).map(|(a, b)| a * b).sum::<f64>().max(0.0);
        }
        self.prices.fill(0.0);
        for (position, &basic) in self.basis.iter().enumerate() {
            let cost = self.cost_of(basic);
            if cost > 0.0 {
                let row = &self.inverse[position * rows..(position + 1) * rows];
                for (price, entry) in self.prices.iter_mut().zip(row) {
                    *price += cost * entry;
                }
            }
        }
        true
    }
}

/// The inverse by Gauss and Jordan with partial pivoting.
fn inverted(mut matrix: Vec<f64>, rows: usize) -> Option<Vec<f64>> {
    let mut inverse = vec![0.0; rows * rows];
    for row in 0..rows {
        inverse[row * rows + row] = 1.0;
    }
    for column in 0..rows {
        let best = (column..rows)
            .max_by(|&a, &b| matrix[a * rows + column].abs().total_cmp(&matrix[b * rows + column].abs()))?;
        if matrix[best * rows + column].abs() < 1e-11 {
            return None;
        }
        for of in [&mut matrix, &mut inverse] {
            for entry in 0..rows {
                of.swap(best * rows + entry, column * rows + entry);
            }
        }
        let pivot = matrix[column * rows + column];
        let numbers: Vec<f64> = matrix[column * rows..(column + 1) * rows].iter().map(|entry| entry / pivot).collect();
        let own_inverse: Vec<f64> =
            inverse[column * rows..(column + 1) * rows].iter().map(|entry| entry / pivot).collect();
        for row in 0..rows {
            let factor = matrix[row * rows + column];
            if row == column || factor.abs() < 1e-300 {
                continue;
            }
            for (entry, number) in matrix[row * rows..(row + 1) * rows].iter_mut().zip(&numbers) {
                *entry -= factor * number;
            }
            for (entry, inverse) in inverse[row * rows..(row + 1) * rows].iter_mut().zip(&own_inverse) {
                *entry -= factor * inverse;
            }
        }
        matrix[column * rows..(column + 1) * rows].copy_from_slice(&numbers);
        inverse[column * rows..(column + 1) * rows].copy_from_slice(&own_inverse);
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::{Column, Master};

    fn column(cost: f64, entries: &[(u32, f64)]) -> Column {
        Column { cost, entries: entries.to_vec() }
    }

    #[test]
    fn a_shared_column_replaces_two_single_ones() {
        let first = vec![Some(column(1.0, &[(0, 2.0)])), Some(column(1.0, &[(1, 1.0)]))];
        let mut master = Master::new(vec![4.0, 2.0], first);
        assert!((master.cost() - 4.0).abs() < 1e-9);
        master.add(column(1.0, &[(0, 1.0), (1, 1.0)]));
        master.improve(100);
        assert!((master.cost() - 3.0).abs() < 1e-9, "two shared and one of two: {}", master.cost());
        assert!((master.prices[0] - 0.5).abs() < 1e-9 && (master.prices[1] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn existing_column_use_is_bounded_by_count() {
        // Row 1 says that the free column is used at most once.
        let first = vec![Some(column(5.0, &[(0, 1.0)])), None];
        let mut master = Master::new(vec![3.0, -1.0], first);
        master.add(column(0.0, &[(0, 2.0), (1, -1.0)]));
        master.improve(100);
        assert!((master.cost() - 5.0).abs() < 1e-9, "{}", master.cost());
        assert!((master.prices[1] - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_rebuilt_inverse_gives_the_same_prices() {
        let first = (0..6).map(|row| Some(column(1.0, &[(row, 1.0)]))).collect();
        let mut master = Master::new(vec![3.0, 5.0, 2.0, 7.0, 1.0, 4.0], first);
        for row in 0..6_u32 {
            master.add(column(1.3, &[(row, 1.0), ((row + 1) % 6, 1.0), ((row + 3) % 6, 2.0)]));
        }
        master.improve(100);
        let (cost, prices) = (master.cost(), master.prices.clone());
        assert!(master.rebuild() && (master.cost() - cost).abs() < 1e-9);
        assert!(master.prices.iter().zip(&prices).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}
