//! What is at hand while a scenario is read: its text, the files that it names, and what is known of the run.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::checks::Workloads;
use super::load::{LoadSpan, Measure};
use crate::catalog::Region;
use crate::definition::InputFile;
use crate::document::{ADDED, Content, Document};
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, SimTime, Symbol};
use crate::edits::{Edit, note_objects};
use crate::error::{Place, ScenarioError, Warning};
use crate::manifests::{Manifests, UNKNOWN_KIND, read_documents};
use crate::reader::{Fields, Reader};
use crate::source::{InMemoryFiles, Limits, Source, load, read_bounded, sha256_hex};
use crate::tree::{self, Location, Node, Variables};
use nodecast_settings::lints;

/// A scenario that is being read.
pub struct Reading<'c, 's> {
    /// The reader of its text.
    pub(crate) reader: Reader<'s>,
    /// The files that it names.
    pub(crate) files: Files<'c>,
    /// Calendar time at which simulated time is zero.
    pub(crate) start: jiff::Timestamp,
    /// How long the run is.
    pub(crate) duration: SimDuration,
    /// The step of the timeline whose load is being read.
    pub(crate) step: Option<SimTime>,
    /// The time of the load that is being read.
    pub(crate) span: LoadSpan,
    /// What the numbers of its curves are.
    pub(crate) measure: Measure,
    /// The workloads that there are under some policy at some time.
    pub(crate) workloads: Workloads,
    /// The NodePools and node groups, likewise.
    pub(crate) node_pools: BTreeSet<Symbol>,
}

impl<'c, 's> Reading<'c, 's> {
    /// A scenario of which nothing is read yet but what `reader` and `files` know.
    pub(super) fn new(reader: Reader<'s>, files: Files<'c>) -> Self {
        let (start, duration) = (crate::schema::whole::START, SimDuration::ZERO);
        let span = LoadSpan { clock: start, length: duration };
        Self {
            reader,
            files,
            start,
            duration,
            step: None,
            span,
            measure: Measure::default(),
            workloads: Workloads::default(),
            node_pools: BTreeSet::new(),
        }
    }

    /// Notes what is to be told, once: policies share most of their objects.
    pub(super) fn note(&mut self, warnings: Vec<Warning>) {
        for warning in warnings {
            if !self.files.warnings.iter().any(|known| known.message() == warning.message()) {
                self.files.warnings.push(warning);
            }
        }
    }

    /// The region.
    pub fn region(&self) -> &'c Region {
        self.files.region
    }

    /// An error about what stands `at`.
    pub fn error(&self, at: Location, message: impl Into<String>) -> ScenarioError {
        self.reader.error(at, message)
    }

    /// An error about the name of a family that the region does not have.
    pub fn unknown_family(&self, at: Location, name: &str) -> ScenarioError {
        self.error(at, format!("`{name}` is not an instance family of {}", self.region().name))
            .because("unknown family")
            .help("write what stands before the dot of an instance type, for example `m5`")
    }

    /// The bytes of the file `name`, and how messages call it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn table(&mut self, node: &Node<'_>, name: &str) -> Result<(Vec<u8>, String), ScenarioError> {
        let bytes = self.files.bytes(&self.reader, node, name)?;
        Ok((bytes, self.files.directory.join(name).display().to_string()))
    }
}

/// Files that a scenario names, read relative to it and remembered with their hashes.
pub(crate) struct Files<'a> {
    pub(super) directory: PathBuf,
    pub(super) variables: Variables,
    pub(super) limits: &'a Limits,
    /// Texts that stand in for files; no other file is read then.
    pub(super) held: Option<&'a InMemoryFiles>,
    pub(super) region: &'a Region,
    pub(super) inputs: Vec<InputFile>,
    pub(super) warnings: Vec<Warning>,
    pub(super) edits: &'a [Edit],
    /// Which of `edits` have found a place.
    pub(super) edited: Vec<bool>,
    /// Edits that do not fit an object that they name: which, in which file, and why.
    pub(super) misfits: Vec<(usize, String, ScenarioError)>,
    /// Kind and name of every object, if there are edits.
    pub(super) objects: BTreeSet<(String, String)>,
    /// The manifests read, to show where an object stands that a later check speaks of.
    pub(super) sources: Vec<Source>,
    /// Whether a manifest holds an object.
    pub(super) has_objects: bool,
    /// The first manifest that holds none.
    pub(super) empty: Option<String>,
    /// Every document read, if they are asked for.
    pub(super) kept: Option<Vec<Document>>,
}

impl<'a> Files<'a> {
    /// The files of a scenario in `directory`, of which none is read yet.
    pub(super) fn new(directory: PathBuf, variables: Variables, limits: &'a Limits, region: &'a Region) -> Self {
        Self {
            directory,
            variables,
            limits,
            held: None,
            region,
            inputs: Vec::new(),
            warnings: Vec::new(),
            edits: &[],
            edited: Vec::new(),
            misfits: Vec::new(),
            objects: BTreeSet::new(),
            sources: Vec::new(),
            has_objects: false,
            empty: None,
            kept: None,
        }
    }

    /// An error about something that refers to nothing, with what may have been it: an object whose kind is not known.
    pub(super) fn with_unknown(&self, error: ScenarioError) -> ScenarioError {
        let unknown = self.warnings.iter().find(|warning| warning.message().starts_with(UNKNOWN_KIND));
        match unknown.and_then(|warning| Some((warning, warning.place()?))) {
            Some((warning, place)) if error.refers_to_nothing() => {
                error.also(&format!("{}:{}:{} has an {}", place.file, place.line, place.column, warning.message()))
            }
            _ => error,
        }
    }

    /// Checks that the manifests hold an object, if there are any.
    pub(super) fn check_objects(&self) -> Result<(), ScenarioError> {
        match &self.empty {
            Some(name) if !self.has_objects => Err(ScenarioError::new(format!(
                "`{name}` holds no object, and no other manifest does"
            ))
            .help("write Kubernetes objects with `apiVersion`, `kind` and `metadata`, separated by `---` lines")),
            _ => Ok(()),
        }
    }

    /// Every edit of a manifest must have found its object. Of one that fits it in some files and not in others, as where policies have objects
    /// of one name, the others are told.
    pub(super) fn check_edits(&mut self) -> Result<(), ScenarioError> {
        let found = self.edits.iter().zip(&self.edited).filter(|(_, found)| **found);
        if let Some(flaw) = found.filter_map(|(edit, _)| edit.flaw().or_else(|| edit.ambiguous(&self.objects))).next() {
            return Err(flaw);
        }
        let mut all = self.edits.iter().zip(&self.edited).enumerate();
        if let Some((number, (edit, _))) = all.find(|(_, (edit, found))| edit.is_of_manifest() && !**found) {
            let misfit = self.misfits.iter().find(|misfit| misfit.0 == number).map(|misfit| misfit.2.clone());
            return Err(misfit.unwrap_or_else(|| edit.missed(&self.objects)));
        }
        for (_, file, misfit) in std::mem::take(&mut self.misfits) {
            let text = format!("not changed in {file}: {}", misfit.message());
            if self.warnings.iter().all(|known| known.message() != text) {
                self.warnings.push(Warning::from_lint(&lints::file::EDIT_NOT_MADE, text));
            }
        }
        Ok(())
    }

    /// Where the object stands that `manifests` have under this kind and name.
    pub(super) fn place(&self, manifests: &Manifests, kind: &str, name: ObjectName) -> Option<Place> {
        let origin = manifests.origin(kind, name)?;
        self.sources.iter().find(|source| source.name == origin.file.as_str())?.place(origin.at)
    }

    /// The manifests under `key`, one file after another.
    pub(super) fn manifests(
        &mut self,
        reader: &Reader<'_>,
        fields: Fields<'_, '_>,
        key: &'static str,
    ) -> Result<Manifests, ScenarioError> {
        let mut all = Manifests::default();
        for node in fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default() {
            all.apply(self.manifest_file(reader, node, key)?);
        }
        self.warnings.append(&mut all.warnings);
        Ok(all)
    }

    /// The objects of the file that is named at `node`, under the key `what`.
    pub(super) fn manifest_file(
        &mut self,
        reader: &Reader<'_>,
        node: &Node<'_>,
        what: &str,
    ) -> Result<Manifests, ScenarioError> {
        let name = reader.text(node, what)?;
        let path = self.directory.join(name);
        let shown = path.display().to_string();
        // A file that cannot be opened is the scenario's mistake: the error shows where it is named.
        let source = match self.held {
            Some(held) => held.source(&path),
            None => load(&path, shown, self.limits),
        };
        let source = source.map_err(|error| match error.place() {
            Some(_) => error,
            None => error.at(reader.place(node.at)).because("named here"),
        })?;
        let source = source.with_edits(self.edits.iter().map(Edit::text));
        self.remember(name, sha256_hex(source.text.as_bytes()));
        let mut documents = tree::parse(&source, &self.variables, self.limits)?;
        match documents.is_empty() {
            true => self.empty = self.empty.take().or_else(|| Some(source.name.clone())),
            false => self.has_objects = true,
        }
        let read = self.read_objects(name, &source, &mut documents);
        drop(documents);
        if !self.sources.iter().any(|known| known.name == source.name) {
            self.sources.push(source);
        }
        read
    }

    /// The objects that edits set whole and that no file read so far has.
    pub(super) fn added(&mut self) -> Result<Manifests, ScenarioError> {
        let edits = self.edits;
        let source = Source::new(ADDED, "").with_edits(edits.iter().map(Edit::text));
        let mut documents = Vec::new();
        for (number, edit) in edits.iter().enumerate() {
            if edit.is_whole() && !self.edited[number] {
                documents.extend(edit.whole(source.edit_offset(number))?);
            }
        }
        if documents.is_empty() {
            return Ok(Manifests::default());
        }
        self.has_objects = true;
        let mut read = self.read_objects(ADDED, &source, &mut documents)?;
        drop(documents);
        self.sources.push(source);
        self.warnings.append(&mut read.warnings);
        Ok(read)
    }

    /// The objects of `documents`, with the edits that find a place there.
    fn read_objects<'s>(
        &mut self,
        name: &str,
        source: &Source,
        documents: &mut [Node<'s>],
    ) -> Result<Manifests, ScenarioError>
    where
        'a: 's,
    {
        for (number, (edit, found)) in self.edits.iter().zip(&mut self.edited).enumerate() {
            if edit.is_of_manifest() {
                let (item, misfit) = edit.apply_where_it_fits(documents, source.edit_offset(number));
                *found |= item;
                self.misfits.extend(misfit.map(|misfit| (number, name.to_owned(), misfit)));
            }
        }
        if !self.edits.is_empty() {
            documents.iter().for_each(|document| note_objects(document, &mut self.objects));
        }
        if let Some(kept) = &mut self.kept {
            let document = |item| Document { file: Some(name.to_owned()), content: Content::from_node(item) };
            kept.extend(documents.iter().map(document));
        }
        read_documents(source, documents, Some(self.region))
    }

    /// The bytes of a file that is not YAML.
    pub(super) fn bytes(&mut self, reader: &Reader<'_>, node: &Node<'_>, name: &str) -> Result<Vec<u8>, ScenarioError> {
        let path = self.directory.join(name);
        let bytes = match self.held {
            Some(held) => held.source(&path).map(|source| source.text.into_bytes()),
            None => read_bounded(&path, &path.display().to_string(), self.limits.file_bytes_max),
        };
        let bytes = bytes.map_err(|error| error.at(reader.place(node.at)).because("named here"))?;
        self.remember(name, sha256_hex(&bytes));
        Ok(bytes)
    }

    fn remember(&mut self, name: &str, sha256: String) {
        if !self.inputs.iter().any(|input| input.path == name) {
            self.inputs.push(InputFile { path: name.to_owned(), sha256 });
        }
    }
}
