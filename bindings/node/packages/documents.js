'use strict';
/*
 * perilune/dom and QEWD-JSdb's DOM, unmodified from npm, on the same documents: either reads what the other has parsed and
 * changed. Where JSdb is known to differ (it does not escape, and leaves '' where a link was) that is taken into account.
 */
const assert = require('node:assert');
const perilune = require('perilune');
const {dom} = require('perilune/dom');
const {clinical} = require('../bench/clinical');
const Wrapper = require('qewd-mg-dbx-napi');
const DocumentStore = require('ewd-document-store');

const xml = clinical();
const db = perilune.open(process.env.PERILUNE_DB);
const theirs = new Wrapper({database: {type: 'YottaDB', release: 'r1.30', architecture: 'x86'}});
assert.strictEqual(theirs.open().status, '');

/* JSdb's DOM of a document. */
function jsdb(name) {
  const store = new DocumentStore(theirs).use(name);
  store.enable_dom();
  return store.dom;
}

const plain = (text) => text.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&');
function assertAlike(name) {
  const ours = dom(db.node(`^${name}`));
  assert.deepStrictEqual(ours.check(), [], name);
  assert.strictEqual(plain(ours.output()), plain(jsdb(name).output()), name);
}

// Parsed here, read and changed there, read here.
dom(db.node('^here')).parse(xml, {trim: true});
assertAlike('here');
const there = jsdb('here');
assert.strictEqual(there.getElementsByTagName('observation').length, 76);
const element = there.documentElement.appendElement({tagName: 'added', attributes: {id: 'x1', 'p:q': '2'}, text: 'by JSdb'});
element.setAttribute('n', '3');
there.documentElement.insertBefore(there.createComment('first'), there.documentElement.firstChild);
there.documentElement.removeChild(there.documentElement.firstChild.nextSibling);
assertAlike('here');
const ours = dom(db.node('^here'));
assert.strictEqual(ours.getElementById('x1').getAttribute('n'), '3');
assert.strictEqual(ours.documentElement.firstChild.data, 'first');

// Parsed there, with the same nodes; changed here, read there.
new DocumentStore(theirs).use('there').delete();
jsdb('there').parser.parseText(xml, () => {});
assertAlike('there');
dom(db.node('^again')).parse(xml, {trim: true});
const nodes = (name) => [...db.node(name).nodes()].map(([node, value]) => `${String(node).replace(name, '')}=${value}`);
assert.deepStrictEqual(nodes('^again'), nodes('^there'), 'the same nodes of the database');
const again = dom(db.node('^there'));
const moved = again.first('//title');
again.documentElement.appendChild(moved);
moved.setAttribute('id', 'moved');
moved.textContent = 'changed';
again.first('//value').delete();
again.first('//comment()').data = ' other ';
assertAlike('there');
assert.strictEqual(jsdb('there').getElementById('moved').textContent, 'changed');
theirs.close();
db.close();
