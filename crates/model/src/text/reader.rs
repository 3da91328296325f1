//! Typed reading of a [`Node`]: each kind of object states its keys once, as a [`Shape`], and is read through
//! [`Fields`]; what is read but cannot be used becomes an error, what is left out becomes a warning.

use rustc_hash::FxHashSet;

use super::error::{InputError, Place, Warning, listed, nearest};
use super::lint::Lint;
use super::lints;
use super::source::Source;
use super::template;
use super::tree::{Entry, Location, Node, NodeKind};
use crate::catalog::Region;
use crate::domain::quantity::QuantityError;
use crate::domain::time::DurationError;
use crate::domain::{Quantity, SimDuration, Symbol};

/// The keys of one kind of map.
#[derive(Debug)]
pub struct Shape {
    /// What the map is, for messages: `a container`.
    pub name: &'static str,
    /// Keys that are read.
    pub keys: &'static [&'static str],
    /// Keys that exist but change nothing about capacity, cost or latency.
    pub without_effect: &'static [&'static str],
    /// Keys that could change a result but are not simulated, each with what is left out, or, where the shape is strict,
    /// with the way out.
    pub unsupported: &'static [(&'static str, &'static str)],
    /// Whether an unknown key is an error (scenario files) rather than a warning (manifests).
    pub strict: bool,
}

/// What reading one file needs and gathers.
pub struct Reader<'s> {
    source: Option<&'s Source>,
    /// The object being read, named in messages about values that have no position.
    subject: String,
    /// The region; `None` where none is known, and then every name of an instance type is accepted.
    region: Option<&'s Region>,
    warnings: Vec<Warning>,
    /// Texts of `warnings`.
    seen: FxHashSet<String>,
}

impl<'s> Reader<'s> {
    /// A reader for the values of `source`, or of values without a text.
    pub fn new(source: Option<&'s Source>) -> Self {
        Self { source, subject: String::new(), region: None, warnings: Vec::new(), seen: FxHashSet::default() }
    }

    /// The same reader, checking names of instance types, zones and the like against a region's.
    #[must_use]
    pub fn with_region(mut self, region: Option<&'s Region>) -> Self {
        self.region = region;
        self
    }

    /// The region, if one is known.
    pub fn region(&self) -> Option<&'s Region> {
        self.region
    }

    /// Whether the region has the instance type `name`; if not, the way out.
    pub fn check_instance_type(&self, name: Symbol) -> Result<(), String> {
        match self.region {
            Some(region) if region.instance_type(name).is_none() => {
                let near = nearest(name.as_str(), region.types.iter().map(|known| known.facts.name.as_str()));
                Err(near.map_or_else(
                    || "name an instance type that the scenario's region offers, for example `m5.large`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Names the object that is read next.
    pub fn set_subject(&mut self, subject: impl Into<String>) {
        self.subject = subject.into();
    }

    /// The warnings gathered.
    pub fn into_warnings(self) -> Vec<Warning> {
        self.warnings
    }

    /// The file being read, as the user named it.
    pub fn file(&self) -> Option<&'s str> {
        self.source.map(|source| source.name.as_str())
    }

    /// The place of `at`.
    pub fn place(&self, at: Location) -> Option<Place> {
        self.source.and_then(|source| source.place(at))
    }

    /// An error about what stands `at`.
    pub fn error(&self, at: Location, message: impl Into<String>) -> InputError {
        let place = self.place(at);
        match (&place, self.subject.is_empty()) {
            (None, false) => InputError::new(format!("{}: {}", self.subject, message.into())),
            (place, _) => InputError::new(message).at(place.clone()),
        }
    }

    /// Notes that what stands `at` is not simulated, which may change the answer.
    pub fn left_out(&mut self, lint: &'static Lint, at: Location, message: impl Into<String>, help: &str) {
        self.warn(lint, at, message, "left out", help);
    }

    /// Adds a warning about what stands `at`. Of warnings with the same text only the first is kept, so that a dump of a large cluster
    /// yields a readable list.
    pub fn warn(&mut self, lint: &'static Lint, at: Location, message: impl Into<String>, because: &str, help: &str) {
        let message = message.into();
        if !self.seen.insert(message.clone()) {
            return;
        }
        let place = self.place(at);
        let message = match (&place, self.subject.is_empty()) {
            (None, false) => format!("{}: {message}", self.subject),
            _ => message,
        };
        let mut warning = Warning::from_lint(lint, message).at(place);
        if !because.is_empty() {
            warning = warning.because(because);
        }
        if !help.is_empty() {
            warning = warning.help(help);
        }
        self.warnings.push(warning);
    }

    /// Opens a map; nothing (`spec:`) counts as an empty one.
    ///
    /// # Errors
    /// If it is not a map, or is strict and has an unknown key.
    pub fn fields<'n>(&mut self, node: &'n Node<'s>, shape: &'static Shape) -> Result<Fields<'n, 's>, InputError> {
        let entries: &'n [Entry<'s>] = match &node.kind {
            NodeKind::Map(entries) => entries,
            NodeKind::Null => &[],
            _ => return Err(self.wrong_kind(node, &format!("{} is a map", shape.name), "a map of keys and values")),
        };
        for entry in entries {
            self.check_key(entry, shape)?;
        }
        Ok(Fields { entries, at: node.at, shape })
    }

    fn check_key(&mut self, entry: &Entry<'s>, shape: &'static Shape) -> Result<(), InputError> {
        let key: &str = &entry.key;
        if shape.keys.contains(&key) {
            return Ok(());
        }
        if shape.without_effect.contains(&key) {
            if entry.edited {
                let message = format!("`{key}` of {} changes neither capacity, cost nor latency", shape.name);
                self.warn(&lints::KEY_WITHOUT_EFFECT, entry.key_at, message, "set without effect", "");
            }
            return Ok(());
        }
        if let Some((_, left_out)) = shape.unsupported.iter().find(|(name, _)| *name == key) {
            if entry.edited && !shape.strict {
                let message = format!("`{key}` of {} is not simulated: {left_out}", shape.name);
                return Err(self.error(entry.key_at, message).because("it has no effect"));
            }
            if shape.strict {
                return Err(self
                    .error(entry.key_at, format!("`{key}` of {} is not simulated yet", shape.name))
                    .because("would be ignored")
                    .help(*left_out));
            }
            if !is_blank(&entry.value) {
                let message = format!("`{key}` of {} is not simulated: {left_out}", shape.name);
                self.left_out(&lints::KEY_NOT_SIMULATED, entry.key_at, message, "");
            }
            return Ok(());
        }
        let unsupported = shape.unsupported.iter().map(|(name, _)| name);
        let known = || shape.keys.iter().chain(shape.without_effect).chain(unsupported.clone()).copied();
        // Of a manifest that others have written an unknown key is most often newer than this program; whoever sets one wants
        // it to count.
        let refused = shape.strict || entry.edited;
        let help = match nearest(key, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if refused => format!("{} may have {}", shape.name, listed(known())),
            None => "remove it, or check which object it belongs to".to_owned(),
        };
        let shown: String = key.chars().take(80).collect();
        let message = format!("unknown key `{shown}` in {}", shape.name);
        if refused {
            return Err(self.error(entry.key_at, message).because("not a key here").help(help));
        }
        self.warn(&lints::UNKNOWN_KEY, entry.key_at, message, "ignored", &help);
        Ok(())
    }

    fn wrong_kind(&self, node: &Node<'_>, message: &str, wanted: &str) -> InputError {
        let found = node.describe();
        let unrendered = node.as_text().and_then(template::way_out);
        self.error(node.at, format!("{message}, not {found}"))
            .because(format!("this is {found}"))
            .help(unrendered.unwrap_or_else(|| format!("write {wanted}")))
    }

    /// The text of a scalar.
    ///
    /// # Errors
    /// If it is something else.
    pub fn text<'n>(&self, node: &'n Node<'s>, what: &str) -> Result<&'n str, InputError> {
        node.as_text().ok_or_else(|| self.wrong_kind(node, &format!("`{what}` is text"), "text"))
    }

    /// The text of a scalar, interned.
    ///
    /// # Errors
    /// If it is something else.
    pub fn symbol(&self, node: &Node<'s>, what: &str) -> Result<Symbol, InputError> {
        self.text(node, what).map(Symbol::new)
    }

    /// A truth value.
    ///
    /// # Errors
    /// If it is something else.
    pub fn truth(&self, node: &Node<'s>, what: &str) -> Result<bool, InputError> {
        // YAML 1.1, which kubectl reads, has more words for the two than JSON.
        let plain = match &node.kind {
            NodeKind::Scalar { text, plain: true } => text.as_ref(),
            _ => "",
        };
        match plain.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => return Ok(true),
            "false" | "no" | "off" => return Ok(false),
            _ => {}
        }
        Err(self.wrong_kind(node, &format!("`{what}` is a truth value"), "`true` or `false`, without quotes"))
    }

    /// A whole number from `least` to `most`.
    ///
    /// # Errors
    /// If it is something else or outside.
    pub fn integer(&self, node: &Node<'s>, what: &str, least: i64, most: i64) -> Result<i64, InputError> {
        let number = node.as_text().and_then(|text| text.parse::<i64>().ok());
        match number {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            Some(number) => {
                let bound = if number < least { ("at least", least) } else { ("at most", most) };
                Err(self
                    .error(node.at, format!("`{what}` is {number}"))
                    .because(format!("must be {} {}", bound.0, bound.1))
                    .help(format!("write a whole number from {least} to {most}")))
            }
            None => {
                let wanted = "a whole number, for example 3";
                // A number that is not whole is one, but not such a one.
                match node.as_text().filter(|text| text.len() <= 40 && text.parse::<f64>().is_ok_and(f64::is_finite)) {
                    Some(text) => Err(self
                        .error(node.at, format!("`{what}` is a whole number, not {text}"))
                        .because("not whole")
                        .help(format!("write {wanted}"))),
                    None => Err(self.wrong_kind(node, &format!("`{what}` is a whole number"), wanted)),
                }
            }
        }
    }

    /// A Kubernetes quantity.
    ///
    /// # Errors
    /// If it is not one.
    pub fn quantity(&self, node: &Node<'s>, what: &str) -> Result<Quantity, InputError> {
        let Some(text) = node.as_text() else {
            return Err(self.wrong_kind(
                node,
                &format!("`{what}` is a quantity"),
                "for example `500m`, `2G` or `512Mi`",
            ));
        };
        text.parse().map_err(|reason: QuantityError| {
            let shown: String = text.chars().take(40).collect();
            let mut error = self.error(node.at, format!("`{what}` is `{shown}`, which {reason}"));
            error = error.because("not a quantity");
            match (template::way_out(text), quantity_meant(text)) {
                (Some(unrendered), _) => error.help(unrendered),
                (None, Some(meant)) => error.help(format!("did you mean `{meant}`?")),
                (None, None) => error.help("write for example `500m`, `1.5`, `2G` or `512Mi`"),
            }
        })
    }

    /// A duration that is not negative.
    ///
    /// # Errors
    /// If it is not one.
    pub fn duration(&self, node: &Node<'s>, what: &str) -> Result<SimDuration, InputError> {
        let Some(text) = node.as_text() else {
            return Err(self.wrong_kind(
                node,
                &format!("`{what}` is a span of time"),
                "for example `30s`, `5m` or `1h30m`",
            ));
        };
        text.parse().map_err(|reason: DurationError| {
            let shown: String = text.chars().take(40).collect();
            let error = self.error(node.at, format!("`{what}` is `{shown}`, which {reason}"));
            match reason {
                DurationError::Negative => error.because("below zero").help("write a duration of 0s or more"),
                DurationError::TooLong => error.because("beyond the clock").help("write at most 10000d"),
                DurationError::Malformed if text.bytes().all(|b| b.is_ascii_digit()) => {
                    error.because("a number without a unit").help(unit_missing(what, &shown))
                }
                DurationError::Malformed => {
                    let example = || "write for example `30s`, `5m`, `1h30m` or `7d`".to_owned();
                    error.because("not a duration").help(template::way_out(text).unwrap_or_else(example))
                }
            }
        })
    }

    /// A number of seconds, as Kubernetes writes many durations.
    ///
    /// # Errors
    /// If it is not a whole number of at least 0.
    pub fn seconds(&self, node: &Node<'s>, what: &str) -> Result<SimDuration, InputError> {
        self.integer(node, what, 0, 1_000_000_000_000).map(SimDuration::from_secs)
    }

    /// The items of a list; nothing counts as an empty one.
    ///
    /// # Errors
    /// If it is something else.
    pub fn list<'n>(&self, node: &'n Node<'s>, what: &str) -> Result<&'n [Node<'s>], InputError> {
        match &node.kind {
            NodeKind::Seq(items) => Ok(items),
            NodeKind::Null => Ok(&[]),
            _ => Err(self.wrong_kind(node, &format!("`{what}` is a list"), "a list (`- a` lines, or `[a, b]`)")),
        }
    }

    /// The keys and values of a map with free keys; nothing counts as an empty one.
    ///
    /// # Errors
    /// If it is something else.
    pub fn entries<'n>(&self, node: &'n Node<'s>, what: &str) -> Result<&'n [Entry<'s>], InputError> {
        match &node.kind {
            NodeKind::Map(entries) => Ok(entries),
            NodeKind::Null => Ok(&[]),
            _ => Err(self.wrong_kind(node, &format!("`{what}` is a map"), "a map of names and values")),
        }
    }

    /// One of several words.
    ///
    /// # Errors
    /// If it is none of them; the nearest is suggested.
    pub fn choice<T: Copy>(&self, node: &Node<'s>, what: &str, choices: &[(&'static str, T)]) -> Result<T, InputError> {
        let text = self.text(node, what)?;
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let words = || choices.iter().map(|(word, _)| *word);
        let shown: String = text.chars().take(80).collect();
        let help = match (template::way_out(text), nearest(text, words())) {
            (Some(unrendered), _) => unrendered,
            (None, Some(near)) => format!("did you mean `{near}`? known are {}", listed(words())),
            (None, None) => format!("known are {}", listed(words())),
        };
        Err(self.error(node.at, format!("unknown `{what}`: `{shown}`")).because("not known").help(help))
    }
}

/// The way out of a duration that lacks its unit: one that its quantity has as a rule, where there is one.
fn unit_missing(what: &str, number: &str) -> String {
    let usual = match what {
        "cpu_per_request" | "cpu_per_message" | "base_latency" => "ms",
        "timeout" | "time_per_message" | "think_time" => "s",
        "consolidateAfter" | "run_time" => "m",
        "duration" | "expireAfter" => "h",
        _ => return "add its unit: `ms`, `s`, `m`, `h` or `d`".to_owned(),
    };
    format!("add its unit, for example `{number}{usual}`; the units are `ms`, `s`, `m`, `h` and `d`")
}

/// Nothing, an empty list or an empty map: stated, but asking for nothing.
fn is_blank(node: &Node<'_>) -> bool {
    match &node.kind {
        NodeKind::Null => true,
        NodeKind::Seq(items) => items.is_empty(),
        NodeKind::Map(entries) => entries.is_empty(),
        NodeKind::Scalar { text, .. } => text.is_empty() || text == "false",
    }
}

/// What a text that is almost a quantity probably means: `4GB` is `4G`, `500 m` is `500m`, `2gi` is `2Gi`.
fn quantity_meant(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(40).collect();
    let number_end = compact.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, suffix) = compact.split_at(number_end);
    let suffix = suffix.to_lowercase();
    let bare = suffix.strip_suffix('b').unwrap_or(&suffix);
    let meant = match bare {
        "ki" | "mi" | "gi" | "ti" | "pi" => format!("{}i", bare[..1].to_uppercase()),
        "g" | "t" | "p" => bare.to_uppercase(),
        "m" if suffix == "mb" => "M".to_owned(),
        "k" | "m" => bare.to_owned(),
        _ => return None,
    };
    let candidate = format!("{number}{meant}");
    candidate.parse::<Quantity>().ok().map(|_| candidate)
}

/// The fields of an open map.
#[derive(Clone, Copy)]
pub struct Fields<'n, 's> {
    entries: &'n [Entry<'s>],
    /// Where the map stands.
    pub at: Location,
    shape: &'static Shape,
}

impl<'n, 's> Fields<'n, 's> {
    /// The value of `key`; `None` if it is absent or nothing.
    pub fn get(&self, key: &'static str) -> Option<&'n Node<'s>> {
        debug_assert!(self.shape.keys.contains(&key), "`{key}` is read but not declared for {}", self.shape.name);
        let value = &self.entries.iter().find(|entry| entry.key == key)?.value;
        (value.kind != NodeKind::Null).then_some(value)
    }

    /// The value of `key`, read by `read`, if it is given.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn optional<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&'n Node<'s>, &'static str) -> Result<T, InputError>,
    ) -> Result<Option<T>, InputError> {
        self.get(key).map(|node| read(node, key)).transpose()
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// If it is absent.
    pub fn required(&self, reader: &Reader<'s>, key: &'static str) -> Result<&'n Node<'s>, InputError> {
        self.get(key).ok_or_else(|| {
            reader
                .error(self.at, format!("{} needs `{key}`", self.shape.name))
                .because(format!("`{key}` is missing here"))
                .help(format!("add `{key}:` with a value"))
        })
    }
}
