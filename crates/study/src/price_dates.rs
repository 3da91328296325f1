//! The dates of the prices of several runs, of the words in which each tells its own.

use std::collections::BTreeSet;

use crate::simulation::outcome::UNPRICED;

/// Between the dates of On-Demand prices and those of Spot, and behind them, where a run has both.
const BETWEEN: &str = " (On-Demand) and ";
const BEHIND: &str = " (Spot)";
/// Before the dates of Spot prices, where a run has no others.
const SPOT: &str = "Spot ";
/// Before dates that are known to the year.
const VAGUE: &str = " or, of some types, ";

/// The oldest and the newest of the dates that runs tell, of On-Demand and of Spot prices each; what they tell, where it is the same. Runs that
/// launched nothing have none.
pub fn of_all<'t>(told: impl Iterator<Item = &'t str> + Clone) -> String {
    let dated: BTreeSet<&str> = told.clone().filter(|text| *text != UNPRICED).collect();
    if dated.len() < 2 {
        return dated.first().copied().or_else(|| told.clone().next()).unwrap_or_default().to_owned();
    }
    let [mut on_demand, mut spot] = [BTreeSet::new(), BTreeSet::new()];
    for text in dated {
        if let Some(dates) = text.strip_prefix(SPOT) {
            spot.insert(dates);
        } else if let Some((dates, rest)) = text.split_once(BETWEEN) {
            on_demand.insert(dates);
            spot.insert(rest.strip_suffix(BEHIND).unwrap_or(rest));
        } else {
            on_demand.insert(text);
        }
    }
    match (spanned(&on_demand), spanned(&spot)) {
        (item, None) => item.unwrap_or_default(),
        (None, Some(spanned)) => format!("{SPOT}{spanned}"),
        (Some(spanned), Some(other)) => format!("{spanned}{BETWEEN}{other}{BEHIND}"),
    }
}

/// The first and the last of the dates in several texts, then the years of those that are not known to the day.
fn spanned(texts: &BTreeSet<&str>) -> Option<String> {
    if texts.len() < 2 {
        return texts.first().map(|text| (*text).to_owned());
    }
    let is_date = |word: &&str| word.len() == 10 && word.matches('-').count() == 2;
    let words = texts.iter().flat_map(|text| text.split([' ', ',']));
    let dates: BTreeSet<&str> = words.filter(is_date).collect();
    let exact = match (dates.first(), dates.last()) {
        (Some(first), Some(last)) if first == last => (*first).to_owned(),
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => String::new(),
    };
    let of_years = |text: &'_ &str| match text.split_once(VAGUE) {
        Some((_, years)) => Some(years.to_owned()),
        None => (!text.contains('-')).then(|| (*text).to_owned()),
    };
    let years: BTreeSet<String> = texts.iter().filter_map(of_years).collect();
    let years = years.into_iter().collect::<Vec<_>>().join(" and ");
    Some(match (exact.is_empty(), years.is_empty()) {
        (true, _) => years,
        (false, true) => exact,
        (false, false) => format!("{exact}{VAGUE}{years}"),
    })
}

#[cfg(test)]
mod tests {
    use super::of_all;
    use crate::simulation::outcome::UNPRICED;

    #[test]
    fn price_dates_show_oldest_and_newest() {
        let cases: [(&[&str], &str); 7] = [
            (&[], ""),
            (&[UNPRICED, UNPRICED], UNPRICED),
            (&[UNPRICED, "2026-07-20", "2026-07-20"], "2026-07-20"),
            (&["2026-07-20", "2025-06-28 and 2026-07-20"], "2025-06-28 to 2026-07-20"),
            (
                &["2026-07-20", "2026-07-20 (On-Demand) and 2025-06-28 (Spot)"],
                "2026-07-20 (On-Demand) and 2025-06-28 (Spot)",
            ),
            (
                &["Spot 2025-06-28", "2024-01-02 to 2026-07-20 (On-Demand) and 2025-06-29 (Spot)"],
                "2024-01-02 to 2026-07-20 (On-Demand) and 2025-06-28 to 2025-06-29 (Spot)",
            ),
            (&["2026-07-20", "2025 or 2026", "2026-07-19"], "2026-07-19 to 2026-07-20 or, of some types, 2025 or 2026"),
        ];
        for (told, expected) in cases {
            assert_eq!(of_all(told.iter().copied()), expected, "{told:?}");
        }
    }
}
