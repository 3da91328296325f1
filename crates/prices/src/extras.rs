//! What a region costs beside its instances: the tables of EBS prices and of what commitments save.

use std::collections::BTreeMap;

use super::table::{for_each_line, for_each_line_with_optional};
use super::{CatalogError, CellError, Cells, CommitmentDiscount, VolumePrices};
use nodecast_model::domain::Symbol;

/// Reads the table of EBS prices.
pub(super) fn volumes(file: &str, text: &str) -> Result<BTreeMap<Symbol, VolumePrices>, CatalogError> {
    let columns: Vec<&'static str> = std::iter::once("region").chain(VolumePrices::COLUMNS).collect();
    let mut prices = BTreeMap::new();
    for_each_line(file, text, &columns, |cells| {
        let region = cells.required()?;
        match prices.insert(region, VolumePrices::from_cells(cells)?) {
            None => Ok(()),
            Some(_) => Err(Cells::repeated(region)),
        }
    })?;
    Ok(prices)
}

/// Reads a table with one line for each region.
pub(super) fn by_region<T>(
    file: &str,
    text: &str,
    columns: &[&'static str],
    read: impl Fn(&mut Cells<'_>) -> Result<T, CellError>,
) -> Result<BTreeMap<Symbol, T>, CatalogError> {
    let columns: Vec<&'static str> = std::iter::once("region").chain(columns.iter().copied()).collect();
    let mut found = BTreeMap::new();
    for_each_line(file, text, &columns, |cells| {
        let region = cells.required()?;
        match found.insert(region, read(cells)?) {
            None => Ok(()),
            Some(_) => Err(Cells::repeated(region)),
        }
    })?;
    Ok(found)
}

/// Reads the table of discounts of commitments.
pub(super) fn commitments(file: &str, text: &str) -> Result<BTreeMap<Symbol, Vec<CommitmentDiscount>>, CatalogError> {
    let columns: Vec<&'static str> = std::iter::once("region").chain(CommitmentDiscount::COLUMNS).collect();
    let mut discounts: BTreeMap<Symbol, Vec<CommitmentDiscount>> = BTreeMap::new();
    let read = for_each_line_with_optional(file, text, &columns, 1, |cells| {
        let of_region = discounts.entry(cells.required()?).or_default();
        let discount = CommitmentDiscount::from_cells(cells)?;
        if of_region.iter().any(|region| region.family == discount.family) {
            return Err(Cells::repeated(discount.family));
        }
        of_region.push(discount);
        Ok(())
    });
    read.map_err(|error| explained(error, text))?;
    for of_region in discounts.values_mut() {
        of_region.sort_by_key(|region| region.family);
    }
    Ok(discounts)
}

/// The error of a table from before its all-upfront discounts had their name; any other error unchanged.
fn explained(error: CatalogError, text: &str) -> CatalogError {
    let has_old_column = || text.lines().next().is_some_and(|header| header.contains("one_year_no_upfront"));
    match error {
        CatalogError::MissingColumn { file, column: "one_year_all_upfront" } if has_old_column() => {
            CatalogError::Malformed {
                file,
                line: 1,
                reason:
                    "no column `one_year_all_upfront`; built-in tables used to hold these discounts under the name \
                     `one_year_no_upfront`: rename that column in a copy of theirs, or add the missing one"
                        .to_owned(),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{commitments, volumes};
    use crate::PriceQuality;

    #[test]
    fn a_bad_line_is_named_with_its_column() {
        let header = "region,gp2,gp3,gp3_iops,gp3_throughput,io1,io1_iops,io2,io2_iops,io2_iops_over_32000,\
                      io2_iops_over_64000,st1,sc1,standard";
        let message = |line: &str| volumes("ebs.csv", &format!("{header}\n{line}\n")).unwrap_err().to_string();
        assert_eq!(message("x,1,2,,4,5,6,7,8,9,10,11,12,13"), "ebs.csv, line 2: gp3_iops is empty");
        let line = "x,1,2,3,4,5,6,7,8,9,10,11,12,13";
        assert_eq!(message(&format!("{line}\n{line}")), "ebs.csv, line 3: `x` has a line already");
        let header = "region,family,one_year_all_upfront,three_years_all_upfront";
        let message = |line: &str| commitments("c.csv", &format!("{header}\n{line}\n")).unwrap_err().to_string();
        assert_eq!(message("x,m5,0.4,41"), "c.csv, line 2: three_years_all_upfront `41` is not a share below one");
        assert_eq!(message("x,m5,0.4,0.6\nx,m5,0.4,0.6"), "c.csv, line 3: `m5` has a line already");
    }

    #[test]
    fn table_with_old_column_name_is_explained() {
        let error = commitments("c.csv", "region,family,one_year_no_upfront,three_years_all_upfront\nx,m5,0.4,0.6\n");
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("c.csv, line 1: no column `one_year_all_upfront`;"), "{message}");
        assert!(message.contains("rename that column"), "{message}");
        // A table without either column is one that lacks a column, as ever.
        let message = commitments("c.csv", "region,family,three_years_all_upfront\n").unwrap_err().to_string();
        assert_eq!(message, "c.csv has no column `one_year_all_upfront`");
    }

    #[test]
    fn listed_no_upfront_discount_replaces_derived_one() {
        let header = "region,family,one_year_all_upfront,three_years_all_upfront,one_year_no_upfront";
        let table =
            commitments("c.csv", &format!("{header}\nx,c7i,0.38,0.6,0.335\nx,r7i,0.38,0.6,\nx,t4g,0.05,0.6,\n"));
        let found = table.unwrap().into_values().next().unwrap();
        let of_term = |number: usize, years, all_upfront| {
            let discount: &crate::CommitmentDiscount = &found[number];
            discount.of_term(years, all_upfront)
        };
        assert_eq!(of_term(0, 1, false), Some((335_000, PriceQuality::Published)));
        // 0.62 of On-Demand, times 1.0715.
        assert_eq!(of_term(1, 1, false), Some((335_670, PriceQuality::Derived)));
        assert_eq!(of_term(1, 1, true), Some((380_000, PriceQuality::Published)));
        assert_eq!(of_term(1, 3, true), Some((600_000, PriceQuality::Published)));
        assert_eq!(of_term(1, 3, false), None);
        assert_eq!(of_term(2, 1, false), Some((0, PriceQuality::Derived)), "never above On-Demand");
    }
}
