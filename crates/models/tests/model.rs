//! Random operations on documents, lists and key/value stores beside plain models of them.

use std::collections::{BTreeMap, VecDeque};

use perilune::{node, Database, Session};
use perilune_models::{json, Document, Json, KeyValue, List, Result, Shape};
use proptest::prelude::*;

fn session() -> Session {
    Database::open("memory:").and_then(|database| database.session()).expect("a database in memory")
}

/// Any value of JSON, with names that look like the subscripts of arrays among them.
fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-9i64..9).prop_map(Json::from),
        (-1e9..1e9).prop_map(|number: f64| Json::from(number)),
        "[a-zé0-9\\\\\" ]{0,6}".prop_map(Json::from),
        Just(Json::from("true")),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map("[ab]|[0-3]|01|-1|1.5|", inner, 0..5)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

/// What `put` makes of two values: objects are merged, and arrays element by element.
fn merged(old: &Json, new: &Json) -> Json {
    match (old, new) {
        (Json::Object(old), Json::Object(new)) => {
            let mut map = old.clone();
            for (name, value) in new {
                let value = old.get(name).map_or_else(|| value.clone(), |old| merged(old, value));
                map.insert(name.clone(), value);
            }
            Json::Object(map)
        }
        _ => new.clone(),
    }
}

/// RFC 7396.
fn patched(old: Option<&Json>, patch: &Json) -> Json {
    let Json::Object(patch) = patch else { return patch.clone() };
    let mut map = old.and_then(Json::as_object).cloned().unwrap_or_default();
    for (name, value) in patch {
        match value {
            Json::Null => drop(map.remove(name)),
            value => drop(map.insert(name.clone(), patched(map.clone().get(name), value))),
        }
    }
    Json::Object(map)
}

/// Whether an object meets an array in `put` or `patch`, where the tree merges by subscript and JSON says nothing.
fn has_array_under_object(old: &Json, new: &Json) -> bool {
    match (old, new) {
        (Json::Object(old), Json::Object(new)) => new
            .iter()
            .any(|(name, value)| old.get(name).is_some_and(|old| has_array_under_object(old, value))),
        (Json::Array(_), Json::Object(_)) | (_, Json::Array(_)) => true,
        (Json::Object(old), _) => !old.is_empty() && new.as_object().is_some(),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_was_put_is_fetched(value in any_json(), before in any_json(), first in 0i64..3) {
        let mut session = session();
        let document = Document::at(node!("^d", "x").unwrap(), Shape { first, typed: true });
        document.replace(&mut session, &before).unwrap();
        document.replace(&mut session, &value).unwrap();
        prop_assert_eq!(document.fetch(&mut session).unwrap(), Some(value));
    }

    #[test]
    fn objects_are_merged_and_patched(old in any_json(), new in any_json()) {
        prop_assume!(!has_array_under_object(&old, &new));
        let mut session = session();
        let document = Document::at(node!("^d").unwrap(), Shape::default());
        document.replace(&mut session, &old).unwrap();
        document.put(&mut session, &new).unwrap();
        prop_assert_eq!(document.fetch(&mut session).unwrap(), Some(merged(&old, &new)));
        document.replace(&mut session, &old).unwrap();
        document.patch(&mut session, &new).unwrap();
        let want = patched(Some(&old), &new);
        prop_assert_eq!(document.fetch(&mut session).unwrap(), Some(want).filter(|want| !want.is_null()));
    }

    #[test]
    fn lists_are_queues(steps in prop::collection::vec((0u8..8, -6i64..6, -6i64..6), 1..60)) {
        let mut session = session();
        let list = List::at(node!("^list").unwrap(), Shape::default());
        let mut model = VecDeque::new();
        for (index, (step, a, b)) in steps.into_iter().enumerate() {
            list_step(&mut session, &list, &mut model, (step, a, b), index).unwrap();
            prop_assert_eq!(list.check(&mut session).unwrap(), Vec::<String>::new());
            let all: Vec<Json> = model.iter().cloned().collect();
            prop_assert_eq!(list.range(&mut session, 0, -1).unwrap(), all);
            prop_assert_eq!(list.count(&mut session).unwrap(), model.len() as i64);
        }
    }

    #[test]
    fn stores_are_maps(steps in prop::collection::vec((0u8..8, 0u8..6, 0u8..6), 1..60)) {
        let mut session = session();
        let store = KeyValue::at(node!("^kv").unwrap(), Shape::default());
        let mut model = BTreeMap::new();
        store.add_index(&mut session, "town", Some("toLowerCase")).unwrap();
        store.add_index(&mut session, "age", None).unwrap();
        for step in steps {
            store_step(&mut session, &store, &mut model, step).unwrap();
            prop_assert_eq!(store.check(&mut session).unwrap(), Vec::<String>::new());
        }
    }
}

/// What `list.range` gives of a model.
fn slice(model: &VecDeque<Json>, from: i64, to: i64) -> VecDeque<Json> {
    let count = model.len() as i64;
    let index = |position: i64| if position < 0 { position + count } else { position };
    (0..count)
        .filter(|at| *at >= index(from) && *at <= index(to))
        .map(|at| model[at as usize].clone())
        .collect()
}

fn list_step(
    session: &mut Session,
    list: &List,
    model: &mut VecDeque<Json>,
    (step, a, b): (u8, i64, i64),
    index: usize,
) -> Result<()> {
    let value = json!({"n": index, "list": [a, b]});
    match step {
        0 | 1 => {
            list.push_back(session, &value)?;
            model.push_back(value);
        }
        2 => {
            list.push_front(session, &value)?;
            model.push_front(value);
        }
        3 => assert_eq!(list.pop_front(session)?, model.pop_front()),
        4 => assert_eq!(list.pop_back(session)?, model.pop_back()),
        5 => {
            let at = if a < 0 { a + model.len() as i64 } else { a };
            let is_there = at >= 0 && at < model.len() as i64;
            assert_eq!(list.insert_before(session, a, &value)?.is_some(), is_there);
            if is_there {
                model.insert(at as usize, value);
            }
        }
        6 if b > a => {
            assert_eq!(list.trim(session, a, b)?, !model.is_empty());
            *model = slice(model, a, b);
        }
        _ => assert_eq!(list.range(session, a, b)?, Vec::from(slice(model, a, b))),
    }
    Ok(())
}

fn store_step(
    session: &mut Session,
    store: &KeyValue,
    model: &mut BTreeMap<String, Json>,
    (step, key, choice): (u8, u8, u8),
) -> Result<()> {
    let towns = ["Redhill", "redhill", "St Albans", "", "7", "LONDON"];
    let key = format!("key_{key}");
    let value = match choice {
        0 => json!({}),
        1 => json!({"town": ["a", "b"], "age": true}),
        _ => json!({"town": towns[usize::from(choice)], "age": choice}),
    };
    match step {
        0 | 1 => {
            assert_eq!(store.add(session, &key, &value)?, !model.contains_key(&key));
            model.entry(key).or_insert(value);
        }
        2 | 3 => {
            assert_eq!(store.edit(session, &key, &value)?, model.contains_key(&key));
            model.entry(key).and_modify(|old| *old = value);
        }
        4 => assert_eq!(store.delete(session, &key)?, model.remove(&key).is_some()),
        5 => store.reindex(session)?,
        6 => assert_eq!(store.get(session, &key)?, model.get(&key).cloned()),
        _ => {
            let wanted = towns[usize::from(choice)].to_lowercase();
            let town = |value: &Json| value["town"].as_str().map(str::to_lowercase);
            let want: Vec<String> = model
                .iter()
                .filter(|(_, value)| !wanted.is_empty() && town(value).as_ref() == Some(&wanted))
                .map(|(key, _)| key.clone())
                .collect();
            let found = store.keys_by_index(session, "town", &json!(wanted))?.unwrap_or_default();
            assert_eq!(found, want);
        }
    }
    Ok(())
}
