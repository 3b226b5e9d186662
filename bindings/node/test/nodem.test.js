'use strict';
/*
 * The shapes of NodeM and of cache.node, by NodeM's documentation.
 */
const assert = require('node:assert');
const test = require('node:test');
const {newPath} = require('./support');
const {Ydb, Gtm} = require('../flavours/nodem');
const {Cache} = require('../flavours/cache');

const ydb = new Ydb();
ydb.open({perilune: {path: newPath(), durability: 'none'}});

test('open answers who it is', () => {
  const other = Gtm();
  assert.deepStrictEqual(other.open({perilune: {path: newPath()}}), {ok: true, pid: process.pid, tid: process.pid});
  assert.strictEqual(other.close(), undefined);
  assert.match(ydb.version(), /Perilune/);
});

test('by object', () => {
  const at = {global: 'p', subscripts: [1, 'name']};
  assert.deepStrictEqual(ydb.set({...at, data: 'Ada'}), {ok: true, ...at, data: 'Ada'});
  assert.deepStrictEqual(ydb.get(at), {ok: true, ...at, data: 'Ada', defined: true});
  assert.deepStrictEqual(ydb.get({global: 'p', subscripts: [2]}), {ok: true, global: 'p', subscripts: [2], data: '', defined: false});
  assert.deepStrictEqual(ydb.data({global: 'p'}), {ok: true, global: 'p', defined: 10});
  assert.deepStrictEqual(ydb.order({global: 'p', subscripts: ['']}), {ok: true, global: 'p', subscripts: [1], result: 1});
  assert.deepStrictEqual(ydb.nextNode({global: 'p'}), {ok: true, global: 'p', subscripts: [1, 'name'], data: 'Ada', defined: true});
  assert.deepStrictEqual(ydb.nextNode(at), {ok: true, ...at, defined: false});
  assert.deepStrictEqual(ydb.increment({global: 'n'}), {ok: true, global: 'n', data: 1});
  assert.deepStrictEqual(ydb.increment({global: 'n', increment: 1.5}), {ok: true, global: 'n', data: 2.5});
  assert.strictEqual(ydb.set({global: 'p', subscripts: [''], data: 1}).ok, false);
  assert.strictEqual(ydb.lock({global: 'p', timeout: 0}).result, true);
  assert.strictEqual(ydb.unlock({global: 'p'}).ok, true);
});

test('by position', () => {
  assert.strictEqual(ydb.set('^q', 'a', 5), true);
  assert.strictEqual(ydb.set('^q', 'b', '05'), true);
  assert.deepStrictEqual([ydb.get('^q', 'a'), ydb.get('^q', 'b'), ydb.get('^q', 'c')], [5, '05', '']);
  assert.deepStrictEqual([ydb.data('^q'), ydb.order('^q', ''), ydb.order('^q', 'b'), ydb.previous('^q', '')], [10, 'a', '', 'b']);
  assert.deepStrictEqual([ydb.nextNode('^q'), ydb.nextNode('^q', 'b'), ydb.previousNode('^q', 'b')], [['a'], [], ['a']]);
  assert.strictEqual(ydb.increment('^q', 'a', 2), 7);
  assert.strictEqual(ydb.kill('^q', 'a'), true);
  assert.strictEqual(ydb.data('^q', 'a'), 0);
  assert.throws(() => ydb.set('^q', '', 1), {code: 'INVALID'});
  assert.throws(() => ydb.set('^q', undefined), TypeError);
});

test('local names end with the session', () => {
  ydb.set('loc', 1, 'x');
  assert.deepStrictEqual([ydb.get('loc', 1), ydb.data('^loc')], ['x', 0]);
  assert.deepStrictEqual(ydb.get({local: 'loc', subscripts: [1]}), {ok: true, local: 'loc', subscripts: [1], data: 'x', defined: true});
  assert.deepStrictEqual(ydb.localDirectory(), ['loc']);
  ydb.kill();
  assert.deepStrictEqual(ydb.localDirectory(), []);
});

test('directories, merge, modes, callbacks', async () => {
  assert.deepStrictEqual(ydb.globalDirectory(), ['n', 'p', 'q']);
  assert.deepStrictEqual(ydb.globalDirectory({max: 1, lo: 'o'}), ['p']);
  assert.deepStrictEqual(ydb.globalDirectory({hi: 'o'}), ['n']);
  assert.strictEqual(ydb.merge({from: {global: 'p'}, to: {global: 'm', subscripts: ['x']}}).ok, true);
  assert.strictEqual(ydb.get('^m', 'x', 1, 'name'), 'Ada');
  ydb.configure({mode: 'string'});
  assert.strictEqual(ydb.get('^n'), '2.5');
  ydb.configure({mode: 'canonical'});
  assert.deepStrictEqual(await new Promise((done) => ydb.get('^n', (...answer) => done(answer))), [null, 2.5]);
  const [error] = await new Promise((done) => ydb.set('^n', '', 1, (...answer) => done(answer)));
  assert.strictEqual(error.code, 'INVALID');
  assert.strictEqual(ydb.function({function: 'x'}).ok, false);
});

test('transactions', () => {
  assert.strictEqual(ydb.transaction(() => ydb.set('^t', 1, 'kept')).ok, true);
  const rolled = ydb.transaction(() => {
    ydb.set('^t', 1, 'lost');
    return 'Rollback';
  });
  assert.deepStrictEqual([rolled.ok, rolled.statusCode, ydb.get('^t', 1)], [true, ydb.tpRollback, 'kept']);
  let runs = 0;
  ydb.transaction(() => (++runs < 3 ? ydb.tpRestart : undefined), {type: 'Batch'});
  assert.strictEqual(runs, 3);
  assert.throws(() => ydb.transaction(() => {
    ydb.set('^t', 1, 'lost');
    throw new Error('mine');
  }), /mine/);
  assert.strictEqual(ydb.get('^t', 1), 'kept');
});

test('cache.node', () => {
  const cache = new Cache();
  assert.deepStrictEqual(cache.open({path: '/opt/cache/mgr', perilune: {path: newPath()}}), {ok: 1, result: 1});
  const at = {global: 'c', subscripts: ['a', 1]};
  assert.strictEqual(cache.set({...at, data: 'x'}).ok, 1);
  assert.deepStrictEqual(cache.get(at), {ok: 1, ...at, data: 'x', defined: 1});
  assert.strictEqual(cache.data({global: 'c'}).defined, 10);
  assert.strictEqual(cache.next({global: 'c', subscripts: ['']}).result, 'a');
  assert.deepStrictEqual(cache.next_node({global: 'c'}).subscripts, ['a', '1']);
  assert.strictEqual(cache.next_node(at).defined, 0);
  assert.strictEqual(cache.increment({global: 'n', subscripts: [], increment: 2}).data, '2');
  assert.strictEqual(cache.lock({...at, timeout: 0}).result, '1');
  assert.strictEqual(cache.unlock(at).ok, 1);
  assert.deepStrictEqual(cache.global_directory(), ['c', 'n']);
  assert.strictEqual(cache.kill(at).ok, 1);
  assert.strictEqual(cache.get({global: 'c', subscripts: ['']}).defined, 0);
  const failed = cache.set({global: 'c', subscripts: [''], data: 1});
  assert.deepStrictEqual([failed.ok, failed.ErrorCode], [0, 'INVALID']);
  cache.close();
  assert.strictEqual(cache.get(at).ok, 0);
});
