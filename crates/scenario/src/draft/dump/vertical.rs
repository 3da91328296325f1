//! What a dump says of the Vertical Pod Autoscaler: its release, and the flags with which its programs were started.

use std::fmt::Write as _;

use super::cluster::{images, stated_by};
use super::objects::Object;
use super::yaml::{quoted, word};
use super::{Dump, Notes};
use crate::domain::VerticalPodAutoscalerVersion;
use nodecast_vpa::flags::WITHOUT_EFFECT;
use nodecast_vpa::{RecommenderSettings, UpdaterSettings};

/// The programs, by how their images end.
const RECOMMENDER: &str = "vpa-recommender";
const UPDATER: &str = "vpa-updater";

/// What is taken over.
#[derive(Debug, Default)]
pub(super) struct Vertical {
    /// The release, where it is reproduced and not what is assumed anyway.
    version: Option<VerticalPodAutoscalerVersion>,
    recommender: Vec<(String, String)>,
    updater: Vec<(String, String)>,
}

impl Vertical {
    /// Reads the Deployments of the programs, where there are any.
    pub(super) fn new(dump: &Dump<'_>, notes: &mut Notes) -> Self {
        let mut vertical = Self::default();
        let deployments = || dump.carried.iter().filter(|object| object.kind == "Deployment");
        let program = |name: &str| deployments().find(|object| images(object).any(|image| tag(image, name).is_some()));
        let release = VerticalPodAutoscalerVersion::default();
        for (name, flags) in [(RECOMMENDER, &mut vertical.recommender), (UPDATER, &mut vertical.updater)] {
            let Some(deployment) = program(name) else { continue };
            let check = |flag: &str, value: &str| match name {
                RECOMMENDER => RecommenderSettings::with_flags(release, [(flag, value)]).err(),
                _ => UpdaterSettings::with_flags(release, [(flag, value)]).err(),
            };
            for (flag, value) in stated_by(deployment) {
                if WITHOUT_EFFECT.contains(&flag) || flags.iter().any(|(known, _)| known == flag) {
                    continue;
                }
                match check(flag, value) {
                    None => flags.push((flag.to_owned(), value.to_owned())),
                    Some(wrong) => notes.warn(format!("the flag `--{flag}` of {name} is left out: {}", wrong.reason)),
                }
            }
            vertical.version = vertical.version.or_else(|| version(deployment, name, notes));
        }
        vertical
    }

    /// The line of `versions`.
    pub(super) fn version_line(&self, text: &mut String) {
        if let Some(version) = self.version {
            let _ = writeln!(text, "  vertical-pod-autoscaler: \"{version}\"");
        }
    }

    /// The flags, if any were stated.
    pub(super) fn write(&self, text: &mut String) {
        if self.recommender.is_empty() && self.updater.is_empty() {
            return;
        }
        *text += "\nvertical_pod_autoscaler:            # as its programs were started\n";
        for (program, flags) in [("recommender", &self.recommender), ("updater", &self.updater)] {
            let all: Vec<String> =
                flags.iter().map(|(name, value)| format!("{}: {}", word(name), quoted(value))).collect();
            if !all.is_empty() {
                let _ = writeln!(text, "  {program}: {{ {} }}", all.join(", "));
            }
        }
    }
}

/// The release of a program; where it is not reproduced, it is said which one stands in.
fn version(deployment: &Object<'_>, name: &str, notes: &mut Notes) -> Option<VerticalPodAutoscalerVersion> {
    let tag = images(deployment).find_map(|image| tag(image, name))?;
    let version = tag.parse().ok();
    if version.is_none() {
        let assumed = VerticalPodAutoscalerVersion::default();
        notes.assume(format!("The Vertical Pod Autoscaler (`{tag}`) behaves as that of {assumed} does."));
    }
    version
}

/// The tag of an image, if it is that of a program, for whatever architecture.
fn tag<'i>(image: &'i str, program: &str) -> Option<&'i str> {
    let (name, tag) = image.split('@').next()?.rsplit_once(':')?;
    let last = name.rsplit('/').next()?;
    let is_it = last.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    is_it.then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn vpa_image_tag_is_found_in_any_registry() {
        let of = |image| tag(image, "vpa-recommender");
        assert_eq!(of("registry.k8s.io/autoscaling/vpa-recommender:1.4.1"), Some("1.4.1"));
        assert_eq!(of("registry.k8s.io/autoscaling/vpa-recommender-arm64:1.3.0@sha256:0"), Some("1.3.0"));
        assert_eq!(of("registry.k8s.io/autoscaling/vpa-updater:1.4.1"), None);
        assert_eq!(of("vpa-recommender-like"), None);
    }
}
