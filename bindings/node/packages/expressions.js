'use strict';
/*
 * Random expressions of XPath over random documents, in perilune/dom and in fontoxpath over slimdom: nodes by their numbers in
 * document order, or values. Only what XPath 1.0 and 3.1 mean alike. expressions.js [COUNT]; SEED is printed.
 */
const assert = require('node:assert');
const {evaluateXPath, evaluateXPathToNodes} = require('fontoxpath');
const {parseXmlDocument} = require('slimdom');
const perilune = require('perilune');
const {dom} = require('perilune/dom');

const COUNT = Number(process.argv[2] || 1500);
const seed = Number(process.env.SEED || Date.now() % 1e9);
console.log(`SEED=${seed}`);
let state = seed >>> 0;
const below = (bound) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * bound);
};
const one = (list) => list[below(list.length)];

const NAMES = ['a', 'b', 'c', 'd'];
const AXES = ['child', 'descendant', 'descendant-or-self', 'parent', 'ancestor', 'ancestor-or-self', 'self', 'following',
  'preceding', 'following-sibling', 'preceding-sibling'];

function element(depth) {
  const name = one(NAMES);
  const attributes = ['x', 'y'].filter(() => below(3) === 0).map((key) => ` ${key}="${below(4)}"`).join('');
  const inner = depth === 0 ? '' : Array.from({length: below(4)}, () => child(depth - 1)).join('');
  return `<${name}${attributes}>${inner}</${name}>`;
}

function child(depth) {
  return one([() => element(depth), () => element(depth), () => one(['1', 'two', '3x']), () => `<!--${below(3)}-->`, () => '<?t p?>'])();
}

function predicate(depth) {
  return one([
    () => `[${1 + below(3)}]`, () => '[last()]', () => `[position() > ${below(3)}]`, () => `[@${one(['x', 'y'])}]`,
    () => `[@x = "${below(4)}"]`, () => `[count(${path(depth - 1)}) ${one(['>', '<', '='])} ${below(4)}]`,
    () => `[not(${path(depth - 1)})]`, () => `[${path(depth - 1)} or @y]`, () => `[contains(string(.), "${one(['1', 'wo'])}")]`,
    () => `[string-length(string(.)) > ${below(5)}]`, () => `[${path(depth - 1)} = "two"]`,
  ])();
}

function step(depth) {
  const test = one([() => one(NAMES), () => '*', () => 'node()', () => 'text()', () => 'comment()', () => 'processing-instruction()'])();
  const last = depth > 0 && below(3) === 0 ? predicate(depth) : '';
  return `${one(AXES)}::${test}${last}`;
}

function path(depth) {
  const steps = Array.from({length: 1 + below(3)}, () => step(depth));
  return one(['', '', '/', '//']) + steps.join(one(['/', '/', '//'])) + (below(8) === 0 ? one(['/@*', '/@x', '/..']) : '');
}

function expression() {
  return one([
    () => path(2), () => path(2), () => `//${one(NAMES)}${predicate(2)}`, () => `//@${one(['x', 'y'])}`, () => `${path(1)} | ${path(1)}`,
    () => `(${path(2)})[${1 + below(4)}]`, () => `count(${path(2)})`, () => `boolean(${path(2)})`, () => `sum(//@x) + ${below(9)} * 2`,
    () => `string((${path(1)})[1])`,
  ])();
}

/* Numbers of nodes as the parser here gives them: an element's attributes right behind it, by their place. */
function numbered(document) {
  const numbers = new Map();
  const visit = (node) => {
    numbers.set(node, numbers.size + 1);
    for (const attribute of node.attributes || []) numbers.set(attribute, numbers.size + 1);
    for (const under of node.childNodes) visit(under);
  };
  visit(document);
  return numbers;
}

const db = perilune.open(process.env.PERILUNE_DB);
const doc = dom(db.node('^expressions'));
let compared = 0;
while (compared < COUNT) {
  const xml = `<a>${Array.from({length: 3}, () => element(3)).join('')}</a>`;
  doc.parse(xml, {replace: true});
  const other = parseXmlDocument(xml);
  const numbers = numbered(other);
  for (let i = 0; i < 30; i++, compared++) {
    const text = expression();
    const mine = doc.evaluate(text);
    const found = Array.isArray(mine) ? mine.map((node) => node.nodeNo) : mine;
    const expected = Array.isArray(mine) ? evaluateXPathToNodes(text, other).map((node) => numbers.get(node))
      : evaluateXPath(text, other);
    assert.deepStrictEqual(found, expected, `${text}\nover ${xml}`);
  }
}
console.log(`${compared} expressions`);
db.close();
