//! Settings of a sweep that further seeds are not worth: another is surely better.

use super::figures::find;
use super::levels::level_of;
use super::points::{MET_IN, Point};
use super::question::Question;
use super::sequential::difference;
use super::statistics::share;
use super::sweep::{Group, groups, meets, nobody_waits, pareto_front};
use super::unfinished_work::MEASURES;

/// Which results of a sweep are still worth seeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open(Vec<bool>);

/// A setting that is still in.
struct Contender<'a> {
    number: usize,
    group: &'a Group<'a>,
    /// Its mean cost and waiting.
    means: Option<(f64, f64)>,
    /// Whether it leaves no work undone that another does.
    is_comparable: bool,
    meets: Option<bool>,
}

impl Open {
    /// All of them.
    pub fn all(question: &Question) -> Self {
        Self(vec![true; question.settings.len() * question.policies.len()])
    }

    /// Whether the setting with this number is in under this policy.
    pub fn is_open(&self, question: &Question, setting: usize, policy: &str) -> bool {
        let place = question.policies.iter().position(|name| name == policy);
        place.and_then(|place| self.0.get(setting * question.policies.len() + place)).is_some_and(|item| *item)
    }

    /// Takes out what is clearly worse, by the points so far, all of the same seeds where a setting is in. `cost` is the number of the figure by
    /// which a setting is cheap, `latency` that of the one it is held against, `confidence` that of this look.
    ///
    /// A setting goes if it surely leaves more work undone than another; or if another costs no more and waits no longer, on average, and surely
    /// costs less or waits less. What may meet the objectives goes only for one that meets them.
    pub fn knock_out(
        &mut self,
        question: &Question,
        (cost, latency): (usize, usize),
        points: &[Point],
        confidence: f64,
    ) {
        let groups = groups(question, points);
        let is_open = |number: &usize| self.0.get(*number).is_some_and(|item| *item);
        let numbers: Vec<usize> = (0..groups.len()).filter(is_open).collect();
        let comparable = comparable(&groups, &numbers, confidence);
        let contenders: Vec<Contender<'_>> = numbers
            .into_iter()
            .zip(comparable)
            .map(|(number, is_comparable)| {
                let group = &groups[number];
                let mean = |figure| level_of(&group.points, figure).map(|level| level.mean);
                let wait = mean(latency).or_else(|| nobody_waits(latency, |name| mean(find(name)?.0)));
                Contender { number, group, means: mean(cost).zip(wait), is_comparable, meets: meets(&group.points) }
            })
            .collect();
        let front = |wanted: &dyn Fn(&Contender<'_>) -> bool| -> Vec<&Contender<'_>> {
            let values: Vec<_> = contenders
                .iter()
                .map(|contender| contender.means.filter(|_| contender.is_comparable && wanted(contender)))
                .collect();
            pareto_front(&values).into_iter().filter_map(|place| contenders.get(place)).collect()
        };
        let (of_all, of_meeting) = (front(&|_| true), front(&|contender| contender.meets == Some(true)));
        let is_worse = |contender: &Contender<'_>| {
            let rivals = if may_meet(contender) { &of_meeting } else { &of_all };
            !contender.is_comparable
                || rivals.iter().any(|rival| is_beaten(contender, rival, [cost, latency], confidence))
        };
        let out: Vec<usize> =
            contenders.iter().filter(|contender| is_worse(contender)).map(|contender| contender.number).collect();
        for number in out {
            self.0[number] = false;
        }
    }
}

/// Which of the groups with these numbers surely leave no more undone than the one that leaves least.
fn comparable(groups: &[Group<'_>], numbers: &[usize], confidence: f64) -> Vec<bool> {
    let mut all = vec![true; numbers.len()];
    for measure in &MEASURES {
        let Some((figure, _)) = find(measure.figure) else { continue };
        let means =
            numbers.iter().filter_map(|number| Some((level_of(&groups[*number].points, figure)?.mean, *number)));
        let Some((_, best)) = means.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))) else { continue };
        for (place, number) in numbers.iter().enumerate() {
            let more = difference(&groups[best].points, &groups[*number].points, figure, confidence);
            all[place] &= more.and_then(|item| measure.more(&item)) != Some(true);
        }
    }
    all
}

/// Whether it can still come out as one that meets the objectives, where there are any: in each as many runs may meet them as have to.
fn may_meet(contender: &Contender<'_>) -> bool {
    let points = &contender.group.points;
    let count = points.first().map_or(0, |point| point.objectives.len());
    let may = |position: usize| {
        let verdicts: Vec<bool> = points.iter().filter_map(|point| point.objectives.get(position)?.met).collect();
        let met = verdicts.iter().filter(|met| **met).count() as u64;
        share(met, verdicts.len() as u64).is_none_or(|share| share.high.is_none_or(|high| high >= MET_IN))
    };
    contender.meets.is_some() && (0..count).all(may)
}

/// Whether `rival` is no worse in both figures, on average, and surely better in one.
fn is_beaten(contender: &Contender<'_>, rival: &Contender<'_>, figures: [usize; 2], confidence: f64) -> bool {
    let Some((own_means, rival_means)) = contender.means.zip(rival.means) else { return false };
    let no_worse = rival_means.0 <= own_means.0 && rival_means.1 <= own_means.1;
    let surely = |figure| {
        let more = difference(&rival.group.points, &contender.group.points, figure, confidence);
        more.and_then(|more| more.low).is_some_and(|low| low > 0.0)
    };
    contender.number != rival.number && no_worse && figures.into_iter().any(surely)
}
