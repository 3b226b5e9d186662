'use strict';
/*
 * What goes in and comes out: Unicode, numbers, bytes; and what may not go in.
 */
const assert = require('node:assert');
const test = require('node:test');
const {connection, thrown} = require('./support');
const {mglobal} = require('../flavours/mg-dbx-napi');

const db = connection();
const g = new mglobal(db, 'values');

test('Unicode is kept, in values and in subscripts', () => {
  for (const text of ['é', '€', '日本語', '😀 and more', 'a\u0000b', '', 'x'.repeat(1000), '€'.repeat(70000)]) {
    g.set('t', text);
    assert.strictEqual(g.get('t'), text);
    if (text !== '' && text.length < 100) {
      g.set('s', text, 'there');
      assert.strictEqual(g.get('s', text), 'there');
    }
  }
  assert.strictEqual(g.next('s', 'z'), 'é');
  g.set('lone', 'a\ud800b');
  assert.strictEqual(g.get('lone'), 'a\ufffdb'.normalize());
});

test('strings of every length near the end of what there is for them', () => {
  for (let size = 65200; size < 65560; size += 7) {
    const text = 'é'.repeat(size / 2) + 'x';
    g.set('a subscript', 'before', text);
    assert.strictEqual(g.get('a subscript', 'before'), text);
  }
});

test('numbers come back as JavaScript printed them', () => {
  for (const number of [0, -0, 1, -1, 0.5, 1.5, 1e21, 1e-7, 2 ** 53, -(2 ** 53), 123456789.125, 5e-324, 1.7976931348623157e308]) {
    g.set('n', number);
    assert.strictEqual(g.get('n'), String(number));
  }
  g.set('n', 12345678901234567890n);
  assert.strictEqual(g.get('n'), '12345678901234567890');
  g.set('b', true);
  assert.strictEqual(g.get('b'), 'true');
});

test('numbers as subscripts are numbers, and texts are what they say', () => {
  const n = new mglobal(db, 'subscripts');
  n.set(0.5, 'half');
  assert.deepStrictEqual([n.get('.5'), n.get('0.5'), n.next('')], ['half', '', '.5']);
  n.set('0.5', 'text');
  n.set('007', 'bond');
  n.set(-0, 'zero');
  assert.deepStrictEqual([n.get('0.5'), n.get(7), n.get('007'), n.get(0), n.get('0')], ['text', '', 'bond', 'zero', 'zero']);
  n.set(5.0, 'five');
  assert.strictEqual(n.get('5'), 'five');
  assert.deepStrictEqual([n.next('5'), n.next('0.5')], ['0.5', '007']);
});

test('bytes go in and come out', () => {
  const bytes = Buffer.from([0, 255, 128, 7]);
  g.set('bytes', bytes);
  assert.deepStrictEqual(g.get_bx('bytes'), bytes);
  g.set('bytes', new Uint8Array(bytes));
  assert.deepStrictEqual(g.get_bx('bytes'), bytes);
  assert.strictEqual(g.get_bx('none').length, 0);
});

test('charset says how bytes are strings', () => {
  const other = connection();
  const o = new mglobal(other, 'o');
  assert.strictEqual(other.charset('klingon'), 'utf-8');
  assert.strictEqual(other.charset('binary'), 'binary');
  o.set('x', 'é\u00ff');
  assert.deepStrictEqual(o.get_bx('x'), Buffer.from([0xe9, 0xff]));
  assert.strictEqual(o.get('x'), 'é\u00ff');
  assert.strictEqual(other.charset('utf-8'), 'utf-8');
  assert.strictEqual(o.get('x').length, 2);
  other.close();
});

test('what is no value is a TypeError that names the argument', () => {
  const bad = [undefined, null, {}, [], Symbol('s'), NaN, Infinity, -Infinity];
  assert.throws(() => g.set('a', () => 1, 'x'), {name: 'TypeError', message: /argument 2 is a function/});
  for (const value of bad) {
    assert.strictEqual(thrown(() => g.set('x', value)), 'TypeError INVALID');
    for (const call of ['get', 'defined', 'delete', 'next', 'previous']) {
      assert.throws(() => g[call]('a', value), {name: 'TypeError', message: /argument 2 is/});
    }
    assert.throws(() => g.increment('a', value), {name: 'TypeError'});
    assert.throws(() => new mglobal(db, 'x', value).get(), {name: 'TypeError'});
    assert.throws(() => new mglobal(db, value), {name: 'TypeError'});
  }
  assert.strictEqual(thrown(() => g.set()), 'TypeError INVALID');
  assert.strictEqual(g.defined('x'), '0');
});

test('limits are errors with a code', () => {
  assert.strictEqual(thrown(() => g.get(...new Array(256).fill('a'))), 'TOO_MANY_SUBSCRIPTS');
  assert.strictEqual(thrown(() => g.get(...new Array(1000).fill('a'))), 'TOO_MANY_SUBSCRIPTS');
  g.set(...new Array(255).fill('a'), 'deep');
  assert.strictEqual(g.get(...new Array(255).fill('a')), 'deep');
  assert.strictEqual(thrown(() => g.set('k'.repeat(2000), 1)), 'KEY_TOO_LONG');
  assert.strictEqual(thrown(() => new mglobal(db, '1x').get()), 'INVALID_NAME');
  assert.strictEqual(thrown(() => new mglobal(db, '').get()), 'INVALID_NAME');
});

test('foreign objects and handles', () => {
  assert.strictEqual(thrown(() => new mglobal({}, 'x')), 'TypeError INVALID');
  assert.strictEqual(thrown(() => new mglobal(undefined, 'x')), 'TypeError INVALID');
  const native = require('../lib/addon');
  for (const handle of [-1, 1e300, NaN, 'x', {}, undefined, 4097.5]) {
    assert.strictEqual(native.get(handle, 'a'), undefined);
    assert.ok(native.status() !== 0);
    assert.strictEqual(native.level(handle), undefined);
    assert.strictEqual(native.cursorChild(handle), undefined);
    assert.strictEqual(native.cancel(handle), undefined);
  }
});

test('a long value, and a small one after it', () => {
  const long = 'x'.repeat(20 * 1024 * 1024);
  g.set('long', long);
  assert.strictEqual(g.get('long').length, long.length);
  g.set('long', 'short');
  assert.strictEqual(g.get('long'), 'short');
});
