// ioredis against a server at 127.0.0.1: node ioredis.mjs PORT. Finds the module in $CLIENTS/node_modules.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.CLIENTS}/`);
const Redis = require('ioredis');
const port = Number(process.argv[2]);
const connect = () => new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: 1 });
const redis = connect();

await redis.flushall();
assert.equal(await redis.set('greeting', 'hello', 'EX', 100), 'OK');
assert.equal(await redis.get('greeting'), 'hello');
assert.equal(await redis.hset('user', { name: 'Ada', born: 1815 }), 2);
assert.deepEqual(await redis.hgetall('user'), { name: 'Ada', born: '1815' });
assert.equal(await redis.zadd('board', 1.5, 'ann', '+inf', 'ben'), 2);
assert.deepEqual(await redis.zrange('board', 0, -1, 'WITHSCORES'), ['ann', '1.5', 'ben', 'inf']);
const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 256));
await redis.set(bytes, bytes);
assert.deepEqual(await redis.getBuffer(bytes), bytes);

// A long pipeline, and a transaction.
const pipeline = redis.pipeline();
for (let number = 0; number < 1000; number++) pipeline.incr('n');
assert.equal((await pipeline.exec()).at(-1)[1], 1000);
assert.deepEqual(await redis.multi().set('k', 1).incr('k').exec(), [[null, 'OK'], [null, 2]]);
await redis.watch('k');
await connectOnce((other) => other.set('k', 9));
assert.equal(await redis.multi().get('k').exec(), null);

// A waiting client is woken, and messages come.
await connectOnce(async (other) => {
  const popped = other.blpop('queue', 10);
  await redis.rpush('queue', 'job');
  assert.deepEqual(await popped, ['queue', 'job']);
});
await connectOnce(async (other) => {
  const message = new Promise((resolve) => other.on('message', (channel, text) => resolve([channel, text])));
  assert.equal(await other.subscribe('news'), 1);
  assert.equal(await redis.publish('news', 'hi'), 1);
  assert.deepEqual(await message, ['news', 'hi']);
});

// Scripts that the client defines, and streams of keys.
redis.defineCommand('twice', { numberOfKeys: 1, lua: "return redis.call('incrby', KEYS[1], ARGV[1] * 2)" });
assert.equal(await redis.twice('t', 21), 42);
const seen = new Set();
for await (const keys of redis.scanStream({ match: 'b*' })) keys.forEach((key) => seen.add(key));
assert.ok(seen.has('board'));
assert.match(await redis.info('server'), /redis_version:7/);
redis.disconnect();
console.log(`ioredis ${require('ioredis/package.json').version}: good`);

async function connectOnce(use) {
  const other = connect();
  try {
    return await use(other);
  } finally {
    other.disconnect();
  }
}
