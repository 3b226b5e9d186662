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
/* Limits of a transaction in seconds: what it is without one, which 100 MB may reach, and one that no machine reaches. */
const LIMITS = isLong ? [10, 900] : [300];
/* Bytes of memory for a byte of the document, and what everything takes without one. */
const TIMES = 60;
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
/* A transaction that takes too long is told so, which with the last limit none does. */
const allowed = (said, limit) => assert.ok(['whole', ...(limit === LIMITS.at(-1) ? [] : ['TRANSACTION_TIMEOUT'])].includes(said), said);

/* Puts a document with each limit, into a place of its own. */
function withEachLimit(t, name, at, {put, fetched}) {
  for (const limit of LIMITS) {
    const {db} = at(limit).place;
    const within = (seconds, work) => db.transaction(() => work(at(limit)), {timeout: seconds});
    const said = measured(t, `${name}, ${limit} s`, () => outcome(at(limit).place, () => within(limit, (one) => put(one, limit)),
      () => within(LIMITS.at(-1), (one) => fetched(one, limit))));
    allowed(said, limit);
  }
}

test('a large document of JSON', (t) => {
  const db = perilune.open(newPath(), {durability: 'none'});
  const many = Array.from({length: COUNT}, record);
  withEachLimit(t, 'many properties', (limit) => document(db.node('^many', limit)), {
    put: (doc) => doc.put(many),
    fetched(doc) {
      const back = doc.fetch();
      return back.length === many.length && back.every((one, i) => sorted(one) === sorted(many[i]));
    },
  });
  const long = document(db.node('^long'));
  const text = 'é'.repeat(SIZE / 2);
  const said = measured(t, 'one long text', () => outcome(long.place, () => long.put({text}), () => long.fetch().text === text));
  assert.strictEqual(said, 'whole');
  db.close();
});

test('a large document of XML', (t) => {
  const db = perilune.open(newPath(), {durability: 'none'});
  const all = (count) => `<all>${Array.from({length: count}, element).join('')}</all>`;
  const [xml, less] = [all(COUNT), all(COUNT / 8)];
  /* Until its transaction is committed, a document of elements takes 150 times its size: 100 MB have room in 16 GB. */
  const given = (limit) => (isLong && limit === LIMITS.at(-1) ? less : xml);
  withEachLimit(t, 'many elements', (limit) => dom(db.node('^xml', limit)), {
    put: (doc, limit) => doc.parse(given(limit)),
    fetched: (doc, limit) => doc.output() === given(limit),
  });
  const long = dom(db.node('^text'));
  const text = `<a>${'x'.repeat(SIZE)}</a>`;
  const said = measured(t, 'one long text', () => outcome(long.place, () => long.parse(text), () => long.output() === text));
  assert.strictEqual(said, 'whole');
  db.close();
});
