//! Karpenter's NodeOverlay: what it is to believe of instance types that is not so in EC2's own words.

use super::money::HourlyRate;
use super::requirements::Requirement;
use super::resources::Resources;
use super::symbol::Symbol;

/// A NodeOverlay (`karpenter.sh/v1alpha1`).
///
/// Source: Karpenter core v1.14 `pkg/apis/v1alpha1/nodeoverlay.go`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeOverlay {
    /// Name.
    pub name: Symbol,
    /// Which of several counts: the one with the higher weight; 0 unless given.
    pub weight: i32,
    /// What an instance type, its NodePool and its offerings have to meet.
    pub requirements: Vec<Requirement>,
    /// What becomes of the price of the offerings that meet them.
    pub price: Option<PriceOverlay>,
    /// Extended resources that nodes of the types get; empty for none.
    pub capacity: Resources,
}

/// What becomes of the price of an offering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriceOverlay {
    /// `price`: it is this.
    To(HourlyRate),
    /// `priceAdjustment` with a sign: so much is added, or taken off.
    By(HourlyRate),
    /// `priceAdjustment` with a sign and `%`: a share of it in millionths of a percent is added, or taken off.
    Percent(i64),
}

/// Millionths of a percent in the whole.
const WHOLE: i64 = 100_000_000;

impl PriceOverlay {
    /// Reads a `priceAdjustment`: a sign and an amount an hour, or a sign and a percentage, of which no more than the whole can be
    /// taken off.
    pub fn parse_adjustment(text: &str) -> Option<Self> {
        let (sign, amount) = match text.split_at_checked(1)? {
            ("+", amount) => (1, amount),
            ("-", amount) => (-1, amount),
            _ => return None,
        };
        let number = |text: &str| HourlyRate::parse(&format!("0{text}")).map(HourlyRate::as_nanos);
        match amount.strip_suffix('%') {
            Some(percent) => {
                let share = sign * number(percent)? / 1_000;
                (share >= -WHOLE && !percent.is_empty()).then_some(Self::Percent(share))
            }
            None => (!amount.is_empty()).then_some(Self::By(HourlyRate::from_nanos(sign * number(amount)?))),
        }
    }

    /// What a price becomes; never less than nothing.
    ///
    /// Source: Karpenter core v1.14 `pkg/cloudprovider/types.go`, `AdjustedPrice`.
    pub fn apply(self, price: HourlyRate) -> HourlyRate {
        let changed = match self {
            Self::To(price) => price,
            Self::By(change) => HourlyRate::from_nanos(price.as_nanos().saturating_add(change.as_nanos())),
            Self::Percent(share) => price.scaled(WHOLE.saturating_add(share), WHOLE),
        };
        changed.max(HourlyRate::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::PriceOverlay;
    use crate::domain::HourlyRate;

    fn adjusted(text: &str, price: &str) -> Option<String> {
        let price_overlay = PriceOverlay::parse_adjustment(text)?;
        Some(price_overlay.apply(HourlyRate::parse(price).unwrap()).as_nanos().to_string())
    }

    #[test]
    fn price_adjustment_is_absolute_or_relative_and_nonnegative() {
        for (text, price, expected) in [
            ("+10%", "0.1", "110000000"),
            ("-15%", "0.2", "170000000"),
            ("-12.5%", "0.08", "70000000"),
            ("-100%", "0.08", "0"),
            ("+250%", "0.1", "350000000"),
            ("-0.03", "0.1", "70000000"),
            ("+.5", "0.1", "600000000"),
            ("-2", "0.1", "0"),
        ] {
            assert_eq!(adjusted(text, price).as_deref(), Some(expected), "{text}");
        }
        for text in ["10%", "0.5", "+", "-%", "-100.1%", "+a", "", "%", "é"] {
            assert_eq!(adjusted(text, "1"), None, "{text}");
        }
    }
}
