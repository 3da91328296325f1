//! Amounts of the recommender: whole thousandths of a CPU, whole bytes.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/model/types.go`.

/// The largest amount that there is, for CPU as for memory.
const LARGEST: f64 = 1e14;

/// The amount that a real number stands for: cut off, and kept between nothing and the largest. What is not a number is below every
/// amount, as Go's conversion makes of it on amd64.
pub(super) fn amount(number: f64) -> i64 {
    if number.is_nan() { i64::MIN } else { number.clamp(0.0, LARGEST) as i64 }
}

/// An amount times a factor.
pub(super) fn scaled(of: i64, factor: f64) -> i64 {
    amount(of as f64 * factor)
}

/// The next multiple of `step` from the amount on; the amount itself for a step that is not above one.
pub(super) fn rounded_up(of: i64, step: i64) -> i64 {
    if step <= 1 || of % step == 0 { of } else { of.saturating_add(step - of % step) }
}

/// `base` to a whole power, by squaring the mantissa along the bits of the exponent with the power of two kept apart: in the last bit
/// of some powers this differs from `pow` of other libraries, and with it an edge of a bucket of memory by a byte.
///
/// Source: Go 1.26 `math.Pow`.
pub(super) fn power(base: f64, exponent: i32) -> f64 {
    if base.is_infinite() {
        return if exponent < 0 { 0.0 } else { base };
    }
    let (mut result, mut result_twos) = (1.0, 0);
    let (mut factor, mut factor_twos) = libm::frexp(base);
    let mut rest = exponent.unsigned_abs();
    while rest != 0 {
        if rest & 1 == 1 {
            result *= factor;
            result_twos += factor_twos;
        }
        factor *= factor;
        factor_twos <<= 1;
        if factor < 0.5 {
            factor += factor;
            factor_twos -= 1;
        }
        rest >>= 1;
    }
    if exponent < 0 {
        (result, result_twos) = (1.0 / result, -result_twos);
    }
    libm::ldexp(result, result_twos)
}

#[cfg(test)]
mod tests {
    use super::{amount, power, rounded_up, scaled};

    #[test]
    fn amounts_are_cut_off_and_kept_in_bounds() {
        const LARGEST: i64 = 100_000_000_000_000;
        let amounts = [1.9, -3.0, 1e20, f64::INFINITY].map(amount);
        assert_eq!(amounts, [1, 0, LARGEST, LARGEST]);
        assert_eq!(scaled(0, f64::INFINITY), i64::MIN, "nothing times endlessly much is below every minimum");
    }

    #[test]
    fn amounts_are_rounded_up_to_multiples() {
        assert_eq!(
            [(0, 10), (1, 10), (10, 10), (11, 10), (7, 1), (7, 0)].map(|(of, step)| rounded_up(of, step)),
            [0, 10, 10, 20, 7, 7]
        );
    }

    #[test]
    fn powers_handle_negative_and_infinite_values() {
        assert!((power(1.05, 20) - 2.653_297_705_144_42).abs() < 1e-12);
        assert!((power(2.0, -2) - 0.25).abs() < f64::EPSILON);
        assert!(power(f64::INFINITY, -2).abs() < f64::EPSILON);
        assert!(power(f64::INFINITY, 1).is_infinite());
    }
}
