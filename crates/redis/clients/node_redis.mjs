// node-redis 4, which keeps cursors as numbers, against a server at 127.0.0.1: node node_redis.mjs PORT.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const { createClient } = createRequire(`${process.env.CLIENTS}/`)('redis');
const client = createClient({ url: `redis://127.0.0.1:${process.argv[2]}` });
await client.connect();
await client.flushAll();

const names = Array.from({ length: 1000 }, (_, n) => `name${n}`);
await client.mSet(names.flatMap((name) => [name, 'x']));
await client.hSet('hash', Object.fromEntries(names.map((name) => [name, 'x'])));
await client.sAdd('set', names);
await client.zAdd('zset', names.map((value) => ({ value, score: 1 })));

const all = async (found, name) => {
  const seen = new Set();
  for await (const each of found) seen.add(name(each));
  return seen.size;
};
assert.equal(await all(client.scanIterator(), (key) => key), 1003);
assert.equal(await all(client.scanIterator({ MATCH: 'name*', COUNT: 7 }), (key) => key), 1000);
assert.equal(await all(client.hScanIterator('hash'), ({ field }) => field), 1000);
assert.equal(await all(client.sScanIterator('set'), (member) => member), 1000);
assert.equal(await all(client.zScanIterator('zset'), ({ value }) => value), 1000);
await client.quit();
console.log('node-redis: good');
