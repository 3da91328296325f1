//! What a region costs beside its instances: the tables of EBS prices and of what commitments save.

use std::collections::BTreeMap;

use super::table::for_each_line;
use super::{CatalogError, Cells, CommitmentDiscount, VolumePrices};
use crate::domain::Symbol;

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

/// Reads the table of what commitments save.
pub(super) fn commitments(file: &str, text: &str) -> Result<BTreeMap<Symbol, Vec<CommitmentDiscount>>, CatalogError> {
    let columns: Vec<&'static str> = std::iter::once("region").chain(CommitmentDiscount::COLUMNS).collect();
    let mut discounts: BTreeMap<Symbol, Vec<CommitmentDiscount>> = BTreeMap::new();
    for_each_line(file, text, &columns, |cells| {
        let of_region = discounts.entry(cells.required()?).or_default();
        let discount = CommitmentDiscount::from_cells(cells)?;
        if of_region.iter().any(|own| own.family == discount.family) {
            return Err(Cells::repeated(discount.family));
        }
        of_region.push(discount);
        Ok(())
    })?;
    for of_region in discounts.values_mut() {
        of_region.sort_by_key(|own| own.family);
    }
    Ok(discounts)
}

#[cfg(test)]
mod tests {
    use super::{commitments, volumes};

    #[test]
    fn a_bad_line_is_named_with_its_column() {
        let header = "region,gp2,gp3,gp3_iops,gp3_throughput,io1,io1_iops,io2,io2_iops,io2_iops_over_32000,\
                      io2_iops_over_64000,st1,sc1,standard";
        let message = |line: &str| volumes("ebs.csv", &format!("{header}\n{line}\n")).unwrap_err().to_string();
        assert_eq!(message("x,1,2,,4,5,6,7,8,9,10,11,12,13"), "ebs.csv, line 2: gp3_iops is empty");
        let line = "x,1,2,3,4,5,6,7,8,9,10,11,12,13";
        assert_eq!(message(&format!("{line}\n{line}")), "ebs.csv, line 3: `x` has a line already");
        let header = "region,family,one_year_no_upfront,three_years_all_upfront";
        let message = |line: &str| commitments("c.csv", &format!("{header}\n{line}\n")).unwrap_err().to_string();
        assert_eq!(message("x,m5,0.4,41"), "c.csv, line 2: three_years_all_upfront `41` is not a share below one");
        assert_eq!(message("x,m5,0.4,0.6\nx,m5,0.4,0.6"), "c.csv, line 3: `m5` has a line already");
    }
}
