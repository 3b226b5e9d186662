//! Calls by name: how bindings use documents, lists, key/value stores and the patterns. docs/reference/models.md lists the names.
//!
//! Documents are given and answered as texts of JSON, so that one answer, a value, does for every call, and each language uses
//! the JSON that it has.
//!
//! Invariants
//! - A call is one transaction, as the function that it calls.
//! - An argument of a wrong type, or one too many, is an error before anything happens.

mod given;
mod patterns;

use perilune::{Node, Session, SubscriptBuf, Value, ValueRef};

use self::given::Given;
use self::patterns::{of_columns, of_hashes, of_networks, of_records, of_relations, of_sets};
use crate::{Children, Document, Error, Json, KeyValue, List, Result, Shape};

/// What a group of calls says of a name: the answer, or that the name is not one of its own.
type Found = Result<Option<Answer>>;

/// What a call answers: a value, or nothing.
type Answer = Option<Value>;

/// Makes the call `name` on what lies below `node`. `Null` is an argument that is left out.
///
/// # Errors
/// `Call` for a name that there is not and for arguments that it does not take; `Json`; what the call itself fails with.
pub fn call(session: &mut Session, node: &Node, name: &str, arguments: &[ValueRef<'_>]) -> Result<Answer> {
    let groups = [
        of_documents,
        of_lists,
        of_keys,
        of_sets,
        of_hashes,
        of_records,
        of_columns,
        of_relations,
        of_networks,
    ];
    for group in groups {
        let mut given = Given::new(name, arguments);
        if let Some(answer) = group(session, node, &mut given)? {
            return Ok(answer);
        }
    }
    Err(Error::Call(format!("there is no call {name:?}: docs/reference/models.md lists them")))
}

fn done(answer: Answer) -> Found {
    Ok(Some(answer))
}

fn json(answer: &Json) -> Found {
    done(Some(Value::String(answer.to_string().into_bytes())))
}

fn truth(answer: bool) -> Found {
    done(Some(Value::Bool(answer)))
}

fn of_documents(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let document = |shape| Document::at(node.clone(), shape);
    match given.name {
        "document.put" | "document.replace" | "document.patch" => {
            let (value, shape) = (given.json()?, given.shape_at_end()?);
            match given.name {
                "document.put" => document(shape).put(session, &value)?,
                "document.replace" => document(shape).replace(session, &value)?,
                _ => document(shape).patch(session, &value)?,
            }
            done(None)
        }
        "document.fetch" => {
            let shape = given.shape_at_end()?;
            match document(shape).fetch(session)? {
                Some(found) => json(&found),
                None => done(None),
            }
        }
        "document.leaves" => {
            let shape = given.shape_at_end()?;
            let leaves = document(shape).leaves(session)?;
            let pair = |(path, leaf): (Vec<SubscriptBuf>, Json)| {
                Json::Array(vec![path.iter().map(subscript).collect(), leaf])
            };
            json(&leaves.into_iter().map(pair).collect())
        }
        "document.children" => {
            let (from, to) = (given.optional_text()?, given.optional_text()?);
            let (prefix, reverse) = (given.optional_text()?, given.flag(false)?);
            given.end()?;
            let wanted =
                Children { from: from.as_deref(), to: to.as_deref(), prefix: prefix.as_deref(), reverse };
            let found = document(Shape::default()).children(session, wanted)?;
            json(&found.iter().map(subscript).collect())
        }
        "document.count" => {
            given.end()?;
            done(Some(Value::Int(document(Shape::default()).count(session)? as i64)))
        }
        "document.delete" => {
            given.end()?;
            document(Shape::default()).delete(session)?;
            done(None)
        }
        _ => Ok(None),
    }
}

fn of_lists(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let list = |shape| List::at(node.clone(), shape);
    let number = |number: Option<i64>| done(number.map(Value::Int));
    match given.name {
        "list.rpush" | "list.lpush" => {
            let (value, shape) = (given.json()?, given.shape_at_end()?);
            number(Some(match given.name {
                "list.rpush" => list(shape).push_back(session, &value)?,
                _ => list(shape).push_front(session, &value)?,
            }))
        }
        "list.insert_before" => {
            let (position, value, shape) = (given.integer()?, given.json()?, given.shape_at_end()?);
            number(list(shape).insert_before(session, position, &value)?)
        }
        "list.rpop" | "list.lpop" => {
            let shape = given.shape_at_end()?;
            let found = match given.name {
                "list.rpop" => list(shape).pop_back(session)?,
                _ => list(shape).pop_front(session)?,
            };
            match found {
                Some(found) => json(&found),
                None => done(None),
            }
        }
        "list.lrange" => {
            let (from, to) = (given.optional_integer(0)?, given.optional_integer(-1)?);
            let shape = given.shape_at_end()?;
            json(&Json::Array(list(shape).range(session, from, to)?))
        }
        "list.ltrim" => {
            let (from, to) = (given.optional_integer(0)?, given.optional_integer(-1)?);
            given.end()?;
            truth(list(Shape::default()).trim(session, from, to)?)
        }
        "list.find_no" => {
            let position = given.integer()?;
            given.end()?;
            number(list(Shape::default()).find(session, position)?)
        }
        "list.count" => {
            given.end()?;
            number(Some(list(Shape::default()).count(session)?))
        }
        "list.check" => {
            given.end()?;
            json(&Json::from(list(Shape::default()).check(session)?))
        }
        _ => Ok(None),
    }
}

fn of_keys(session: &mut Session, node: &Node, given: &mut Given<'_>) -> Found {
    let store = |shape| KeyValue::at(node.clone(), shape);
    match given.name {
        "keyvalue.add" | "keyvalue.edit" => {
            let (key, value, shape) = (given.text()?, given.json()?, given.shape_at_end()?);
            truth(match given.name {
                "keyvalue.add" => store(shape).add(session, &key, &value)?,
                _ => store(shape).edit(session, &key, &value)?,
            })
        }
        "keyvalue.delete" => {
            let key = given.text()?;
            given.end()?;
            truth(store(Shape::default()).delete(session, &key)?)
        }
        "keyvalue.get_by_key" => {
            let (key, shape) = (given.text()?, given.shape_at_end()?);
            match store(shape).get(session, &key)? {
                Some(found) => json(&found),
                None => done(None),
            }
        }
        "keyvalue.get_by_index" => {
            let (property, value, with_data) = (given.text()?, given.any()?, given.flag(false)?);
            let store = store(given.shape_at_end()?);
            let found = match with_data {
                false => store.keys_by_index(session, &property, &value)?.map(Json::from),
                true => store
                    .by_index(session, &property, &value)?
                    .map(|found| Json::Object(found.into_iter().collect())),
            };
            match found {
                Some(found) => json(&found),
                None => done(None),
            }
        }
        "keyvalue.add_index" => {
            let (property, transform) = (given.text()?, given.optional_text()?);
            given.end()?;
            store(Shape::default()).add_index(session, &property, transform.as_deref())?;
            done(None)
        }
        "keyvalue.delete_index" => {
            let property = given.text()?;
            given.end()?;
            store(Shape::default()).delete_index(session, &property)?;
            done(None)
        }
        "keyvalue.indices" | "keyvalue.reindex" | "keyvalue.check" => {
            given.end()?;
            let store = store(Shape::default());
            match given.name {
                "keyvalue.indices" => json(&Json::from(store.indices(session)?)),
                "keyvalue.check" => json(&Json::from(store.check(session)?)),
                _ => {
                    store.reindex(session)?;
                    done(None)
                }
            }
        }
        _ => Ok(None),
    }
}

/// A subscript in JSON: an integer, or a text.
fn subscript(subscript: &SubscriptBuf) -> Json {
    match subscript.as_i64() {
        Some(integer) => Json::from(integer),
        None => Json::from(String::from_utf8_lossy(&subscript.to_text())),
    }
}
