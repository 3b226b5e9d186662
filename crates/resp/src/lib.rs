//! The wire format of Redis: requests in, replies out, in RESP2 and RESP3; and the reverse for clients.
//!
//! Invariants
//! - Nothing here does input or output, and nothing allocates more than the bytes that have arrived
//!   ask for: a header that promises 512 MiB costs nothing until they come.
//! - Every decoder takes its bytes in pieces of any size, looks at each byte a bounded number of times,
//!   and answers hostile ones with an error, never with a panic.
//! - What is refused is refused with the words of Redis, since clients show them.
//!
//! Deliberately absent: what commands mean, connections, encryption.

#![forbid(unsafe_code)]

pub mod limits;

mod answer;
mod arguments;
mod decimal;
mod inline;
mod reply;
mod request;

pub use answer::{Answer, AnswerError};
pub use arguments::{Arguments, ArgumentsBuf, Span};
pub use decimal::{format_double, integer_text, parse_integer, write_integer};
pub use reply::{ArrayMark, Begun, Many, Protocol, Replies};
pub use request::{Progress, ProtocolError, RequestParser};
