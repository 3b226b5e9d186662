//! Scripts in the tree: `^redis("script",sha)` holds the source, `^redis("script")` how often all were dropped.
//!
//! Servers keep what they have compiled as long as that number stays.

use std::sync::OnceLock;

use perilune::{node, Node, Session};
use sha1::{Digest, Sha1};

/// The SHA-1 of `source`, as 40 digits.
pub(crate) fn sha(source: &[u8]) -> String {
    Sha1::digest(source).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How often scripts were dropped.
pub(crate) fn generation(session: &mut Session) -> perilune::Result<i64> {
    static PLACE: OnceLock<Node> = OnceLock::new();
    let place = match PLACE.get() {
        Some(place) => place,
        None => PLACE.get_or_init({
            let place = node!("^redis", "script")?;
            || place
        }),
    };
    Ok(session.get_int(place)?.unwrap_or(0))
}

/// Keeps a script; one that is there stays as it is.
pub(crate) fn keep(session: &mut Session, sha: &str, source: &[u8]) -> perilune::Result<()> {
    let place = node!("^redis", "script", sha)?;
    if !session.data(&place)?.has_value() {
        session.set(&place, source)?;
    }
    Ok(())
}

/// Whether there is a script.
pub(crate) fn exists(session: &mut Session, sha: &str) -> perilune::Result<bool> {
    Ok(session.data(&node!("^redis", "script", sha)?)?.has_value())
}

/// The source of a script.
pub(crate) fn source(session: &mut Session, sha: &str) -> perilune::Result<Option<Vec<u8>>> {
    let value = session.get(&node!("^redis", "script", sha)?)?;
    Ok(value.map(|value| {
        let mut text = Vec::new();
        value.as_ref().write_text(&mut text);
        text
    }))
}

/// Drops all scripts.
pub(crate) fn flush(session: &mut Session) -> perilune::Result<()> {
    session.transaction(|session| {
        let place = node!("^redis", "script")?;
        let next = session.get_int(&place)?.unwrap_or(0) + 1;
        session.delete_tree(&place)?;
        session.set(&place, next)?;
        Ok(())
    })
}
