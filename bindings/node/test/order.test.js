'use strict';
/*
 * One order in three forms, relational, index and document, in one transaction: all there, or none; and the whole of it for
 * every flavour, since they are the same nodes.
 */
const assert = require('node:assert');
const test = require('node:test');
const {newPath} = require('./support');
const perilune = require('..');
const {server, mglobal} = require('../flavours/mg-dbx-napi');
const {Ydb} = require('../flavours/nodem');

const place = newPath();
const db = perilune.open(place, {durability: 'none'});

function insert(order, fails) {
  db.transaction(() => {
    const row = db.node('^order', order.id);
    row.setMany([['customer', order.customer], ['total', order.total]]);
    db.node('^orderBy').set('customer', order.customer, order.id, true);
    const document = db.node('^orderDoc', order.id);
    order.lines.forEach(({item, n}, i) => document.setMany([[['lines', i, 'item'], item], [['lines', i, 'n'], n]]));
    if (fails) throw new Error('no stock');
  });
}

test('one order in three forms, rolled back and written', () => {
  const order = {id: 7, customer: 'Ada', total: 12.5, lines: [{item: 'gears', n: 3}, {item: 'cards', n: 2}]};
  assert.throws(() => insert(order, true), /no stock/);
  assert.deepStrictEqual([...db.names()], []);
  insert(order, false);
  const other = new server();
  other.open({perilune: {path: place}});
  assert.strictEqual(new mglobal(other, 'order', 7).get('total'), '12.5');
  assert.strictEqual(new mglobal(other, 'orderBy').next('customer', 'Ada', ''), '7');
  const ydb = new Ydb();
  ydb.open({perilune: {path: place, durability: 'none'}});
  assert.strictEqual(ydb.get('^orderDoc', 7, 'lines', 1, 'item'), 'cards');
  assert.deepStrictEqual(ydb.nextNode('^orderDoc'), [7, 'lines', 0, 'item']);
  ydb.close();
  other.close();
  db.close();
});
