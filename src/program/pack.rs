//! One pass of a packer over the pods of some files.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Failure, Prices};
use crate::domain::{KarpenterVersion, Symbol};
use crate::report::pack::{PackAnswer, Repacked};
use crate::scenario::draft::FeatureGateWords;
use crate::scenario::{Caveat, Circumstances, Warning, packing_question};
use crate::single_pass::{PackingQuestion, SinglePass};
use nodecast_karpenter::bin_packing::Effort;
use nodecast_karpenter::packing::PackerKind;

/// How to pack.
#[derive(Clone, Debug)]
pub struct Options {
    /// The region; `None` where a file names it.
    pub region: Option<String>,
    /// The zones of the cluster's subnets; empty for all.
    pub zones: Vec<String>,
    /// Karpenter's release; `None` for the one that a file states, or else the default.
    pub karpenter: Option<KarpenterVersion>,
    /// Feature gates, over those that a file states.
    pub feature_gates: Option<FeatureGateWords>,
    /// Packing algorithm.
    pub packer: PackerKind,
    /// How long to look for a cheaper plan, and then for a better bound; `None` for as long as it takes.
    pub time_limit: Option<Duration>,
    /// Whether what Karpenter runs is packed anew, as if its nodes were gone.
    pub repack: bool,
}

impl Options {
    /// What the files do not say.
    pub fn circumstances(&self) -> Circumstances {
        Circumstances {
            region: self.region.clone(),
            zones: self.zones.iter().map(|zone| Symbol::new(zone)).collect(),
            karpenter: self.karpenter,
            feature_gates: self.feature_gates.clone(),
            without_pools: false,
        }
    }

    /// Checks that the packer knows a release.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(&self, release: KarpenterVersion) -> Result<(), Failure> {
        if self.packer.knows(release) { Ok(()) } else { Err(Failure::bad_input(UnknownRules(release))) }
    }

    /// The pass that is asked for.
    pub fn pass<'q>(&self, question: &'q PackingQuestion) -> SinglePass<'q> {
        with_effort(self.time_limit, |effort| pass(self.packer, question, effort))
    }

    /// The pass with a lower bound on what any could cost.
    pub fn bounded<'q>(&self, pass: SinglePass<'q>) -> SinglePass<'q> {
        with_effort(self.time_limit, |effort| pass.with_bound(effort))
    }
}

/// A packer that does not know a release.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the cost-aware packer does not support Karpenter {0}")]
#[diagnostic(help("use `--karpenter v0.16` or a later release"))]
struct UnknownRules(KarpenterVersion);

/// The pass by a packer.
pub fn pass<'q>(packer: PackerKind, question: &'q PackingQuestion, effort: &mut Effort<'_>) -> SinglePass<'q> {
    let pass = SinglePass::from_question(question);
    match packer {
        PackerKind::Karpenter => pass,
        PackerKind::CostAware => pass.with_cheaper_plan(effort),
    }
}

/// Hands over as much effort as a search may spend: a fixed number of steps, and the time limit if there is one.
fn with_effort<R>(limit: Option<Duration>, search: impl FnOnce(&mut Effort<'_>) -> R) -> R {
    let started = Instant::now();
    let mut go_on = || limit.is_none_or(|limit| started.elapsed() < limit);
    search(&mut Effort { steps: Effort::THOROUGH, go_on: &mut go_on })
}

/// An answer, and what was left out of the question.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The answer.
    pub answer: PackAnswer,
    /// What is understood in the files but left out.
    pub warnings: Vec<Warning>,
}

/// Packs the pods of `files`, with the reasons for one pod if `explain` names it.
///
/// # Errors
/// If the files, the prices or the name cannot be used.
pub fn pack(files: &[PathBuf], explain: Option<&str>, prices: &Prices, options: &Options) -> Result<Packed, Failure> {
    let mut question = packing_question::load(files, &options.circumstances(), prices.catalog())?;
    options.check(question.karpenter)?;
    let before = options.repack.then(|| question.clone());
    if options.repack {
        question = question.repacked();
    }
    let explained = explain.map(|pod| question.find(pod)).transpose()?;
    let mut answer = PackAnswer::new(&options.bounded(options.pass(&question)), explained);
    answer.repacked = before.map(|before| Repacked::new(&before, &question, &answer, &|item| options.pass(item)));
    Ok(Packed { answer, warnings: question.warnings })
}

/// A warning in one line, with its place.
pub fn warning_line(warning: &Warning) -> String {
    format!("warning: {}", Caveat::from(warning))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::{Options, pack};
    use crate::program::Prices;
    use crate::report::pack::PackAnswer;
    use crate::scenario::packing_question;
    use crate::single_pass::Constraint;
    use nodecast_karpenter::packing::PackerKind;

    #[test]
    fn constraint_cost_uses_the_chosen_packer() {
        let prices = Prices::open(None).unwrap();
        let files = [PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/cluster.yaml"))];
        let options = Options {
            region: None,
            zones: Vec::new(),
            karpenter: None,
            feature_gates: None,
            packer: PackerKind::CostAware,
            time_limit: Some(Duration::ZERO),
            repack: true,
        };
        let repacked = pack(&files, None, &prices, &options).unwrap().answer.repacked.unwrap();
        let question = packing_question::load(&files, &options.circumstances(), prices.catalog()).unwrap().repacked();
        for constraint in Constraint::ALL {
            let (without, _) = question.without(constraint);
            let per_hour = PackAnswer::new(&options.pass(&without), None).summary.per_hour;
            let told = repacked.constraints.iter().find(|cost| cost.constraint == constraint.as_str());
            assert!(told.is_none_or(|told| (told.per_hour_without - per_hour).abs() < 1e-9), "{told:?}: {per_hour}");
        }
        assert!(!repacked.constraints.is_empty());
    }
}
