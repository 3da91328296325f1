//! Which Auto Scaling groups the autoscaler minds: those that are named to it, and those that carry certain tags.
//!
//! Source: Cluster Autoscaler 1.36 `cloudprovider/aws/aws_manager.go`, `config/dynamic/node_group_spec.go`.

use nodecast_model::domain::{NodeGroup, Symbol};

/// The tag that EKS gives to the groups of managed node groups.
pub const ENABLED_TAG: &str = "k8s.io/cluster-autoscaler/enabled";

/// A tag that a group must have, with its value where that matters.
type WantedTag = (String, Option<String>);

/// How groups are found. With nothing said, by the tag `k8s.io/cluster-autoscaler/enabled`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Discovery {
    tags: Vec<Vec<WantedTag>>,
    named: Vec<NamedGroup>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NamedGroup {
    name: Symbol,
    min: i64,
    max: i64,
}

impl Discovery {
    /// A value of `node-group-auto-discovery`: `asg:tag=key,key=value`. A group must have all of its tags.
    pub(super) fn add_tags(&mut self, text: &str) -> Result<(), String> {
        let wrong = || format!("`{text}` is not asg:tag=<key>,<key>=<value>");
        let listed = text.strip_prefix("asg:tag=").filter(|listed| !listed.is_empty()).ok_or_else(wrong)?;
        let tag = |tag: &str| match tag.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (tag.to_owned(), None),
        };
        let tags: Vec<WantedTag> = listed.split(',').map(tag).collect();
        if tags.iter().any(|(key, _)| key.is_empty()) {
            return Err(wrong());
        }
        self.tags.push(tags);
        Ok(())
    }

    /// A value of `nodes`: `min:max:name`.
    pub(super) fn add_group(&mut self, text: &str) -> Result<(), String> {
        let wrong = || format!("`{text}` is not <min>:<max>:<name>");
        let mut parts = text.splitn(3, ':');
        let (Some(min), Some(max), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let (min, max): (i64, i64) = match (min.parse(), max.parse()) {
            (Ok(min), Ok(max)) => (min, max),
            _ => return Err(wrong()),
        };
        if name.is_empty() || min < 0 || max < min {
            return Err(wrong());
        }
        self.named.push(NamedGroup { name: Symbol::new(name), min, max });
        Ok(())
    }

    /// The limits within which the autoscaler keeps a group, given its own; `None` for a group that it leaves alone. The flag `nodes`
    /// names Auto Scaling groups, by the names that they have in AWS or by those of their node groups.
    pub fn limits(&self, group: &NodeGroup, item: (i64, i64)) -> Option<(i64, i64)> {
        if let Some(named) = self.named.iter().find(|named| group.is_called(named.name.as_str())) {
            return Some((named.min, named.max));
        }
        let tags = &group.tags;
        let has = |(key, value): &WantedTag| {
            let found = Symbol::existing(key).and_then(|key| tags.get(key));
            found.is_some_and(|found| value.as_ref().is_none_or(|value| found.as_str() == value))
        };
        let found = if self.tags.is_empty() && self.named.is_empty() {
            has(&(ENABLED_TAG.to_owned(), None))
        } else {
            self.tags.iter().any(|wanted| wanted.iter().all(has))
        };
        found.then_some(item)
    }
}
