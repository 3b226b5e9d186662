//! Commands that wait.
//!
//! Where nothing may wait, inside EXEC and scripts, they answer at once as if the time were over.

use std::time::{Duration, Instant};

use perilune_resp::{parse_integer, Arguments, Replies};

use crate::failure::{refuse, Result};
use crate::gate::Context;
use crate::numbers::integer;

/// When the milliseconds of an argument are over; none for 0, which is never.
fn milliseconds(argument: &[u8]) -> Result<Option<Instant>> {
    match parse_integer(argument) {
        None => refuse("ERR timeout is not an integer or out of range"),
        Some(..=-1) => refuse("ERR timeout is negative"),
        Some(0) => Ok(None),
        Some(time) => Ok(Instant::now().checked_add(Duration::from_millis(time.unsigned_abs()))),
    }
}

/// WAIT: there are no replicas, and servers of one database need none.
pub(crate) fn wait(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let replicas = integer(&arguments[1])?;
    let until = milliseconds(&arguments[2])?;
    if replicas > 0 {
        if let Some(parked) = context.park() {
            parked.until = until;
            parked.gives_up = true;
            parked.too_late = b":0\r\n".to_vec();
            return Ok(());
        }
    }
    replies.integer(0);
    Ok(())
}
