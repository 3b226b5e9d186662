'use strict';
/*
 * What calls cost from JavaScript: calls.js FLAVOUR OPTIONS, FLAVOUR a module with mg-dbx-napi's names, OPTIONS what `open`
 * gets, as JSON. Prints a line of JSON: CPU time in ns a call, by name: the least of the rounds.
 */
const [, , flavour, options] = process.argv;
const {server, mglobal, mcursor} = require(flavour);

const COUNT = 100000;
const ROUNDS = 9;
const ours = /perilune|flavours/.test(flavour);

const db = new server();
const opened = db.open(JSON.parse(options));
/* Over a library that does nothing the original answers a zero character. */
if (opened.replace('\0', '') !== '') throw new Error(`open: ${opened}`);
const g = new mglobal(db, 'bench');
g.delete();

const CALLS = {
  'set(int, 11 characters)': (i) => g.set(i, 'hello world'),
  'get(int)': (i) => g.get(i),
  'defined(int)': (i) => g.defined(i),
  'next(int)': (i) => g.next(i),
  'set(3 subscripts)': (i) => g.set('node', i, 'nodeName', 'hello world'),
  'get(3 subscripts)': (i) => g.get('node', i, 'nodeName'),
  'defined(3 subscripts)': (i) => g.defined('node', i, 'nodeName'),
  'increment': () => g.increment('counter', 1),
};

function measured(work) {
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    const begun = process.cpuUsage();
    work();
    const {user, system} = process.cpuUsage(begun);
    times.push((user + system) * 1000 / COUNT);
  }
  return Math.round(Math.min(...times));
}

function steps(options) {
  return () => {
    const cursor = new mcursor(db, {global: 'bench', key: ['']}, options);
    for (let i = 0; i < COUNT; i += options.batch || 1) cursor.next();
  };
}

const found = {};
for (const [name, call] of Object.entries(CALLS)) {
  found[name] = measured(() => {
    for (let i = 0; i < COUNT; i++) call(i);
  });
}
if (ours) {
  found['cursor, with the value'] = measured(steps({getdata: true}));
  found['cursor, all levels, with the value'] = measured(steps({multilevel: true, getdata: true}));
  found['cursor, 200 at a time, with the value'] = measured(steps({getdata: true, batch: 200}));
  found['new mglobal'] = measured(() => {
    for (let i = 0; i < COUNT; i++) new mglobal(db, 'bench', i);
  });
  found['new mglobal and its get'] = measured(() => {
    for (let i = 0; i < COUNT; i++) new mglobal(db, 'bench', i).get();
  });
}
db.close();
console.log(JSON.stringify(found));
