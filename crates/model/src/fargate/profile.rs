//! Fargate profiles and which of them a pod belongs to.

use crate::domain::{Labels, Symbol};

/// The label that a pod on Fargate gets; one that carries it already asks for the profile of that name.
pub const PROFILE_LABEL: &str = "eks.amazonaws.com/fargate-profile";

/// Selectors that a profile may have.
///
/// Source: EKS user guide, `fargate-profile` (2024-12).
pub const SELECTORS_MOST: usize = 5;

/// A Fargate profile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Profile {
    /// Its name.
    pub name: Symbol,
    /// Its selectors, one of which must fit.
    pub selectors: Vec<Selector>,
}

/// A selector of a profile. In every text `*` stands for any run of characters and `?` for exactly one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Selector {
    /// The namespace.
    pub namespace: String,
    /// Labels, all of which the pod must have; none means the whole namespace.
    pub labels: Vec<(String, String)>,
}

impl Selector {
    /// Whether it fits a pod.
    pub fn fits(&self, namespace: &str, labels: &Labels) -> bool {
        let has = |(key, value): &(String, String)| {
            let fits = |pair: (Symbol, Symbol)| {
                matches_pattern(key, pair.0.as_str()) && matches_pattern(value, pair.1.as_str())
            };
            labels.iter().any(fits)
        };
        matches_pattern(&self.namespace, namespace) && self.labels.iter().all(has)
    }
}

impl Profile {
    /// Whether one of its selectors fits a pod.
    pub fn fits(&self, namespace: &str, labels: &Labels) -> bool {
        self.selectors.iter().any(|selector| selector.fits(namespace, labels))
    }
}

/// The profile that takes a pod when it is created: of those that fit the one that the pod's label asks for, else the first by name. A
/// label that names a profile which does not fit is passed over.
pub fn chosen<'p>(profiles: &'p [Profile], namespace: &str, labels: &Labels) -> Option<&'p Profile> {
    let fitting = || profiles.iter().filter(|profile| profile.fits(namespace, labels));
    let asked = labels.get(Symbol::new(PROFILE_LABEL));
    let named = asked.and_then(|name| fitting().find(|item| item.name == name));
    named.or_else(|| fitting().min_by_key(|item| item.name.as_str()))
}

/// Whether a text is what a pattern with `*` and `?` says.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where the last `*` stood, and up to where it has been taken to reach.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(&pattern) if pattern == '?' || pattern == text[read] => (at, read) = (at + 1, read + 1),
            _ => match star {
                Some((place, reached)) => {
                    star = Some((place, reached + 1));
                    (at, read) = (place + 1, reached + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|pattern| *pattern == '*')
}
