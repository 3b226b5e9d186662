'use strict';
/*
 * What the tests share: a directory of their own for each file, and databases in it.
 */
const fs = require('fs');
const os = require('os');
const path = require('path');
const {after} = require('node:test');

delete process.env.PERILUNE_DB;
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'perilune-node-'));
process.env.XDG_DATA_HOME = directory;
after(() => {
  /* A database that is still being closed may make a file meanwhile; `maxRetries` does not look for it again. */
  for (let left = 1000; ; left--) {
    try {
      return fs.rmSync(directory, {recursive: true, force: true});
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' || left === 0) throw error;
    }
  }
});

let made = 0;

/* The path of a database that is not there yet. */
function newPath() {
  made++;
  return path.join(directory, `t${made}.db`);
}

/* A connection of mg-dbx-napi to a new database, or to the one at `place`. */
function connection(options = {}, place = newPath()) {
  const {server} = require('../flavours/mg-dbx-napi');
  const db = new server();
  db.open({type: 'YottaDB', perilune: {path: place, durability: 'none'}, ...options});
  return db;
}

/* Whether the long forms are asked for. */
const isLong = process.env.PERILUNE_LONG === '1';

/* What a call throws: its code, and whether it is a TypeError. */
function thrown(work) {
  try {
    work();
  } catch (error) {
    return `${error instanceof TypeError ? 'TypeError ' : ''}${error.code}`;
  }
  return 'nothing';
}

module.exports = {directory, newPath, connection, isLong, thrown};
