'use strict';
/*
 * glsdb, an ES module that imports the names of mg-dbx-napi: a document in, the same document out, proxies, walks.
 */
const assert = require('node:assert');
const path = require('path');
const {pathToFileURL} = require('url');

const place = path.join(process.env.NODE_PATH, 'glsdb', 'src', 'glsdb.mjs');

import(pathToFileURL(place)).then(({glsDB}) => {
  const glsdb = new glsDB();
  glsdb.open({type: 'YottaDB'});
  const person = new glsdb.node('person.Rob');
  person.delete();
  person.document = {name: 'Rob', tags: ['a', 'b', {x: 1}], addr: {city: 'Redhill', n: 0.5, zip: 'RH1'}, t: true, z: null, e: []};
  const found = new glsdb.node('person').document;
  assert.deepStrictEqual(found, {
    Rob: {addr: {city: 'Redhill', n: 0.5, zip: 'RH1'}, e: [''], name: 'Rob', t: true, tags: ['a', 'b', {x: 1}], z: null},
  });
  assert.strictEqual(person.exists, true);
  const {proxy} = new glsdb.node('person');
  assert.strictEqual(String(proxy.Rob.addr.city), 'Redhill');
  proxy.Rob.addr.city = 'Reigate';
  assert.strictEqual(person.$('addr').$('city').value, 'Reigate');
  const names = [];
  glsdb.forEachGlobal((name) => {
    names.push(name);
  });
  assert.deepStrictEqual(names, ['person']);
  const leaves = [];
  person.forEachLeafNode((value) => {
    leaves.push(value);
  });
  assert.strictEqual(leaves.length, 10);
  assert.strictEqual(person.lock(1), true);
  person.unlock();
  glsdb.close();
}).catch((error) => {
  console.error(error);
  process.exit(1);
});
