//! The ranks of node groups, by which the expander `priority` of the Cluster Autoscaler chooses.

use regex_lite::Regex;

/// The ranks that the ConfigMap `cluster-autoscaler-priority-expander` gives to groups by the names of their Auto Scaling groups.
#[derive(Clone, Debug, Default)]
pub struct GroupRanks(Vec<(i64, Vec<Regex>)>);

impl GroupRanks {
    /// Ranks with the expressions that the name of an Auto Scaling group must contain a match of one of.
    ///
    /// # Errors
    /// The first expression that cannot be read, with the reason.
    pub fn new<'a>(ranks: impl IntoIterator<Item = (i64, &'a str)>) -> Result<Self, String> {
        let mut read: Vec<(i64, Vec<Regex>)> = Vec::new();
        for (rank, expression) in ranks {
            let expression = Regex::new(expression).map_err(|error| format!("`{expression}`: {error}"))?;
            match read.iter_mut().find(|entry| entry.0 == rank) {
                Some(entry) => entry.1.push(expression),
                None => read.push((rank, vec![expression])),
            }
        }
        Ok(Self(read))
    }

    /// The highest rank of the name of an Auto Scaling group; ranks below -1 never count.
    ///
    /// Source: Cluster Autoscaler 1.36 `expander/priority/priority.go`.
    pub fn rank(&self, name: &str) -> Option<i64> {
        let matching = self.0.iter().filter(|(rank, any)| *rank >= -1 && any.iter().any(|one| one.is_match(name)));
        matching.map(|(rank, _)| *rank).max()
    }
}
