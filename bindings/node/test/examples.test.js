'use strict';
/*
 * The programs of examples/node that need nothing from npm run, and print what they should.
 */
const assert = require('node:assert');
const {execFileSync} = require('child_process');
const fs = require('fs');
const path = require('path');
const {test} = require('node:test');
const {directory, newPath} = require('./support');

const examples = path.join(__dirname, '../../../examples/node');
const modules = path.join(directory, 'modules');
fs.mkdirSync(modules);
fs.symlinkSync(path.join(__dirname, '..'), path.join(modules, 'perilune'));

const printed = {
  pool: 'results 100 144 jobs done 100 left 0',
  pubs: [
    'pubs 2 Grogan',
    '<town name="Dublin"><pub name="Neary"><beer price="5">stout</beer></pub><pub name="Grogan"><beer price="7" /></pub></town>',
    'cheap Neary sum 12',
  ].join('\n'),
};

for (const [name, want] of Object.entries(printed)) {
  test(`${name}.js`, () => {
    const env = {...process.env, NODE_PATH: modules};
    const said = execFileSync(process.execPath, [path.join(examples, `${name}.js`), newPath()], {encoding: 'utf8', timeout: 120000, env});
    assert.strictEqual(said.trimEnd(), want);
  });
}
