'use strict';
/*
 * Worker threads: counts that are exact, workers ended at any moment, waits that end with their worker.
 *
 * The long form (PERILUNE_LONG=1) takes 8 workers x 100,000 increments and ends 200 of them.
 */
const assert = require('node:assert');
const test = require('node:test');
const {Worker} = require('worker_threads');
const {connection, isLong, newPath} = require('./support');
const {mglobal} = require('../flavours/mg-dbx-napi');

const flavour = require.resolve('../flavours/mg-dbx-napi');
const native = require.resolve('..');

function start(code, workerData) {
  const head = `
    const {parentPort, workerData} = require('worker_threads');
    const {server, mglobal, mcursor} = require(${JSON.stringify(flavour)});
    const db = new server();
    db.open({perilune: {path: workerData.place, durability: 'none'}});
    const g = new mglobal(db, 'w');
  `;
  return new Worker(head + code, {eval: true, workerData});
}

const exit = (worker) => new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject));

test('workers count together, exactly', async () => {
  const place = newPath();
  const each = isLong ? 100000 : 2000;
  const workers = Array.from({length: 8}, (_, i) => start(`
    for (let i = 0; i < workerData.each; i++) { g.increment('all', 1); g.set(workerData.i, i, i); }
    db.close();
  `, {place, each, i}));
  await Promise.all(workers.map(exit));
  const db = connection({}, place);
  assert.strictEqual(new mglobal(db, 'w').get('all'), String(8 * each));
  assert.strictEqual(new mglobal(db, 'w').get(7, each - 1), String(each - 1));
  db.close();
});

test('a worker may be ended at any moment', async () => {
  const place = newPath();
  const times = isLong ? 200 : 12;
  const db = connection({}, place);
  const g = new mglobal(db, 'w');
  for (let i = 0; i < times; i++) {
    const worker = start(`
      parentPort.postMessage('runs');
      for (let i = 0; ; i++) {
        g.increment('n', 1);
        if (i % 7 === 0) { db.tstart(); g.set(i % 100, 'x'.repeat(i % 3000)); g.get(i % 50); try { db.tcommit(); } catch {} }
        if (i % 11 === 0) new mcursor(db, {global: 'w'}, {multilevel: true, getdata: true}).next();
        if (i % 26 === 0) { g.lock('l', 0); } else if (i % 13 === 0) { g.unlock('l'); }
      }
    `, {place});
    await new Promise((resolve) => worker.once('message', resolve));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    await worker.terminate();
    assert.strictEqual(g.set('free', i), '0', 'no page is held');
    assert.strictEqual(g.lock('l', 0), '1', 'no lock is held');
    g.unlock('l');
  }
  assert.ok(Number(g.get('n')) > 0);
  const perilune = require('..');
  const whole = perilune.open(place, {durability: 'none'});
  assert.strictEqual(whole.verify(), '');
  whole.close();
  db.close();
});

test('waits end with their worker', async () => {
  const place = newPath();
  const db = connection({}, place);
  const g = new mglobal(db, 'w');
  g.lock('held', 0);
  const waits = [
    'parentPort.postMessage(1); g.lock("held", -1);',
    'g.lock("held", -1, () => {}); parentPort.postMessage(1);',
    `const p = require(${JSON.stringify(native)}).open(workerData.place); p.receive("none"); parentPort.postMessage(1);`,
    `const p = require(${JSON.stringify(native)}).open(workerData.place); p.node("^w").watch(); parentPort.postMessage(1);`,
  ];
  for (const code of waits) {
    const worker = start(code, {place});
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
  }
  g.unlock('held');
  assert.strictEqual(g.lock('held', 5), '1', 'who waited has not got it');
  db.close();
});

test('a worker that ends without closing leaves nothing', async () => {
  const place = newPath();
  const db = connection({}, place);
  const g = new mglobal(db, 'w');
  const worker = start('g.set("a", 1); g.lock("a", 0); db.tstart(); g.set("b", 1);', {place});
  await exit(worker);
  assert.deepStrictEqual([g.get('a'), g.get('b'), g.lock('a', 0)], ['1', '', '1']);
  db.close();
});
