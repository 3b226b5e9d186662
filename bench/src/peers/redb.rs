//! redb: one table with integers as keys and values, a transaction for each operation.

use redb::{
    Builder, ConcurrencyMode, Database as Store, Durability, ReadableDatabase, ReadableTable, Table,
    TableDefinition,
};

use crate::data::essence;
use crate::subject::{missing, Abilities, Class, Database, Pair, Passage, Peer, Result, Session, Tree};

const TABLE: TableDefinition<'_, u64, i64> = TableDefinition::new("bench");

pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "redb",
        class: Class::D4,
        settings: "Durability::None, which it has for one process only, and loses with it; cache 1 GiB",
        abilities: Abilities { processes: false, threads: true, locks: false },
        version: || Ok(super::locked_version("redb")),
        open: |directory, processes| open(&directory.join("bench.redb"), processes, Durability::None),
        compact,
    },
    Peer {
        name: "redb",
        class: Class::D1,
        settings:
            "Durability::Immediate; ConcurrencyMode::MultiWriter for more than one process; cache 1 GiB",
        abilities: Abilities { processes: true, threads: true, locks: false },
        version: || Ok(super::locked_version("redb")),
        open: |directory, processes| open(&directory.join("bench.redb"), processes, Durability::Immediate),
        compact,
    },
];

fn open(path: &std::path::Path, processes: usize, durability: Durability) -> Result<Box<dyn Database>> {
    let mut builder = Builder::new();
    builder.set_cache_size(1 << 30);
    if processes > 1 {
        builder.set_concurrency_mode(ConcurrencyMode::MultiWriter);
    }
    let opened = Opened { store: builder.create(path)?, durability };
    Open(&opened).writing(|_| Ok(()))?;
    Ok(Box::new(opened))
}

fn compact(directory: &std::path::Path) -> Result<()> {
    let mut store = Builder::new().create(directory.join("bench.redb"))?;
    while store.compact()? {}
    Ok(())
}

struct Opened {
    store: Store,
    durability: Durability,
}

impl Database for Opened {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Open(self)))
    }
}

struct Open<'a>(&'a Opened);

impl Open<'_> {
    /// Runs `body` in a write transaction; the first makes the table.
    fn writing<R>(&self, body: impl FnOnce(&mut Table<'_, u64, i64>) -> Result<R>) -> Result<R> {
        let mut transaction = self.0.store.begin_write()?;
        transaction.set_durability(self.0.durability)?;
        let mut table = transaction.open_table(TABLE)?;
        let result = body(&mut table)?;
        drop(table);
        transaction.commit()?;
        Ok(result)
    }
}

fn read(table: &impl ReadableTable<u64, i64>, tree: Tree, number: u64) -> Result<Option<i64>> {
    Ok(table.get(tree.key(number))?.map(|value| value.value()))
}

impl Session for Open<'_> {
    fn get(&mut self, tree: Tree, number: u64) -> Result<Option<i64>> {
        read(&self.0.store.begin_read()?.open_table(TABLE)?, tree, number)
    }

    fn set(&mut self, tree: Tree, number: u64, value: i64) -> Result<()> {
        self.writing(|table| {
            table.insert(tree.key(number), value)?;
            Ok(())
        })
    }

    fn increment(&mut self, tree: Tree, number: u64, by: i64) -> Result<i64> {
        self.writing(|table| {
            let sum = read(table, tree, number)?.unwrap_or(0) + by;
            table.insert(tree.key(number), sum)?;
            Ok(sum)
        })
    }

    fn update_pair(
        &mut self,
        tree: Tree,
        numbers: [u64; 2],
        change: &mut dyn FnMut(Pair) -> Pair,
    ) -> Result<()> {
        self.writing(|table| {
            let new = change([read(table, tree, numbers[0])?, read(table, tree, numbers[1])?]);
            for (number, value) in numbers.into_iter().zip(new) {
                if let Some(value) = value {
                    table.insert(tree.key(number), value)?;
                }
            }
            Ok(())
        })
    }

    fn get_snapshot(&mut self, tree: Tree, numbers: &[u64]) -> Result<u64> {
        let table = self.0.store.begin_read()?.open_table(TABLE)?;
        let mut sum = 0u64;
        for number in numbers {
            let value = read(&table, tree, *number)?.ok_or_else(|| missing(*number))?;
            sum = sum.wrapping_add(essence(value));
        }
        Ok(sum)
    }

    fn walk(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let mut passage = Passage::default();
        let (mut from, end) = tree.bounds();
        while passage.entries < limit {
            let table = self.0.store.begin_read()?.open_table(TABLE)?;
            let Some(entry) = table.range(from..end)?.next() else { break };
            passage.entries += 1;
            from = entry?.0.value() + 1;
        }
        Ok(passage)
    }

    fn scan(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let mut passage = Passage::default();
        let (from, end) = tree.bounds();
        let table = self.0.store.begin_read()?.open_table(TABLE)?;
        for entry in table.range(from..end)?.take(limit as usize) {
            let (key, value) = entry?;
            passage.entries += 1;
            passage.numbers = passage.numbers.wrapping_add(Tree::number(key.value()));
            passage.values = passage.values.wrapping_add(essence(value.value()));
        }
        Ok(passage)
    }

    fn fill(&mut self, tree: Tree, pairs: &mut dyn Iterator<Item = (u64, i64)>) -> Result<()> {
        self.writing(|table| {
            for (number, value) in pairs {
                table.insert(tree.key(number), value)?;
            }
            Ok(())
        })
    }
}
