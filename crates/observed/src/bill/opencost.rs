//! What OpenCost and Kubecost answer at `/allocation` and `/assets`.
//!
//! Their rates are list prices or guesses of Spot prices until they are reconciled with a bill: hours and core-hours are worth taking, the
//! cost is a second opinion. Fields: opencost `core/pkg/opencost/allocation.go` and `asset.go` of 2024-10.

use std::io::Read;

use jiff::Timestamp;
use nodecast_model::text::tree::{self, Node, NodeKind, Variables};
use nodecast_model::text::{InputError, Limits, Source};

use super::Contents;
use super::amount::Amount;
use super::columns::instant;
use super::place::of_file;
use super::rows::KNOWN;

/// What one namespace, workload or whatever was asked for took in one window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Its name; `__idle__` is what nobody asked for.
    pub name: String,
    /// Begin of the window.
    pub start: Timestamp,
    /// End of the window.
    pub end: Timestamp,
    /// CPU in core-hours.
    pub cpu_core_hours: Amount,
    /// Memory in byte-hours.
    pub ram_byte_hours: Amount,
    /// Cost of CPU, adjusted.
    pub cpu_cost: Amount,
    /// Cost of memory, adjusted.
    pub ram_cost: Amount,
    /// Cost of volumes, adjusted.
    pub volume_cost: Amount,
    /// Cost of load balancers, adjusted.
    pub load_balancer_cost: Amount,
    /// Cost of traffic, adjusted.
    pub network_cost: Amount,
    /// Everything, as the program adds it up.
    pub total_cost: Amount,
}

/// A thing that costs by the hour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asset {
    /// `Node`, `Disk`, `LoadBalancer`, `ClusterManagement`, `Network`, `Cloud`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The provider's id, which begins or ends with that of the instance.
    pub provider_id: String,
    /// Begin of the window in which it was there.
    pub start: Timestamp,
    /// End of that window.
    pub end: Timestamp,
    /// Minutes in which it was there.
    pub minutes: Amount,
    /// What a node has besides.
    pub node: Option<NodeAsset>,
    /// What the adjustment by a bill comes to; it is part of the total.
    pub adjustment: Amount,
    /// Everything.
    pub total_cost: Amount,
}

/// What is said of nodes only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeAsset {
    /// The instance type.
    pub instance_type: String,
    /// Whether it is Spot.
    pub spot: bool,
    /// CPU in core-hours.
    pub cpu_core_hours: Amount,
    /// Memory in byte-hours.
    pub ram_byte_hours: Amount,
    /// Cost of CPU before the discount.
    pub cpu_cost: Amount,
    /// Cost of memory before the discount.
    pub ram_cost: Amount,
    /// The discount as a share.
    pub discount: Amount,
}

/// Reads an answer.
pub(super) fn read(file: &str, mut text: impl Read) -> Result<Contents, InputError> {
    let limits = Limits::default();
    let (mut content, most) = (Vec::new(), limits.file_bytes_max as u64);
    let error = |error: std::io::Error| super::source::unreadable(file, None, &error);
    text.by_ref().take(most + 1).read_to_end(&mut content).map_err(error)?;
    if content.len() as u64 > most {
        return Err(
            of_file(file, "the answer is larger than 256 MiB").help("ask for fewer days, or with `accumulate=true`")
        );
    }
    let content = String::from_utf8(content)
        .map_err(|_| of_file(file, "the answer is not UTF-8").help("save what the server answered, unchanged"))?;
    let answer = Answer { source: Source::new(file, content) };
    answer.contents(&limits)
}

/// An answer with its text, for the places of mistakes.
struct Answer {
    source: Source,
}

impl Answer {
    fn contents(&self, limits: &Limits) -> Result<Contents, InputError> {
        if self.source.text.trim_start().starts_with('[') {
            return Err(of_file(&self.source.name, "a list in place of an answer with `code` and `data`").help(KNOWN));
        }
        let documents = tree::parse(&self.source, &Variables::new(), limits).map_err(|error| {
            let reason = error.reason().unwrap_or("here").to_owned();
            let mistake = match error.place() {
                Some(place) => InputError::new("this is not JSON").at(Some(place.clone())),
                None => of_file(&self.source.name, "this is not JSON"),
            };
            mistake.because(reason).help("save what the server answered, whole and unchanged")
        })?;
        let [document] = documents.as_slice() else {
            return Err(self.mistake(None, "there is not one answer in the file").help("save one answer to a file"));
        };
        if let Some(code) = document.get("code").and_then(Node::as_text).filter(|code| *code != "200") {
            let message = document.get("message").and_then(Node::as_text).unwrap_or("it does not say why");
            return Err(self
                .mistake(document.get("code"), &format!("the server answered with {code}: {message}"))
                .help("ask again, and save the answer that has data"));
        }
        match document.get("data") {
            Some(data) => self.items(data),
            None => Err(of_file(&self.source.name, "a JSON file without `data`").help(KNOWN)),
        }
    }

    /// The allocations or assets of an answer's data.
    fn items(&self, data: &Node<'_>) -> Result<Contents, InputError> {
        // One set by name, or a list of sets, one for each step of the window.
        let sets: Vec<&Node<'_>> = match &data.kind {
            NodeKind::Map(_) => vec![data],
            _ => data.items().iter().collect(),
        };
        let items: Vec<(&str, &Node<'_>)> = sets
            .into_iter()
            .flat_map(|set| set.entries().iter().map(|entry| (entry.key.as_ref(), &entry.value)))
            .filter(|(_, item)| item.kind != NodeKind::Null)
            .collect();
        let Some((_, first)) = items.first() else {
            return Err(self
                .mistake(Some(data), "the answer holds nothing")
                .help("ask for a window in which the cluster was there, for example `window=1d`"));
        };
        if first.get("type").is_some() {
            items.iter().map(|(name, item)| self.asset(name, item)).collect::<Result<_, _>>().map(Contents::Assets)
        } else if first.get("totalCost").is_some() || first.get("cpuCoreHours").is_some() {
            let allocations = items.iter().map(|(name, item)| self.allocation(name, item));
            allocations.collect::<Result<_, _>>().map(Contents::Allocations)
        } else {
            Err(self.mistake(Some(first), "neither an allocation nor an asset").help(KNOWN))
        }
    }

    fn allocation(&self, name: &str, item: &Node<'_>) -> Result<Allocation, InputError> {
        let amount = |key| self.amount(item, key);
        let adjusted = |cost, adjustment| Ok::<_, InputError>(amount(cost)? + amount(adjustment)?);
        let (start, end) = self.window(item)?;
        Ok(Allocation {
            name: name.to_owned(),
            start,
            end,
            cpu_core_hours: amount("cpuCoreHours")?,
            ram_byte_hours: amount("ramByteHours")?,
            cpu_cost: adjusted("cpuCost", "cpuCostAdjustment")?,
            ram_cost: adjusted("ramCost", "ramCostAdjustment")?,
            volume_cost: adjusted("pvCost", "pvCostAdjustment")?,
            load_balancer_cost: adjusted("loadBalancerCost", "loadBalancerCostAdjustment")?,
            network_cost: adjusted("networkCost", "networkCostAdjustment")?,
            total_cost: self.needed(item, "totalCost")?,
        })
    }

    fn asset(&self, name: &str, item: &Node<'_>) -> Result<Asset, InputError> {
        let amount = |key| self.amount(item, key);
        let text = |of: Option<&Node<'_>>| of.and_then(Node::as_text).unwrap_or_default().to_owned();
        let property = |key| text(item.get("properties").and_then(|properties| properties.get(key)));
        let kind = text(item.get("type"));
        let (start, end) = self.window(item)?;
        let node = if kind == "Node" {
            Some(NodeAsset {
                instance_type: text(item.get("nodeType")),
                // A number between 0 and 1, or in later releases a truth value.
                spot: matches!(item.get("preemptible").and_then(Node::as_text), Some("true"))
                    || amount("preemptible").is_ok_and(|share| share > Amount::ZERO),
                cpu_core_hours: amount("cpuCoreHours")?,
                ram_byte_hours: amount("ramByteHours")?,
                cpu_cost: amount("cpuCost")?,
                ram_cost: amount("ramCost")?,
                discount: amount("discount")?,
            })
        } else {
            None
        };
        let stated_name = property("name");
        Ok(Asset {
            name: if stated_name.is_empty() { name.to_owned() } else { stated_name },
            provider_id: property("providerID"),
            kind,
            start,
            end,
            minutes: amount("minutes")?,
            node,
            adjustment: amount("adjustment")?,
            total_cost: self.needed(item, "totalCost")?,
        })
    }

    /// The window of an item: its own, or that of the request.
    fn window(&self, item: &Node<'_>) -> Result<(Timestamp, Timestamp), InputError> {
        let at = |key: &str| {
            let stated = item.get(key).or_else(|| item.get("window").and_then(|window| window.get(key)));
            stated.and_then(Node::as_text).and_then(instant).ok_or_else(|| {
                self.mistake(stated.or(Some(item)), &format!("`{key}` is not an instant"))
                    .help("an instant such as 2026-10-13T00:00:00Z belongs here")
            })
        };
        Ok((at("start")?, at("end")?))
    }

    /// The number under `key`; nothing where there is none.
    fn amount(&self, item: &Node<'_>, key: &str) -> Result<Amount, InputError> {
        match item.get(key) {
            None => Ok(Amount::ZERO),
            Some(value) if value.kind == NodeKind::Null => Ok(Amount::ZERO),
            Some(value) => value.as_text().and_then(Amount::parse).ok_or_else(|| {
                self.mistake(Some(value), &format!("`{key}` is not a number"))
                    .help("save what the server answered, unchanged")
            }),
        }
    }

    /// The number under `key`, which has to be there.
    fn needed(&self, item: &Node<'_>, key: &str) -> Result<Amount, InputError> {
        if item.get(key).is_none() {
            return Err(self.mistake(Some(item), &format!("an item without `{key}`")).help(KNOWN));
        }
        self.amount(item, key)
    }

    fn mistake(&self, at: Option<&Node<'_>>, what: &str) -> InputError {
        match at.and_then(|node| self.source.place(node.at)) {
            Some(place) => InputError::new(what).at(Some(place)).because("here"),
            None => of_file(&self.source.name, what),
        }
    }
}
