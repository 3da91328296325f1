//! The names under which the price list knows the regions.

/// Regions by the name of their location. `EU` and `Europe` are the same.
const LOCATIONS: [(&str, &str); 35] = [
    ("AWS GovCloud (US-East)", "us-gov-east-1"),
    ("AWS GovCloud (US-West)", "us-gov-west-1"),
    ("Africa (Cape Town)", "af-south-1"),
    ("Asia Pacific (Hong Kong)", "ap-east-1"),
    ("Asia Pacific (Hyderabad)", "ap-south-2"),
    ("Asia Pacific (Jakarta)", "ap-southeast-3"),
    ("Asia Pacific (Malaysia)", "ap-southeast-5"),
    ("Asia Pacific (Melbourne)", "ap-southeast-4"),
    ("Asia Pacific (Mumbai)", "ap-south-1"),
    ("Asia Pacific (Osaka)", "ap-northeast-3"),
    ("Asia Pacific (Seoul)", "ap-northeast-2"),
    ("Asia Pacific (Singapore)", "ap-southeast-1"),
    ("Asia Pacific (Sydney)", "ap-southeast-2"),
    ("Asia Pacific (Thailand)", "ap-southeast-7"),
    ("Asia Pacific (Tokyo)", "ap-northeast-1"),
    ("Canada (Central)", "ca-central-1"),
    ("Canada West (Calgary)", "ca-west-1"),
    ("China (Beijing)", "cn-north-1"),
    ("EU (Frankfurt)", "eu-central-1"),
    ("EU (Ireland)", "eu-west-1"),
    ("EU (London)", "eu-west-2"),
    ("EU (Milan)", "eu-south-1"),
    ("EU (Paris)", "eu-west-3"),
    ("EU (Spain)", "eu-south-2"),
    ("EU (Stockholm)", "eu-north-1"),
    ("EU (Zurich)", "eu-central-2"),
    ("Israel (Tel Aviv)", "il-central-1"),
    ("Mexico (Central)", "mx-central-1"),
    ("Middle East (Bahrain)", "me-south-1"),
    ("Middle East (UAE)", "me-central-1"),
    ("South America (Sao Paulo)", "sa-east-1"),
    ("US East (N. Virginia)", "us-east-1"),
    ("US East (Ohio)", "us-east-2"),
    ("US West (N. California)", "us-west-1"),
    ("US West (Oregon)", "us-west-2"),
];

/// The region at `location`.
pub(super) fn by_location(location: &str) -> Option<&'static str> {
    let european = location.strip_prefix("Europe ").map(|rest| format!("EU {rest}"));
    let location = european.as_deref().unwrap_or(location);
    LOCATIONS.iter().find(|(name, _)| *name == location).map(|(_, region)| *region)
}

#[cfg(test)]
mod tests {
    use super::{LOCATIONS, by_location};
    use crate::Catalog;

    #[test]
    fn every_region_with_prices_has_a_location() {
        for region in Catalog::embedded().unwrap().regions() {
            assert!(LOCATIONS.iter().any(|(_, own)| *own == region), "{region}");
        }
        assert_eq!(by_location("Europe (Spain)"), Some("eu-south-2"));
    }
}
