'use strict';
/* An application of QEWD: counts in the user's session and in a document. */
module.exports = {
  handlers: {
    count(message, session, send, finished) {
      const mine = Number(session.data.$('count').increment());
      const all = Number(this.documentStore.use('qewdCheck', 'all').increment());
      finished({mine, all});
    },
  },
};
