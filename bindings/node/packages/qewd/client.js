'use strict';
/*
 * Asks the server: client.js PORT. A session is registered and counted in twice; then what it has written is read by this
 * process, through the native interface.
 */
const assert = require('node:assert');
const perilune = require('perilune');

const base = `http://127.0.0.1:${process.argv[2]}`;

async function ask(message) {
  const response = await fetch(`${base}/ajax`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify(message),
  });
  return response.json();
}

async function started() {
  for (let i = 0; i < 300; i++) {
    try {
      return await ask({type: 'ewd-register', application: 'counter'});
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error('the server does not answer');
}

async function main() {
  const registered = await started();
  const token = registered.message ? registered.message.token : registered.token;
  assert.ok(token, JSON.stringify(registered));
  for (const expected of [1, 2]) {
    const answer = await ask({type: 'count', token});
    assert.deepStrictEqual(answer.message || answer, {mine: expected, all: expected});
  }
  const db = perilune.open(process.env.PERILUNE_DB);
  assert.strictEqual(db.node('^qewdCheck', 'all').get(), 2);
  assert.ok([...db.names()].includes('^CacheTempEWDSession'), [...db.names()].join(' '));
  db.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
