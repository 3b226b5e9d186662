'use strict';
/*
 * Cursors: each kind of step, both directions, ends, what is written ahead.
 */
const assert = require('node:assert');
const test = require('node:test');
const {connection} = require('./support');
const {mglobal, mcursor} = require('../flavours/mg-dbx-napi');
const {dbx} = require('../flavours/mg-dbx');

const db = connection();
const g = new mglobal(db, 'tree');
for (const path of [['a'], ['a', 1], ['a', 1, 'x'], ['b', 2], ['c']]) g.set(...path, path.join('-'));
new mglobal(db, 'other').set('x', 1);

function all(cursor, step = 'next') {
  const found = [];
  for (let one; (one = cursor[step]()) !== null;) found.push(one);
  return found;
}

test('subscripts of one level, from a seed, both ways', () => {
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree'})), ['a', 'b', 'c']);
  assert.deepStrictEqual(all(new mcursor(db, {global: '^tree', key: ['']}, {}), 'previous'), ['c', 'b', 'a']);
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['a']})), ['b', 'c']);
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['a', '']})), ['1']);
  const data = [{key: 'a', data: 'a'}, {key: 'b', data: ''}, {key: 'c', data: 'c'}];
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['']}, {getdata: true})), data);
});

test('after its end a cursor of one level begins again', () => {
  const cursor = new mcursor(db, {global: 'tree', key: ['']});
  assert.deepStrictEqual([all(cursor), all(cursor)], [['a', 'b', 'c'], ['a', 'b', 'c']]);
});

test('directions may be mixed', () => {
  const cursor = new mcursor(db, {global: 'tree', key: ['']});
  const steps = ['next', 'next', 'previous', 'next', 'next', 'previous', 'previous'].map((step) => cursor[step]());
  assert.deepStrictEqual(steps, ['a', 'b', 'a', 'b', 'c', 'b', 'a']);
});

test('all levels: nodes with a value, beyond the subtree, and the end stays', () => {
  const keys = [['a'], ['a', '1'], ['a', '1', 'x'], ['b', '2'], ['c']];
  const cursor = new mcursor(db, {global: 'tree'}, {multilevel: true});
  assert.deepStrictEqual(all(cursor), keys.map((key) => ({key})));
  assert.strictEqual(cursor.next(), null);
  const options = {multilevel: true, getdata: true};
  const shown = keys.map((key) => ({key, data: key.join('-')}));
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: []}, options)), shown);
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['']}, options), 'previous'), shown.slice().reverse());
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['a', 1]}, options)), shown.slice(2));
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['b', '']}, options)), shown.slice(3));
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['b', '']}, options), 'previous'),
    shown.slice(0, 4).reverse());
});

test('the value of the global itself is not answered', () => {
  g.set('own');
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree'}, {multilevel: true})).length, 5);
  assert.deepStrictEqual(all(new mcursor(db, {global: 'tree', key: ['']}, {multilevel: true}), 'previous').length, 5);
});

test('more than seven subscripts', () => {
  const deep = new mglobal(db, 'deep');
  const key = Array.from({length: 40}, (_, i) => `s${i}`);
  deep.set(...key, 'v');
  deep.set(...key, 'more', 'w');
  const found = all(new mcursor(db, {global: 'deep'}, {multilevel: true, getdata: true}));
  assert.deepStrictEqual(found, [{key, data: 'v'}, {key: [...key, 'more'], data: 'w'}]);
});

test('what is written and deleted ahead is seen', () => {
  const w = new mglobal(db, 'ahead');
  for (let i = 1; i <= 5; i++) w.set(i, i);
  for (const options of [{}, {getdata: true}, {multilevel: true}]) {
    const cursor = new mcursor(db, {global: 'ahead', key: ['']}, options);
    const seen = [];
    for (let one; (one = cursor.next()) !== null;) {
      const key = typeof one === 'string' ? one : String(one.key);
      seen.push(key);
      if (key === '2') w.delete(3);
      if (key === '4') w.set(4.5, 'new');
    }
    assert.deepStrictEqual(seen, ['1', '2', '4', '4.5', '5']);
    w.delete(4.5);
    w.set(3, 3);
  }
});

test('a cursor lives on when the transaction of its steps has ended', () => {
  const cursor = new mcursor(db, {global: 'ahead', key: ['']}, {getdata: true});
  db.tstart();
  const inside = [cursor.next(), cursor.next(), cursor.next()].map((one) => one.key);
  db.tcommit();
  assert.deepStrictEqual([...inside, cursor.next().key, cursor.next().key, cursor.next()], ['1', '2', '3', '4', '5', null]);
});

test('hundreds of cursors under way at once', () => {
  const options = [{getdata: true}, {multilevel: true}, {batch: 1}, {}];
  const cursors = Array.from({length: 400}, (_, i) => new mcursor(db, {global: 'ahead', key: ['']}, options[i % 4]));
  const keyOf = (one) => (Array.isArray(one) ? one[0] : one.key ? String(one.key) : one);
  for (let i = 1; i <= 5; i++) {
    for (const cursor of cursors) assert.strictEqual(keyOf(cursor.next()), String(i));
  }
  for (const cursor of cursors) assert.strictEqual(cursor.next(), null);
});

test('names with their ^', () => {
  const names = all(new mcursor(db, {global: ''}, {globaldirectory: true}));
  assert.deepStrictEqual(names, ['^ahead', '^deep', '^other', '^tree']);
  assert.deepStrictEqual(all(new mcursor(db, {global: 'deep'}, {globaldirectory: true})), ['^other', '^tree']);
  assert.deepStrictEqual(all(new mcursor(db, {global: ''}, {globaldirectory: true}), 'previous'), names.slice().reverse());
});

test('batches', () => {
  const b = new mglobal(db, 'batch');
  const expected = [];
  for (let i = 1; i <= 500; i++) {
    b.set(i, `value ${i}`);
    expected.push({key: String(i), data: `value ${i}`});
  }
  b.set('é', 'ü€');
  b.set('tree', 'below', 'x');
  expected.push({key: 'tree', data: ''}, {key: 'é', data: 'ü€'});
  const found = all(new mcursor(db, {global: 'batch'}, {getdata: true, batch: 64}));
  assert.ok(found.length < 10);
  assert.deepStrictEqual(found.flat(), expected);
  const keys = all(new mcursor(db, {global: 'batch', key: [490]}, {batch: 1000})).flat();
  assert.deepStrictEqual(keys, expected.slice(490).map(({key}) => key));
  const back = all(new mcursor(db, {global: 'batch', key: [3]}, {batch: 10}), 'previous').flat();
  assert.deepStrictEqual(back, ['2', '1']);
});

test('the format url of mg-dbx', () => {
  const old = new dbx();
  old.open({perilune: {path: db.namespace(), durability: 'none'}});
  const cursor = (key, options) => old.mglobalquery({global: 'tree', key}, {format: 'url', ...options}).next();
  assert.strictEqual(cursor([''], {getdata: true}), 'key=a&data=a');
  assert.strictEqual(cursor(['a', 1], {multilevel: true, getdata: true}), 'key1=a&key2=1&key3=x&data=a-1-x');
  old.mglobal('tree', 'u r l').set('50% é');
  assert.strictEqual(cursor(['c'], {getdata: true}), 'key=u%20r%20l&data=50%25%20%C3%A9');
  old.close();
});

test('a cursor after its database was closed', () => {
  const other = connection();
  new mglobal(other, 'x').set(1, 1);
  const cursor = new mcursor(other, {global: 'x', key: ['']}, {getdata: true});
  cursor.next();
  other.close();
  assert.throws(() => cursor.next(), {code: 'CLOSED'});
});
