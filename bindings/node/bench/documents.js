'use strict';
/*
 * What a document of 3,471 nodes costs from JavaScript: parsing, output, XPath by the index of names, in perilune/dom and in
 * QEWD-JSdb's DOM over the same database; documents.js PATH, with JSdb's packages in NODE_PATH. Prints a table: CPU time in ms,
 * the median and the least of the rounds. The two take turns.
 */
const [, , place] = process.argv;
const perilune = require('..');
const {dom} = require('../dom');
const {clinical, COUNTS} = require('./clinical');
const Wrapper = require('qewd-mg-dbx-napi');
const DocumentStore = require('ewd-document-store');

const ROUNDS = Number(process.env.ROUNDS || 9);
/* After so many ms nothing is measured again. */
const ENOUGH = 3000;
const QUERIES = ['//observation', '//value', '//@code', '//observation[@code]', 'count(//*)'];
const xml = clinical();

process.env.PERILUNE_DB = `${place}.db`;
const db = perilune.open(process.env.PERILUNE_DB);
const ours = dom(db.node('^clinical'));
const theirDb = new Wrapper({database: {type: 'YottaDB', release: 'r1.30', architecture: 'x86'}});
if (theirDb.open().status !== '') throw new Error('the database of JSdb cannot be opened');
const store = new DocumentStore(theirDb).use('jsdb');
store.enable_dom();

const WORK = {
  parse: [() => ours.parse(xml, {trim: true, replace: true}), () => {
    store.delete();
    store.dom.parser.parseText(xml, () => {});
  }],
  output: [() => ours.output(), () => store.dom.output()],
};
for (const query of QUERIES) WORK[query] = [() => ours.xpath(query), () => store.dom.xpath(query)];

function milliseconds(work) {
  const begun = process.cpuUsage();
  work();
  const {user, system} = process.cpuUsage(begun);
  return (user + system) / 1000;
}

console.log('| ms of CPU time: median (least) | perilune/dom | JSdb | ratio |\n|---|---|---|---|');
for (const [name, [mine, theirs]] of Object.entries(WORK)) {
  const times = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    times[0].push(milliseconds(mine));
    // Some of theirs take ten seconds.
    if (times[1].reduce((sum, time) => sum + time, 0) < ENOUGH) times[1].push(milliseconds(theirs));
  }
  const [a, b] = times.map((list) => list.sort((x, y) => x - y)).map((list) => [list[list.length >> 1], list[0]]);
  const cell = ([median, least]) => `${median.toFixed(2)} (${least.toFixed(2)})`;
  console.log(`| ${name} | ${cell(a)} | ${cell(b)} | ${(b[0] / a[0]).toFixed(1)} |`);
}
// JSdb does not escape what it puts out.
const plain = ours.output().replace(/&lt;/g, '<').replace(/&amp;/g, '&');
console.log(`\n${COUNTS.elements} elements, ${COUNTS.attributes} attributes; ${db.node('^clinical').count('nodes')} and ` +
  `${db.node('^jsdb').count('nodes')} nodes of the database; ${Buffer.byteLength(xml)} bytes in, ${Buffer.byteLength(plain)} out; ` +
  `both put out the same: ${plain === store.dom.output()}`);
theirDb.close();
db.close();
