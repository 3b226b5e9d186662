//! The name under which higher storeys of this crate lend types and tables to lower ones.
//!
//! A mailbox carries connections and does not know what they are; a command in the table has something that runs, of which
//! whoever only reads the table knows nothing. Such a module says in a trait what it needs from above (`mailbox::Handing`,
//! `command::Rows`), and whoever is above implements the trait for [`Redis`]. All of it is resolved when the crate is
//! compiled: nothing is boxed for it and nothing is called by a pointer.

/// Has no value: it stands for this server in the traits of its storeys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Redis {}
