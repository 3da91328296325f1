//! Warnings about commitments: derived prices, and platforms that no node has.

use crate::actors::Setup;
use crate::catalog::PriceQuality;
use crate::cloud::commitments::Platform;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// Warns of commitments whose price is derived, and of Reserved Instances that cannot cover anything.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let bought = &setup.scenario.ec2.cloud.billing.commitments;
    if bought.qualities().into_iter().any(|quality| quality >= PriceQuality::Derived) {
        warnings.add(&setup::COMMITMENT_PRICE,
            "ec2.billing: the price of a commitment by its term is derived; without upfront payment the true price is up to 1.5% higher, so the \
             cost may be too low. Set `per_hour` or `discount`"
                .to_owned(),
        );
    }
    let is_unknown = |platform: Platform| matches!(platform, Platform::Rhel | Platform::Suse);
    for reserved in bought.reserved.iter().filter(|reserved| is_unknown(reserved.platform)) {
        warnings.add(&setup::RESERVATION_PLATFORM, format!(
            "ec2.billing.reserved_instances: those of {} for {} cover nothing, as no node is known to run that system; the cost is too high if \
             some do. Remove `platform` if they are for Linux",
            reserved.instance_type,
            reserved.platform.as_str()
        ));
    }
}
