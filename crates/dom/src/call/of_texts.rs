//! Calls on character data, and on user data.

use perilune::Session;

use super::{done, Found, Given};
use crate::Dom;

pub(super) fn calls(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "length" => {
            let node = given.node()?;
            given.end()?;
            done(dom.data_length(session, node)? as i64)
        }
        "wholeText" => {
            let node = given.node()?;
            given.end()?;
            done(dom.whole_text(session, node)?)
        }
        "substringData" | "deleteData" => {
            let (node, offset, count) = (given.node()?, given.size()?, given.size()?);
            given.end()?;
            match given.name {
                "substringData" => done(dom.substring_data(session, node, offset, count)?),
                _ => done(dom.replace_data(session, node, offset, count, "")?),
            }
        }
        "appendData" => {
            let (node, text) = (given.node()?, given.text()?);
            given.end()?;
            done(dom.append_data(session, node, text)?)
        }
        "insertData" => {
            let (node, offset, text) = (given.node()?, given.size()?, given.text()?);
            given.end()?;
            done(dom.replace_data(session, node, offset, 0, text)?)
        }
        "replaceData" => {
            let (node, offset, count, text) = (given.node()?, given.size()?, given.size()?, given.text()?);
            given.end()?;
            done(dom.replace_data(session, node, offset, count, text)?)
        }
        "splitText" => {
            let (node, offset) = (given.node()?, given.size()?);
            given.end()?;
            done(dom.split_text(session, node, offset)?)
        }
        _ => user_data(dom, session, given),
    }
}

fn user_data(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "getUserData" | "deleteUserData" => {
            let (node, key) = (given.node()?, given.text()?);
            given.end()?;
            match given.name {
                "getUserData" => {
                    let value = dom.get_user_data(session, node, key)?;
                    Ok(Some(value.map_or(super::Answer::Nothing, super::Answer::Value)))
                }
                _ => done(dom.delete_user_data(session, node, key)?),
            }
        }
        "setUserData" => {
            let (node, key, value) = (given.node()?, given.text()?, given.any());
            given.end()?;
            done(dom.set_user_data(session, node, key, value.value())?)
        }
        "getUserDataKeys" => {
            let node = given.node()?;
            given.end()?;
            done(dom.user_data_keys(session, node)?)
        }
        _ => Ok(None),
    }
}
