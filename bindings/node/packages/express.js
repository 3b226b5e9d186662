'use strict';
/* The page of examples/node/express.js, and a program in Lua on the same sessions: node express.js PROGRAM DATABASE. */
const assert = require('node:assert');
const {execFileSync, spawn} = require('child_process');
const path = require('path');
const readline = require('readline');

const examples = path.join(__dirname, '../../../examples/node');
const [program, db] = process.argv.slice(2);

async function main() {
  const server = spawn(process.execPath, [process.env.EXPRESS_PAGE, db], {stdio: ['ignore', 'pipe', 'inherit']});
  const ended = new Promise((resolve) => { server.on('exit', resolve); });
  try {
    const [address] = await new Promise((resolve) => {
      readline.createInterface({input: server.stdout}).once('line', (line) => resolve([line]));
      server.on('exit', () => resolve(['the page has ended']));
    });
    const first = await fetch(address);
    assert.strictEqual(await first.text(), 'visit 1\n');
    const cookie = first.headers.get('set-cookie').split(';')[0];
    const text = async (headers) => (await fetch(address, {headers})).text();
    assert.strictEqual(await text({cookie}), 'visit 2\n');
    assert.strictEqual(execFileSync(program, [path.join(examples, 'visitor.lua'), db], {encoding: 'utf8', timeout: 60000}), 'visits\t2\n');
    assert.strictEqual(await text({cookie}), 'visit 3, seen by Lua\n');
    assert.strictEqual(await text({cookie: 'session=00000000-0000-0000-0000-000000000000'}), 'visit 1\n', 'a session that is not there');
  } finally {
    server.kill();
    await ended;
  }
  console.log('a page and a program share a session');
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
