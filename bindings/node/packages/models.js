'use strict';
/*
 * Documents, lists and key/value stores beside QEWD-JSdb's own: each writes, the other reads.
 */
const assert = require('node:assert');
const DocumentStore = require('ewd-document-store');
const perilune = require('perilune');
const {document} = require('perilune/documents');
const {list} = require('perilune/lists');
const {keyvalue} = require('perilune/keyvalue');
const Wrapper = require('qewd-mg-dbx-napi');

const TEXTS = {typed: false};
const PERSON = {name: 'Ada', likes: ['numbers', 'engines'], at: {town: 'London', yes: true, no: 12}};

const jsdb = new Wrapper({database: {type: 'YottaDB', release: 'r1.30', architecture: 'x86'}});
assert.strictEqual(jsdb.open().status, '');
const store = new DocumentStore(jsdb);
const db = perilune.open(process.env.PERILUNE_DB);

/* Documents. */
document(db.node('^ours'), TEXTS).put(PERSON);
assert.deepStrictEqual(store.use('ours').getDocument(true), PERSON);
store.use('theirs').setDocument(PERSON);
assert.deepStrictEqual(document(db.node('^theirs'), TEXTS).fetch(), PERSON);
const paths = (name) => document(db.node(name)).leaves().map(([path]) => path);
assert.deepStrictEqual(paths('^theirs'), paths('^ours'));
const names = [];
store.use('ours').forEachChild({prefix: 'l'}, (name) => {
  names.push(name);
});
assert.deepStrictEqual(document(db.node('^ours')).children({prefix: 'l'}), names);
/* Typed, JSdb sees the texts of values. */
document(db.node('^typed')).put({yes: true, none: null, list: [1, 'two'], 0: 'zero'});
assert.deepStrictEqual(store.use('typed').getDocument(true), {0: 'zero', list: [1, 'two'], none: 'null', yes: true});

/* Lists: pushed and popped by both in turn. */
const theirs = store.use('queue', 'q');
theirs.enable_list();
const ours = list(db.node('^queue', 'q'), TEXTS);
assert.strictEqual(ours.rpush({a: 1}), 1);
assert.strictEqual(theirs.list.rpush({a: 2}), 2);
assert.strictEqual(ours.lpush({a: 3}), 3);
assert.strictEqual(theirs.list.lpush({a: 4}), 4);
assert.strictEqual(ours.insert_before(2, {a: 5}), 5);
assert.deepStrictEqual(ours.lrange(), [4, 3, 5, 1, 2].map((a) => ({a})));
assert.deepStrictEqual(theirs.list.lrange(0, -1, true), ours.lrange());
assert.deepStrictEqual([ours.check(), theirs.list.count(), ours.count()], [[], 5, 5]);
assert.deepStrictEqual([theirs.list.lpop(), ours.lpop(), theirs.list.rpop(), ours.rpop()], [4, 3, 2, 1].map((a) => ({a})));
assert.deepStrictEqual([ours.check(), theirs.list.lpop(), ours.count(), theirs.exists], [[], {a: 5}, 0, false]);

/* Key/value: added, edited and deleted by both in turn. */
const people = store.use('kvs', ['both']);
people.enable_kvs();
const mine = keyvalue(db.node('^kvs', 'both'), TEXTS);
mine.addIndex('town', 'toLowerCase');
assert.strictEqual(mine.add('key_1', {town: 'Redhill', n: 7}), true);
assert.strictEqual(people.kvs.add('key_2', {town: 'Oslo', n: 7}), true);
people.kvs.addIndex('n');
mine.reindex();
assert.deepStrictEqual(people.kvs.get_by_index('n', 7), ['key_1', 'key_2']);
assert.deepStrictEqual(mine.get_by_index('n', 7), ['key_1', 'key_2']);
assert.strictEqual(people.kvs.edit('key_1', {town: 'Paris', n: 8}), true);
assert.strictEqual(mine.edit('key_2', {town: 'Rome', n: 9}), true);
assert.deepStrictEqual(mine.check(), []);
assert.deepStrictEqual(people.kvs.get_by_index('town', 'rome', true), mine.get_by_index('town', 'rome', true));
assert.deepStrictEqual([people.kvs.delete('key_2'), mine.delete('key_1'), mine.check()], [true, true, []]);

/* A typed truth value is in the index where JSdb looks for it. */
mine.addIndex('yes');
keyvalue(db.node('^kvs', 'both')).add('key_3', {yes: true});
const again = store.use('kvs', ['both']);
again.enable_kvs();
assert.deepStrictEqual(again.kvs.get_by_index('yes', 'true'), ['key_3']);
assert.deepStrictEqual([again.kvs.delete('key_3'), mine.check()], [true, []]);

db.close();
jsdb.close();
console.log('documents, lists and stores of either are read by the other');
