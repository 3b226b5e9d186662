//! What servers keep for themselves in the database, and who reaches it by node.
//!
//! Users, settings, functions, scripts, the slow log, the servers and who waits at them lie below `^redis`, beside the
//! keys of clients, which lie in `^redis(0)` to `^redis(16383)`. Who may write there may make itself an operator, so it is
//! closed to the commands PERILUNE.* of users who may not run ACL and CONFIG, all of both, and to scripts and functions
//! whoever runs them: Redis's scripts do not run those commands either, and whose function an operator calls is another matter.
//!
//! Invariant: all that the server keeps lies in `^redis` outside of the databases, and in channels that `peers` names.
//!
//! Programs that have the file mapped reach all of it: who can open the file may do everything.

use std::sync::{Arc, LazyLock};

use perilune::remote::Fence;
use perilune::Node;

use crate::context::Context;
use crate::limits::DATABASES_MOST;
use crate::name::NAME;
use crate::peers;

const WHY: &str =
    "what the server keeps is out of reach of scripts, and of users who may not run ACL and CONFIG";

static FENCE: LazyLock<Arc<Fence>> = LazyLock::new(|| {
    let fence = Node::new(NAME).and_then(|root| Fence::new(&root, 0..DATABASES_MOST, peers::CHANNELS, WHY));
    Arc::new(fence.expect("it is a name, and these are subscripts"))
});

/// Around all that servers keep.
pub(crate) fn fence() -> &'static Arc<Fence> {
    &FENCE
}

impl Context<'_> {
    /// What the client does not reach by node; none: it reaches everything.
    pub(crate) fn fence(&mut self) -> Option<&'static Arc<Fence>> {
        let operates = self.client.is_unlimited(self.server.rules().acl())
            || self.client.user(self.server.rules().acl()).is_some_and(|user| user.operates());
        (!operates).then(fence)
    }
}
