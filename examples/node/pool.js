'use strict';
/*
 * Jobs in a list, done by a pool of worker threads, each with a session of its own: node pool.js [PATH [WORKERS]]
 *
 * A job is taken and its result is kept in one transaction: a worker that dies in it has neither taken nor done it.
 */
const {Worker, isMainThread, workerData} = require('worker_threads');
const perilune = require('perilune');
const {list} = require('perilune/lists');
const {hash} = require('perilune/models');

const JOBS = 100;

/* What a worker does until no job is left. */
function work({path, name}) {
  const db = perilune.open(path);
  const jobs = list(db.node('^jobs'));
  const results = hash(db.node('^results'));
  const done = hash(db.node('^done'));
  let more = true;
  while (more) {
    more = db.transaction(() => {
      const job = jobs.lpop();
      if (job === undefined) return false;
      results.put(job.n, job.n * job.n);
      done.increment(name);
      return true;
    });
  }
  db.close();
}

async function main(path, workers) {
  const db = perilune.open(path);
  const jobs = list(db.node('^jobs'));
  db.transaction(() => {
    for (let n = 1; n <= JOBS; n++) jobs.rpush({n});
  });
  await Promise.all(Array.from({length: workers}, (_, i) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, {workerData: {path: db.path, name: `worker ${i}`}});
    worker.on('error', reject);
    worker.on('exit', resolve);
  })));
  const results = hash(db.node('^results'));
  const done = Object.values(hash(db.node('^done')).all());
  console.log('results', results.count(), results.get(12), 'jobs done', done.reduce((sum, one) => sum + one, 0), 'left', jobs.count());
  for (const name of ['^results', '^done']) db.node(name).kill();
  db.close();
}

if (isMainThread) main(process.argv[2], Number(process.argv[3] || 4));
else work(workerData);
