//! Takes the lines of a bill one by one, says whose each is, and sums.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::tz::TimeZone;
use nodecast_model::text::InputError;
use nodecast_model::text::error::listed;

use super::amount::Amount;
use super::line::{BillLine, ChargeKind};
use super::nodes::NodeTables;
use super::selection::{Cluster, Selection, WHOLE};
use super::totals::{Others, Sums, Totals};
use super::usage_type::Group;

/// Most other clusters that are listed by name.
const CLUSTERS: usize = 100;

/// The sums of one cluster while a bill is read. Lines of several files go into one.
#[derive(Debug)]
pub struct Ledger {
    selection: Selection,
    totals: Totals,
    nodes: NodeTables,
    /// Fingerprints of the cluster's lines and how many lines of the file that has most of one there are, for look-up only.
    seen: HashMap<u64, u32>,
    /// Of lines without an id, how many the file that is being read has had so far.
    in_file: HashMap<u64, u32>,
    /// Hashes of their ids and begins, for look-up only.
    ids: HashSet<u64>,
}

impl Ledger {
    /// An empty one.
    pub fn new(cluster: Cluster) -> Self {
        let totals = Totals {
            cluster: cluster.name.clone(),
            currency: String::new(),
            rules: BTreeMap::new(),
            groups: BTreeMap::new(),
            left_out: BTreeMap::new(),
            pod_shares: 0,
            repeated: Sums::default(),
            same_id: Sums::default(),
            others: Others::default(),
            nodes: BTreeMap::new(),
            spot: BTreeMap::new(),
            days: BTreeMap::new(),
            span: None,
            hours: BTreeSet::new(),
        };
        Self {
            selection: Selection::new(cluster),
            totals,
            nodes: NodeTables::default(),
            seen: HashMap::new(),
            in_file: HashMap::new(),
            ids: HashSet::new(),
        }
    }

    /// The lines that follow are of another file.
    pub fn next_file(&mut self) {
        self.in_file.clear();
    }

    /// Whether a line stands in an earlier file, or has an id that was there before. Without an id several lines of one file may be alike,
    /// as those of two volumes of one size are: of those the next file repeats as many as it has.
    fn is_repeated(&mut self, line: &BillLine) -> bool {
        let seen = self.seen.entry(line.fingerprint).or_default();
        if !line.id.is_empty() {
            *seen += 1;
            return *seen > 1;
        }
        let here = self.in_file.entry(line.fingerprint).or_default();
        *here += 1;
        let is_new = *here > *seen;
        *seen = (*seen).max(*here);
        !is_new
    }

    /// Takes a line.
    ///
    /// # Errors
    /// If it is in another currency than those before it.
    pub fn take(&mut self, line: &BillLine) -> Result<(), InputError> {
        self.check_currency(line)?;
        let (rule, share) = match self.selection.rule(line) {
            Ok(matched) => matched,
            Err(another) => {
                self.take_of_others(line, another);
                return Ok(());
            }
        };
        if self.is_repeated(line) {
            self.totals.repeated.take(line, |amount| amount);
            return Ok(());
        }
        if !line.id.is_empty() && !self.ids.insert(hash_of(&(&line.id, line.start.as_second()))) {
            self.totals.same_id.take(line, |amount| amount);
        }
        if line.kind == ChargeKind::PodShare {
            self.totals.pod_shares += 1;
            return Ok(());
        }
        let part = |amount: Amount| if share == WHOLE { amount } else { amount.millionths(share) };
        if share < WHOLE {
            let rest = self.totals.others.account.entry(line.kind.clone()).or_default();
            rest.take_rest(line, |amount| amount - part(amount));
        }
        self.totals.rules.entry(rule).or_default().take(line, part);
        if line.kind.is_left_out() {
            self.totals.left_out.entry(line.kind.clone()).or_default().take(line, part);
        } else {
            self.take_of_cluster(line, part);
        }
        Ok(())
    }

    fn check_currency(&mut self, line: &BillLine) -> Result<(), InputError> {
        let totals = &mut self.totals;
        if totals.currency.is_empty() {
            totals.currency.clone_from(&line.currency);
        } else if !line.currency.is_empty() && line.currency != totals.currency {
            let (first, second) = (&totals.currency, &line.currency);
            return Err(InputError::new(format!("bills in {first} and in {second} cannot be added up"))
                .help("read the files of one currency at a time: nothing here converts between them"));
        }
        Ok(())
    }

    fn take_of_cluster(&mut self, line: &BillLine, part: impl Fn(Amount) -> Amount + Copy) {
        let group = Group::from_line(line);
        self.nodes.take(line, &group, part);
        let totals = &mut self.totals;
        totals.groups.entry(group).or_default().take(line, part);
        totals.days.entry(line.start.to_zoned(TimeZone::UTC).date()).or_default().take(line, part);
        let span = totals.span.get_or_insert((line.start, line.end));
        *span = (span.0.min(line.start), span.1.max(line.end));
        if line.end.duration_since(line.start).as_secs() <= 3_600 {
            totals.hours.insert(line.start.as_second().div_euclid(3_600));
        }
    }

    fn take_of_others(&mut self, line: &BillLine, another: Option<String>) {
        let others = &mut self.totals.others;
        let sums = match another {
            Some(name) => {
                let room = others.clusters.len() < CLUSTERS || others.clusters.contains_key(&name);
                others.clusters.entry(if room { name } else { String::new() }).or_default()
            }
            None => others.account.entry(line.kind.clone()).or_default(),
        };
        sums.take(line, |amount| amount);
    }

    /// What the lines come to.
    ///
    /// # Errors
    /// If none was the cluster's.
    pub fn finish(self) -> Result<Totals, InputError> {
        let Self { selection, mut totals, nodes, .. } = self;
        if totals.rules.is_empty() {
            let name = &selection.cluster().name;
            let seen =
                listed(totals.others.clusters.keys().map(String::as_str).filter(|name| !name.is_empty()).take(12));
            let others =
                if seen.is_empty() { "no tag names any cluster".to_owned() } else { format!("tags name {seen}") };
            return Err(InputError::new(format!("no line of the bill belongs to the cluster `{name}`: {others}")).help(
                "give the cluster's name as EKS knows it, or activate the cost allocation tag `aws:eks:cluster-name` (it counts from then on)",
            ));
        }
        totals.nodes = nodes.hours;
        totals.spot = nodes.spot;
        Ok(totals)
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
