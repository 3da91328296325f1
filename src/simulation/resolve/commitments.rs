//! Warnings about commitments: derived prices.

use crate::actors::Setup;
use crate::catalog::PriceQuality;
use crate::scenario::Caveats;

/// Warns of commitments whose price is derived.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let bought = &setup.scenario.ec2.cloud.billing.commitments;
    if bought.qualities().into_iter().any(|quality| quality >= PriceQuality::Derived) {
        warnings.may_change(
            "ec2.billing: the price of a commitment by its term is derived; without upfront payment the true price is up to 1.5% higher, so the \
             cost may be too low. Set `per_hour` or `discount`"
                .to_owned(),
        );
    }
}
