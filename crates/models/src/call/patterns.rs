//! The calls of sets, hashes, records, columns, relations and networks.

use perilune::{Node, Session, Value};

use super::{done, json, truth, Found, Given};
use crate::{
    Columns, Direction, Edge, Error, Fields, Hash, Json, Network, Records, Relations, Result, Set, Wanted,
};

fn objects(answer: Option<Fields>) -> Found {
    match answer {
        Some(fields) => json(&Json::Object(fields)),
        None => done(None),
    }
}

fn all(answer: Vec<Fields>) -> Found {
    json(&answer.into_iter().map(Json::Object).collect())
}

/// A scalar as a value; integers and texts as they are.
fn value(answer: Json) -> Found {
    done(Some(match answer {
        Json::String(text) => Value::String(text.into_bytes()),
        other => Value::Int(other.as_i64().unwrap_or_default()),
    }))
}

fn count(answer: u64) -> Found {
    done(Some(Value::Int(answer as i64)))
}

pub(super) fn of_sets(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let set = Set::at(node.clone());
    match given.name {
        "set.add" | "set.remove" | "set.has" => {
            let member = given.any()?;
            given.end()?;
            truth(match given.name {
                "set.add" => set.add(session, &member)?,
                "set.remove" => set.remove(session, &member)?,
                _ => set.has(session, &member)?,
            })
        }
        "set.members" => {
            given.end()?;
            json(&Json::Array(set.members(session)?))
        }
        "set.count" => {
            given.end()?;
            count(set.count(session)?)
        }
        _ => Ok(None),
    }
}

pub(super) fn of_hashes(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let hash = Hash::at(node.clone());
    match given.name {
        "hash.put" => {
            let (field, value) = (given.any()?, given.any()?);
            given.end()?;
            truth(hash.put(session, &field, &value)?)
        }
        "hash.get" | "hash.delete" => {
            let field = given.any()?;
            given.end()?;
            match given.name {
                "hash.get" => done(hash.get(session, &field)?),
                _ => truth(hash.delete(session, &field)?),
            }
        }
        "hash.increment" => {
            let (field, by) = (given.any()?, given.number(1)?);
            given.end()?;
            done(Some(hash.increment(session, &field, by)?.into()))
        }
        "hash.all" | "hash.count" => {
            given.end()?;
            match given.name {
                "hash.all" => objects(Some(hash.all(session)?)),
                _ => count(hash.count(session)?),
            }
        }
        _ => Ok(None),
    }
}

pub(super) fn of_records(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let records = Records::at(node.clone());
    match given.name {
        "records.insert" => {
            let record = given.fields()?;
            given.end()?;
            done(Some(Value::Int(records.insert(session, &record)?)))
        }
        "records.put" | "records.edit" => {
            let (id, record) = (given.any()?, given.fields()?);
            given.end()?;
            truth(match given.name {
                "records.put" => records.put(session, &id, &record)?,
                _ => records.edit(session, &id, &record)?,
            })
        }
        "records.get" | "records.delete" => {
            let id = given.any()?;
            given.end()?;
            match given.name {
                "records.get" => objects(records.get(session, &id)?),
                _ => truth(records.delete(session, &id)?),
            }
        }
        "records.ids" | "records.count" | "records.indices" | "records.check" => {
            given.end()?;
            match given.name {
                "records.ids" => json(&Json::Array(records.ids(session)?)),
                "records.count" => count(records.count(session)?),
                "records.indices" => json(&Json::from(records.indices(session)?)),
                _ => json(&Json::from(records.check(session)?)),
            }
        }
        "records.find" => find(session, &records, given),
        "records.add_index" => {
            let properties = given.array()?;
            given.end()?;
            let texts: Option<Vec<&str>> = properties.iter().map(Json::as_str).collect();
            let texts = texts.ok_or_else(|| Error::Call("names of properties are texts".to_owned()))?;
            value(Json::from(records.add_index(session, &texts)?))
        }
        "records.delete_index" => {
            let index = given.text()?;
            given.end()?;
            truth(records.delete_index(session, &index)?)
        }
        _ => Ok(None),
    }
}

fn find(session: &mut Session, records: &Records, given: &mut Given<'_>) -> Found {
    let (index, values) = (given.text()?, given.optional_array()?);
    let (from, to) = (given.optional_any()?, given.optional_any()?);
    let with_data = given.flag(false)?;
    given.end()?;
    let wanted = Wanted { values: &values, from: from.as_ref(), to: to.as_ref() };
    if !with_data {
        return json(&Json::Array(records.find(session, &index, wanted)?));
    }
    let found = records.find_records(session, &index, wanted)?;
    json(&found.into_iter().map(|(id, record)| Json::Array(vec![id, Json::Object(record)])).collect())
}

pub(super) fn of_columns(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let table = Columns::at(node.clone());
    match given.name {
        "columns.put" => {
            let (row, cells) = (given.any()?, given.fields()?);
            given.end()?;
            table.put(session, &row, &cells)?;
            done(None)
        }
        "columns.row" | "columns.delete" => {
            let row = given.any()?;
            given.end()?;
            match given.name {
                "columns.row" => objects(table.row(session, &row)?),
                _ => truth(table.delete(session, &row)?),
            }
        }
        "columns.column" => {
            let column = given.text()?;
            given.end()?;
            let found = table.column(session, &column)?;
            json(&found.into_iter().map(|(row, value)| Json::Array(vec![row, value])).collect())
        }
        "columns.find" => {
            let (column, value) = (given.text()?, given.any()?);
            given.end()?;
            json(&Json::Array(table.find(session, &column, &value)?))
        }
        "columns.range" => {
            let (column, from, to) = (given.text()?, given.optional_any()?, given.optional_any()?);
            given.end()?;
            json(&Json::Array(table.range(session, &column, from.as_ref(), to.as_ref())?))
        }
        "columns.rows" | "columns.columns" | "columns.check" => {
            given.end()?;
            json(&match given.name {
                "columns.rows" => Json::Array(table.rows(session)?),
                "columns.columns" => Json::Array(table.columns(session)?),
                _ => Json::from(table.check(session)?),
            })
        }
        _ => Ok(None),
    }
}

pub(super) fn of_relations(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let relations = Relations::at(node.clone());
    match given.name {
        "relations.table" => {
            let (table, keys, parent) = (given.text()?, given.array()?, given.optional_text()?);
            given.end()?;
            let texts: Option<Vec<&str>> = keys.iter().map(Json::as_str).collect();
            let texts = texts.ok_or_else(|| Error::Call("names of keys are texts".to_owned()))?;
            relations.table(session, &table, &texts, parent.as_deref())?;
            done(None)
        }
        "relations.insert" => {
            let (table, row) = (given.text()?, given.fields()?);
            given.end()?;
            truth(relations.insert(session, &table, &row)?)
        }
        "relations.update" => {
            let (table, keys, changes) = (given.text()?, given.array()?, given.fields()?);
            given.end()?;
            truth(relations.update(session, &table, &keys, &changes)?)
        }
        "relations.get" | "relations.parent" => {
            let (table, keys) = (given.text()?, given.array()?);
            given.end()?;
            objects(match given.name {
                "relations.get" => relations.get(session, &table, &keys)?,
                _ => relations.parent(session, &table, &keys)?,
            })
        }
        "relations.rows" => {
            let (table, keys) = (given.text()?, given.optional_array()?);
            given.end()?;
            all(relations.rows(session, &table, &keys)?)
        }
        "relations.children" => {
            let (table, keys, child) = (given.text()?, given.array()?, given.text()?);
            given.end()?;
            all(relations.children(session, &table, &keys, &child)?)
        }
        "relations.delete" => {
            let (table, keys, cascade) = (given.text()?, given.array()?, given.flag(false)?);
            given.end()?;
            truth(relations.delete(session, &table, &keys, cascade)?)
        }
        "relations.check" => {
            given.end()?;
            json(&Json::from(relations.check(session)?))
        }
        _ => Ok(None),
    }
}

pub(super) fn of_networks(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let network = Network::at(node.clone());
    match given.name {
        "network.add_node" => {
            let (properties, id) = (given.fields()?, given.optional_any()?);
            given.end()?;
            value(network.add_node(session, &properties, id.as_ref())?)
        }
        "network.add_edge" => {
            let (kind, from, to) = (given.text()?, given.any()?, given.any()?);
            let (properties, id) = (given.optional_fields()?, given.optional_any()?);
            given.end()?;
            value(network.add_edge(session, &Edge { kind, from, to, properties }, id.as_ref())?)
        }
        "network.edit_node" | "network.edit_edge" => {
            let (id, changes) = (given.any()?, given.fields()?);
            given.end()?;
            truth(match given.name {
                "network.edit_node" => network.edit_node(session, &id, &changes)?,
                _ => network.edit_edge(session, &id, &changes)?,
            })
        }
        "network.get_node" | "network.get_edge" | "network.delete_node" | "network.delete_edge" => {
            let id = given.any()?;
            given.end()?;
            match given.name {
                "network.get_node" => objects(network.get_node(session, &id)?),
                "network.get_edge" => objects(network.get_edge(session, &id)?.map(shown_edge)),
                "network.delete_node" => truth(network.delete_node(session, &id)?),
                _ => truth(network.delete_edge(session, &id)?),
            }
        }
        "network.edges" => {
            let kind = given.text()?;
            given.end()?;
            json(&Json::Array(network.edges(session, &kind)?))
        }
        "network.edges_of" | "network.neighbours" => {
            let (id, direction, kind) = (given.any()?, direction(given)?, given.optional_text()?);
            given.end()?;
            json(&Json::Array(match given.name {
                "network.edges_of" => network.edges_of(session, &id, direction, kind.as_deref())?,
                _ => network.neighbours(session, &id, direction, kind.as_deref())?,
            }))
        }
        "network.check" => {
            given.end()?;
            json(&Json::from(network.check(session)?))
        }
        _ => Ok(None),
    }
}

fn shown_edge(edge: Edge) -> Fields {
    [
        ("type", Json::from(edge.kind)),
        ("from", edge.from),
        ("to", edge.to),
        ("properties", Json::Object(edge.properties)),
    ]
    .into_iter()
    .map(|(name, json)| (name.to_owned(), json))
    .collect()
}

fn direction(given: &mut Given<'_>) -> Result<Direction> {
    match given.optional_text()?.as_deref() {
        None | Some("out") => Ok(Direction::Out),
        Some("in") => Ok(Direction::In),
        Some("both") => Ok(Direction::Both),
        Some(other) => Err(Error::Call(format!("the direction {other:?} is none of out, in, both"))),
    }
}
