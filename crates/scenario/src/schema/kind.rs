//! Kinds of value: how each is written, read and printed, with its bounds.
//!
//! A kind is a type that is never made: it says what a key holds, and its [`Kind::Value`] is what the scenario then has.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::Form;
use crate::ScenarioError;
use crate::domain::workload::ObjectName;
use crate::domain::{HourlyRate, Labels, Money, SimDuration, SimTime, Symbol};
use crate::file::Reading;
use crate::tree::{Node, NodeKind};

/// What a read comes to.
pub type Read<T> = Result<T, ScenarioError>;

/// A kind of value.
pub trait Kind {
    /// What it is read as.
    type Value;

    /// How it is written.
    fn form() -> Form;

    /// The value that stands at `node`, under the key `what`.
    ///
    /// # Errors
    /// If it is another kind of value, or out of bounds.
    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<Self::Value>;
}

/// A kind whose values can be printed as a scenario writes them, so that it may have defaults.
pub trait Show: Kind {
    /// The value as YAML.
    fn show(value: &Self::Value) -> String;
}

/// A kind by the form in which it is written and by how it is read (`name: type = form, |reading, node, what| ...`), or one that is
/// written as another, with more to it: its own bounds (`name: base, |reading, node, what, value| ...`), or something else that is
/// made of the value (`name: base => type, ...`). One with defaults says how a value is printed (`; show |value| ...`), which one
/// with no more than bounds leaves to the other.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident: $base:ty, |$reading:pat_param, $node:pat_param, $what:pat_param, $stated:pat_param| $body:expr) => {
        $crate::schema::kind::kind! { $(#[$doc])* $name: $base => <$base as $crate::schema::kind::Kind>::Value,
            |$reading, $node, $what, $stated| $body;
            show |value| <$base as $crate::schema::kind::Show>::show(value) }
    };
    ($(#[$doc:meta])* $name:ident: $base:ty => $value:ty,
     |$reading:pat_param, $node:pat_param, $what:pat_param, $stated:pat_param| $body:expr
     $(; show |$shown:pat_param| $show:expr)?) => {
        $crate::schema::kind::kind! { $(#[$doc])* $name: $value = <$base as $crate::schema::kind::Kind>::form(), |reading, node, what| {
            let $stated = <$base as $crate::schema::kind::Kind>::read(reading, node, what)?;
            let ($reading, $node, $what) = (reading, node, what);
            $body
        } $(; show |$shown| $show)? }
    };
    ($(#[$doc:meta])* $name:ident: $value:ty = $form:expr,
     |$reading:pat_param, $node:pat_param, $what:pat_param| $body:expr
     $(; show |$shown:pat_param| $show:expr)?) => {
        $(#[$doc])*
        pub enum $name {}

        $crate::schema::kind::kind! { impl $name: $value = $form, |$reading, $node, $what| $body $(; show |$shown| $show)? }
    };
    (impl $name:ty: $value:ty = $form:expr,
     |$reading:pat_param, $node:pat_param, $what:pat_param| $body:expr
     $(; show |$shown:pat_param| $show:expr)?) => {
        impl $crate::schema::kind::Kind for $name {
            type Value = $value;

            fn form() -> $crate::schema::Form {
                $form
            }

            fn read<'s>(
                $reading: &mut $crate::file::Reading<'_, 's>,
                $node: &$crate::tree::Node<'s>,
                $what: &str,
            ) -> Result<$value, $crate::ScenarioError> {
                $body
            }
        }

        $(impl $crate::schema::kind::Show for $name {
            fn show($shown: &$value) -> String {
                $show
            }
        })?
    };
}
pub(crate) use kind;

/// A choice of words: `name: type, "word" => value, ...`; of several words for one value the first is printed.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $value:ty, $($word:expr => $meant:expr),+ $(,)?) => {
        words! { $(#[$doc])* $name: $value, &[$(($word, $meant)),+] }
    };
    ($(#[$doc:meta])* $name:ident, $($word:literal),+ $(,)?) => {
        words! { $(#[$doc])* $name: &'static str, &[$(($word, $word)),+] }
    };
    ($(#[$doc:meta])* $name:ident: $value:ty, $words:expr) => {
        $(#[$doc])*
        pub enum $name {}

        impl $name {
            const WORDS: &[(&str, $value)] = $words;
        }

        $crate::schema::kind::kind! { impl $name: $value = $crate::schema::Form::Words(Self::WORDS.iter().map(|(word, _)| *word).collect()),
            |reading, node, what| reading.reader.choice(node, what, Self::WORDS);
            show |value| {
                let word = Self::WORDS.iter().find(|(_, meant)| meant == value);
                word.map_or_else(String::new, |(word, _)| (*word).to_owned())
            } }
    };
}
pub(crate) use words;

kind! {
    /// Text.
    Text: String = Form::Text(""), |reading, node, what| reading.reader.text(node, what).map(str::to_owned)
}

kind! {
    /// Text that is compared often.
    Name: Text => Symbol, |_, _, _, text| Ok(Symbol::new(&text));
    show |name| if name.as_str().is_empty() { "\"\"".to_owned() } else { name.to_string() }
}

kind! {
    /// Text, a number or a truth value, taken as text.
    Scalar: Symbol = Form::Scalar, |reading, node, what| reading.reader.symbol(node, what)
}

kind! {
    /// A name that can be a folder's.
    FolderName: String = Form::FolderName, |reading, node, what| {
        let name = reading.reader.text(node, what)?;
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(safe) {
            return Ok(name.to_owned());
        }
        Err(reading
            .error(node.at, "a name is made of letters, digits, `-`, `_` and `.`")
            .because("cannot name a folder")
            .help("write for example `black-friday`"))
    }
}

kind! {
    /// The name of a file, relative to the scenario.
    File: String = Form::File, |reading, node, what| Text::read(reading, node, what)
}

// A truth value.
kind! { impl bool: bool = Form::Truth, |reading, node, what| reading.reader.truth(node, what); show |value| value.to_string() }

/// A whole number from `LEAST` to `MOST`.
pub struct Whole<const LEAST: i64, const MOST: i64, T = u32>(PhantomData<T>);

impl<const LEAST: i64, const MOST: i64, T: TryFrom<i64> + Default> Kind for Whole<LEAST, MOST, T> {
    type Value = T;

    fn form() -> Form {
        Form::Integer(LEAST, MOST)
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<T> {
        // The bounds are within those of the type.
        reading.reader.integer(node, what, LEAST, MOST).map(|number| T::try_from(number).unwrap_or_default())
    }
}

impl<const LEAST: i64, const MOST: i64, T: TryFrom<i64> + Default + ToString> Show for Whole<LEAST, MOST, T> {
    fn show(value: &T) -> String {
        value.to_string()
    }
}

/// A number between two bounds, which are in thousandths.
pub enum Number<const LEAST: i64, const MOST: i64> {}

impl<const LEAST: i64, const MOST: i64> Number<LEAST, MOST> {
    const BOUNDS: (f64, f64) = (LEAST as f64 / 1_000.0, MOST as f64 / 1_000.0);
}

impl<const LEAST: i64, const MOST: i64> Kind for Number<LEAST, MOST> {
    type Value = f64;

    fn form() -> Form {
        Form::Number(Self::BOUNDS.0, Self::BOUNDS.1)
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<f64> {
        let number = reading.reader.quantity(node, what)?.nanos() as f64 / 1e9;
        let (least, most) = Self::BOUNDS;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        Err(reading
            .error(node.at, format!("`{what}` is {number}"))
            .because("out of bounds")
            .help(format!("write a number from {least} to {most}")))
    }
}

impl<const LEAST: i64, const MOST: i64> Show for Number<LEAST, MOST> {
    fn show(value: &f64) -> String {
        value.to_string()
    }
}

kind! {
    /// A number.
    Quantity: f64 = Form::Quantity, |reading, node, what| Ok(reading.reader.quantity(node, what)?.as_f64());
    show |value| value.to_string()
}

kind! {
    /// A number of something, as it is written.
    Count: crate::domain::Quantity = Form::Amount(""), |reading, node, what| {
        reading.reader.quantity(node, what).map_err(|error| match what {
            "cost" => error.help("write a number in the currency of the region: `400` or `0.5`"),
            "unavailable_pod_minutes" => {
                error.help("write replicas times minutes: `30`, for one that lacks half an hour")
            }
            _ => error,
        })
    }
}

kind! {
    /// A number of something, 0 or more, as it is written.
    NotNegative: Count => crate::domain::Quantity, |reading, node, what, amount| {
        if amount.nanos() >= 0 {
            return Ok(amount);
        }
        let error = reading.error(node.at, format!("`{what}` is negative"));
        Err(error.because("below zero").help("write a number of 0 or more"))
    }
}

kind! {
    /// A sum in the region's currency.
    Cost: NotNegative => Money, |_, _, _, amount| Ok(Money::from_nanos(amount.nanos()))
}

kind! {
    /// A number of 0 or more.
    Amount: Count => f64, |reading, node, what, quantity| {
        if quantity.nanos() >= 0 {
            return Ok(quantity.nanos() as f64 / 1e9);
        }
        let error = reading.error(node.at, format!("`{what}` is negative"));
        Err(error.because("below zero").help("write a number of 0 or more"))
    };
    show |value| value.to_string()
}

kind! {
    /// A number of bytes, 0 or more.
    Memory: Amount => i64, |_, _, _, bytes| Ok(libm::round(bytes) as i64); show |bytes| bytes.to_string()
}

kind! {
    /// A number of bytes, at least one.
    Bytes: i64 = Form::Amount("bytes"), |reading, node, what| {
        let amount = reading.reader.quantity(node, what)?.as_f64();
        if (1.0..1e15).contains(&amount) {
            return Ok(libm::round(amount) as i64);
        }
        Err(reading
            .error(node.at, format!("{what} is not a byte count"))
            .because("not above zero")
            .help("write for example `250M` (of an image), or `80M` (a second)"))
    };
    show |bytes| if bytes % 1_000_000 == 0 { format!("{}M", bytes / 1_000_000) } else { bytes.to_string() }
}

// A span of time, 0 or more.
kind! {
    impl SimDuration: SimDuration = Form::Duration, |reading, node, what| reading.reader.duration(node, what);
    show |value| value.to_string()
}

kind! {
    /// An instant, counted from the start of the run.
    Moment: SimDuration => SimTime, |_, _, _, span| Ok(SimTime::ZERO + span); show |at| (*at - SimTime::ZERO).to_string()
}

kind! {
    /// A span of time above 0.
    Positive: SimDuration, |reading, node, what, span| {
        if span > SimDuration::ZERO {
            return Ok(span);
        }
        let error = reading.error(node.at, format!("`{what}` is 0"));
        Err(error.because("no time at all").help("write for example `60s`"))
    }
}

kind! {
    /// A span of time that may be negative: `6h` or `-6h`.
    Shift: SimDuration = Form::SignedDuration, |reading, node, what| {
        match reading.reader.text(node, what)?.strip_prefix('-').map(str::parse::<SimDuration>) {
            Some(Ok(earlier)) => Ok(SimDuration::ZERO - earlier),
            _ => reading.reader.duration(node, what),
        }
    };
    show |value| value.to_string()
}

/// A share of up to `MOST` percent: `30%` or `0.3`.
pub enum Share<const MOST: u32> {}

impl<const MOST: u32> Kind for Share<MOST> {
    type Value = f64;

    fn form() -> Form {
        Form::Share(MOST)
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<f64> {
        let text = reading.reader.text(node, what)?.trim();
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => text.parse::<f64>(),
        };
        share.ok().filter(|share| (0.0..=f64::from(MOST) / 100.0).contains(share)).ok_or_else(|| {
            let error = |text: &str| reading.error(node.at, format!("`{what}` is {text}"));
            if MOST == 100 {
                error("a share").because("not a share").help("write for example `30%` or `0.3`")
            } else {
                let because = format!("from 0 to {MOST}%");
                error("not a share").because(because).help("write for example `10%` or `0.1`")
            }
        })
    }
}

impl<const MOST: u32> Show for Share<MOST> {
    fn show(value: &f64) -> String {
        // Shares are stated in millionths at the finest.
        format!("{}%", libm::round(value * 1e6) / 1e4)
    }
}

kind! {
    /// A share of up to the whole, in thousandths.
    Permille: Share<100> => u32, |_, _, _, share| Ok(libm::round(share * 1_000.0) as u32);
    show |share| Share::<100>::show(&(f64::from(*share) / 1_000.0))
}

kind! {
    /// A share of up to the whole, in millionths.
    Millionths: Share<100> => u32, |_, _, _, share| Ok(libm::round(share * 1e6) as u32);
    show |share| Share::<100>::show(&(f64::from(*share) / 1e6))
}

// A price in the region's currency, mostly per hour.
kind! {
    impl HourlyRate: HourlyRate = Form::Price, |reading, node, what| {
        HourlyRate::parse(reading.reader.text(node, what)?).ok_or_else(|| {
            reading
                .error(node.at, format!("`{what}` is a price per hour"))
                .because("not a price")
                .help("write a number with at most nine decimals, for example 0.005")
        })
    };
    show |price| price.to_string().trim_end_matches('0').trim_end_matches('.').to_owned()
}

// `namespace/name`, or `name` in the namespace `default`.
kind! {
    impl ObjectName: ObjectName = Form::Workload, |reading, node, _| {
        let text = reading.reader.text(node, "workload")?;
        let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
        if !namespace.is_empty() && !name.is_empty() && !name.contains('/') {
            return Ok(ObjectName { namespace: Symbol::new(namespace), name: Symbol::new(name) });
        }
        Err(reading
            .error(node.at, "a workload is named `namespace/name`")
            .because("not such a name")
            .help("write for example `web/frontend`"))
    };
    show |name| name.to_string()
}

/// A list.
impl<K: Kind> Kind for Vec<K> {
    type Value = Vec<K::Value>;

    fn form() -> Form {
        Form::List(Box::new(K::form()))
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<Self::Value> {
        let items = reading.reader.list(node, what)?;
        items.iter().map(|item| K::read(reading, item, what)).collect()
    }
}

/// A list, or one of its values alone.
pub struct OneOrMore<K>(PhantomData<K>);

impl<K: Kind> Kind for OneOrMore<K> {
    type Value = Vec<K::Value>;

    fn form() -> Form {
        Form::OneOrMore(Box::new(K::form()))
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<Self::Value> {
        let items = if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() };
        items.iter().map(|item| K::read(reading, item, what)).collect()
    }
}

/// A map with keys of the user's own.
impl<K: Kind> Kind for BTreeMap<Symbol, K> {
    type Value = BTreeMap<Symbol, K::Value>;

    fn form() -> Form {
        Form::Free("", Box::new(K::form()))
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<Self::Value> {
        let entries = reading.reader.entries(node, what)?;
        entries.iter().map(|entry| Ok((Symbol::new(&entry.key), K::read(reading, &entry.value, &entry.key)?))).collect()
    }
}

// Labels or tags.
kind! {
    impl Labels: Labels = Form::Free("", Box::new(Form::Scalar)), |reading, node, what| {
        let mut labels = Labels::new();
        for entry in reading.reader.entries(node, what)? {
            // An empty value may be written as nothing.
            let value = match entry.value.kind {
                NodeKind::Null => Symbol::new(""),
                _ => reading.reader.symbol(&entry.value, &entry.key)?,
            };
            labels.set(Symbol::new(&entry.key), value);
        }
        Ok(labels)
    }
}

/// A word (or another scalar), or a map; both come to the same.
pub struct Or<W, M>(PhantomData<(W, M)>);

impl<W: Kind, M: Kind<Value = W::Value>> Kind for Or<W, M> {
    type Value = W::Value;

    fn form() -> Form {
        Form::Either(Box::new(W::form()), Box::new(M::form()))
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<Self::Value> {
        if node.as_text().is_some() { W::read(reading, node, what) } else { M::read(reading, node, what) }
    }
}

impl<W: Show, M: Kind<Value = W::Value>> Show for Or<W, M> {
    fn show(value: &Self::Value) -> String {
        W::show(value)
    }
}

/// Something with the place at which it is stated.
pub struct Placed<K>(PhantomData<K>);

impl<K: Kind> Kind for Placed<K> {
    type Value = (K::Value, crate::tree::Location);

    fn form() -> Form {
        K::form()
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<Self::Value> {
        Ok((K::read(reading, node, what)?, node.at))
    }
}
