'use strict';
/*
 * The documents: the guides' programs run and print what they say; the reference is what the declarations make; the
 * declarations name what is there.
 */
const assert = require('node:assert');
const {execFileSync} = require('child_process');
const fs = require('fs');
const path = require('path');
const test = require('node:test');
const {directory} = require('./support');
const perilune = require('..');
const {dom} = require('../dom');
const graphs = require('../graph');
const {page, membersOf, PAGE} = require('../docs/reference');

const guides = ['node', 'xml', 'graphs'].map((name) => fs.readFileSync(path.join(__dirname, `../../../docs/guide/${name}.md`), 'utf8'));
const programs = guides.flatMap((guide) => [...guide.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code));

test('the guides have their programs', () => assert.ok(programs.length >= 8));

const modules = path.join(directory, 'node_modules');
fs.mkdirSync(modules);
fs.symlinkSync(path.join(__dirname, '..'), path.join(modules, 'perilune'));

programs.forEach((code, i) => {
  test(`program ${i + 1} of the guides prints what it says`, () => {
    const file = path.join(directory, `program${i}.js`);
    fs.writeFileSync(file, code);
    const printed = execFileSync(process.execPath, [file], {cwd: directory, encoding: 'utf8', timeout: 60000});
    const said = [...code.matchAll(/\/\/--> (.*)$/gm)].map(([, text]) => text);
    assert.deepStrictEqual(printed.trimEnd().split('\n'), said);
  });
});

test('the reference is made from the declarations: `node docs/reference.js`', () => {
  assert.strictEqual(fs.readFileSync(PAGE, 'utf8'), page());
});

test('what is declared is there, and what is there is declared', () => {
  const db = perilune.open(path.join(directory, 'declared.db'), {durability: 'none'});
  const node = db.node('^x');
  const watch = node.watch();
  const doc = dom(node);
  const documentNode = doc.parse('<a/>');
  const hidden = {Database: ['constructor', 'wait', 'handle', 'watches', 'waits'], Node: ['constructor'], Watch: ['constructor'],
    Dom: ['constructor', 'call', 'object', 'callNode', 'callNodes'], DomNode: ['constructor'],
    Graph: ['constructor', 'call', 'view'], Traversal: ['constructor'], Path: ['constructor', 'toString']};
  const graph = graphs.create(db.node('^graph'));
  graph.addVertex(1);
  const traversal = graph.traversal();
  const objects = {Database: db, Node: node, Watch: watch, Dom: doc, DomNode: documentNode, Graph: graph, Traversal: traversal,
    Path: traversal.all(1)[0]};
  for (const [title, object] of Object.entries(objects)) {
    const members = membersOf(title);
    for (const member of members.filter((name) => !name.startsWith('['))) assert.ok(member in object, `${title}.${member}`);
    const own = Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => !hidden[title].includes(name));
    assert.deepStrictEqual(own.filter((name) => !members.includes(name)), [], title);
  }
  watch.close();
  db.close();
  const module = ['open', 'Database', 'Node', 'Watch', 'PeriluneError', 'EMPTY_LIST', 'EMPTY_MAP', 'version'];
  assert.deepStrictEqual(Object.keys(perilune).sort(), module.sort());
});
