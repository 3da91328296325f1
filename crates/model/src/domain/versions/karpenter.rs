//! Releases of Karpenter: how they are written, and which of them are reproduced.

use std::fmt;
use std::str::FromStr;

use super::{UnknownVersion, major_and_minor};

/// A Karpenter release as a user names it. What it does is a matter of `karpenter::release`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KarpenterVersion {
    major: u8,
    minor: u8,
    patch: Option<u16>,
    /// Whether it is a release, or what else there is.
    line: Line,
}

/// The kinds of Karpenter that a version names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Line {
    /// A release.
    Release,
    /// The one that AWS runs as EKS Auto Mode.
    AutoMode,
    /// The branch `main`, with the rules of the newest release and unreleased ones.
    Main,
}

/// Minor releases of v0 from the first to the last that are reproduced one by one.
const V0_MINORS: (u8, u8) = (23, 37);
/// The releases of which a recorded tutorial was made, and which stand alone.
const TUTORIALS: usize = 5;
/// How many releases are known, patch levels aside.
const KNOWN: usize =
    TUTORIALS + (V0_MINORS.1 - V0_MINORS.0 + 1) as usize + (KarpenterVersion::NEWEST.minor + 1) as usize;

impl KarpenterVersion {
    /// v0.4.1.
    pub const V0_4: Self = Self::exact(0, 4, 1);
    /// v0.6.3.
    pub const V0_6: Self = Self::exact(0, 6, 3);
    /// v0.16.0, whose defaulting webhook was not connected.
    pub const V0_16: Self = Self::exact(0, 16, 0);
    /// v0.18.1.
    pub const V0_18: Self = Self::exact(0, 18, 1);
    /// v0.22.1.
    pub const V0_22: Self = Self::exact(0, 22, 1);
    /// v1.13.
    pub const V1_13: Self = Self::minor_release(1, 13);
    /// v1.14.
    pub const V1_14: Self = Self::minor_release(1, 14);
    /// The newest release that is reproduced, which stands for later ones.
    pub const NEWEST: Self = Self::V1_14;

    /// The one that AWS runs as EKS Auto Mode. AWS does not publish which release that is: what Auto Mode is known to do needs v1.9 at
    /// least, and the newest known one stands in.
    pub const AUTO_MODE: Self = Self { line: Line::AutoMode, ..Self::NEWEST };

    /// The branch `main` after v1.14.1, as of 2026-08-20.
    pub const MAIN: Self = Self { line: Line::Main, ..Self::NEWEST };
    /// The name of [`MAIN`](Self::MAIN) in scenarios and options.
    pub const MAIN_NAME: &'static str = "main";

    /// Every release known, oldest first.
    pub const ALL: [Self; KNOWN] = {
        let mut all = [Self::NEWEST; KNOWN];
        let oldest = [Self::V0_4, Self::V0_6, Self::V0_16, Self::V0_18, Self::V0_22];
        let mut at = 0;
        while at < KNOWN {
            let later = at.saturating_sub(TUTORIALS) as u8;
            let of_v0 = V0_MINORS.1 - V0_MINORS.0;
            all[at] = match at < TUTORIALS {
                true => oldest[at],
                false if later <= of_v0 => Self::minor_release(0, V0_MINORS.0 + later),
                false => Self::minor_release(1, later - of_v0 - 1),
            };
            at += 1;
        }
        all
    };

    /// This patch level.
    pub const fn exact(major: u8, minor: u8, patch: u16) -> Self {
        Self { major, minor, patch: Some(patch), line: Line::Release }
    }

    /// This minor release, its patch level not stated.
    pub const fn minor_release(major: u8, minor: u8) -> Self {
        Self { major, minor, patch: None, line: Line::Release }
    }

    /// Major and minor number.
    pub const fn release(self) -> (u8, u8) {
        (self.major, self.minor)
    }

    /// The patch level, where it was stated.
    pub const fn patch(self) -> Option<u16> {
        self.patch
    }

    /// Whether it is the one that AWS runs as EKS Auto Mode.
    pub const fn is_auto_mode(self) -> bool {
        matches!(self.line, Line::AutoMode)
    }

    /// Whether it is the unreleased branch `main`.
    pub const fn is_main(self) -> bool {
        matches!(self.line, Line::Main)
    }

    /// Whether it is this minor release or a later one, whatever the patch level.
    pub const fn is_since(self, major: u8, minor: u8) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }

    /// The release whose behaviour is reproduced: itself from v0.23 on, and before that the nearest of those that are known.
    pub const fn reproduced(self) -> Self {
        match (self.major, self.minor) {
            (0, ..=22) => Self::nearest(self.release()),
            _ => self,
        }
    }

    /// The position in [`ALL`](Self::ALL) of the minor release whose behaviour is [reproduced](Self::reproduced).
    pub const fn position(self) -> usize {
        let first_v1 = TUTORIALS + (V0_MINORS.1 - V0_MINORS.0 + 1) as usize;
        match Self::nearest(self.release()).release() {
            (0, ..=4) => 0,
            (0, ..=6) => 1,
            (0, ..=16) => 2,
            (0, ..=18) => 3,
            (0, ..=22) => 4,
            (0, minor) => TUTORIALS + (minor - V0_MINORS.0) as usize,
            (_, minor) => first_v1 + minor as usize,
        }
    }

    /// The release that comes nearest to a major and a minor number.
    pub const fn nearest((major, minor): (u8, u8)) -> Self {
        match (major, minor) {
            (0, ..=4) => Self::V0_4,
            (0, ..=10) => Self::V0_6,
            (0, ..=16) => Self::V0_16,
            (0, ..=18) => Self::V0_18,
            (0, ..=22) => Self::V0_22,
            (0, minor) if minor <= V0_MINORS.1 => Self::minor_release(0, minor),
            (0, _) => Self::minor_release(1, 0),
            (1, minor) if minor <= Self::NEWEST.minor => Self::minor_release(1, minor),
            _ => Self::NEWEST,
        }
    }

    /// The releases that are known, in words.
    pub fn known() -> String {
        let oldest: Vec<String> = Self::ALL[..TUTORIALS].iter().map(Self::to_string).collect();
        let (oldest, newest) = (oldest.join(", "), Self::NEWEST.minor);
        format!("{oldest}, v0.{} to v0.{}, v1.0 to v1.{newest}, main", V0_MINORS.0, V0_MINORS.1)
    }
}

impl Default for KarpenterVersion {
    /// v1.13, the release that the agreement suites were made with.
    fn default() -> Self {
        Self::V1_13
    }
}

impl fmt::Display for KarpenterVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Line::AutoMode => return f.write_str("eks-auto-mode"),
            Line::Main => return f.write_str(Self::MAIN_NAME),
            Line::Release => {}
        }
        write!(f, "v{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

impl FromStr for KarpenterVersion {
    type Err = UnknownVersion;

    /// Accepts `main`, and a release with or without `v` and with or without its patch level (`v0.16.0`, `0.16`, `v1.5`, `v1.5.2`). Of v0.4 and
    /// v0.6 one patch level is known; from v0.16 on any release is taken, and one that is not reproduced for
    /// [another](Self::reproduced).
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        if text == Self::MAIN_NAME {
            return Ok(Self::MAIN);
        }
        let bare = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = bare.split('.');
        let mut next = || numbers.next().map(|number| number.parse::<u16>().ok());
        let read = match (next(), next(), next(), next()) {
            (Some(Some(major)), Some(Some(minor)), patch @ (None | Some(Some(_))), None) => {
                let small = |number: u16| u8::try_from(number).ok();
                small(major).zip(small(minor)).map(|(major, minor)| Self {
                    major,
                    minor,
                    patch: patch.flatten(),
                    line: Line::Release,
                })
            }
            _ => None,
        };
        read.and_then(Self::if_known).ok_or_else(|| UnknownVersion {
            program: "Karpenter",
            given: text.to_owned(),
            known: Self::known(),
            nearest: major_and_minor(text).map(|release| Self::nearest(release).to_string()),
        })
    }
}

impl KarpenterVersion {
    /// The release, if it can be named. Before v0.23 a minor number stands for the patch level that is reproduced.
    fn if_known(self) -> Option<Self> {
        let item = Self::ALL.into_iter().find(|known| known.release() == self.release());
        match (self.major, self.minor) {
            (0, 4 | 6) => item.filter(|known| self.patch.is_none_or(|patch| known.patch == Some(patch))),
            (0, 16 | 18 | 22) if self.patch.is_none() => item,
            (0, 16..=22) => Some(self),
            _ => item.map(|_| self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KarpenterVersion;

    #[test]
    fn a_constant_is_the_release_of_its_name() {
        let named = [
            (KarpenterVersion::V1_13, "v1.13"),
            (KarpenterVersion::V1_14, "v1.14"),
            (KarpenterVersion::V0_18, "v0.18.1"),
        ];
        for (release, name) in named {
            assert_eq!(release.to_string(), name);
        }
        assert_eq!(KarpenterVersion::ALL.last(), Some(&KarpenterVersion::NEWEST));
    }

    #[test]
    fn each_release_knows_its_position() {
        for (position, release) in KarpenterVersion::ALL.into_iter().enumerate() {
            assert_eq!(release.position(), position, "{release}");
        }
        assert_eq!(KarpenterVersion::exact(1, 99, 0).position(), KarpenterVersion::NEWEST.position());
    }

    #[test]
    fn the_nearest_release_is_named() {
        let nearest = |text: &str| text.parse::<KarpenterVersion>().unwrap_err().nearest;
        assert_eq!(nearest("v0.10.0").as_deref(), Some("v0.6.3"));
        assert_eq!(nearest("v0.38").as_deref(), Some("v1.0"));
        assert_eq!(nearest("v1.15.1").as_deref(), Some("v1.14"));
        assert_eq!(nearest("latest"), None);
    }

    #[test]
    fn karpenter_versions_round_trip() {
        let read = |text: &str| text.parse::<KarpenterVersion>().map(|number| number.to_string()).ok();
        for (text, written) in [
            ("v0.16.0", "v0.16.0"),
            ("0.16", "v0.16.0"),
            ("0.4", "v0.4.1"),
            ("v0.23", "v0.23"),
            ("0.37.6", "v0.37.6"),
            ("v1.0.0", "v1.0.0"),
            ("1.5", "v1.5"),
            ("v1.13.2", "v1.13.2"),
            ("main", "main"),
        ] {
            assert_eq!(read(text).as_deref(), Some(written), "{text}");
        }
        for text in ["v1", "v1.13.x", "v1.13.2.1", "v1.15", "0.38", "v0.4.3", "v0.12", "2.0", ""] {
            assert_eq!(read(text), None, "{text}");
        }
        for karpenter_version in KarpenterVersion::ALL {
            assert_eq!(karpenter_version.to_string().parse(), Ok(karpenter_version));
            assert_eq!(karpenter_version.reproduced(), karpenter_version);
        }
        assert_eq!(KarpenterVersion::ALL.len(), 35);
        assert!(KarpenterVersion::MAIN.is_main() && KarpenterVersion::MAIN.is_since(1, 14));
    }

    #[test]
    fn intermediate_releases_map_to_nearest_supported() {
        let reproduced = |text: &str| text.parse::<KarpenterVersion>().unwrap().reproduced().to_string();
        for (text, taken) in
            [("v0.16.3", "v0.16.0"), ("v0.17", "v0.18.1"), ("v0.20.1", "v0.22.1"), ("1.11.2", "v1.11.2")]
        {
            assert_eq!(reproduced(text), taken, "{text}");
        }
    }
}
