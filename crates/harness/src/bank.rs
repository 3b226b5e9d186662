//! Accounts whose sum never changes: the classic load for transactions.
//!
//! Invariant: every committed state, and every state a body sees, has the sum it was opened with.

use perilune_store::{transact, Result, Session, TransactionOptions};

use crate::number;

/// Small random numbers from a seed (a multiplicative congruential generator, high bits used).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A number less than `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The accounts below one prefix.
#[derive(Clone, Debug)]
pub struct Bank {
    prefix: Vec<u8>,
    accounts: u64,
    balance: u64,
}

impl Bank {
    /// A bank of `accounts` accounts (at least 2) with `balance` each.
    #[must_use]
    pub fn new(prefix: &[u8], accounts: u64, balance: u64) -> Self {
        Bank { prefix: prefix.to_vec(), accounts, balance }
    }

    fn account(&self, number: u64) -> Vec<u8> {
        [&self.prefix[..], &number.to_be_bytes()].concat()
    }

    /// The sum of all balances at any time.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.accounts * self.balance
    }

    /// Opens all accounts, in one transaction.
    ///
    /// # Errors
    /// As [`transact`].
    pub fn open(&self, session: &mut impl Session) -> Result<()> {
        transact(session, &TransactionOptions::default(), |session| {
            (0..self.accounts)
                .try_for_each(|number| number::set(session, &self.account(number), self.balance))
        })
    }

    /// Moves a random amount between two random accounts; an account never goes below 0.
    ///
    /// # Errors
    /// As [`transact`].
    pub fn transfer(&self, session: &mut impl Session, random: &mut Random) -> Result<()> {
        self.transfer_within(session, random, &TransactionOptions::default())
    }

    /// Moves a random amount as [`Bank::transfer`] does, in a transaction with these options.
    ///
    /// # Errors
    /// As [`transact`].
    pub fn transfer_within(
        &self,
        session: &mut impl Session,
        random: &mut Random,
        options: &TransactionOptions,
    ) -> Result<()> {
        let from = random.below(self.accounts);
        let to = (from + 1 + random.below(self.accounts - 1)) % self.accounts;
        let wish = random.below(self.balance + 1);
        let (from, to) = (self.account(from), self.account(to));
        transact(session, options, |session| {
            let (rich, poor) = (number::get(session, &from)?, number::get(session, &to)?);
            let amount = wish.min(rich);
            number::set(session, &from, rich - amount)?;
            number::set(session, &to, poor + amount)
        })
    }

    /// Adds up all balances in one transaction. The inner result says what is wrong, if anything.
    ///
    /// # Errors
    /// As [`transact`].
    pub fn check(&self, session: &mut impl Session) -> Result<std::result::Result<(), String>> {
        // NB: a wrong sum is kept also if that run is repeated: no body may see one, doomed or not.
        let mut wrong = Ok(());
        transact(session, &TransactionOptions::default(), |session| {
            let (mut sum, mut count) = (0, 0);
            let (mut from, mut key, mut value) = (self.prefix.clone(), Vec::new(), Vec::new());
            while session.next(&from, false, &mut key, Some(&mut value))? && key.starts_with(&self.prefix) {
                sum += number::decode(&value)?;
                count += 1;
                std::mem::swap(&mut from, &mut key);
            }
            if (sum, count) != (self.sum(), self.accounts) {
                let (expected, accounts) = (self.sum(), self.accounts);
                wrong = Err(format!(
                    "bank: {count} accounts hold {sum}, but {accounts} were opened with {expected}"
                ));
            }
            Ok(())
        })?;
        Ok(wrong)
    }
}
