'use strict';
/*
 * Which database the options of mg-dbx's `open` mean.
 *
 * Programs come with the paths of YottaDB, IRIS or Berkeley DB. In this order: `perilune.path`; $PERILUNE_DB; `path`,
 * `db_file` or `env_dir` if it is a database of ours, an address, or ends in .pl or .db; else the default database. So
 * the settings of a program need no change.
 */
const fs = require('fs');

const ADDRESS = /^(tcp|tls):\/\/|^unix:/;
const OURS = /\.(pl|db)$/;
const MAGIC = Buffer.from('PERILUNE');

/* Whether a file is there that begins as ours do. */
function isDatabase(path) {
  let file;
  try {
    if (!fs.statSync(path).isFile()) return false;
    file = fs.openSync(path, 'r');
    const head = Buffer.alloc(MAGIC.length);
    return fs.readSync(file, head, 0, head.length, 0) === head.length && head.equals(MAGIC);
  } catch {
    return false;
  } finally {
    if (file !== undefined) fs.closeSync(file);
  }
}

/* {path, options} for the addon. */
function placeOf(given) {
  const {path: own, ...options} = given.perilune || {};
  if (own !== undefined) return {path: own, options};
  if (process.env.PERILUNE_DB) return {path: process.env.PERILUNE_DB, options};
  const theirs = [given.path, given.db_file, given.env_dir].find((path) => typeof path === 'string' &&
    (ADDRESS.test(path) || OURS.test(path) || isDatabase(path)));
  return {path: theirs === undefined ? null : theirs, options};
}

module.exports = {placeOf};
