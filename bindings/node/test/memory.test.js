'use strict';
/*
 * Objects cost nothing that must be given back: memory stays as it is over millions of them.
 *
 * The long form (PERILUNE_LONG=1) makes and drops 10 million.
 */
const assert = require('node:assert');
const test = require('node:test');
const {connection, isLong} = require('./support');
const perilune = require('..');
const {mglobal, mcursor} = require('../flavours/mg-dbx-napi');

const MIB = 1024 * 1024;

test('globals and cursors are collected by JavaScript alone', () => {
  const db = connection();
  const root = new mglobal(db, 'm');
  for (let i = 0; i < 100; i++) root.set(i, 'value');
  const round = (count) => {
    for (let i = 0; i < count; i++) {
      const g = new mglobal(db, 'm', i % 1000);
      if (i % 10 === 0) g.get();
      if (i % 50 === 0) {
        const cursor = new mcursor(db, {global: 'm', key: ['']}, {getdata: true});
        cursor.next();
        cursor.next();
        cursor.next();
      }
    }
  };
  const count = isLong ? 10e6 : 300e3;
  round(count / 10);
  if (global.gc) global.gc();
  const before = process.memoryUsage().rss;
  round(count);
  if (global.gc) global.gc();
  const grown = (process.memoryUsage().rss - before) / MIB;
  assert.ok(grown < 100, `${grown.toFixed(0)} MiB more after ${count} objects`);
  db.close();
});

test('databases are opened and closed without end', () => {
  const place = require('./support').newPath();
  perilune.open(place).close();
  const keep = perilune.open(place, {durability: 'none'});
  const before = process.memoryUsage().rss;
  for (let i = 0; i < (isLong ? 20000 : 500); i++) {
    const db = perilune.open(place);
    db.node('^x', i % 10).set(i);
    db.snapshot().close();
    db.close();
  }
  const grown = (process.memoryUsage().rss - before) / MIB;
  assert.ok(grown < 60, `${grown.toFixed(0)} MiB more`);
  keep.close();
});
