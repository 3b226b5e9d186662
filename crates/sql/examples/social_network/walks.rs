//! The reads as walks.

use std::collections::BTreeMap;

use perilune_graph::{algorithm, Edge, Reach, Result, Traversal, VertexId, View};

use crate::Rows;

/// The number behind the label of an id: `person:7` is 7.
fn number(id: &VertexId) -> String {
    id.to_string().split(':').nth(1).unwrap_or("").to_owned()
}

fn is(id: &VertexId, label: &str) -> bool {
    id.to_string().split(':').next() == Some(label)
}

fn vertex(label: &str, number: &str) -> VertexId {
    VertexId::from(format!("{label}:{number}").as_str())
}

fn text(view: &mut View<'_>, id: &VertexId, name: &str) -> Result<String> {
    let (graph, session) = view.parts();
    Ok(graph.property_text(session, id, name)?.unwrap_or_default())
}

fn texts(view: &mut View<'_>, id: &VertexId, names: &[&str]) -> Result<Vec<String>> {
    names.iter().map(|name| text(view, id, name)).collect()
}

fn of_edge(view: &mut View<'_>, edge: &Edge, name: &str) -> Result<i64> {
    let (graph, session) = view.parts();
    Ok(graph
        .edge_property(session, edge.id, name)?
        .and_then(|value| value.to_string().parse().ok())
        .unwrap_or(0))
}

fn date(view: &mut View<'_>, id: &VertexId) -> Result<i64> {
    Ok(text(view, id, "creationDate")?.parse().unwrap_or(0))
}

/// Where edges of a type lead.
fn ends(view: &mut View<'_>, id: &VertexId, reach: &Reach) -> Result<Vec<VertexId>> {
    Ok(view.edges(id, reach)?.iter().map(|edge| edge.other(id).clone()).collect())
}

fn out(view: &mut View<'_>, id: &VertexId, kind: &str) -> Result<Vec<VertexId>> {
    ends(view, id, &Reach::out().of(kind))
}

fn inward(view: &mut View<'_>, id: &VertexId, kind: &str) -> Result<Vec<VertexId>> {
    ends(view, id, &Reach::incoming().of(kind))
}

/// Friends up to so many steps away, without the person itself, with how far they are.
fn circle(view: &mut View<'_>, person: &VertexId, depth: usize) -> Result<Vec<(VertexId, usize)>> {
    let mut traversal = Traversal::breadth_first(Reach::both().of("knows")).depths(1, depth);
    let paths = traversal.walk(view, [person])?;
    paths.map(|path| path.map(|path| (path.end().clone(), path.length()))).collect()
}

/// The latest of messages, by date and then by number.
fn latest(view: &mut View<'_>, messages: Vec<VertexId>, count: usize) -> Result<Vec<(i64, VertexId)>> {
    let mut dated = Vec::new();
    for message in messages {
        dated.push((date(view, &message)?, message));
    }
    dated.sort_by_key(|(date, message)| (-date, number(message).parse::<i64>().unwrap_or(0)));
    dated.truncate(count);
    Ok(dated)
}

/// The post that a comment answers, directly or not.
fn root(view: &mut View<'_>, message: &VertexId) -> Result<VertexId> {
    let mut up = Traversal::depth_first(Reach::out().of("replyOf"));
    let mut last = message.clone();
    for path in up.walk(view, [message])? {
        last = path?.end().clone();
    }
    Ok(last)
}

pub(crate) fn profile(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let person = vertex("person", &of[0]);
    let mut row =
        texts(view, &person, &["firstName", "lastName", "birthday", "locationIP", "browserUsed", "gender"])?;
    row.extend(out(view, &person, "isLocatedIn")?.iter().map(number));
    Ok(vec![row])
}

pub(crate) fn recent_messages(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let messages = inward(view, &vertex("person", &of[0]), "hasCreator")?;
    let mut rows = Vec::new();
    for (date, message) in latest(view, messages, 10)? {
        let post = root(view, &message)?;
        let author = out(view, &post, "hasCreator")?.remove(0);
        let name = text(view, &author, "firstName")?;
        rows.push(vec![number(&message), date.to_string(), number(&post), number(&author), name]);
    }
    Ok(rows)
}

pub(crate) fn friends(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let person = vertex("person", &of[0]);
    let mut rows = Vec::new();
    for edge in view.edges(&person, &Reach::both().of("knows"))? {
        let friend = edge.other(&person).clone();
        let since = of_edge(view, &edge, "creationDate")?;
        let names = texts(view, &friend, &["firstName", "lastName"])?;
        rows.push((-since, number(&friend).parse::<i64>().unwrap_or(0), names));
    }
    rows.sort();
    let row = |(since, id, names): (i64, i64, Vec<String>)| {
        [vec![id.to_string()], names, vec![(-since).to_string()]].concat()
    };
    Ok(rows.into_iter().map(row).collect())
}

pub(crate) fn content(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    Ok(vec![texts(view, &vertex("comment", &of[0]), &["creationDate", "content"])?])
}

pub(crate) fn creator(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let mut rows = Vec::new();
    for person in out(view, &vertex("comment", &of[0]), "hasCreator")? {
        rows.push([vec![number(&person)], texts(view, &person, &["firstName", "lastName"])?].concat());
    }
    Ok(rows)
}

pub(crate) fn forum(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let post = root(view, &vertex("comment", &of[0]))?;
    let mut rows = Vec::new();
    for forum in inward(view, &post, "containerOf")? {
        for moderator in out(view, &forum, "hasModerator")? {
            let title = text(view, &forum, "title")?;
            rows.push(vec![number(&forum), title, number(&moderator), text(view, &moderator, "firstName")?]);
        }
    }
    Ok(rows)
}

pub(crate) fn replies(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let message = vertex("comment", &of[0]);
    let author = out(view, &message, "hasCreator")?.remove(0);
    let known = ends(view, &author, &Reach::both().of("knows"))?;
    let replies = inward(view, &message, "replyOf")?;
    let mut rows = Vec::new();
    for (date, reply) in latest(view, replies, usize::MAX)? {
        let by = out(view, &reply, "hasCreator")?.remove(0);
        let knows = u8::from(known.contains(&by)).to_string();
        rows.push(vec![number(&reply), date.to_string(), number(&by), knows]);
    }
    Ok(rows)
}

pub(crate) fn of_a_name(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let mut found = Vec::new();
    for (friend, distance) in circle(view, &vertex("person", &of[0]), 3)? {
        if text(view, &friend, "firstName")? == of[1] {
            let last = text(view, &friend, "lastName")?;
            found.push((distance, last, number(&friend).parse::<i64>().unwrap_or(0)));
        }
    }
    found.sort();
    found.truncate(20);
    Ok(found
        .into_iter()
        .map(|(distance, last, id)| vec![id.to_string(), last, distance.to_string()])
        .collect())
}

/// The 20 latest messages of people before a date.
fn messages_of(view: &mut View<'_>, people: Vec<VertexId>, before: &str) -> Result<Rows> {
    let before: i64 = before.parse().unwrap_or(0);
    let mut messages = Vec::new();
    for person in people {
        for message in inward(view, &person, "hasCreator")? {
            if date(view, &message)? < before {
                messages.push(message);
            }
        }
    }
    let mut rows = Vec::new();
    for (date, message) in latest(view, messages, 20)? {
        let by = out(view, &message, "hasCreator")?.remove(0);
        rows.push(vec![number(&by), text(view, &by, "firstName")?, number(&message), date.to_string()]);
    }
    Ok(rows)
}

pub(crate) fn of_friends(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let friends = ends(view, &vertex("person", &of[0]), &Reach::both().of("knows"))?;
    messages_of(view, friends, &of[1])
}

pub(crate) fn of_friends_of_friends(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let circle = circle(view, &vertex("person", &of[0]), 2)?;
    messages_of(view, circle.into_iter().map(|(friend, _)| friend).collect(), &of[1])
}

pub(crate) fn tags_together(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for (friend, _) in circle(view, &vertex("person", &of[0]), 2)? {
        for message in inward(view, &friend, "hasCreator")? {
            if !is(&message, "post") {
                continue;
            }
            let mut names = Vec::new();
            for tag in out(view, &message, "hasTag")? {
                names.push(text(view, &tag, "name")?);
            }
            if names.contains(&of[1]) {
                names
                    .into_iter()
                    .filter(|name| *name != of[1])
                    .for_each(|name| *counts.entry(name).or_default() += 1);
            }
        }
    }
    let mut found: Vec<(i64, String)> = counts.into_iter().map(|(name, count)| (-count, name)).collect();
    found.sort();
    found.truncate(10);
    Ok(found.into_iter().map(|(count, name)| vec![name, (-count).to_string()]).collect())
}

pub(crate) fn recent_replies(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let mut replies = Vec::new();
    for message in inward(view, &vertex("person", &of[0]), "hasCreator")? {
        replies.extend(inward(view, &message, "replyOf")?);
    }
    let mut rows = Vec::new();
    for (date, reply) in latest(view, replies, 20)? {
        let by = out(view, &reply, "hasCreator")?.remove(0);
        rows.push(vec![number(&by), text(view, &by, "firstName")?, date.to_string(), number(&reply)]);
    }
    Ok(rows)
}

pub(crate) fn jobs(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let mut found = Vec::new();
    for (friend, _) in circle(view, &vertex("person", &of[0]), 2)? {
        for job in view.edges(&friend, &Reach::out().of("workAt"))? {
            let since = of_edge(view, &job, "workFrom")?;
            for country in out(view, &job.target, "isLocatedIn")? {
                if since < 2010 && text(view, &country, "name")? == of[1] {
                    let company = text(view, &job.target, "name")?;
                    found.push((since, number(&friend).parse::<i64>().unwrap_or(0), company));
                }
            }
        }
    }
    found.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.cmp(&a.2)));
    found.truncate(10);
    Ok(found
        .into_iter()
        .map(|(since, id, company)| vec![id.to_string(), company, since.to_string()])
        .collect())
}

pub(crate) fn shortest_path(view: &mut View<'_>, of: &[String]) -> Result<Rows> {
    let (from, to) = (vertex("person", &of[0]), vertex("person", &of[1]));
    let path = algorithm::shortest_path(view, &from, &to, &Reach::both().of("knows"))?;
    Ok(path.iter().map(|path| vec![path.length().to_string()]).collect())
}
