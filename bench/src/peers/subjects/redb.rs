//! redb: one table of byte strings, for one process.

use ::redb::{
    Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use super::{Side, Site, EMBEDDED};
use crate::globals::mapped::{Entry, Mapped, Store};
use crate::subject::{Class, Result};

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("g");

const D4: Side = Side {
    name: "redb",
    settings: "Durability::None, cache 1 GiB; one process",
    processes: false,
    version: || Ok(crate::peers::locked_version("redb")),
    open: |site| Ok(Box::new(Mapped::new(open(site)?))),
    ..EMBEDDED
};

pub(crate) const SIDES: &[Side] =
    &[D4, Side { class: Class::D1, settings: "Durability::Immediate; one process", ..D4 }];

struct Redb {
    database: Database,
    durability: Durability,
    writer: Option<WriteTransaction>,
}

fn open(site: &Site) -> Result<Redb> {
    let durability = if site.class == Class::D4 { Durability::None } else { Durability::Immediate };
    let path = site.directory.join("bench.redb");
    let database = Builder::new().set_cache_size(1 << 30).create(path)?;
    let mut store = Redb { database, durability, writer: None };
    // The first transaction makes the table.
    store.begin()?;
    store.write(|_| Ok(()))?;
    store.commit()?;
    Ok(store)
}

impl Redb {
    fn write(
        &mut self,
        body: impl FnOnce(&mut ::redb::Table<'_, &'static [u8], &'static [u8]>) -> Result<()>,
    ) -> Result<()> {
        if let Some(writer) = &self.writer {
            return body(&mut writer.open_table(TABLE)?);
        }
        let mut writer = self.database.begin_write()?;
        writer.set_durability(self.durability)?;
        body(&mut writer.open_table(TABLE)?)?;
        Ok(writer.commit()?)
    }

    fn read<R>(&self, body: impl Fn(&dyn Readable) -> Result<R>) -> Result<R> {
        match &self.writer {
            Some(writer) => body(&writer.open_table(TABLE)?),
            None => body(&self.database.begin_read()?.open_table(TABLE)?),
        }
    }
}

/// A table of either kind of transaction.
trait Readable {
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn search(&self, at: &[u8], before: bool) -> Result<Option<Entry>>;
}

impl<T: ReadableTable<&'static [u8], &'static [u8]>> Readable for T {
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.get(key)?.map(|value| value.value().to_vec()))
    }

    fn search(&self, at: &[u8], before: bool) -> Result<Option<Entry>> {
        let found = match before {
            true => self.range::<&[u8]>(..at)?.next_back(),
            false => self.range::<&[u8]>(at..)?.next(),
        };
        let Some(found) = found else { return Ok(None) };
        let (key, value) = found?;
        Ok(Some(Entry { key: key.value().to_vec(), value: value.value().to_vec() }))
    }
}

impl Store for Redb {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.read(|table| table.value(key))?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|table| Ok(table.insert(key, value).map(|_| ())?))
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.write(|table| Ok(table.remove(key).map(|_| ())?))
    }

    fn search(&mut self, at: &[u8], before: bool, found: &mut Entry) -> Result<bool> {
        let entry = self.read(|table| table.search(at, before))?;
        Ok(entry.map(|entry| *found = entry).is_some())
    }

    fn begin(&mut self) -> Result<()> {
        let mut writer = self.database.begin_write()?;
        writer.set_durability(self.durability)?;
        self.writer = Some(writer);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match self.writer.take() {
            Some(writer) => Ok(writer.commit()?),
            None => Ok(()),
        }
    }

    fn abort(&mut self) -> Result<()> {
        match self.writer.take() {
            Some(writer) => Ok(writer.abort()?),
            None => Ok(()),
        }
    }
}
