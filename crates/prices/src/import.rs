//! Brings in facts that the AWS CLI prints, and prices by contract: recognises what a file holds, takes what is for Linux on
//! shared hardware, and lays it over the built-in tables.
//!
//! What must not live here: reading or writing files (that is `cli`), any request to AWS.

mod account;
mod contract;
mod hardware;
mod overlay;
mod price_list;
mod records;
mod regions;
mod spot_history;

use std::collections::BTreeMap;

use serde_json::Value;

pub use account::{FileAccount, KindAccount, RecordKind, RegionAccount, Skipped};

use super::{Catalog, CatalogError};
use nodecast_model::domain::{Currency, HourlyRate};

/// Files of the AWS CLI on their way into a pricing-data directory.
#[derive(Debug)]
pub struct Import {
    base: &'static Catalog,
    accounts: Vec<FileAccount>,
    facts: Vec<(usize, Fact)>,
}

/// A pricing-data directory, and how it came about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// Its tables, by path within the directory.
    pub tables: BTreeMap<String, String>,
    /// What became of each file, in the order given.
    pub files: Vec<FileAccount>,
    /// What changed in each region, by name.
    pub regions: BTreeMap<String, RegionAccount>,
    /// Instance types that the built-in data lacked, in order of name.
    pub new_types: Vec<String>,
}

/// Why an import came to nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, miette::Diagnostic)]
pub enum ImportError {
    /// A file is not JSON.
    #[error("{file} is not JSON: {reason}")]
    #[diagnostic(help(
        "print it with `aws ... --output json`; a table of prices by contract begins with {}",
        contract::HEADER
    ))]
    NotJson {
        /// The file.
        file: String,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// A table of prices by contract whose columns something else separates than commas.
    #[error("the columns of {file} are separated by {separator}")]
    #[diagnostic(help("separate them by commas, as in {}, and write prices with a point", contract::HEADER))]
    OtherSeparator {
        /// The file.
        file: String,
        /// What separates them.
        separator: &'static str,
    },
    /// A file is JSON of something else.
    #[error("{file} holds nothing that can be brought in: {found}")]
    #[diagnostic(help(
        "what can be are the answers of `aws pricing get-products`, `aws ec2 describe-spot-price-history`, \
         `aws ec2 describe-instance-types` and `aws ec2 describe-instance-type-offerings`, and tables of prices by contract"
    ))]
    NotRecognised {
        /// The file.
        file: String,
        /// What it holds instead.
        found: String,
    },
    /// Nothing could be taken.
    #[error("nothing was taken from {files}{reasons}")]
    #[diagnostic(help("nothing is written; see the options of the AWS CLI in pricing-data/README.md"))]
    NothingTaken {
        /// The files.
        files: String,
        /// Why not, a line for each reason.
        reasons: String,
    },
    /// The tables, built in or made, cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// What a record says.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Fact {
    /// An On-Demand list price.
    OnDemand { region: String, instance_type: String, rate: HourlyRate, currency: Currency, date: String },
    /// A Spot price seen in a zone at an instant.
    Spot { zone: String, instance_type: String, rate: HourlyRate, at: jiff::Timestamp },
    /// A zone offers a type.
    Offering { zone: String, instance_type: String },
    /// What the user pays, from a line of a file written by hand.
    Own { region: String, instance_type: String, rate: HourlyRate, date: String, line: u64 },
    /// What a type is made of, by column of instance-types.csv.
    Hardware { instance_type: String, cells: BTreeMap<&'static str, String> },
}

impl Fact {
    fn kind(&self) -> RecordKind {
        match self {
            Self::OnDemand { .. } => RecordKind::OnDemandPrice,
            Self::Spot { .. } => RecordKind::SpotPrice,
            Self::Offering { .. } => RecordKind::Offering,
            Self::Own { .. } => RecordKind::OwnPrice,
            Self::Hardware { .. } => RecordKind::InstanceType,
        }
    }

    /// The line that it was written in by hand.
    fn line(&self) -> Option<u64> {
        match self {
            Self::Own { line, .. } => Some(*line),
            _ => None,
        }
    }

    fn instance_type(&self) -> &str {
        match self {
            Self::OnDemand { instance_type, .. }
            | Self::Spot { instance_type, .. }
            | Self::Offering { instance_type, .. }
            | Self::Own { instance_type, .. }
            | Self::Hardware { instance_type, .. } => instance_type,
        }
    }
}

impl Import {
    /// An import onto the built-in data.
    ///
    /// # Errors
    /// Never with the pricing data of a released program.
    pub fn onto_built_in() -> Result<Self, ImportError> {
        Ok(Self { base: Catalog::embedded()?, accounts: Vec::new(), facts: Vec::new() })
    }

    /// Takes in the text of the file `file`: one JSON document or several, or a table of prices by contract.
    ///
    /// # Errors
    /// If it is neither, or none of it is of a kind that can be brought in, or a line of a table cannot be understood.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), ImportError> {
        let mut account = FileAccount::new(file);
        let position = self.accounts.len();
        if contract::is_table(text) {
            account.kinds.entry(RecordKind::OwnPrice).or_default();
            contract::read(file, text, &mut |fact| self.facts.push((position, fact)))?;
            self.accounts.push(account);
            return Ok(());
        }
        if let Some(separator) = contract::other_separator(text) {
            return Err(ImportError::OtherSeparator { file: file.to_owned(), separator });
        }
        let mut found = None;
        for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let document =
                document.map_err(|error| ImportError::NotJson { file: file.to_owned(), reason: error.to_string() })?;
            let unknown = records::read(document, &mut |kind, example, outcome| {
                let account = account.kinds.entry(kind).or_default();
                match outcome {
                    Ok(fact) => self.facts.push((position, fact)),
                    Err(reason) => account.skip(reason, example),
                }
            });
            found = found.or(unknown);
        }
        if account.kinds.is_empty() {
            let found = found.unwrap_or_else(|| "it is empty".to_owned());
            return Err(ImportError::NotRecognised { file: file.to_owned(), found });
        }
        self.accounts.push(account);
        Ok(())
    }

    /// Lays everything over the built-in tables.
    ///
    /// # Errors
    /// If nothing could be taken.
    pub fn finish(self) -> Result<Imported, ImportError> {
        overlay::apply(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Import, ImportError};

    fn import(texts: &[&str]) -> Result<super::Imported, ImportError> {
        let mut import = Import::onto_built_in()?;
        for text in texts {
            import.add("file.json", text)?;
        }
        import.finish()
    }

    #[test]
    fn text_other_than_cli_output_is_rejected() {
        assert!(matches!(import(&["{"]), Err(ImportError::NotJson { .. })));
        for separator in [";", "\t"] {
            let table =
                "region,instance_type,price,as_of\nus-east-1,m6i.large,0.05,2026-04-01\n".replace(',', separator);
            assert!(matches!(import(&[&table]), Err(ImportError::OtherSeparator { .. })), "{separator:?}");
        }
        for text in ["", "[]", "3", "{\"Reservations\": []}"] {
            assert!(matches!(import(&[text]), Err(ImportError::NotRecognised { .. })), "{text}");
        }
        assert!(matches!(import(&["{\"SpotPriceHistory\": []}"]), Err(ImportError::NothingTaken { .. })));
    }

    /// Any JSON, with the keys that matter more often than chance would have them.
    fn any_json() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "SpotPriceHistory",
            "PriceList",
            "InstanceTypes",
            "InstanceTypeOfferings",
            "InstanceType",
            "SpotPrice",
            "AvailabilityZone",
            "Timestamp",
            "ProductDescription",
            "product",
            "terms",
            "attributes",
            "OnDemand",
            "priceDimensions",
            "pricePerUnit",
            "USD",
            "unit",
            "regionCode",
            "VCpuInfo",
            "DefaultVCpus",
            "MemoryInfo",
            "SizeInMiB",
            "NetworkInfo",
            "NetworkCards",
            "GpuInfo",
            "Gpus",
            "LocationType",
            "Location",
        ]);
        let texts = prop::sample::select(vec![
            "m5.large",
            "us-east-1a",
            "us-east-1",
            "Linux/UNIX",
            "Linux",
            "0.05",
            "1e9",
            "-1",
            "Hrs",
            "m99.large",
            "2026-11-20T10:00:00+00:00",
            "availability-zone",
            "",
            "{\"product\":{}}",
            "*",
            "us-east-1🦀",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            texts.prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((words.clone(), inner.clone()), 0..8).prop_map(|entries| {
                    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
                }),
                inner.prop_map(|value| Value::from(value.to_string())),
            ]
        })
    }

    /// A record of every kind with some values replaced by any JSON.
    fn nearly_good() -> impl Strategy<Value = Value> {
        (prop::collection::vec((0_usize..40, any_json()), 0..4), 0_usize..4).prop_map(|(faults, kind)| {
            let mut document = match kind {
                0 => json!({"SpotPriceHistory": [{"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large",
                    "ProductDescription": "Linux/UNIX", "SpotPrice": "0.03", "Timestamp": "2026-11-20T10:00:00+00:00"}]}),
                1 => json!({"PriceList": [{"product": {"productFamily": "Compute Instance", "attributes": {
                    "instanceType": "m5.large", "regionCode": "us-east-1", "operatingSystem": "Linux",
                    "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}}, "publicationDate":
                    "2026-11-18T00:00:00Z", "terms": {"OnDemand": {"A": {"priceDimensions": {"B": {
                    "unit": "Hrs", "pricePerUnit": {"USD": "0.09"}}}}}}}]}),
                2 => json!({"InstanceTypes": [{"InstanceType": "m99.large", "VCpuInfo": {"DefaultVCpus": 2},
                    "MemoryInfo": {"SizeInMiB": 8192}, "ProcessorInfo": {"SupportedArchitectures": ["arm64"]},
                    "NetworkInfo": {"NetworkCards": [{"MaximumNetworkInterfaces": 3}]}, "GpuInfo": {"Gpus":
                    [{"Name": "T4", "Manufacturer": "NVIDIA", "Count": 1}]}}]}),
                _ => json!({"InstanceTypeOfferings": [{"InstanceType": "m5.large", "LocationType":
                    "availability-zone", "Location": "us-east-1e"}]}),
            };
            for (place, value) in faults {
                let mut left = place;
                replace(&mut document, &mut left, &value);
            }
            document
        })
    }

    /// Replaces the value at the place `left`, counted in depth-first order.
    fn replace(document: &mut Value, left: &mut usize, value: &Value) {
        let inner: Vec<&mut Value> = match document {
            Value::Array(items) => items.iter_mut().collect(),
            Value::Object(entries) => entries.values_mut().collect(),
            _ => return,
        };
        for inner in inner {
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None => {
                    *inner = value.clone();
                    *left = usize::MAX;
                    return;
                }
            }
            replace(inner, left, value);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

        #[test]
        fn price_import_never_panics_and_round_trips(one in any_json(), other in nearly_good()) {
            // Whatever comes out has been read back by `finish`.
            if let Ok(imported) = import(&[&other.to_string(), &one.to_string()]).or_else(|_| import(&[&other.to_string()])) {
                prop_assert!(!imported.tables.is_empty());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,64}") {
            prop_assert!(import(&[&text]).is_err());
            let table = format!("region,instance_type,price,as_of\n{text}");
            prop_assert!(import(&[&table]).is_err());
        }
    }
}
