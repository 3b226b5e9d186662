'use strict';
/*
 * Large documents of JSON and XML: what is put comes back, or it is an error with a code and nothing of it is there; and
 * what it takes of memory grows with the document, and is given back.
 *
 * The long form (PERILUNE_LONG=1, `make node-long`) has documents of 100 MB.
 */
const assert = require('node:assert');
const {test} = require('node:test');
const {isLong, newPath} = require('./support');
const perilune = require('..');
const {document} = require('../documents');
const {dom} = require('../dom');

const MIB = 1024 * 1024;
const SIZE = (isLong ? 100 : 1) * MIB;
/* The limit of a transaction in seconds: what it is without one, or so long that no machine reaches it. */
const LIMIT = isLong ? 10 : 300;
/* Bytes of memory for a byte of the document, and what everything takes without one. */
const TIMES = 40;
const OWN = 500 * MIB;

/* What `put` does: 'whole' if `fetched` is what it should be; else the code of a typed error that left nothing behind. */
function outcome(node, put, fetched) {
  try {
    put();
  } catch (error) {
    assert.match(String(error.code), /^[A-Z_]+$/, `${error.stack}`);
    assert.strictEqual(node.data(), 0, `${error.code} has left something`);
    return error.code;
  }
  assert.ok(fetched(), 'another document has come back');
  return 'whole';
}

/* Runs `work` and tells what it took. */
function measured(t, name, work) {
  const began = process.hrtime.bigint();
  const said = work();
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  const rss = process.resourceUsage().maxRSS * 1024;
  t.diagnostic(`${name}: ${said}, ${seconds.toFixed(1)} s, at most ${(rss / MIB).toFixed(0)} MiB`);
  assert.ok(rss < OWN + TIMES * SIZE, `${(rss / MIB).toFixed(0)} MiB for ${SIZE / MIB}`);
  return said;
}

const COUNT = Math.floor(SIZE / 100);
const record = (_, i) => ({id: i, name: `name of number ${i}`, tags: ['one', 'two'], n: i / 7});
const element = (_, i) => `<one id="n${i}" kind="record"><name>name of ${i}</name></one>`;
/* An object as text, whatever the order of its properties. */
const sorted = (one) => JSON.stringify(Object.entries(one).sort());
/* A transaction that takes too long is told so, which in the short form none does. */
const allowed = (said) => assert.ok(['whole', ...(isLong ? ['TRANSACTION_TIMEOUT'] : [])].includes(said), said);

test('a large document of JSON', (t) => {
  const db = perilune.open(newPath(), {durability: 'none'});
  const doc = document(db.node('^many'));
  const many = Array.from({length: COUNT}, record);
  allowed(measured(t, 'many properties', () => outcome(doc.place, () => db.transaction(() => doc.put(many), {timeout: LIMIT}), () => {
    const back = doc.fetch();
    return back.length === many.length && back.every((one, i) => sorted(one) === sorted(many[i]));
  })));
  const long = document(db.node('^long'));
  const text = 'é'.repeat(SIZE / 2);
  const said = measured(t, 'one long text', () => outcome(long.place, () => long.put({text}), () => long.fetch().text === text));
  assert.strictEqual(said, 'whole');
  db.close();
});

test('a large document of XML', (t) => {
  const db = perilune.open(newPath(), {durability: 'none'});
  const doc = dom(db.node('^xml'));
  const xml = `<all>${Array.from({length: COUNT}, element).join('')}</all>`;
  const parse = () => db.transaction(() => doc.parse(xml), {timeout: LIMIT});
  allowed(measured(t, 'many elements', () => outcome(doc.place, parse, () => doc.output() === xml)));
  const long = dom(db.node('^text'));
  const text = `<a>${'x'.repeat(SIZE)}</a>`;
  const said = measured(t, 'one long text', () => outcome(long.place, () => long.parse(text), () => long.output() === text));
  assert.strictEqual(said, 'whole');
  db.close();
});
