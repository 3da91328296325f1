//! The flags of the Vertical Pod Autoscaler's programs, as the scenario and its policies state them.

use std::collections::BTreeMap;

use super::{Reading, ScenarioError};
use crate::definition::VerticalSettings;
use crate::domain::{Symbol, VerticalPodAutoscalerVersion};
use crate::reader::Fields;
use crate::schema::vertical::VerticalKeys;
use nodecast_vpa::flags::VerticalFlagError;
use nodecast_vpa::{RecommenderSettings, UpdaterSettings};

/// The flags that are stated.
#[derive(Clone, Default)]
pub(super) struct Flags {
    recommender: BTreeMap<Symbol, Symbol>,
    updater: BTreeMap<Symbol, Symbol>,
}

/// The flags of one program.
type Given<'f> = Vec<(&'f str, &'f str)>;

fn texts(flags: &BTreeMap<Symbol, Symbol>) -> Given<'_> {
    flags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

impl Flags {
    /// Lays what is stated over what holds.
    ///
    /// # Errors
    /// At the first flag that is not known, or whose value its program does not take.
    pub(super) fn lay<'s>(
        &mut self,
        reading: &Reading<'_, 's>,
        fields: Fields<'_, 's>,
        stated: VerticalKeys,
    ) -> Result<(), ScenarioError> {
        let newest = VerticalPodAutoscalerVersion::default();
        let (recommender, updater) = (stated.recommender.unwrap_or_default(), stated.updater.unwrap_or_default());
        let wrong =
            RecommenderSettings::with_flags(newest, texts(&recommender)).err().map(|wrong| ("recommender", wrong));
        let wrong = wrong.or_else(|| Some(("updater", UpdaterSettings::with_flags(newest, texts(&updater)).err()?)));
        if let Some((program, wrong)) = wrong {
            return Err(told(reading, fields, program, &wrong)?);
        }
        self.recommender.extend(recommender);
        self.updater.extend(updater);
        Ok(())
    }

    /// What the programs of a release make of them.
    ///
    /// # Errors
    /// If the release does not take one that was stated.
    pub(super) fn settings(&self, release: VerticalPodAutoscalerVersion) -> Result<VerticalSettings, ScenarioError> {
        let wrong = |wrong: VerticalFlagError| ScenarioError::new(format!("the flag {wrong}"));
        Ok(VerticalSettings {
            recommender: RecommenderSettings::with_flags(release, texts(&self.recommender)).map_err(wrong)?,
            updater: UpdaterSettings::with_flags(release, texts(&self.updater)).map_err(wrong)?,
        })
    }
}

/// The error at the flag in the file.
fn told<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    program: &str,
    wrong: &VerticalFlagError,
) -> Result<ScenarioError, ScenarioError> {
    let node = fields.required(&reading.reader, "vertical_pod_autoscaler")?;
    let entries = node.get(program).map_or(Ok(&[][..]), |node| reading.reader.entries(node, program))?;
    let entry = entries.iter().find(|entry| entry.key == wrong.flag.as_str());
    let at = entry.map_or(node.at, |entry| if wrong.is_unknown { entry.key_at } else { entry.value.at });
    let shown: String = wrong.flag.chars().take(80).collect();
    let error =
        reading.error(at, format!("the flag `{shown}` of the {program}: {}", wrong.reason)).because("not accepted");
    Ok(if wrong.is_unknown {
        error.help("take it out; flags are written without their dashes")
    } else {
        error.help("write the value as on the program's command line")
    })
}
