//! The texts of pricing-data/ as they are built into the program.

pub(super) const INSTANCE_TYPES: &str = include_str!("../pricing-data/instance-types.csv");
pub(super) const ZONES: &str = include_str!("../pricing-data/regions.csv");
pub(super) const DATES: &str = include_str!("../pricing-data/dates.csv");
pub(super) const VOLUMES: &str = include_str!("../pricing-data/ebs.csv");
pub(super) const NETWORK: &str = include_str!("../pricing-data/network.csv");
pub(super) const SPOT_LEVELS: &str = include_str!("../pricing-data/spot-levels.csv");
pub(super) const COMMITMENTS: &str = include_str!("../pricing-data/commitments.csv");

macro_rules! regions {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../pricing-data/regions/", $name, ".csv")))),*]
    };
}

/// Each region's table, in order of name.
const REGIONS: &[(&str, &str)] = regions![
    "af-south-1",
    "ap-east-1",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-west-1",
    "us-west-2",
];

/// The table of the region `name`.
pub(super) fn region(name: &str) -> Option<&'static str> {
    REGIONS.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}
