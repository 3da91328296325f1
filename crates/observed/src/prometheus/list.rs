//! The list of queries: what is asked, of which time, at which step, and the name of the file that holds the answer. It is what
//! `queries.json` holds beside saved answers.

use std::fmt::Write as _;

use nodecast_model::text::InputError;
use serde::{Deserialize, Serialize};

/// The file that holds the list, beside the answers.
pub const LIST_FILE: &str = "queries.json";

/// Most points of a series that one answer may have.
///
/// Source: Prometheus 3.14 `web/api/v1/api.go` (`exceeded maximum resolution of 11,000 points per timeseries`).
pub const POINTS_MAX: i64 = 11_000;

/// A range query, and where its answer is saved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Query {
    /// The name of the file with the answer.
    pub file: String,
    /// PromQL.
    pub query: String,
    /// The first instant at which it is evaluated.
    #[serde(with = "instant")]
    #[schemars(with = "String")]
    pub start: i64,
    /// The last instant at which it may be, in seconds since 1970-01-01 UTC as the first.
    #[serde(with = "instant")]
    #[schemars(with = "String")]
    pub end: i64,
    /// Seconds from one to the next.
    pub step: i64,
}

/// Instants as RFC 3339 in UTC.
mod instant {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(seconds: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::super::import::time_text(*seconds))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_second).map_err(D::Error::custom)
    }
}

impl Query {
    /// What it is about: the name of its file up to the first dot. Pieces of one question differ in what follows.
    pub fn role(&self) -> &str {
        self.file.split('.').next().unwrap_or_default()
    }

    /// How many instants it is evaluated at.
    pub fn points(&self) -> i64 {
        (self.end - self.start).max(0) / self.step.max(1) + 1
    }

    /// The question in pieces of at most `points` points, on the grid that its start lies on. No instant is in two pieces.
    pub fn pieces(self, points: i64) -> Vec<Self> {
        let all = self.points();
        if all <= points {
            return vec![self];
        }
        let (stem, ending) = self.file.rsplit_once('.').unwrap_or((&self.file, "json"));
        let piece = |number: i64| {
            let first = self.start + number * points * self.step;
            let last = (first + (points - 1) * self.step).min(self.end);
            let file = format!("{stem}.{:03}.{ending}", number + 1);
            Self { file, query: self.query.clone(), start: first, end: last, step: self.step }
        };
        (0..(all + points - 1) / points).map(piece).collect()
    }

    /// The question in two halves; `None` if it is of one instant alone.
    pub fn halves(&self) -> Option<[Self; 2]> {
        let points = self.points();
        if points < 2 {
            return None;
        }
        let (stem, ending) = self.file.rsplit_once('.').unwrap_or((&self.file, "json"));
        let first_of_second = self.start + (points + 1) / 2 * self.step;
        let half = |letter: char, start, end| Self {
            file: format!("{stem}.{letter}.{ending}"),
            query: self.query.clone(),
            start,
            end,
            step: self.step,
        };
        Some([
            half('a', self.start, first_of_second - self.step),
            half('b', first_of_second, self.start + (points - 1) * self.step),
        ])
    }

    /// Whether `other` is this question, or came of halving it.
    fn is_whole_of(&self, other: &Self) -> bool {
        self.query == other.query
            && self.step == other.step
            && self.role() == other.role()
            && self.start <= other.start
            && other.end <= self.end
    }
}

/// A list of queries.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct QueryList {
    /// The queries, in the order in which they are asked.
    pub queries: Vec<Query>,
}

impl QueryList {
    /// Reads the list that `file` holds.
    ///
    /// # Errors
    /// If it is not the JSON of a list, a step is no time, an end lies before its start, or a file's name leads elsewhere.
    pub fn read(text: &str, file: &str) -> Result<Self, InputError> {
        let list: Self = serde_json::from_str(text).map_err(|error| {
            InputError::new(format!("{file}:{}:{}: is not a list of queries: {error}", error.line(), error.column()))
                .help("`nodecast observe queries` prints one")
        })?;
        for query in &list.queries {
            let refused = |what: String| Err(InputError::new(format!("{file}: the query `{}` {what}", query.file)));
            if query.step < 1 || query.end < query.start {
                return refused("has no step, or ends before it begins".to_owned());
            }
            let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if query.file.starts_with('.') || !query.file.chars().all(safe) || query.file == LIST_FILE {
                return refused("is not the name of a file beside the list".to_owned());
            }
        }
        Ok(list)
    }

    /// The list as JSON, a key a line.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a list of texts and numbers is JSON");
        text + "\n"
    }

    /// Whether a list is this one with some questions halved.
    pub fn is_whole_of(&self, other: &Self) -> bool {
        let mut rest = other.queries.iter().peekable();
        let all_there = self.queries.iter().all(|whole| {
            let mut parts = 0_usize;
            while rest.next_if(|part| whole.is_whole_of(part)).is_some() {
                parts += 1;
            }
            parts > 0
        });
        all_there && rest.peek().is_none()
    }

    /// The first and the last second that a query of the list is evaluated at.
    pub fn span(&self) -> Option<(i64, i64)> {
        let first = self.queries.iter().map(|query| query.start).min()?;
        Some((first, self.queries.iter().map(|query| query.end).max()?))
    }

    /// A script for a POSIX shell that asks each query with `curl` and saves the answers, and this list, in the folder `answers`.
    pub fn shell_script(&self) -> String {
        let mut text = String::from(
            "#!/bin/sh\n\
             # Asks a Prometheus for what `nodecast observe --answers answers` reads. Run it where the Prometheus can be reached:\n\
             #   PROMETHEUS=http://localhost:9090 sh queries.sh\n\
             # Options for every call, for example a header from a file, go into CURL: CURL='-H @header.txt'\n\
             set -eu\n\
             : \"${PROMETHEUS:?name the address, for example http://localhost:9090}\"\n\
             mkdir -p answers\n\
             cat > answers/queries.json <<'END_OF_LIST'\n",
        );
        text += &self.to_json();
        text += "END_OF_LIST\n\
             ask() {\n\
             \x20 [ -s \"answers/$1\" ] && return\n\
             \x20 curl --silent --show-error --fail-with-body ${CURL:-} --output \"answers/$1.part\" \"$PROMETHEUS/api/v1/query_range\" \\\n\
             \x20   --data-urlencode \"query=$5\" --data-urlencode \"start=$2\" --data-urlencode \"end=$3\" --data-urlencode \"step=$4\"\n\
             \x20 mv \"answers/$1.part\" \"answers/$1\"\n\
             }\n";
        for query in &self.queries {
            let quoted = query.query.replace('\'', "'\\''");
            let _ = writeln!(text, "ask {} {} {} {} '{quoted}'", query.file, query.start, query.end, query.step);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{POINTS_MAX, Query, QueryList};

    fn query(points: i64, step: i64) -> Query {
        let start = 1_791_849_600;
        Query { file: "x.json".to_owned(), query: "up".to_owned(), start, end: start + (points - 1) * step, step }
    }

    #[test]
    fn query_pieces_respect_limit_and_cover_once() {
        for (points, step) in [(1, 60), (10_999, 60), (11_000, 60), (11_001, 60), (40_320, 60), (22_000, 3_600)] {
            let whole = query(points, step);
            let pieces = whole.clone().pieces(POINTS_MAX);
            assert!(pieces.iter().all(|piece| piece.points() <= POINTS_MAX));
            let instants: Vec<i64> = pieces
                .iter()
                .flat_map(|piece| (0..piece.points()).map(|number| piece.start + number * piece.step))
                .collect();
            let expected: Vec<i64> = (0..points).map(|number| whole.start + number * step).collect();
            assert_eq!(instants, expected);
            let list = QueryList { queries: vec![query(points, step)] };
            let in_pieces = QueryList { queries: pieces };
            assert!(list.is_whole_of(&in_pieces), "{points}");
        }
    }

    #[test]
    fn halves_share_no_instant() {
        let [one, other] = query(5, 60).halves().unwrap();
        assert_eq!((one.points(), other.points(), other.start - one.end), (3, 2, 60));
        assert_eq!((one.file.as_str(), other.file.as_str(), other.role()), ("x.a.json", "x.b.json", "x"));
        assert!(query(1, 60).halves().is_none());
    }

    #[test]
    fn query_list_round_trips_and_rejects_unsafe_paths() {
        let list = QueryList { queries: vec![query(3, 60)] };
        assert_eq!(QueryList::read(&list.to_json(), "queries.json").unwrap(), list);
        for file in ["../x.json", ".x", "a/b.json", "queries.json"] {
            let mut bad = list.clone();
            bad.queries[0].file = file.to_owned();
            assert!(QueryList::read(&bad.to_json(), "l").is_err(), "{file}");
        }
        assert!(QueryList::read("[{}]", "l").unwrap_err().to_string().starts_with("l:1:3: is not a list"));
    }

    #[test]
    fn shell_script_quotes_special_characters() {
        let mut query = query(1, 60);
        query.query = "up{job='a$b'}".to_owned();
        let script = QueryList { queries: vec![query] }.shell_script();
        assert!(script.contains("ask x.json 1791849600 1791849600 60 'up{job='\\''a$b'\\''}'\n"));
    }
}
