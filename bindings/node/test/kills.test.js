'use strict';
/*
 * Processes that end anyhow: killed, by process.exit, by an exception; those that go on find the database whole.
 */
const assert = require('node:assert');
const {spawn} = require('child_process');
const test = require('node:test');
const {connection, isLong, newPath} = require('./support');
const perilune = require('..');
const {mglobal} = require('../flavours/mg-dbx-napi');

function start(place, code) {
  const head = `
    const {server, mglobal} = require(${JSON.stringify(require.resolve('../flavours/mg-dbx-napi'))});
    const db = new server();
    db.open({perilune: {path: ${JSON.stringify(place)}, durability: 'none'}});
    const g = new mglobal(db, 'k');
  `;
  return spawn(process.execPath, ['-e', head + code], {stdio: ['ignore', 'pipe', 'ignore']});
}

const ended = (child) => new Promise((resolve) => child.once('close', (code, signal) => resolve(signal || code)));

test('kill -9 in the midst of work', async () => {
  const place = newPath();
  const db = connection({}, place);
  const g = new mglobal(db, 'k');
  for (let i = 0; i < (isLong ? 50 : 3); i++) {
    const child = start(place, `
      console.log('runs');
      for (let i = 0; ; i++) {
        g.lock('l', 0);
        db.tstart(); g.set('x', i); g.set('y', i); db.tcommit();
        g.unlock('l');
      }
    `);
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    const end = ended(child);
    child.kill('SIGKILL');
    assert.strictEqual(await end, 'SIGKILL');
    assert.strictEqual(g.lock('l', 5), '1');
    assert.strictEqual(g.get('x'), g.get('y'), 'all or nothing');
    g.unlock('l');
  }
  const whole = perilune.open(place, {durability: 'none'});
  assert.strictEqual(whole.verify(), '');
  whole.close();
  db.close();
});

test('exit without close, and an exception that nobody catches', async () => {
  const place = newPath();
  assert.strictEqual(await ended(start(place, 'g.set("a", 1); db.tstart(); g.set("b", 1); process.exit(3);')), 3);
  assert.strictEqual(await ended(start(place, 'g.set("c", 1); throw new Error("nobody");')), 1);
  assert.strictEqual(await ended(start(place, 'g.set("d", 1); g.lock("d", 0);')), 0);
  assert.strictEqual(await ended(start(place, 'g.lock("e", 5, () => process.exit(7));')), 7);
  const db = connection({}, place);
  const g = new mglobal(db, 'k');
  assert.deepStrictEqual(['a', 'b', 'c', 'd'].map((key) => g.get(key)), ['1', '', '1', '1']);
  assert.strictEqual(g.lock('d', 0), '1');
  db.close();
});
