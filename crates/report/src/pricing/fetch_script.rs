//! The commands of the AWS CLI that fetch published prices, as a script of the shell.

use std::fmt::Write as _;

/// What is fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchScript<'a> {
    /// The region.
    pub region: &'a str,
    /// The instance types, in order; empty for all that the region has.
    pub types: Vec<&'a str>,
    /// The scenario that may use them, as the user named it.
    pub scenario: Option<&'a str>,
}

/// Names on one line of the script.
const LINE: usize = 100;

impl FetchScript<'_> {
    /// The script, which writes into the directory where it runs.
    pub fn text(&self) -> String {
        let (region, scenario) = (self.region, self.scenario.map_or_else(|| "SCENARIO".to_owned(), quoted));
        let mut text = format!(
            "#!/bin/sh\n# Fetches AWS's published prices of {region} for {}.\n# Needs the AWS CLI, version 2, and the IAM permissions pricing:GetProducts and ec2:DescribeSpotPriceHistory;\n# Both calls are free.\nset -eu\n\n",
            match self.types.len() {
                0 => "all its instance types".to_owned(),
                1 => "the one instance type that the scenario can use".to_owned(),
                count => format!("the {count} instance types that the scenario can use"),
            }
        );
        let list_region = if region.starts_with("cn-") { "cn-northwest-1" } else { "us-east-1" };
        let list = |indent: &str, more: &str, file: &str| {
            format!(
                "{indent}aws pricing get-products --region {list_region} --service-code AmazonEC2 --output json --filters \\\n\
                 {indent}  Type=TERM_MATCH,Field=regionCode,Value={region} Type=TERM_MATCH,Field=operatingSystem,Value=Linux \\\n\
                 {indent}  Type=TERM_MATCH,Field=tenancy,Value=Shared Type=TERM_MATCH,Field=preInstalledSw,Value=NA \\\n\
                 {indent}  Type=TERM_MATCH,Field=capacitystatus,Value=Used{more} > {file}\n"
            )
        };
        let mut spot = format!(
            "aws ec2 describe-spot-price-history --region {region} --product-descriptions Linux/UNIX --output json \\\n  \
             --start-time \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\""
        );
        if self.types.is_empty() {
            text.push_str(&list("", "", "price-list.json"));
        } else {
            let _ = writeln!(text, "types=\"{}\"\n", in_lines(&self.types));
            text.push_str("for type in $types; do\n");
            text.push_str(&list(
                "  ",
                " \"Type=TERM_MATCH,Field=instanceType,Value=$type\"",
                "\"price-list-$type.json\"",
            ));
            text.push_str("done\n");
            spot.push_str(" --instance-types $types");
        }
        let _ = write!(
            text,
            "{spot} > spot.json\n\n\
             nodecast pricing import --out my-prices price-list*.json spot.json\n\
             echo \"now: nodecast run {scenario} --pricing-data my-prices\"\n"
        );
        text
    }
}

/// Words in lines that are not too long.
fn in_lines(words: &[&str]) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in words {
        if length > 0 && length + word.len() >= LINE {
            text.push('\n');
            length = 0;
        } else if length > 0 {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += word.len();
    }
    text
}

/// A word that the shell takes as it is, within double quotes too: other letters than those of plain file names stand behind
/// a backslash.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    word.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain(Some(c))).collect()
}

#[cfg(test)]
mod tests {
    use super::FetchScript;

    #[test]
    fn fetch_script_queries_scenario_types_separately() {
        let script =
            FetchScript { region: "eu-west-1", types: vec!["m5.large", "m7g.large"], scenario: Some("my sc.yaml") };
        let text = script.text();
        assert!(text.contains("types=\"m5.large m7g.large\"\n"), "{text}");
        assert!(text.contains("Field=instanceType,Value=$type\" > \"price-list-$type.json\""), "{text}");
        assert!(text.contains("--instance-types $types > spot.json"), "{text}");
        assert!(text.contains("nodecast run my\\ sc.yaml --pricing-data my-prices"), "{text}");
        let text = FetchScript { region: "cn-north-1", types: Vec::new(), scenario: None }.text();
        assert!(
            text.contains("aws pricing get-products --region cn-northwest-1") && !text.contains("$types"),
            "{text}"
        );
    }

    #[test]
    fn long_lists_stand_in_several_lines() {
        let types = vec!["m7gd.metal-24xl"; 20];
        let text = FetchScript { region: "eu-west-1", types, scenario: None }.text();
        assert!(text.lines().filter(|line| line.contains("m7gd")).count() == 4, "{text}");
        assert!(text.lines().all(|line| line.len() < 140), "{text}");
    }
}
