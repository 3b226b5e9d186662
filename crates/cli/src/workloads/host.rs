//! What `bench lua` measures in this process: reading and stepping in the engine without Lua, and the cost of a
//! call into the embedded Lua.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use perilune::{node, Database, Node, Session};
use perilune_luahost::{mlua, Host, HostError};

use crate::failure::{found, Result};

const SLICES: usize = 21;
const REPEATS: u32 = 5_000;

/// The engine's session and the Lua state.
pub(crate) struct HostSide {
    session: Session,
    node: Node,
    call: Option<(Host, mlua::Function)>,
}

impl HostSide {
    /// Opens a database at `path`; `calls`: measures calls, too.
    pub(crate) fn new(path: &Path, calls: bool) -> Result<HostSide> {
        let mut session = Database::options().durability(perilune::Durability::None).open(path)?.session()?;
        // As in workloads.lua: the node that is read stands beside 10,000 others.
        let node = node!("^value", "of", "one")?;
        session.set(&node, 4711)?;
        for i in 1..=10_000 {
            session.set(&node!("^stepping", i)?, i)?;
        }
        let call = if calls {
            let host = Host::new()?;
            let function = host.lua().load("return function() end").eval().map_err(HostError::from)?;
            Some((host, function))
        } else {
            None
        };
        Ok(HostSide { session, node, call })
    }

    /// One round: each value in its unit.
    pub(crate) fn round(&mut self) -> Result<Vec<(String, f64)>> {
        let (session, node) = (&mut self.session, &self.node);
        let get = median(|| match black_box(session.get(node)?) {
            Some(_) => Ok(()),
            None => Err(found("a value is gone; this is a bug")),
        })?;
        let mut rows = vec![("engine-get".to_owned(), get * 1e9), ("signals".to_owned(), 0.0)];
        if let Some((_, function)) = &self.call {
            let call = median(|| Ok(function.call::<()>(()).map_err(HostError::from)?))?;
            rows.push(("host-call".to_owned(), call * 1e6));
        }
        Ok(rows)
    }
}

/// Seconds that `operation` takes: the median of short slices of wall time, most of which nobody interrupts.
fn median(mut operation: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut slices = [0.0; SLICES];
    for slice in &mut slices {
        let begun = Instant::now();
        for _ in 0..REPEATS {
            operation()?;
        }
        *slice = begun.elapsed().as_secs_f64() / f64::from(REPEATS);
    }
    slices.sort_by(f64::total_cmp);
    Ok(slices[SLICES / 2])
}
