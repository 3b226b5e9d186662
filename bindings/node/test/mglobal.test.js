'use strict';
/*
 * The table of mglobal: what each call answers, as mg-dbx-napi does.
 */
const assert = require('node:assert');
const test = require('node:test');
const {connection, thrown} = require('./support');
const {mglobal} = require('../flavours/mg-dbx-napi');

const db = connection();

test('every call answers a string', () => {
  const g = new mglobal(db, 'calls');
  assert.strictEqual(g.set('a', 'one'), '0');
  assert.strictEqual(g.set('own value'), '0');
  assert.strictEqual(g.get(), 'own value');
  assert.strictEqual(g.get('a'), 'one');
  assert.strictEqual(g.get('none'), '');
  assert.strictEqual(g.get('a', 'below'), '');
  g.set('b', 1, 'x');
  assert.deepStrictEqual([g.defined('a'), g.defined('b'), g.defined('none'), g.defined()], ['1', '10', '0', '11']);
  assert.strictEqual(g.delete('none'), '0');
  assert.strictEqual(g.delete('b'), '0');
  assert.strictEqual(g.defined('b', 1), '0');
  assert.strictEqual(g.delete(), '0');
  assert.strictEqual(g.defined(), '0');
});

test('next and previous begin and end with an empty string', () => {
  const g = new mglobal(db, 'order');
  for (const key of [2, 10, 'a', 'b', -1.5]) g.set('list', key, 'v');
  const forwards = [];
  for (let key = ''; (key = g.next('list', key)) !== '';) forwards.push(key);
  assert.deepStrictEqual(forwards, ['-1.5', '2', '10', 'a', 'b']);
  assert.strictEqual(g.previous('list', ''), 'b');
  assert.strictEqual(g.next('list', 5), '10', 'the seed need not exist');
  assert.strictEqual(g.previous('list', 5), '2');
  assert.strictEqual(g.next('none', ''), '');
});

test('increment counts as M does', () => {
  const g = new mglobal(db, 'counts');
  assert.strictEqual(g.increment('x', 1), '1');
  assert.strictEqual(g.increment('x', 1.5), '2.5');
  assert.strictEqual(g.increment('x', -3), '-.5');
  g.set('text', '7 dwarfs');
  assert.strictEqual(g.increment('text', '2 more'), '9');
  g.set('none', 'abc');
  assert.strictEqual(g.increment('none', 1), '1');
});

test('fixed subscripts are put in front, and reset', () => {
  const g = new mglobal(db, 'fixed', 'a', 1);
  g.set('x', 'deep');
  assert.strictEqual(new mglobal(db, '^fixed').get('a', 1, 'x'), 'deep');
  g.reset('fixed', 'a');
  assert.strictEqual(g.get(1, 'x'), 'deep');
  assert.strictEqual(db.get('fixed', 'a', 1, 'x'), 'deep');
  assert.strictEqual(db.next('fixed', ''), 'a');
});

test('merge writes over and deletes nothing', () => {
  const from = new mglobal(db, 'from', 'sub');
  const to = new mglobal(db, 'to');
  from.set('a', 1);
  from.set('b', 'c', 2);
  to.set('under', 'a', 'old');
  to.set('under', 'kept', 'yes');
  assert.strictEqual(to.merge('under', from), '0');
  assert.deepStrictEqual([to.get('under', 'a'), to.get('under', 'b', 'c'), to.get('under', 'kept')], ['1', '2', 'yes']);
  assert.strictEqual(to.merge(from, 'b'), '0');
  assert.strictEqual(to.get('c'), '2');
  assert.strictEqual(thrown(() => to.merge('under', new mglobal(db, 'to'))), 'OVERLAP');
  assert.strictEqual(thrown(() => to.merge('under')), 'TypeError INVALID');
});

test('an empty subscript is a seed and names nothing', () => {
  const g = new mglobal(db, 'empty');
  for (const call of [() => g.set('', 1), () => g.set('a', '', 1), () => g.increment('', 1), () => g.lock('', 0)]) {
    assert.strictEqual(thrown(call), 'INVALID');
  }
  assert.deepStrictEqual([g.get(''), g.defined(''), g.delete('')], ['', '0', '0']);
});

test('locks are counted and answer texts', () => {
  const g = new mglobal(db, 'locks');
  assert.strictEqual(g.lock('a', 0), '1');
  assert.strictEqual(g.lock('a', -1), '1');
  assert.strictEqual(g.unlock('a'), '1');
  assert.strictEqual(g.unlock('a'), '1');
  assert.strictEqual(g.unlock('a'), '1', 'also when it is not held');
  assert.strictEqual(thrown(() => g.lock('a', NaN)), 'TypeError INVALID');
});

test('children are read and written in one call', () => {
  const g = new mglobal(db, 'children');
  const nodes = [{key: 'a', data: 1}, , {key: ['b', 2], data: 'x'}]; // eslint-disable-line no-sparse-arrays
  assert.strictEqual(g.setchildnodes('k', nodes), '');
  assert.deepStrictEqual(g.getchildnodes('k'), ['a', 'b']);
  assert.deepStrictEqual(g.getchildnodes('k', {}), ['a', 'b'], 'empty options are options');
  assert.deepStrictEqual(g.getchildnodes('k', {getdata: true}), [{key: 'a', data: '1'}, {key: 'b'}]);
  assert.deepStrictEqual(g.getchildnodes('k', {max: 1}), ['a']);
  assert.deepStrictEqual(g.getchildnodes('k', {start: 'b', end: 'b'}), ['b']);
  g.setchildnodes('n', ['zero', 'one', 'two'], {numerickeys: true, lock: true});
  g.delete('n', 1);
  assert.deepStrictEqual(g.getchildnodes('n', {numerickeys: true}), ['zero'], 'ends at the first that is missing');
  g.setchildnodes('n', ['a', 'b'], {numerickeys: true, each: true});
  assert.deepStrictEqual(g.getchildnodes('n', {numerickeys: true}), ['a', 'b', 'two']);
  assert.strictEqual(thrown(() => g.setchildnodes('k', [{key: 'c', data: undefined}])), 'TypeError INVALID');
  assert.strictEqual(thrown(() => g.setchildnodes('k', [{key: 'c', data: 1}, {key: 'd', data: {}}])), 'TypeError INVALID');
  assert.strictEqual(g.defined('k', 'c'), '0', 'all or nothing');
});

test('more objects than the table has room for', () => {
  const objects = [];
  for (let i = 0; i < 10000; i++) objects.push(new mglobal(db, 'many', i));
  for (const g of objects) g.set('v', g.fixed[0]);
  for (const g of objects) assert.strictEqual(g.get('v'), String(g.fixed[0]));
});
