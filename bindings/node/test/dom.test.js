'use strict';
/*
 * Documents of XML: the DOM's names over one database, errors, live lists, JSON, and two workers' worth of changes.
 */
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const {directory, newPath, thrown} = require('./support');
const perilune = require('..');
const {dom, Dom, DomNode} = require('../dom');

const db = perilune.open(newPath(), {durability: 'none'});
const PUBS = '<pubs xmlns:p="urn:p"><pub id="g" name="Grogan\'s">open<p:seat/></pub><!--x--><pub name="Kehoe\'s"/></pubs>';
let made = 0;

/* A document of its own. */
function newDocument(xml = PUBS) {
  made++;
  const doc = dom(db.node('^doc', made));
  doc.parse(xml);
  return doc;
}

function assertWhole(doc, expected) {
  assert.deepStrictEqual(doc.check(), []);
  assert.strictEqual(doc.output(), expected);
}

/* What a call throws: its code and the DOM's name. */
function refused(work) {
  try {
    work();
  } catch (error) {
    return `${error.code} ${error.name}`;
  }
  return 'nothing';
}

test('links, names and lists', () => {
  const doc = newDocument();
  const root = doc.documentElement;
  assert.ok(doc instanceof Dom && root instanceof DomNode);
  assert.deepStrictEqual([root.tagName, root.nodeType, root.nodeValue, root.nodeNo, root.parentNode.nodeType],
    ['pubs', 1, null, 2, 9]);
  const first = root.firstChild;
  assert.ok(first === root.childNodes[0] && first.isSameNode(doc.getElementById('g')), 'one node is one object');
  assert.ok(first.parentNode === root && first.ownerDocument === doc && doc.firstChild === root);
  assert.deepStrictEqual([root.childNodes.length, root.childElements.length, root.hasChildNodes(), first.hasAttributes(),
    root.hasChildElements(), root.childNodes.item(9)], [3, 2, true, true, true, null]);
  assert.deepStrictEqual([first.nextSibling.data, first.nextSibling.length, root.lastChild.name, first.previousSibling],
    ['x', 1, 'pub', null]);
  assert.deepStrictEqual([first.textContent, first.getAttributes(), first.getAttribute('none')],
    ['open', {id: 'g', name: 'Grogan\'s'}, '']);
  const id = first.attributes.getNamedItem('id');
  assert.deepStrictEqual([id.ownerElement === first, id.isId, id.value, id.parentNode, first.attributes.item(1).name],
    [true, true, 'g', null, 'name']);
  const seat = first.lastChild;
  assert.deepStrictEqual([seat.prefix, seat.localName, seat.namespaceURI, first.prefix], ['p', 'seat', 'urn:p', null]);
  assert.deepStrictEqual([doc.getElementsByTagNameNS('urn:p', '*')[0] === seat, root.lookupPrefix('urn:p'),
    root.lookupNamespaceURI('p'), root.isDefaultNamespace(null)], [true, 'p', 'urn:p', true]);
  assert.deepStrictEqual([root.contains(seat), seat.contains(root), first.compareDocumentPosition(seat)], [true, false, 20]);
  assert.deepStrictEqual([doc.getNodeByNo(2) === root, doc.getNodeByNo(99), doc.docType], [true, null, null]);
  const seen = [];
  doc.walk({}, function visit(params) {
    seen.push(this.tagName);
    params.stop = seen.length === 3;
  });
  assert.deepStrictEqual(seen, ['pubs', 'pub', 'p:seat']);
});

test('lists are live', () => {
  const doc = newDocument('<a><b/></a>');
  const a = doc.documentElement;
  const {childNodes, attributes} = a;
  const named = doc.getElementsByTagName('c');
  assert.ok(Array.isArray(childNodes) && childNodes.length === 1 && named.length === 0);
  a.appendElement({tagName: 'c', attributes: {n: 1}});
  a.setAttribute('k', 'v');
  assert.deepStrictEqual([childNodes.length, childNodes.map((child) => child.tagName), named.length, attributes[0].value],
    [2, ['b', 'c'], 1, 'v']);
  attributes.removeNamedItem('k');
  assert.deepStrictEqual([attributes.length, 0 in attributes, [...childNodes].length], [0, false, 2]);
});

test('changes', () => {
  const doc = newDocument('<a><b/></a>');
  const a = doc.documentElement;
  const b = a.firstChild;
  const c = a.appendElement({tagName: 'c', attributes: {n: 1}, text: 'one & two'});
  assert.strictEqual(a.insertBefore(c, b), c);
  b.setAttribute('k', 'v');
  b.appendChild(doc.createTextNode('t')).data = 'text';
  assertWhole(doc, '<a><c n="1">one &amp; two</c><b k="v">text</b></a>');
  c.textContent = '';
  assert.strictEqual(a.replaceChild(doc.createElementNS('urn:x', 'x:d'), c), c);
  assert.deepStrictEqual([b.getAttribute('k'), b.hasAttribute('k'), b.removeAttribute('k'), b.hasAttributes()],
    ['v', true, true, false]);
  assert.strictEqual(a.removeChild(b), b);
  a.appendChild(b.cloneNode(true));
  a.insertBeforeChildren(doc.createElement('w'));
  a.firstChild.removeAsParent(true);
  const text = a.lastChild.firstChild;
  text.insertData(0, '<€𝄞');
  const second = text.splitText(4);
  assert.deepStrictEqual([text.data, second.data, text.wholeText, text.length, text.substringData(1, 1)],
    ['<€𝄞', 'text', '<€𝄞text', 4, '€']);
  a.normalize();
  doc.createXMLDeclaration();
  doc.createDocumentType('a', null, 'a.dtd');
  assertWhole(doc, '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE a SYSTEM "a.dtd"><a><x:d xmlns:x="urn:x" />' +
    '<b>&lt;€𝄞text</b></a>');
  b.setUserData('seen', 7);
  b.getUserDataNode('more').set('deep', true);
  assert.deepStrictEqual([b.getUserData('seen'), b.getUserDataKeys(), b.hasUserData(), b.getUserDataNode('more').get('deep')],
    [7, ['more', 'seen'], true, true]);
  b.delete();
  assert.deepStrictEqual([b.nodeType, b.firstChild, b.hasUserData()], [null, null, false]);
  assert.strictEqual(a.output(1), '<a>\r\n <x:d xmlns:x="urn:x" />\r\n <b>\r\n  &lt;€𝄞text\r\n </b>\r\n</a>');
  const attribute = doc.createAttribute('k', 'w');
  assert.strictEqual(a.attributes.setNamedItem(attribute), null);
  assert.deepStrictEqual([a.getAttribute('k'), a.removeAttributeNode(attribute) === attribute, a.getAttribute('k')], ['w', true, '']);
  for (const node of [doc.createComment('c'), doc.createCDATASection('d'), doc.createProcessingInstruction('t', 'p')]) {
    a.appendChild(node);
  }
  assert.strictEqual(a.output(), '<a><x:d xmlns:x="urn:x" /><b>&lt;€𝄞text</b><!--c--><![CDATA[d]]><?t p?></a>');
});

test('XPath', () => {
  const doc = newDocument();
  const root = doc.documentElement;
  assert.deepStrictEqual([doc.xpath('count(//pub)'), doc.evaluate('string(//pub)'), doc.evaluate('//pub = "open"')],
    [2, 'open', true]);
  assert.ok(Number.isNaN(doc.evaluate('number("x")')) && doc.evaluate('1 div 0') === Infinity);
  assert.strictEqual(doc.select('//pub[@name="Kehoe\'s"]/@name')[0].value, 'Kehoe\'s');
  assert.deepStrictEqual([root.first('pub[2]') === root.lastChild, doc.first('//none')], [true, null]);
  assert.strictEqual(doc.select('//q:seat[$yes]', {namespaces: {q: 'urn:p'}, variables: {yes: true}}).length, 1);
  assert.deepStrictEqual([
    refused(() => doc.xpath('//[')), refused(() => doc.xpath('//q:seat')), refused(() => doc.xpath('//*', {nodesMax: 2})),
    refused(() => doc.select('1')), refused(() => doc.xpath('('.repeat(10000) + '1' + ')'.repeat(10000)))],
  ['DOM SyntaxError', 'DOM EvaluationError', 'DOM QuotaExceededError', 'INVALID TypeError', 'DOM SyntaxError']);
});

test('errors change nothing', () => {
  const doc = newDocument();
  const root = doc.documentElement;
  const before = doc.output();
  assert.deepStrictEqual([
    () => root.firstChild.appendChild(root), () => doc.parse('<a>', {replace: true}), () => doc.parse('<a/>'),
    () => doc.createElement('1'), () => root.setAttribute('id', 'g'), () => doc.createElementNS(null, 'a:b'),
    () => root.removeChild(root), () => root.firstChild.firstChild.splitText(9),
    () => doc.parse('<!DOCTYPE l [<!ENTITY a "ha">]><l>&a;</l>', {replace: true}),
    () => doc.parse('<!DOCTYPE l SYSTEM "file:///etc/passwd"><l/>', {replace: true}),
    () => doc.parse(Buffer.from([60, 97, 62, 255]), {replace: true}),
  ].map(refused), [
    'DOM HierarchyRequestError', 'DOM ParseError', 'DOM InvalidStateError', 'DOM InvalidCharacterError', 'DOM ConstraintError',
    'DOM NamespaceError', 'DOM NotFoundError', 'DOM IndexSizeError', 'DOM ParseError', 'DOM ParseError', 'INVALID PeriluneError',
  ]);
  for (const bad of [{}, [], () => 1, Symbol('x'), NaN]) {
    assert.strictEqual(thrown(() => root.setAttribute('x', bad)), 'TypeError INVALID');
  }
  assert.strictEqual(thrown(() => root.setAttribute('x')), 'INVALID');
  assert.strictEqual(thrown(() => root.setAttribute('x', 5)), 'INVALID', 'a number is no text');
  assert.strictEqual(thrown(() => doc.parse('<a/>', {quick: true})), 'TypeError INVALID');
  assert.strictEqual(thrown(() => dom('^doc')), 'TypeError INVALID');
  const other = newDocument('<o/>');
  assert.strictEqual(thrown(() => other.documentElement.appendChild(root)), 'TypeError INVALID');
  const none = dom(db.node('^none'));
  assert.deepStrictEqual([none.documentElement, none.firstChild, none.output(), none.getElementsByTagName('*').length],
    [null, null, '', 0]);
  assert.strictEqual(thrown(() => none.xpath('1')), 'INVALID');
  other.documentElement.appendChild(other.importNode(root.firstChild, true));
  assertWhole(doc, before);
  other.documentElement.appendChild(other.adoptNode(root.lastChild));
  assert.deepStrictEqual([other.check(), root.childNodes.length, other.documentElement.childNodes.length], [[], 2, 2]);
  root.firstChild.setAttribute('k', '\uD800');
  assert.strictEqual(root.firstChild.getAttribute('k'), '\uFFFD', 'a lone surrogate');
});

test('a change with nodes is one transaction', () => {
  const doc = newDocument('<a/>');
  const change = () => {
    doc.documentElement.setAttribute('n', '1');
    db.node('^count').incr();
  };
  assert.throws(() => db.transaction(() => {
    change();
    throw new Error('no');
  }));
  assert.deepStrictEqual([doc.output(), db.node('^count').get()], ['<a />', undefined]);
  db.transaction(change);
  assert.deepStrictEqual([doc.output(), db.node('^count').get()], ['<a n="1" />', 1]);
});

test('JSON goes in and comes out', () => {
  const value = {a: 123, b: {c: {foo: 'bar'}, e: ['a', false, 2222, null, [], {}, [1, [2]]], t: '', x: null}, g: [{p: 1}, {p: -0.5}]};
  const doc = dom(db.node('^json'));
  doc.parseJSON(value);
  assert.deepStrictEqual([doc.outputAsJSON(), doc.check()], [value, []]);
  assert.match(doc.output(), /^<json><a type="number">123<\/a><b><c><foo type="string">bar<\/foo><\/c><e type="array"><val /);
  assert.strictEqual(refused(() => doc.parseJSON(1)), 'DOM InvalidStateError');
  const bad = dom(db.node('^bad'));
  assert.strictEqual(refused(() => bad.parseJSON({'not a name': 1})), 'DOM InvalidCharacterError');
  assert.strictEqual(bad.documentNode, null, 'nothing of it is there');
});

test('files, modules, snapshots', async () => {
  const file = path.join(directory, 'pubs.xml');
  fs.writeFileSync(file, `\uFEFF${PUBS}`);
  const doc = dom(db.node('^file'));
  doc.parseFile(file);
  assert.strictEqual(doc.select('//pub').length, 2);
  const module = await import('../dom.mjs');
  assert.deepStrictEqual(Object.keys(module).sort(), ['Dom', 'DomNode', 'default', 'dom']);
  const snapshot = db.snapshot();
  doc.documentElement.delete();
  const then = module.dom(snapshot.node('^file'));
  assert.deepStrictEqual([then.select('//pub').length, then.documentElement.tagName, doc.documentElement], [2, 'pubs', null]);
  assert.strictEqual(thrown(() => then.documentElement.setAttribute('x', 'y')), 'READ_ONLY');
  snapshot.close();
});

test('a clinical document has the nodes that it is to have', () => {
  const {clinical, COUNTS} = require('../bench/clinical');
  const xml = clinical();
  const place = db.node('^clinical');
  const doc = dom(place);
  doc.parse(xml, {trim: true});
  const count = (expression) => doc.xpath(`count(${expression})`);
  assert.deepStrictEqual([count('//*'), count('//@*'), count('//text()'), count('//comment()')],
    [COUNTS.elements, COUNTS.attributes - 1, COUNTS.texts, COUNTS.comments], 'xmlns:xsi is a namespace');
  assert.deepStrictEqual([place.get('nextNodeNo'), place.count('nodes'), doc.check()], [3471, 28312, []]);
  assert.strictEqual(doc.xpath('count(//*[count(ancestor::*) = 12])') > 0 && doc.xpath('count(//*[count(ancestor::*) > 12])'), 0);
  const again = newDocument(doc.output());
  assert.strictEqual(again.output(), doc.output());
});
