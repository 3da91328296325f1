//! Releases of the Vertical Pod Autoscaler.

use std::fmt;
use std::str::FromStr;

use super::{UnknownVersion, major_and_minor};

/// A minor release of the Vertical Pod Autoscaler, 1.2 to 1.7.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VerticalPodAutoscalerVersion(u8);

impl VerticalPodAutoscalerVersion {
    /// The oldest release whose behaviour is known.
    pub const OLDEST: u8 = 2;
    /// The newest.
    pub const NEWEST: u8 = 7;

    /// The release 1.`minor`.
    pub fn from_minor(minor: u8) -> Option<Self> {
        (Self::OLDEST..=Self::NEWEST).contains(&minor).then_some(Self(minor))
    }

    /// The minor number.
    pub const fn minor(self) -> u8 {
        self.0
    }

    /// Every release, the oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::OLDEST..=Self::NEWEST).map(Self)
    }
}

impl Default for VerticalPodAutoscalerVersion {
    /// The newest.
    fn default() -> Self {
        Self(Self::NEWEST)
    }
}

impl fmt::Display for VerticalPodAutoscalerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

impl FromStr for VerticalPodAutoscalerVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let minor = major_and_minor(text).filter(|(major, _)| *major == 1).map(|(_, minor)| minor);
        minor.and_then(Self::from_minor).ok_or_else(|| UnknownVersion {
            program: "Vertical Pod Autoscaler",
            given: text.to_owned(),
            known: format!("1.{} to 1.{}", Self::OLDEST, Self::NEWEST),
            nearest: minor.map(|minor| format!("1.{}", minor.clamp(Self::OLDEST, Self::NEWEST))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::VerticalPodAutoscalerVersion as Version;

    #[test]
    fn releases_read_with_or_without_their_patch_level() {
        assert_eq!("1.7.1".parse(), Ok(Version::default()));
        assert_eq!("v1.4".parse::<Version>().map(Version::minor), Ok(4));
        assert_eq!("1.9".parse::<Version>().unwrap_err().nearest.as_deref(), Some("1.7"));
        assert_eq!("0.14".parse::<Version>().unwrap_err().nearest, None);
        assert_eq!(Version::all().count(), 6);
    }
}
