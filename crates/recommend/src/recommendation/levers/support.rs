//! Levers of the control plane: a release under standard support, and a lower tier.

use super::{BaselineFacts, Kind, Level, Lever};
use crate::cloud::billing::support::extended_from;
use crate::domain::control_plane_tier::ControlPlaneTier;
use crate::domain::versions::KubernetesVersion;

/// The subjects of both levers.
pub(crate) const RELEASE: &str = "control plane release";
pub(crate) const TIER: &str = "control plane tier";
/// A release is a target if its standard support lasts for this time after the run begins, in seconds: half a year.
const LEFT: i64 = 182 * 86_400;

/// Levers of release and tier.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    all.extend(release(known));
    all.extend(tier(known));
}

/// The first release with half a year of standard support, if today's is under extended support.
fn release(known: &BaselineFacts<'_>) -> Option<Lever> {
    let start = known.scenario.start.as_second();
    let today = known.policy.versions.kubernetes;
    let end = start + known.scenario.duration.as_secs_f64() as i64;
    if extended_from(today).is_none_or(|from| from >= end) {
        return None;
    }
    let later = std::iter::successors(today.next(), |version| version.next());
    let dated = later.filter_map(|version| Some((version, extended_from(version)?)));
    let dated: Vec<(KubernetesVersion, i64)> = dated.filter(|(_, from)| *from >= end).collect();
    let (target, until) = dated.iter().find(|(_, from)| *from >= start + LEFT).or_else(|| dated.last())?;
    let until = jiff::Timestamp::from_second(*until).ok()?.to_zoned(jiff::tz::TimeZone::UTC).date();
    let on_the_way = std::iter::successors(today.next(), |version| version.next());
    let count = on_the_way.take_while(|version| version <= target).count() as u64;
    let upgrades = crate::domain::words::counted(count, "upgrade", "upgrades");
    let label = format!("Kubernetes {target}: {upgrades}, standard support until {until}");
    let path = format!("policies[{}].versions.kubernetes", known.policy.name);
    let levels = vec![Level::new(label, [(path, &*format!("\"{target}\""))])];
    let today = format!("Kubernetes {today}, under extended support");
    Some(Lever { kind: Kind::Support, subject: RELEASE.to_owned(), today, levels })
}

/// The standard tier, and the tier below today's.
fn tier(known: &BaselineFacts<'_>) -> Option<Lever> {
    use ControlPlaneTier::{Standard, Xl, Xl2, Xl4, Xl8};
    const TIERS: [(ControlPlaneTier, &str); 5] =
        [(Standard, "standard"), (Xl, "xl"), (Xl2, "2xl"), (Xl4, "4xl"), (Xl8, "8xl")];
    let place = TIERS.iter().position(|(tier, _)| *tier == known.policy.control_plane_tier)?;
    let mut tried = vec![0, place.saturating_sub(1)];
    tried.dedup();
    let level = |below: usize| {
        let name = TIERS[below].1;
        let label = format!("{name}, if the API server's request seats suffice: they are not simulated");
        Level::new(label, [("cluster.control_plane_tier".to_owned(), name)])
    };
    let levels: Vec<Level> = tried.into_iter().filter(|below| *below < place).map(level).collect();
    let today = TIERS[place].1.to_owned();
    (!levels.is_empty()).then_some(Lever { kind: Kind::Support, subject: TIER.to_owned(), today, levels })
}
