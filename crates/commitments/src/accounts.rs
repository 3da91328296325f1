//! Accounts of an organisation: discount sharing, and the tiers of accounts that a commitment serves.

use std::collections::BTreeMap;

use nodecast_model::domain::Symbol;

/// Rule by which an organisation shares discounts between its accounts. It is the same for the whole run.
///
/// Source: AWS Billing user guide, "Reserved Instances and Savings Plans discount sharing" (2026).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Sharing {
    /// The owner first, then all other accounts together.
    #[default]
    Organization,
    /// The owner first, then its group, then the rest.
    Prioritized,
    /// The owner first, then its group, and never further.
    Restricted,
    /// The owner alone.
    Off,
}

impl Sharing {
    /// The rule as a fleet file writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Prioritized => "prioritized",
            Self::Restricted => "restricted",
            Self::Off => "off",
        }
    }
}

/// An account of the organisation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Account {
    /// Its id: twelve digits.
    pub id: Symbol,
    /// Its name; the id where the file gives none.
    pub name: Symbol,
    /// Its group, for [`Sharing::Prioritized`] and [`Sharing::Restricted`].
    pub group: Option<Symbol>,
    /// Whether discounts flow between it and other accounts.
    pub shares: bool,
    /// Whether it pays the bill of the organisation.
    pub is_payer: bool,
}

impl Account {
    /// An account without a group that shares discounts.
    pub fn new(id: &str) -> Self {
        let id = Symbol::new(id);
        Self { id, name: id, group: None, shares: true, is_payer: false }
    }
}

/// The accounts of an organisation, by id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Accounts {
    accounts: BTreeMap<Symbol, Account>,
    sharing: Sharing,
}

impl Accounts {
    /// The organisation with these accounts. Of two accounts of one id the last one remains.
    pub fn new(accounts: impl IntoIterator<Item = Account>, sharing: Sharing) -> Self {
        Self { accounts: accounts.into_iter().map(|account| (account.id, account)).collect(), sharing }
    }

    /// The accounts in order of id.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    /// The account with this id.
    pub fn get(&self, id: Symbol) -> Option<&Account> {
        self.accounts.get(&id)
    }

    /// The account that pays the bill of the organisation.
    pub fn payer(&self) -> Option<&Account> {
        self.iter().find(|account| account.is_payer)
    }

    /// The sharing rule.
    pub const fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// The accounts that a commitment of `owner` serves, tier by tier, each in order of id. The first tier is the owner alone.
    pub fn tiers(&self, owner: Symbol) -> Vec<Vec<Symbol>> {
        let mut tiers = vec![vec![owner]];
        for account in self.iter() {
            if let Some(tier @ 1..) = self.tier(owner, account.id) {
                tiers.resize(tiers.len().max(tier + 1), Vec::new());
                tiers[tier].push(account.id);
            }
        }
        tiers.retain(|tier| !tier.is_empty());
        tiers
    }

    /// The tier in which a commitment of `owner` serves `account`; `None` if it does not. Tiers count from 0.
    ///
    /// Deviation: AWS does not say which accounts an owner without a group serves under restricted sharing. Here they are the accounts
    /// without a group.
    pub fn tier(&self, owner: Symbol, account: Symbol) -> Option<usize> {
        if owner == account {
            return Some(0);
        }
        let (owner, account) = (self.get(owner)?, self.get(account)?);
        if !owner.shares || !account.shares {
            return None;
        }
        let same_group = owner.group == account.group;
        match self.sharing {
            Sharing::Organization => Some(1),
            Sharing::Prioritized if owner.group.is_none() || same_group => Some(1),
            Sharing::Prioritized => Some(2),
            Sharing::Restricted => same_group.then_some(1),
            Sharing::Off => None,
        }
    }

    /// Owners without a group where groups decide: AWS does not say which accounts they serve.
    pub fn owners_without_group(&self, owners: impl IntoIterator<Item = Symbol>) -> Vec<Symbol> {
        let decides = matches!(self.sharing, Sharing::Prioritized | Sharing::Restricted);
        let mut found: Vec<Symbol> = owners
            .into_iter()
            .filter(|&owner| {
                decides && self.get(owner).is_some_and(|account| account.group.is_none() && account.shares)
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Accounts, Sharing};
    use nodecast_model::domain::Symbol;

    /// Accounts 1 and 2 in group x, 3 in y, 4 and 5 in none, 6 in x without sharing.
    fn tiers(sharing: Sharing, owner: &str) -> String {
        let account = |id: &str, group: Option<&str>| Account { group: group.map(Symbol::new), ..Account::new(id) };
        let off = Account { shares: false, ..account("6", Some("x")) };
        let groups = [("5", None), ("3", Some("y")), ("1", Some("x")), ("4", None), ("2", Some("x"))];
        let accounts = groups.map(|(id, group)| account(id, group)).into_iter().chain([off]);
        let tiers = Accounts::new(accounts, sharing).tiers(Symbol::new(owner));
        let text = |tier: &Vec<Symbol>| tier.iter().map(|id| id.as_str()).collect::<String>();
        tiers.iter().map(text).collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn tiers_follow_sharing_rule_and_groups() {
        assert_eq!(tiers(Sharing::Organization, "1"), "1 2345");
        assert_eq!(tiers(Sharing::Prioritized, "1"), "1 2 345");
        assert_eq!(tiers(Sharing::Prioritized, "3"), "3 1245", "it is alone in its group");
        assert_eq!(tiers(Sharing::Prioritized, "4"), "4 1235");
        assert_eq!(tiers(Sharing::Restricted, "1"), "1 2");
        assert_eq!(tiers(Sharing::Restricted, "3"), "3");
        assert_eq!(tiers(Sharing::Restricted, "4"), "4 5");
        assert_eq!(tiers(Sharing::Off, "1"), "1");
        assert_eq!(tiers(Sharing::Organization, "6"), "6", "an account without sharing serves itself");
    }
}
