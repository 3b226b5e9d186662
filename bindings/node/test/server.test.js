'use strict';
/*
 * The connection: opening, closing, errors, callbacks, transactions. Traps are numbered as programs meet them.
 */
const assert = require('node:assert');
const fs = require('fs');
const path = require('path');
const test = require('node:test');
const {connection, directory, newPath, thrown} = require('./support');
const {server, mglobal, mclass, mcursor} = require('../flavours/mg-dbx-napi');
const {dbx} = require('../flavours/mg-dbx');

test('open answers an empty string, close 1, and again', () => {
  const db = new server();
  assert.strictEqual(db.open({type: 'YottaDB', perilune: {path: newPath()}}), '');
  assert.strictEqual(db.close(), '1');
  assert.strictEqual(db.close(), '1');
});

test('close works as a method of another object', () => {
  const db = connection();
  const wrapper = {close: db.close};
  assert.strictEqual(wrapper.close(), '1');
  assert.strictEqual(thrown(() => new mglobal(db, 'x').get('a')), 'CLOSED');
});

test('which database is opened', () => {
  const given = newPath();
  const open = (options) => {
    const db = new server();
    db.open(options);
    const where = db.namespace();
    db.close();
    return where;
  };
  assert.strictEqual(open({type: 'YottaDB', path: '/usr/local/lib/yottadb/r138'}), path.join(directory, 'perilune/default.db'));
  assert.strictEqual(open({path: given}), given);
  const odd = path.join(directory, 'without-suffix');
  fs.copyFileSync(given, odd);
  assert.strictEqual(open({type: 'BDB', db_file: odd}), odd, 'a database of ours, whatever its name');
  process.env.PERILUNE_DB = newPath();
  assert.strictEqual(open({path: given}), process.env.PERILUNE_DB);
  assert.strictEqual(open({path: given, perilune: {path: given}}), given);
  delete process.env.PERILUNE_DB;
});

test('versions have the parts that wrappers split off', () => {
  const db = new dbx();
  assert.strictEqual(db.version().split(';').length, 3);
  assert.match(new server().version(), /^Perilune \d/);
});

test('errors are thrown, or kept', () => {
  const db = connection();
  assert.strictEqual(db.geterrormessage(), '');
  const quiet = connection({dberror_exceptions: false});
  const g = new mglobal(quiet, 'x');
  assert.strictEqual(g.set('', 1), '');
  assert.match(quiet.geterrormessage(), /empty subscript/);
  assert.strictEqual(g.set('a', 1), '0');
  assert.strictEqual(quiet.geterrormessage(), '');
  assert.strictEqual(g.get('none'), '');
  assert.strictEqual(quiet.geterrormessage(), '', 'nothing is no error');
  assert.strictEqual(thrown(() => g.set('a', undefined)), 'TypeError INVALID', 'wrong types always throw');
  const failed = new server();
  assert.match(failed.open({dberror_exceptions: false, perilune: {path: '/nowhere/at/all.db'}}), /nowhere/);
  assert.strictEqual(thrown(() => failed.open({perilune: {path: '/nowhere/at/all.db'}})), 'CANNOT_OPEN');
  assert.strictEqual(thrown(() => failed.open({perilune: {durability: 'always'}})), 'TypeError INVALID');
});

test('a function as the last argument', async () => {
  const db = connection();
  const g = new mglobal(db, 'x');
  const call = (work) => new Promise((resolve) => {
    assert.strictEqual(work((...answer) => resolve(answer)), null);
  });
  assert.deepStrictEqual(await call((cb) => g.set('a', 1, cb)), [false, '0']);
  assert.deepStrictEqual(await call((cb) => g.get('a', cb)), [false, '1']);
  assert.deepStrictEqual(await call((cb) => g.get(cb)), [false, '']);
  assert.deepStrictEqual(await call((cb) => g.defined('a', cb)), [false, '1']);
  assert.deepStrictEqual(await call((cb) => g.increment('a', 1, cb)), [false, '2']);
  assert.deepStrictEqual(await call((cb) => g.lock('a', 1, cb)), [false, '1']);
  assert.deepStrictEqual(await call((cb) => g.getchildnodes(cb)), [false, ['a']]);
  const [failed, text] = await call((cb) => g.set('', 1, cb));
  assert.strictEqual(failed, true);
  assert.match(text, /empty/);
  assert.deepStrictEqual(await call((cb) => db.close(cb)), [false, '1']);
  const again = new server();
  assert.deepStrictEqual(await call((cb) => again.open({perilune: {path: newPath()}}, cb)), [false, '']);
  again.close();
});

test('a lock is waited for beside the event loop', async () => {
  const place = newPath();
  const db = connection({}, place);
  const {Worker} = require('worker_threads');
  const worker = new Worker(`
    const {parentPort, workerData} = require('worker_threads');
    const {server, mglobal} = require(workerData.flavour);
    const db = new server();
    db.open({perilune: {path: workerData.place}});
    const g = new mglobal(db, 'l');
    parentPort.postMessage(g.lock(1, 0));
    parentPort.once('message', () => { parentPort.postMessage(g.unlock(1)); db.close(); });
  `, {eval: true, workerData: {place, flavour: require.resolve('../flavours/mg-dbx-napi')}});
  const gone = new Promise((resolve) => worker.once('exit', resolve));
  const said = () => new Promise((resolve) => worker.once('message', resolve));
  assert.strictEqual(await said(), '1');
  const g = new mglobal(db, 'l');
  assert.strictEqual(g.lock(1, 0), '0', 'workers exclude each other');
  let turns = 0;
  const turning = setInterval(() => turns++, 1);
  const got = new Promise((resolve) => g.lock(1, -1, (error, result) => resolve([error, result])));
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.ok(turns > 0, 'the event loop runs on');
  worker.postMessage('go');
  assert.deepStrictEqual(await got, [false, '1']);
  clearInterval(turning);
  assert.strictEqual(g.unlock(1), '1');
  await gone;
  db.close();
});

test('transactions in pieces', () => {
  const db = connection();
  const g = new mglobal(db, 'tx');
  assert.deepStrictEqual([db.tlevel(), db.tstart(), db.tlevel(), db.tstart(), db.tlevel()], ['0', '0', '1', '0', '2']);
  g.set('a', 1);
  assert.deepStrictEqual([db.tcommit(), db.tlevel(), db.tcommit(), db.tlevel()], ['0', '1', '0', '0']);
  db.tstart();
  db.tstart();
  g.set('a', 2);
  assert.deepStrictEqual([db.trollback(), db.tlevel(), g.get('a')], ['0', '0', '1'], 'all levels');
  assert.strictEqual(thrown(() => db.trollback()), 'TRANSACTION_STATE');
  assert.strictEqual(thrown(() => db.tcommit()), 'TRANSACTION_STATE');
  assert.strictEqual(thrown(() => db.tstart(() => 1)), 'TypeError INVALID');
  const old = new dbx();
  old.open({perilune: {path: newPath()}});
  assert.deepStrictEqual([old.tstart(), old.tlevel(), old.tcommit(), old.tlevel()], [0, 1, 0, 0]);
  old.close();
});

test('a conflict is an error with its code; exclusive transactions have none', () => {
  const place = newPath();
  const db = connection({}, place);
  /* Other options: another session of this process. */
  const rival = new server();
  rival.open({perilune: {path: place}});
  const g = new mglobal(db, 'c');
  const r = new mglobal(rival, 'c');
  g.set(1, 'old');
  db.tstart();
  g.get(1);
  r.set(1, 'new');
  assert.strictEqual(thrown(() => {
    g.set(2, 'x');
    db.tcommit();
  }), 'CONFLICT');
  assert.deepStrictEqual([db.tlevel(), g.get(2)], ['0', '']);
  const alone = new server();
  alone.open({transactions: 'exclusive', perilune: {path: place, durability: 'periodic'}});
  const a = new mglobal(alone, 'c');
  alone.tstart();
  a.set(3, a.get(1));
  assert.strictEqual(alone.tcommit(), '0');
  assert.strictEqual(r.get(3), 'new');
  for (const one of [db, rival, alone]) one.close();
});

test('functions of our own stand in for routines', async () => {
  const db = connection();
  assert.strictEqual(thrown(() => db.function('sum^math', 1, 2)), 'INVALID');
  db.registerFunction('sum^math', (a, b) => a + b);
  assert.strictEqual(db.function('sum^math', 1, 2), '3');
  assert.deepStrictEqual(await new Promise((done) => db.function('sum^math', 2, 2, (...answer) => done(answer))), [false, '4']);
  for (const call of [() => db.sql('x'), () => db.classmethod('x'), () => new mclass(db), () => new mcursor(db, {sql: 'x'}).next()]) {
    assert.strictEqual(thrown(call), 'INVALID');
  }
});

test('what takes no effect is accepted', () => {
  const db = connection();
  db.settimeout(5);
  db.setloglevel('x');
  db.logmessage('a', 'b');
  db.sleep(1);
  assert.strictEqual(db.settimeout(7), '7');
});
