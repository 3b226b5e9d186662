'use strict';
/*
 * A page of Express that shares its sessions with programs in any language: node express.js [PATH [PORT]]
 *
 * ^session(id, ...) holds a visitor's data; visitor.lua reads and changes the session that a browser has. Needs `npm install express`.
 */
const {randomUUID} = require('crypto');
const express = require('express');
const perilune = require('perilune');

const db = perilune.open(process.argv[2]);
const sessions = db.node('^session');

/* The session of a request: a node, whose id is in a cookie. */
function session(request, response, next) {
  const [, known] = /(?:^|; )session=([\w-]{36})/.exec(request.headers.cookie || '') || [];
  const id = known && sessions.data(known) !== 0 ? known : randomUUID();
  if (id !== known) response.setHeader('Set-Cookie', `session=${id}; HttpOnly; SameSite=Lax; Path=/`);
  request.session = sessions.node(id);
  next();
}

const app = express();
app.use(session);
app.get('/', (request, response) => {
  const visits = request.session.node('visits').incr();
  const note = request.session.get('note');
  response.type('text').send(`visit ${visits}${note === undefined ? '' : `, ${note}`}\n`);
});

const server = app.listen(Number(process.argv[3] || 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
process.on('SIGTERM', () => server.close(() => db.close()));
