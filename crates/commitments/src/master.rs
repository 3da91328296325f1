//! The master problem of cutting planes: the lowest point of the maximum of cuts in a box, as a small linear program.
//!
//! Solved by its dual, which has a row for each coordinate and one for the weights of cuts, and a column for each cut. New cuts are new columns, so
//! that the last basis stays feasible.

/// Amounts below this are zero.
const TINY: f64 = 1e-11;
/// Pivots at most in one solution.
const PIVOTS_MAX: usize = 5_000;

/// Cuts `offset + slope · x` over the box `0 <= x <= limits`.
pub(crate) struct Master {
    limits: Vec<f64>,
    cuts: Vec<(f64, Vec<f64>)>,
    /// Column of each row's basic variable: a cut, or beyond all cuts a slack.
    basis: Vec<Variable>,
    /// Inverse of the basis, by rows.
    inverse: Vec<Vec<f64>>,
    /// Values of the basic variables.
    values: Vec<f64>,
}

/// A variable of the dual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variable {
    /// Weight of a cut.
    Cut(usize),
    /// A negative slope at the upper end of a coordinate.
    Upper(usize),
    /// A positive slope at the lower end of a coordinate.
    Lower(usize),
}

impl Master {
    /// A master problem without cuts.
    pub(crate) fn new(limits: Vec<f64>) -> Self {
        Self { limits, cuts: Vec::new(), basis: Vec::new(), inverse: Vec::new(), values: Vec::new() }
    }

    /// Adds a cut. The first one is the first basis.
    pub(crate) fn add_cut(&mut self, offset: f64, slope: Vec<f64>) {
        self.cuts.push((offset, slope));
        if self.cuts.len() == 1 {
            self.start();
        }
    }

    /// Rows: for each coordinate the slope of the weighted cuts, plus `Upper`, minus `Lower`, is zero; the weights sum to one.
    fn start(&mut self) {
        let count = self.limits.len();
        let slope = self.cuts[0].1.clone();
        self.basis = vec![Variable::Cut(0); count + 1];
        self.inverse = vec![vec![0.0; count + 1]; count + 1];
        self.values = vec![1.0; count + 1];
        for (row, &slope) in slope.iter().enumerate() {
            let sign = if slope < 0.0 { 1.0 } else { -1.0 };
            self.basis[row] = if slope < 0.0 { Variable::Upper(row) } else { Variable::Lower(row) };
            self.inverse[row][row] = sign;
            self.inverse[row][count] = -sign * slope;
            self.values[row] = slope.abs();
        }
        self.inverse[count][count] = 1.0;
    }

    fn column(&self, variable: Variable) -> Vec<f64> {
        let count = self.limits.len();
        let mut column = vec![0.0; count + 1];
        match variable {
            Variable::Cut(number) => {
                column[..count].copy_from_slice(&self.cuts[number].1);
                column[count] = 1.0;
            }
            Variable::Upper(row) => column[row] = 1.0,
            Variable::Lower(row) => column[row] = -1.0,
        }
        column
    }

    /// Contribution of a variable to the bound.
    fn gain(&self, variable: Variable) -> f64 {
        match variable {
            Variable::Cut(number) => self.cuts[number].0,
            Variable::Upper(row) => -self.limits[row],
            Variable::Lower(_) => 0.0,
        }
    }

    /// The lowest value of the maximum of the cuts, and where it is.
    pub(crate) fn solve(&mut self) -> (f64, Vec<f64>) {
        for pivot in 0..PIVOTS_MAX {
            let prices = self.prices();
            // Bland's rule after a while, so that no cycle goes on.
            let Some(entering) = self.entering(&prices, pivot > 200) else { break };
            if !self.pivot(entering) {
                break;
            }
        }
        let bound = self.basis.iter().zip(&self.values).map(|(&variable, value)| self.gain(variable) * value).sum();
        let prices = self.prices();
        let point = self.limits.iter().zip(prices).map(|(&limit, price)| (-price).clamp(0.0, limit)).collect();
        (bound, point)
    }

    /// Dual prices of the rows.
    fn prices(&self) -> Vec<f64> {
        let gains: Vec<f64> = self.basis.iter().map(|&variable| self.gain(variable)).collect();
        (0..self.basis.len())
            .map(|row| gains.iter().zip(&self.inverse).map(|(gain, line)| gain * line[row]).sum())
            .collect()
    }

    /// The variable that raises the bound most, or the first that raises it.
    fn entering(&self, prices: &[f64], first: bool) -> Option<Variable> {
        let rows = 0..self.limits.len();
        let slacks = rows.clone().map(Variable::Upper).chain(rows.map(Variable::Lower));
        let all = slacks.chain((0..self.cuts.len()).map(Variable::Cut));
        let mut best: Option<(f64, Variable)> = None;
        for variable in all {
            let paid: f64 = match variable {
                Variable::Cut(number) => {
                    let slope = self.cuts[number].1.iter().zip(prices).map(|(slope, price)| slope * price);
                    slope.sum::<f64>() + prices[self.limits.len()]
                }
                Variable::Upper(row) => prices[row],
                Variable::Lower(row) => -prices[row],
            };
            let raised = self.gain(variable) - paid;
            if raised > TINY && !self.basis.contains(&variable) && best.is_none_or(|(most, _)| raised > most) {
                best = Some((raised, variable));
                if first {
                    break;
                }
            }
        }
        best.map(|pair| pair.1)
    }

    /// Brings a variable into the basis; whether it could.
    fn pivot(&mut self, entering: Variable) -> bool {
        let column = self.column(entering);
        let moved: Vec<f64> =
            self.inverse.iter().map(|line| line.iter().zip(&column).map(|(cell, part)| cell * part).sum()).collect();
        let mut leaving: Option<(f64, usize)> = None;
        for (row, &change) in moved.iter().enumerate() {
            if change > TINY {
                let steps = self.values[row].max(0.0) / change;
                if leaving.is_none_or(|(least, _)| steps < least) {
                    leaving = Some((steps, row));
                }
            }
        }
        let Some((steps, row)) = leaving else { return false };
        let divisor = moved[row];
        for cell in &mut self.inverse[row] {
            *cell /= divisor;
        }
        let pivot_line = self.inverse[row].clone();
        for (other, line) in self.inverse.iter_mut().enumerate().filter(|(other, _)| *other != row) {
            let factor = moved[other];
            for (cell, part) in line.iter_mut().zip(&pivot_line) {
                *cell -= factor * part;
            }
            self.values[other] = (self.values[other] - factor * steps).max(0.0);
        }
        self.values[row] = steps;
        self.basis[row] = entering;
        true
    }
}
