'use strict';
/*
 * Documents, lists and key/value stores: values in and out, the nodes between, and what is refused.
 */
const assert = require('node:assert');
const {execFileSync} = require('child_process');
const fs = require('fs');
const path = require('path');
const {test} = require('node:test');
const {directory, newPath, thrown} = require('./support');
const perilune = require('..');
const {document} = require('../documents');
const {list} = require('../lists');
const {keyvalue} = require('../keyvalue');
const models = require('../models');

function opened() {
  return perilune.open(newPath(), {durability: 'none'});
}

test('documents come back as they were put', () => {
  const db = opened();
  const doc = document(db.node('^people', 'ada'));
  assert.strictEqual(doc.fetch(), undefined);
  const values = [null, true, 0, -1.5, '', 'text', [], {}, [[], {}, null], {0: 'a', 1: 'b'}, {a: {'': 1}, '01': [false]}];
  for (const value of values) {
    doc.put(value, {replace: true});
    assert.deepStrictEqual(doc.fetch(), value);
  }
  doc.put({name: 'Ada', likes: ['numbers'], at: {town: 'London'}}, {replace: true});
  doc.put({at: {street: 'St James'}, gone: undefined});
  doc.patch({born: 1815, at: {town: null}});
  assert.deepStrictEqual(doc.fetch(), {name: 'Ada', born: 1815, likes: ['numbers'], at: {street: 'St James'}});
  assert.strictEqual(db.node('^people', 'ada', 'likes', 0).get(), 'numbers');
  assert.deepStrictEqual(doc.children({from: 'b', to: 'l', reverse: true}), ['likes', 'born']);
  assert.deepStrictEqual(doc.leaves()[2], [['likes', 0], 'numbers']);
  assert.strictEqual(doc.count(), 4);
  assert.strictEqual(doc.update((all) => ({...all, born: all.born + 1})).born, 1816);
  assert.strictEqual(doc.fetch().born, 1816);
  doc.update(() => undefined);
  assert.strictEqual(doc.fetch(), undefined);
  db.close();
});

test('each pair of first elements', () => {
  const db = opened();
  for (const [written, read] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
    document(db.node('^d', written), {first: written}).put({list: ['a', 'b']});
    const want = written === read ? ['a', 'b'] : {[written]: 'a', [written + 1]: 'b'};
    assert.deepStrictEqual(document(db.node('^d', written)).fetch({first: read}), {list: want});
  }
  db.close();
});

test('lists', () => {
  const db = opened();
  const queue = list(db.node('^l'));
  assert.deepStrictEqual([queue.rpush({a: 1}), queue.rpush({a: 2}), queue.lpush({a: 3})], [1, 2, 3]);
  assert.deepStrictEqual([queue.insert_before(1, {a: 4}), queue.insert_before(9, {a: 4})], [4, undefined]);
  assert.deepStrictEqual(queue.lrange(), [{a: 3}, {a: 4}, {a: 1}, {a: 2}]);
  assert.deepStrictEqual(queue.lrange(-2), [{a: 1}, {a: 2}]);
  assert.deepStrictEqual([queue.lpop(), queue.rpop(), queue.count(), queue.find_no(-1)], [{a: 3}, {a: 2}, 2, 1]);
  assert.deepStrictEqual([queue.check(), queue.ltrim(0, 0), queue.lrange()], [[], true, [{a: 4}]]);
  assert.deepStrictEqual([queue.rpop(), queue.rpop(), db.node('^l').data()], [{a: 4}, undefined, 0]);
  db.close();
});

test('key/value stores', () => {
  const db = opened();
  const people = keyvalue(db.node('^kv'));
  people.addIndex('town', 'toLowerCase');
  assert.deepStrictEqual([people.add('key_1', {town: 'Redhill'}), people.add('key_1', {})], [true, false]);
  assert.deepStrictEqual(people.get_by_index('town', 'redhill'), ['key_1']);
  assert.deepStrictEqual(people.get_by_index('town', 'redhill', true), {key_1: {town: 'Redhill'}});
  assert.deepStrictEqual([people.edit('key_1', {town: 'Oslo'}), people.get_by_index('town', 'redhill')], [true, []]);
  assert.deepStrictEqual([people.getIndices(), people.check(), people.get_by_key('x')], [['town'], [], undefined]);
  assert.deepStrictEqual([people.delete('key_1'), people.delete('key_1')], [true, false]);
  people.deleteIndex('town');
  people.reindex();
  assert.strictEqual(people.get_by_index('town', 'oslo'), undefined);
  db.close();
});

test('integers of 64 bits are exact', () => {
  const db = opened();
  const doc = document(db.node('^d'));
  const max = 2n ** 63n - 1n;
  const values = [
    max, -max - 1n, 2n ** 53n, -(2n ** 53n), Number.MAX_SAFE_INTEGER, 1234567890123456, 1e300, 0.12345678901234567,
    '#', '##', '#5', '9223372036854775807', `"\\\\"${max},`, '\\', {'#a': '#b', '##': [max, '#1'], 9007199254740993: 1}, [max, [max]],
  ];
  for (const value of values) {
    doc.put(value, {replace: true});
    assert.deepStrictEqual(doc.fetch(), value);
    doc.put({a: value, n: max}, {replace: true});
    assert.deepStrictEqual(doc.fetch(), {a: value, n: max});
  }
  doc.put([5n, -0n], {replace: true});
  assert.deepStrictEqual([doc.fetch(), doc.leaves()], [[5, 0], [[[0], 5], [[1], 0]]]);
  doc.put({n: max}, {replace: true});
  assert.strictEqual(db.node('^d', 'n').get(), max);
  assert.strictEqual(doc.update((one) => ({n: one.n - 1n})).n, max - 1n);
  assert.strictEqual(db.node('^d', 'n').get(), max - 1n);
  db.close();
});

test('patterns', () => {
  const db = opened();
  const staff = models.records(db.node('^staff'));
  assert.strictEqual(staff.add_index(['role', 'office']), 'by_role_and_office');
  assert.deepStrictEqual([staff.insert({role: 'p', office: 'L'}), staff.insert({role: 'p', office: 'M', n: 2n ** 60n})], [1, 2]);
  assert.deepStrictEqual(staff.find('by_role_and_office', ['p']), [1, 2]);
  assert.deepStrictEqual(staff.find('by_role_and_office', ['p'], 'M', undefined, true), [[2, {role: 'p', office: 'M', n: 2n ** 60n}]]);
  assert.deepStrictEqual([staff.edit(1, {role: null}), staff.get(1), staff.get(9), staff.check()], [true, {office: 'L'}, undefined, []]);
  const names = models.set(db.node('^names'));
  assert.deepStrictEqual([names.add('b'), names.add(5), names.add('b'), names.members()], [true, true, false, [5, 'b']]);
  const hash = models.hash(db.node('^hash'));
  assert.deepStrictEqual([hash.put('a', 1.5), hash.get('a'), hash.get('b')], [true, 1.5, undefined]);
  assert.deepStrictEqual([hash.increment('a', 2), hash.all()], [3.5, {a: 3.5}]);
  const table = models.columns(db.node('^table'));
  table.put(2, {state: 'NY', name: 'George'});
  assert.deepStrictEqual([table.find('state', 'NY'), table.row(2), table.row(3)], [[2], {name: 'George', state: 'NY'}, undefined]);
  const shop = models.relations(db.node('^DATABASE'));
  shop.table('CUSTOMER', ['customer']);
  shop.table('ORDERS', ['order'], 'CUSTOMER');
  assert.throws(() => shop.insert('ORDERS', {order: 1, customer: 9}), {code: 'INVALID', message: /insert it first/});
  assert.deepStrictEqual([shop.insert('CUSTOMER', {customer: 9}), shop.insert('ORDERS', {order: 1, customer: 9})], [true, true]);
  assert.deepStrictEqual(shop.children('CUSTOMER', [9], 'ORDERS'), [{customer: 9, order: 1}]);
  const network = models.network(db.node('^net'));
  const [rob, john] = [network.add_node({name: 'Rob'}), network.add_node({name: 'John'})];
  assert.deepStrictEqual([network.add_edge('knows', rob, john), network.neighbours(rob), network.get_edge(1)],
    [1, [2], {type: 'knows', from: 1, to: 2, properties: {}}]);
  assert.throws(() => db.transaction(() => {
    network.delete_node(rob);
    staff.delete(1);
    throw new RangeError('no');
  }), RangeError);
  assert.deepStrictEqual([network.check(), network.edges('knows'), staff.count()], [[], [1], 2]);
  for (const bad of [() => staff.insert({a: [1]}), () => staff.insert(undefined), () => names.add(NaN), () => names.add({}),
    () => names.add(''), () => hash.put('a', null), () => staff.get(1, 2), () => models.set('^x')]) assert.match(thrown(bad), /INVALID/);
  db.close();
});

test('what is declared of models is there', () => {
  const {membersOf} = require('../docs/reference');
  const titles = {Set: 'SetModel', Hash: 'Hash', Records: 'Records', Columns: 'Columns', Relations: 'Relations', Network: 'Network'};
  for (const [title, declared] of Object.entries(titles)) {
    const own = Object.getOwnPropertyNames(models[title].prototype).filter((name) => name !== 'constructor');
    assert.deepStrictEqual(own.sort(), membersOf(declared).sort());
  }
});

test('calls are parts of the transaction that is open', () => {
  const db = opened();
  assert.throws(() => db.transaction(() => {
    document(db.node('^d')).put({a: 1});
    list(db.node('^l')).rpush({a: 1});
    throw new RangeError('no');
  }), RangeError);
  assert.deepStrictEqual([db.node('^d').data(), db.node('^l').data()], [0, 0]);
  db.close();
});

test('what JSON cannot say, and wrong arguments, are errors that change nothing', () => {
  const db = opened();
  const doc = document(db.node('^d'));
  const circle = {};
  circle.circle = circle;
  let deep = [];
  for (let i = 0; i < 10_000; i++) deep = [deep];
  const bad = [undefined, NaN, Infinity, () => 1, Symbol('s'), 2n ** 63n, -(2n ** 63n) - 1n, [undefined], {a: {b: NaN}}, circle];
  for (const value of bad) assert.strictEqual(thrown(() => doc.put(value)), 'TypeError INVALID');
  for (const value of [deep, '\ud800', {['n'.repeat(2000)]: 1}]) assert.notStrictEqual(thrown(() => doc.put(value)), 'nothing');
  assert.strictEqual(thrown(() => doc.put({}, {frist: 1})), 'TypeError INVALID');
  assert.strictEqual(thrown(() => doc.put({}, {first: 'x'})), 'INVALID');
  assert.strictEqual(thrown(() => document('^d')), 'TypeError INVALID');
  assert.strictEqual(thrown(() => list(db.node('^d')).find_no({})), 'TypeError INVALID');
  assert.throws(() => keyvalue(db.node('^d')).addIndex('a', 'shout'), /toLowerCase/);
  assert.strictEqual(db.node('^d').data(), 0);
  db.close();
  assert.strictEqual(thrown(() => doc.fetch()), 'CLOSED');
});

test('the guide\'s program prints what it says', () => {
  const guide = fs.readFileSync(path.join(__dirname, '../../../docs/guide/documents.md'), 'utf8');
  const [, code] = /```js\n(.*?)```/s.exec(guide);
  fs.mkdirSync(path.join(directory, 'node_modules'));
  fs.symlinkSync(path.join(__dirname, '..'), path.join(directory, 'node_modules', 'perilune'));
  fs.writeFileSync(path.join(directory, 'program.js'), code);
  const printed = execFileSync(process.execPath, ['program.js'], {cwd: directory, encoding: 'utf8', timeout: 60000});
  const said = [...code.matchAll(/\/\/--> (.*)$/gm)].map(([, text]) => text);
  assert.deepStrictEqual(printed.trimEnd().split('\n'), said);
});
