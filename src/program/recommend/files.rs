//! The folder that `recommend --write` and `studio` make: the changed objects, and the scenario with them as policies.
//!
//! The scenario there stands alone: it has copies of the files that it names, under names of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Recommended;
use crate::catalog::Catalog;
use crate::experiment::axes::Setting;
use crate::program::simulations::shell_line;
use crate::program::{Failure, edits};
use crate::report::directory::check_written;
use crate::report::{OutputDirectory, OutputError};
use crate::scenario::document::{ADDED, Content, Document, paired};
use crate::scenario::{Edit, Limits, Scenario};

/// The file that says whose the folder is.
const MARKER: &str = "recommendation.json";
/// The changed objects.
const OBJECTS: &str = "recommended.yaml";
/// The scenario with both policies.
const SCENARIO: &str = "scenario.yaml";
/// The scenario as it would be, where more changes than a policy can state.
const AFTER: &str = "after.yaml";
/// Objects that were added before anything was recommended.
const ADDED_OBJECTS: &str = "added.yaml";
/// The policy's name in the scenario.
const POLICY: &str = "recommended";
/// The same of the answer without Spot.
const SECOND: [&str; 4] = ["without-spot", "without-spot.yaml", "after-without-spot.yaml", "without-spot.diff"];
/// The changes as a patch of the files that the scenario lists.
const PATCH: &str = "recommended.diff";

/// What was written.
pub struct Written {
    /// How many objects of manifests changed.
    pub objects: usize,
    /// The commands that confirm the answer.
    pub confirm: Vec<String>,
    /// Patches of the files of the scenario.
    pub patches: Vec<std::path::PathBuf>,
}

impl Recommended {
    /// Writes the answer, the changed objects, and the scenario with today's policy and the recommended one, into `folder`, which was
    /// [begun](begin).
    ///
    /// # Errors
    /// If the folder cannot be written, or a file that the scenario names cannot be read again.
    pub fn write(&self, directory: OutputDirectory, folder: &Path) -> Result<Written, Failure> {
        let origin = Origin {
            file: &self.request.scenario,
            edits: &self.request.edits,
            catalog: self.prices.catalog(),
            scenario: &self.scenario,
            policy: &self.policy,
            pricing_data: self.request.pricing_data.as_deref(),
        };
        let change = |([policy, objects, after, patch], setting): ([&str; 4], &Setting)| Change {
            policy: policy.to_owned(),
            setting: setting.clone(),
            objects: objects.to_owned(),
            after: after.to_owned(),
            patch: Some(patch.to_owned()),
        };
        let names = [[POLICY, OBJECTS, AFTER, PATCH], SECOND];
        let changes: Vec<Change> = names.into_iter().zip(&self.settings).map(change).collect();
        let answer = self.answer.to_json().map_err(Failure::of_report)?;
        origin.write((directory, folder), (MARKER, &answer), &changes)
    }
}

/// A change of a scenario that becomes a policy.
pub(in crate::program) struct Change {
    /// The policy's name.
    pub policy: String,
    /// What is set.
    pub setting: Setting,
    /// The file of the changed objects.
    pub objects: String,
    /// The file of the scenario as it would be, where more changes than a policy can state.
    pub after: String,
    /// The file of the patch; `None` for no such file.
    pub patch: Option<String>,
}

/// The scenario that changes are of.
pub(in crate::program) struct Origin<'o> {
    /// Its file.
    pub file: &'o Path,
    /// What is changed first, in today's policy too.
    pub edits: &'o [Edit],
    /// Prices.
    pub catalog: &'o Catalog,
    /// The scenario.
    pub scenario: &'o Scenario,
    /// Today's policy.
    pub policy: &'o str,
    /// The directory of prices; `None` for the built-in ones.
    pub pricing_data: Option<&'o Path>,
}

/// A change with its documents.
struct Changed<'c> {
    change: &'c Change,
    after: Vec<Document>,
    objects: Vec<Content>,
}

impl Origin<'_> {
    /// Writes a folder: `marker`, a JSON file that names the program, the changed objects of each change, and the scenario with today's
    /// policy and one for each change.
    ///
    /// # Errors
    /// If the folder cannot be written, or a file that the scenario names cannot be read again.
    pub(in crate::program) fn write(
        &self,
        (directory, folder): (OutputDirectory, &Path),
        (marker, answer): (&str, &str),
        changes: &[Change],
    ) -> Result<Written, Failure> {
        let before = self.documents(&Setting::new())?;
        let mut all = Vec::new();
        for change in changes {
            let after = self.documents(&change.setting)?;
            all.push(Changed { change, objects: changed(&before, &after), after });
        }
        let own_names = changes
            .iter()
            .flat_map(|change| [change.objects.clone(), change.after.clone()].into_iter().chain(change.patch.clone()));
        let copies =
            self.copies(&before, [marker, SCENARIO].map(str::to_owned).into_iter().chain(own_names).collect())?;
        let (scenario, whole) = self.scenarios(&before, &all, &copies);
        let text = |name: &str, bytes: &[u8]| {
            directory.file(name, |output| output.write_all(bytes)).map_err(Failure::of_report)
        };
        text(marker, answer.as_bytes())?;
        for item in all.iter().filter(|item| !item.objects.is_empty()) {
            let documents: Vec<String> = item.objects.iter().map(Content::to_yaml).collect();
            text(&item.change.objects, documents.join("---\n").as_bytes())?;
        }
        let patched = all.iter().map(|item| Some((item.change.patch.as_ref()?, self.patch(&before, &item.after))));
        let patched: Vec<(&String, String)> = patched.flatten().filter(|(_, patch)| !patch.is_empty()).collect();
        for (name, patch) in &patched {
            text(name, patch.as_bytes())?;
        }
        for (name, bytes) in copies.values() {
            text(name, bytes)?;
        }
        text(SCENARIO, scenario.to_yaml().as_bytes())?;
        for (item, whole) in all.iter().zip(&whole) {
            whole.as_ref().map_or(Ok(()), |whole| text(&item.change.after, whole.to_yaml().as_bytes()))?;
        }
        directory.commit().map_err(Failure::of_report)?;
        let path = |name: &str| folder.join(name).display().to_string();
        let pairs = || changes.iter().zip(&whole);
        let within: Vec<&str> = pairs().filter(|pair| pair.1.is_none()).map(|pair| pair.0.policy.as_str()).collect();
        let mut confirm = Vec::new();
        let prices = self.pricing_data.map(|directory| directory.display().to_string());
        let line = |words: &[&str]| {
            let prices = prices.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]);
            shell_line(&words.iter().copied().chain(prices).collect::<Vec<_>>())
        };
        if !within.is_empty() {
            let policies = format!("{},{}", self.policy, within.join(","));
            confirm.push(line(&["nodecast", "compare", &path(SCENARIO), "--policies", &policies]));
        }
        let beyond = pairs().filter(|pair| pair.1.is_some());
        confirm.extend(beyond.map(|beyond| line(&["nodecast", "diff", &path(SCENARIO), &path(&beyond.0.after)])));
        let patches = patched.iter().map(|(name, _)| folder.join(name)).collect();
        Ok(Written { objects: all.iter().map(|item| item.objects.len()).sum(), confirm, patches })
    }

    /// The changes as a unified diff of the files next to the scenario and below it; new objects are a file of their own. What cannot be shown
    /// as one is left out.
    fn patch(&self, before: &[Document], after: &[Document]) -> String {
        let directory = self.file.parent().map(Path::to_path_buf).unwrap_or_default();
        let own_name = self.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut files: Vec<Option<&str>> = Vec::new();
        for document in before {
            let file = document.file.as_deref();
            if file != Some(ADDED) && !files.contains(&file) {
                files.push(file);
            }
        }
        let of_file = |file: &Option<&str>| {
            let name = file.unwrap_or(&own_name);
            let is_below = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
            let text = std::fs::read_to_string(directory.join(name)).ok().filter(|_| is_below)?;
            let matches = |all: &[Document]| -> Vec<Content> {
                all.iter().filter(|origin| origin.file.as_deref() == *file).map(|item| item.content.clone()).collect()
            };
            let (before, after) = (matches(before), matches(after));
            crate::scenario::patch(name, &text, &before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>())
        };
        let mut all: String = files.iter().filter_map(of_file).collect();
        let new = paired(before, after).filter(|(one, other)| one.is_none() && other.file.is_some());
        let new: Vec<String> = new.map(|(_, other)| other.content.to_yaml()).collect();
        if !new.is_empty() {
            let text = new.join("---\n");
            all.push_str(&format!("--- /dev/null\n+++ b/{ADDED_OBJECTS}\n@@ -0,0 +1,{} @@\n", text.lines().count()));
            text.lines().for_each(|line| all.push_str(&format!("+{line}\n")));
        }
        all
    }

    /// The documents that the policy sees.
    fn documents(&self, setting: &Setting) -> Result<Vec<Document>, Failure> {
        let mut all = self.edits.to_vec();
        all.extend(edits::of_setting(setting)?);
        let documents = crate::scenario::documents(self.file, self.catalog, &Limits::default(), &all)?;
        Ok(seen_by(self.policy, documents))
    }

    /// The files that the scenario names, by the name that it has for each: what each is called in the folder, and what it holds.
    /// Names that are `taken` are another's.
    fn copies(
        &self,
        before: &[Document],
        mut taken: Vec<String>,
    ) -> Result<BTreeMap<String, (String, Vec<u8>)>, Failure> {
        let directory = self.file.parent().map(Path::to_path_buf).unwrap_or_default();
        let mut copies: BTreeMap<String, (String, Vec<u8>)> = BTreeMap::new();
        // The first is the scenario itself.
        for input in self.scenario.inputs.iter().skip(1) {
            let path = directory.join(&input.path);
            let bytes = match self.edited(&input.path, before) {
                Some(text) => text.into_bytes(),
                None => std::fs::read(&path)
                    .map_err(|reason| Failure::of_report(OutputError::Io { action: "read", path, reason }))?,
            };
            let name = free_name(&input.path, &taken);
            taken.push(name.clone());
            copies.insert(input.path.clone(), (name, bytes));
        }
        if let Some(text) = self.edited(ADDED, before) {
            copies.insert(ADDED.to_owned(), (free_name(ADDED_OBJECTS, &taken), text.into_bytes()));
        }
        Ok(copies)
    }

    /// A file of manifests as `--set` has it; `None` for a file of another kind, and where nothing was set.
    fn edited(&self, file: &str, before: &[Document]) -> Option<String> {
        let mut documents: Vec<&Content> = Vec::new();
        for item in before.iter().filter(|origin| origin.file.as_deref() == Some(file)) {
            // A file that several policies name is read for each.
            if !documents.contains(&&item.content) {
                documents.push(&item.content);
            }
        }
        let texts: Vec<String> = documents.into_iter().map(Content::to_yaml).collect();
        (!self.edits.is_empty() && !texts.is_empty()).then(|| texts.join("---\n"))
    }

    /// The scenario with today's policy and those of all changes, and, for each change that a policy cannot state, the scenario as it
    /// would be.
    fn scenarios(
        &self,
        before: &[Document],
        all: &[Changed<'_>],
        copies: &BTreeMap<String, (String, Vec<u8>)>,
    ) -> (Content, Vec<Option<Content>>) {
        let root = |documents: &[Document]| {
            let mut root =
                documents.first().map_or_else(|| Content::Map(Vec::new()), |document| document.content.clone());
            root.for_each_scalar(&mut |text: &mut String| {
                let plain = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.clone());
                if let Some((name, _)) = copies.get(&plain) {
                    *text = serde_json::Value::from(name.as_str()).to_string();
                }
            });
            if let Some((name, _)) = copies.get(ADDED) {
                let mut files = root.get("manifests").map_or(&[][..], Content::items).to_vec();
                files.push(Content::Scalar(name.clone()));
                root.set("manifests", Content::List(files));
            }
            root
        };
        let mut today = root(before);
        let mut policies = vec![self.policy_in(&today)];
        let mut whole = Vec::new();
        for item in all {
            let mut changed = root(&item.after);
            let mut policy = self.policy_in(&changed);
            policy.set("name", Content::Scalar(item.change.policy.clone()));
            if !item.objects.is_empty() {
                let mut files = policy.get("manifests").map_or(&[][..], Content::items).to_vec();
                files.push(Content::Scalar(item.change.objects.clone()));
                policy.set("manifests", Content::List(files));
            }
            changed.set("policies", Content::List(vec![policy.clone()]));
            let differs = today.differences(&changed).iter().any(|difference| !difference.path.starts_with("policies"));
            // One that is as today's, since no policy can state what changes, would say that nothing is gained.
            if !differs || !is_same_but_for_name(&policies[0], &policy) {
                policies.push(policy);
            }
            whole.push(differs.then_some(changed));
        }
        today.set("policies", Content::List(policies));
        (today, whole)
    }

    /// The policy as the scenario states it, or as it implies it.
    fn policy_in(&self, root: &Content) -> Content {
        let stated = root.get("policies").map_or(&[][..], Content::items).iter();
        let mut named =
            stated.filter(|item| item.get("name").and_then(Content::as_text).as_deref() == Some(self.policy));
        named.next().cloned().unwrap_or_else(|| {
            let word = |text: &str| Content::Scalar(text.to_owned());
            // Where a scenario states no policy, its one is called as its autoscaler is.
            Content::Map(vec![("name".to_owned(), word(self.policy)), ("autoscaler".to_owned(), word(self.policy))])
        })
    }
}

fn is_same_but_for_name(one: &Content, other: &Content) -> bool {
    let unnamed = |content: &Content| {
        let mut content = content.clone();
        content.set("name", Content::Scalar(String::new()));
        content
    };
    unnamed(one) == unnamed(other)
}

/// The documents without those of files that only other policies name: an object of theirs with the same name is another one.
pub(in crate::program) fn seen_by(policy: &str, documents: Vec<Document>) -> Vec<Document> {
    let Some(root) = documents.first().map(|document| &document.content) else { return documents };
    let named = |content: &Content| -> BTreeSet<String> {
        content.get("manifests").map_or(&[][..], Content::items).iter().filter_map(Content::as_text).collect()
    };
    let is_own = |content: &&Content| content.get("name").and_then(Content::as_text).as_deref() == Some(policy);
    let policies = root.get("policies").map_or(&[][..], Content::items).iter();
    let (item, others): (Vec<&Content>, Vec<&Content>) = policies.partition(is_own);
    let seen: BTreeSet<String> = item.into_iter().chain([root]).flat_map(named).collect();
    let unseen: BTreeSet<String> = others.into_iter().flat_map(named).filter(|file| !seen.contains(file)).collect();
    documents.into_iter().filter(|document| document.file.as_ref().is_none_or(|file| !unseen.contains(file))).collect()
}

/// The objects of a document: itself, or those of a list.
fn items(content: &Content) -> Vec<Content> {
    content.get("items").map_or_else(|| vec![content.clone()], |items| items.items().to_vec())
}

/// The objects of all manifests.
pub(in crate::program) fn objects(documents: &[Document]) -> Vec<Content> {
    documents.iter().filter(|document| document.file.is_some()).flat_map(|document| items(&document.content)).collect()
}

/// The objects that changed, as they are to be; each once.
fn changed(before: &[Document], after: &[Document]) -> Vec<Content> {
    let mut all: Vec<Content> = Vec::new();
    for (one, other) in paired(before, after).filter(|(one, other)| other.file.is_some() && *one != Some(*other)) {
        let before = one.map_or_else(Vec::new, |one| items(&one.content));
        for (place, item) in items(&other.content).into_iter().enumerate() {
            if before.get(place) != Some(&item) && !all.contains(&item) {
                all.push(item);
            }
        }
    }
    all
}

/// The last part of `path`, with a number before it if that is taken.
fn free_name(path: &str, taken: &[String]) -> String {
    let base = path.rsplit('/').next().unwrap_or(path);
    let mut name = base.to_owned();
    let mut number = 2;
    while taken.contains(&name) {
        name = format!("{number}-{base}");
        number += 1;
    }
    name
}

/// Begins the folder of an answer, in place of an earlier one.
///
/// # Errors
/// If something else stands there, another run writes there, or the system refuses.
pub fn begin(folder: &Path) -> Result<OutputDirectory, Failure> {
    OutputDirectory::begin_if(folder, check_replaceable).map_err(Failure::of_report)
}

/// Whether an answer may be written into a folder: it holds nothing, or an earlier answer.
fn check_replaceable(folder: &Path) -> Result<(), OutputError> {
    check_written(folder, MARKER, &|_, name| {
        [OBJECTS, SCENARIO, AFTER, PATCH].contains(&name) || SECOND[1..].contains(&name)
    })
}
