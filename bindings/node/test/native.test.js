'use strict';
/*
 * The native interface: typed values, nodes, walks, transactions, snapshots, watches, channels.
 */
const assert = require('node:assert');
const fs = require('node:fs');
const test = require('node:test');
const {newPath, thrown} = require('./support');
const perilune = require('..');

const place = newPath();
const db = perilune.open(place, {durability: 'none'});
const collect = (walk) => [...walk].map(([at, value]) => [at instanceof perilune.Node ? String(at) : at, value]);

test('values keep their type', () => {
  const n = db.node('^types');
  const values = ['text', '', 0, -1, 2 ** 53 - 1, 0.5, 1e300, true, false, null, perilune.EMPTY_LIST, perilune.EMPTY_MAP,
    9007199254740993n, -9223372036854775808n];
  for (const value of values) {
    n.set('v', value);
    assert.strictEqual(n.get('v'), value);
  }
  assert.strictEqual(n.get('none'), undefined);
  n.set('v', Buffer.from([255, 0]));
  assert.deepStrictEqual(n.getBytes('v'), Buffer.from([255, 0]));
  assert.strictEqual(n.getBytes('none'), undefined);
  for (const bad of [undefined, {}, [], () => 1, Symbol('x'), NaN, Infinity]) {
    assert.strictEqual(thrown(() => n.set('v', bad)), 'TypeError INVALID');
  }
  n.set('', 'an empty subscript');
  assert.strictEqual(n.get(''), 'an empty subscript');
});

test('nodes are addresses', () => {
  const n = db.node('^person', 21);
  assert.strictEqual(String(n.node('name')), '^person(21,"name")');
  assert.deepStrictEqual([n.key, n.parent.key, n.parent.parent, n.node('x').subscripts], [21, '^person', undefined, [21, 'x']]);
  assert.strictEqual(thrown(() => db.node('no name').get()), 'INVALID_NAME');
  assert.strictEqual(thrown(() => db.node(5)), 'TypeError INVALID');
  const local = db.node('private');
  local.set('x', 1);
  assert.deepStrictEqual([local.get('x'), [...db.names({local: true})]], [1, ['private']]);
});

test('reading, writing, counting', () => {
  const n = db.node('^rw');
  n.set('a', 1);
  n.set('a', 'b', 2);
  assert.deepStrictEqual([n.data('a'), n.data('x'), n.data()], [11, 0, 10]);
  assert.deepStrictEqual([n.incr('a', 0.1), n.incr('a', -1), n.node('c').incr()], [1.1, 0.1, 1]);
  n.set('t', 'abc');
  assert.strictEqual(thrown(() => n.incr('t', 1)), 'NOT_A_NUMBER');
  assert.deepStrictEqual([n.delete('a'), n.delete('a'), n.data('a')], [true, false, 10]);
  n.kill('a');
  assert.strictEqual(n.data('a'), 0);
  const c = n.node('cas');
  assert.deepStrictEqual([c.compareAndSet(undefined, 1), c.compareAndSet(2, 3), c.compareAndSet(1, undefined), c.get()],
    [true, false, true, undefined]);
});

test('batches', () => {
  const n = db.node('^many');
  n.setMany([['a', 1], [['b', 2], 'x'], ['c', null]]);
  assert.deepStrictEqual(n.getMany(['a', ['b', 2], 'none', 'c']), [1, 'x', undefined, null]);
  n.setMany(Array.from({length: 1000}, (_, i) => [i, i]), {each: true});
  assert.strictEqual(n.count(), 1003);
  assert.strictEqual(n.count('nodes'), 1003);
  assert.strictEqual(thrown(() => n.setMany([['z', 1], ['y', {}]])), 'TypeError INVALID');
  assert.strictEqual(n.get('z'), undefined);
});

test('walks', () => {
  const n = db.node('^walk');
  for (const [key, value] of [[1, 'one'], [2.5, true], ['a', 'x']]) n.set(key, value);
  n.set('tree', 'deep', 5);
  const children = [[1, 'one'], [2.5, true], ['a', 'x'], ['tree', undefined]];
  assert.deepStrictEqual(collect(n.children()), children);
  assert.deepStrictEqual(collect(n), children);
  assert.deepStrictEqual(collect(n.children({reverse: true})), children.slice().reverse());
  assert.deepStrictEqual([...n.keys({after: 1, to: 'a'})], [2.5, 'a']);
  assert.deepStrictEqual([...n.keys({from: 1, before: 'a'})], [1, 2.5]);
  assert.deepStrictEqual([n.next(), n.next(1), n.next('tree'), n.previous(), n.previous(1)], [1, 2.5, undefined, 'tree', undefined]);
  assert.deepStrictEqual(collect(n.nodes()).pop(), ['^walk("tree","deep")', 5]);
  assert.deepStrictEqual(collect(n.nodes({reverse: true}))[0], ['^walk("tree","deep")', 5]);
  for (const key of n.keys()) if (key === 1) break;
  n.copy(db.node('^copy'));
  assert.deepStrictEqual(collect(db.node('^copy')), children);
  assert.ok([...db.names()].includes('^copy'));
});

test('transactions run again by themselves', () => {
  const other = perilune.open(place, {durability: 'periodic'});
  const n = db.node('^tx');
  n.set(0);
  let runs = 0;
  const result = db.transaction((tx) => {
    const seen = n.get();
    assert.strictEqual(tx.restarts, runs);
    if (runs++ < 2) other.node('^tx').incr(10);
    n.set(seen + 1);
    return 'done';
  });
  assert.deepStrictEqual([result, runs, n.get()], ['done', 3, 21]);
  assert.strictEqual(db.transaction((tx) => {
    n.set(0);
    tx.rollback('value');
  }), 'value');
  assert.throws(() => db.transaction(() => {
    n.set(0);
    throw new RangeError('mine');
  }), RangeError);
  assert.strictEqual(n.get(), 21);
  other.close();
});

test('nested levels fail alone; a restart reaches the outermost', () => {
  const n = db.node('^levels');
  let runs = 0;
  db.transaction((outer) => {
    n.set('outer', 1);
    assert.throws(() => db.transaction(() => {
      n.set('inner', 1);
      throw new Error('inner');
    }), /inner/);
    assert.strictEqual(outer.level, 1);
    db.transaction((tx) => {
      if (runs++ < 2) tx.restart();
      n.set('last', 1);
    });
  });
  assert.deepStrictEqual([n.get('outer'), n.get('inner'), n.get('last'), runs], [1, undefined, 1, 3]);
});

test('a transaction is synchronous', async () => {
  const n = db.node('^async');
  assert.strictEqual(thrown(() => db.transaction(async () => {
    n.set(1);
    await null;
    n.set(2);
  })), 'INVALID');
  assert.strictEqual(n.get(), undefined);
  await new Promise((done) => setImmediate(done));
  n.delete();
  assert.strictEqual(thrown(() => db.transaction(() => Promise.reject(new Error('unheard')))), 'INVALID');
  assert.strictEqual(thrown(() => db.transaction(() => n.set(1), {readOnly: true})), 'READ_ONLY');
  assert.strictEqual(thrown(() => db.transaction(() => {
    throw Object.assign(new Error(), {status: -2});
  }, {timeout: 0.05})), 'TRANSACTION_TIMEOUT');
  assert.strictEqual(db.transaction(() => 5, {exclusive: true, durability: 'fsync'}), 5);
  let runs = 0;
  assert.strictEqual(thrown(() => db.transaction((tx) => {
    runs++;
    tx.restart();
  }, {exclusive: 'never'})), 'CONFLICT');
  assert.strictEqual(runs, 3);
  assert.strictEqual(db.transaction(() => 6, {exclusive: 'never'}), 6);
  assert.strictEqual(thrown(() => db.transaction(() => 7, {exclusive: 'x'})), 'TypeError INVALID');
});

test('a snapshot stays as it was', () => {
  const n = db.node('^snap');
  n.set('old');
  const snapshot = db.snapshot();
  n.set('new');
  assert.strictEqual(snapshot.node('^snap').get(), 'old');
  assert.strictEqual(thrown(() => snapshot.node('^snap').set(1)), 'READ_ONLY');
  assert.strictEqual(snapshot.path, place);
  snapshot.close();
  assert.strictEqual(thrown(() => snapshot.node('^snap').get()), 'CLOSED');
});

test('a thread that waits takes no signal of the program', async () => {
  const watch = db.node('^signals').watch();
  const waited = watch.wait();
  const blocked = () => fs.readdirSync('/proc/self/task').map((task) => {
    const path = `/proc/self/task/${task}/status`;
    const status = fs.existsSync(path) ? fs.readFileSync(path, 'latin1') : '';
    return /^Name:\tperilune-wait$/m.test(status) && BigInt('0x' + /^SigBlk:\t(\w+)$/m.exec(status)[1]);
  }).filter((mask) => mask !== false);
  while (blocked().length === 0) await new Promise((done) => setImmediate(done));
  for (const mask of blocked()) {
    assert.strictEqual(mask >> 14n & 1n, 1n, 'SIGTERM');
    assert.strictEqual(mask >> 10n & 1n, 0n, 'SIGSEGV');
  }
  db.node('^signals', 1).set('x');
  assert.strictEqual(await waited, true);
  watch.close();
});

test('a watch notices what others write', async () => {
  const other = perilune.open(place, {durability: 'periodic'});
  const n = db.node('^watched');
  const watch = n.watch();
  assert.strictEqual(await watch.wait({timeout: 0.01}), false);
  other.node('^watched', 1).set('x');
  assert.strictEqual(await watch.wait(), true);
  const seen = [];
  const loop = (async () => {
    for await (const touched of watch) seen.push(touched);
  })();
  other.node('^watched', 2).set('y');
  while (seen.length === 0) await new Promise((done) => setImmediate(done));
  watch.close();
  await loop;
  await assert.rejects(watch.wait(), {code: 'CLOSED'});
  other.close();
});

test('messages', async () => {
  db.createChannel('jobs', {messages: 2});
  const first = db.receive('jobs');
  assert.strictEqual(db.post('jobs', 'hällo'), 1);
  const {text, number, missed} = await first;
  assert.deepStrictEqual([text, number, missed], ['hällo', 1, 0]);
  assert.strictEqual(await db.receive('jobs', {timeout: 0.01}), undefined);
  db.transaction(() => assert.strictEqual(db.post('jobs', Buffer.from([255])), 0));
  assert.deepStrictEqual((await db.follow('jobs', 0)).body, Buffer.from([255]));
  assert.deepStrictEqual((await db.receive('jobs')).body, Buffer.from([255]));
  db.post('jobs', '1');
  db.post('jobs', '2');
  assert.strictEqual(thrown(() => db.post('jobs', '3')), 'CHANNEL_FULL');
  assert.strictEqual(thrown(() => db.post('jobs', 5)), 'TypeError INVALID');
  assert.strictEqual(db.removeChannel('jobs'), true);
  const abort = new AbortController();
  const waiting = db.receive('nothing', {signal: abort.signal});
  abort.abort();
  await assert.rejects(waiting, {name: 'AbortError'});
});

test('locks, also as promises', async () => {
  const n = db.node('^lock', 1);
  assert.deepStrictEqual([n.lock(), n.lock(), n.lockCount(), n.unlock(), n.unlock(), n.unlock()], [true, true, 2, true, true, false]);
  const other = perilune.open(place, {durability: 'periodic'});
  assert.strictEqual(other.node('^lock').lock(), true);
  assert.strictEqual(n.lock(), false);
  assert.strictEqual(await n.lockAsync({timeout: 0.01}), false);
  const got = n.lockAsync();
  other.unlockAll();
  assert.strictEqual(await got, true);
  assert.deepStrictEqual([n.lockCount(), other.node('^lock').lock()], [1, false]);
  db.unlockAll();
  other.close();
});

test('about the file; and after closing', async () => {
  assert.strictEqual(db.path, place);
  assert.ok(typeof db.stat() === 'object' && db.verify() === '');
  assert.strictEqual(db.checkpoint(), true);
  const one = perilune.open(newPath());
  const n = one.node('^x');
  n.set(1);
  const waiting = one.receive('never');
  const watch = n.watch();
  const touched = watch.wait();
  one.close();
  one.close();
  await assert.rejects(waiting, {code: 'CLOSED'});
  await assert.rejects(touched, {code: 'CLOSED'});
  for (const call of [() => n.get(), () => one.node('^y').set(1), () => one.stat(), () => one.transaction(() => 1), () => one.snapshot(),
    () => [...n.children()], () => one.post('x', 'y')]) {
    assert.strictEqual(thrown(call), 'CLOSED');
  }
  assert.strictEqual(thrown(() => perilune.open(5)), 'TypeError INVALID');
  assert.strictEqual(thrown(() => perilune.open(newPath(), {colour: 'red'})), 'TypeError INVALID');
  assert.strictEqual(thrown(() => perilune.open('a\0b')), 'INVALID');
  const many = [];
  assert.strictEqual(thrown(() => {
    for (let i = 0; i < 100; i++) many.push(db.snapshot());
  }), 'LIMIT_REACHED');
  many.forEach((snapshot) => snapshot.close());
});

test('the names of the module for importers', async () => {
  const imported = await import('../index.mjs');
  assert.strictEqual(imported.open, perilune.open);
  assert.strictEqual(imported.EMPTY_LIST, perilune.EMPTY_LIST);
  for (const flavour of ['mg-dbx-napi', 'mg-dbx', 'nodem', 'cache']) {
    const names = await import(`../flavours/${flavour}.mjs`);
    const {default: all, ...named} = names;
    assert.deepStrictEqual(Object.keys(named).sort(), Object.keys(all).sort());
  }
});

test.after(() => db.close());
