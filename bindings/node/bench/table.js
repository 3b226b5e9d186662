'use strict';
/* A table of two files of lines of calls.js: table.js THEIRS OURS. */
const fs = require('fs');

const [theirs, ours] = process.argv.slice(2).map((file) => {
  const turns = fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const names = Object.keys(turns[0]);
  return Object.fromEntries(names.map((name) => {
    const times = turns.map((turn) => turn[name]).sort((a, b) => a - b);
    return [name, times[0]];
  }));
});

console.log('| ns of CPU time a call | mg-dbx-napi over nothing | Perilune | ratio |\n|---|---|---|---|');
for (const [name, time] of Object.entries(ours)) {
  const their = theirs[name];
  console.log(`| ${name} | ${their === undefined ? '-' : their} | ${time} | ${their === undefined ? '-' : (their / time).toFixed(1)} |`);
}
