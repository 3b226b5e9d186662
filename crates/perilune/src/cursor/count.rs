//! Leaps over many entries, and how many there are: counted leaf by leaf, without looking at values.
//!
//! A skip of 1,000,000 entries reads as many keys as it must, and no value; an estimate reads inner pages only.

use perilune_store::Span;

use super::{copy, Ahead, Cursor, Over, Place};
use crate::{Result, Session};

impl Cursor {
    /// Steps so many entries forward and answers how many there were; if fewer, the cursor stands behind the end.
    /// The entries between are counted, a page of them at a time, and only the last one is read. Over children this is
    /// so forward and outside of transactions, else it is as many calls of [`Cursor::next`].
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-skip-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Cursor};
    ///
    /// for number in 0..100 {
    ///     session.set(&node!("^line", number)?, number * number)?;
    /// }
    /// let mut cursor = Cursor::subtree(&node!("^line")?);
    /// assert_eq!(cursor.skip(&mut session, 51)?, 51);
    /// assert_eq!(cursor.node()?, node!("^line", 50)?);
    /// assert_eq!(cursor.skip(&mut session, 100)?, 49);
    /// assert_eq!(cursor.skip_back(&mut session, 100)?, 100);
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`]; the cursor may have moved.
    pub fn skip(&mut self, session: &mut Session, entries: u64) -> Result<u64> {
        self.leap(session, entries, false)
    }

    /// Steps so many entries back, as [`Cursor::skip`] does forward.
    ///
    /// # Errors
    /// As [`Cursor::skip`].
    pub fn skip_back(&mut self, session: &mut Session, entries: u64) -> Result<u64> {
        self.leap(session, entries, true)
    }

    /// About how many nodes with a value lie in the range that the cursor goes over, wherever it stands: told from a few pages,
    /// for planners, exact for short ranges. What a transaction has written does not count. `None`: the database, which is
    /// behind a server, cannot tell.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-estimate-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Cursor};
    ///
    /// for number in 0..1_000 {
    ///     session.set(&node!("^line", number)?, "some text")?;
    /// }
    /// let about = Cursor::subtree(&node!("^line")?).estimate(&mut session)?.unwrap();
    /// assert!((500..2_000).contains(&about));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn estimate(&self, session: &mut Session) -> Result<Option<u64>> {
        Ok(session.trees.of(self.local).estimate(&self.low, &self.high)?)
    }

    fn leap(&mut self, session: &mut Session, entries: u64, backwards: bool) -> Result<u64> {
        let mut done = 0;
        // What was only counted has no value here.
        let counted = if self.with_values { entries.saturating_sub(1) } else { entries };
        let found = if counted > 0 { self.count(session, counted, backwards)? } else { None };
        if let Some(found) = found {
            done = found;
            if done < counted {
                self.place = if backwards { Place::BeforeFirst } else { Place::AfterLast };
                return Ok(done);
            }
            self.take()?;
            self.has_value &= !self.with_values;
            self.ahead = Ahead::default();
        }
        while done < entries {
            let found = if backwards { self.previous(session)? } else { self.next(session)? };
            if !found {
                break;
            }
            done += 1;
        }
        Ok(done)
    }

    /// Counts so many entries ahead; if there are as many, the last one's key is what was found. None: step.
    fn count(&mut self, session: &mut Session, most: u64, backwards: bool) -> Result<Option<u64>> {
        let here = match self.place {
            Place::Fresh if backwards => &self.high[..],
            Place::Fresh | Place::BeforeFirst => &self.low,
            Place::At => &self.entries.key()[..self.length],
            Place::Before => &self.key[..],
            Place::AfterLast => &self.high,
        };
        copy(here, &mut self.seek);
        if self.place == Place::At && !backwards {
            // The smallest key above the entry's, or above all in its subtree.
            self.seek.push(if matches!(self.over, Over::Valued) { 0 } else { 0xFF });
        }
        let (low, high) = if backwards { (&self.low, &self.seek) } else { (&self.seek, &self.high) };
        let span = Span { low, high, backwards, most };
        let tree = session.trees.of(self.local);
        let (found, _) = self.spare.single();
        Ok(match &self.over {
            Over::Valued => Some(tree.count(&span, found)?),
            Over::Children(parent) => {
                // NB: it may be asked about bytes that are no key.
                let child = |key: &[u8]| {
                    let codes = key.get(parent.len()..).unwrap_or(&[]);
                    perilune_key::code_len(codes).map_or(key.len(), |length| parent.len() + length)
                };
                tree.count_groups(&span, &child, found)?
            }
        })
    }
}
