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
const SIZE = (isLong ? 100 : 2) * MIB;
/* Bytes of memory for a byte of the document, and what everything takes without one. */
const TIMES = 40;
const OWN = 300 * MIB;

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

const records = () => Array.from({length: SIZE / 100}, (_, i) => ({id: i, name: `name of number ${i}`, tags: ['one', 'two'], n: i / 7}));
/* What the limits of the reference allow: a transaction that takes too long is told so. */
const allowed = (said) => assert.ok(['whole', 'TRANSACTION_TIMEOUT'].includes(said), said);

test('a large document of JSON', (t) => {
  const db = perilune.open(newPath(), {durability: 'none'});
  const doc = document(db.node('^many'));
  const many = records();
  allowed(measured(t, 'many properties', () => outcome(doc.place, () => doc.put(many), () => {
    const back = doc.fetch();
    return back.length === many.length && back.every((one, i) => JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(many[i]).sort()));
  })));
  const long = document(db.node('^long'));
  const text = 'é'.repeat(SIZE / 2);
  assert.strictEqual(measured(t, 'one long text', () => outcome(long.place, () => long.put({text}), () => long.fetch().text === text)), 'whole');
  db.close();
});

test('a large document of XML', (t) => {
  const db = perilune.open(newPath(), {durability: 'none'});
  const doc = dom(db.node('^xml'));
  const xml = `<all>${Array.from({length: SIZE / 100}, (_, i) => `<one id="n${i}" kind="record"><name>name of ${i}</name></one>`).join('')}</all>`;
  allowed(measured(t, 'many elements', () => outcome(doc.place, () => doc.parse(xml), () => doc.output() === xml)));
  const long = dom(db.node('^text'));
  const text = `<a>${'x'.repeat(SIZE)}</a>`;
  assert.strictEqual(measured(t, 'one long text', () => outcome(long.place, () => long.parse(text), () => long.output() === text)), 'whole');
  db.close();
});
