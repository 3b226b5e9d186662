'use strict';
/*
 * Databases that this environment has open: one session for a path and its options, however often it is opened.
 *
 * Invariant: a handle is closed with the last of those who opened it.
 */
const native = require('./addon');
const {errorOf, lastError, STATUS} = require('./errors');

const DURABILITY = {default: 0, none: 1, periodic: 2, fsync: 3};
const KNOWN = new Set(['create', 'readOnly', 'durability', 'maxSize', 'timeout', 'waitLimit', 'fileMode', 'shmDir',
  'anyFilesystem', 'acceptLostCommits']);
const ANY_FILESYSTEM = 1;
const ACCEPT_LOST_COMMITS = 2;

/* What is open, by path and options. */
const open = new Map();

function durabilityOf(name) {
  if (name === undefined) return 0;
  const code = Object.prototype.hasOwnProperty.call(DURABILITY, name) ? DURABILITY[name] : undefined;
  if (code === undefined) {
    throw errorOf(STATUS.TYPE, `durability is 'none', 'periodic' or 'fsync', not ${String(name)}`);
  }
  return code;
}

function numberOf(options, name) {
  const value = options[name];
  if (value === undefined) return 0;
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
    throw errorOf(STATUS.TYPE, `the option ${name} is a number that is not negative`);
  }
  return value;
}

/* The arguments of the addon's open. */
function argumentsOf(path, options) {
  for (const name of Object.keys(options)) {
    if (!KNOWN.has(name)) {
      throw errorOf(STATUS.TYPE, `open has no option ${name}: there are ${[...KNOWN].join(', ')}`);
    }
  }
  const flags = (options.anyFilesystem ? ANY_FILESYSTEM : 0) | (options.acceptLostCommits ? ACCEPT_LOST_COMMITS : 0);
  return [path === undefined ? null : path, options.create !== false, Boolean(options.readOnly),
    durabilityOf(options.durability), numberOf(options, 'timeout'), numberOf(options, 'fileMode'), flags,
    options.shmDir === undefined ? null : options.shmDir, numberOf(options, 'waitLimit'), numberOf(options, 'maxSize')];
}

function entered(key, handle) {
  const entry = {key, handle, users: 1};
  open.set(key, entry);
  return entry;
}

/* Opens a database, or joins who has it open; answers an entry for `release`. */
function acquire(path, options) {
  const given = argumentsOf(path, options);
  const key = JSON.stringify(given);
  const entry = open.get(key);
  if (entry) {
    entry.users++;
    return entry;
  }
  const handle = native.open(...given);
  if (handle === undefined) throw lastError('open');
  return entered(key, handle);
}

/* Opens a database or joins its users without stopping the event loop; calls back with (error, entry). */
function acquireLater(path, options, callback) {
  const given = argumentsOf(path, options);
  const key = JSON.stringify(given);
  if (open.has(key)) {
    const entry = acquire(path, options);
    queueMicrotask(() => callback(null, entry));
    return;
  }
  const started = native.openLater((handle) => {
    if (handle === undefined) return callback(lastError('open'));
    const other = open.get(key);
    if (!other) return callback(null, entered(key, handle));
    /* Opened twice at once: the first stays. */
    native.close(handle);
    other.users++;
    return callback(null, other);
  }, ...given);
  if (started === undefined) throw lastError('open');
}

/* Closes with the last user. */
function release(entry) {
  entry.users--;
  if (entry.users > 0) return;
  open.delete(entry.key);
  native.close(entry.handle);
}

module.exports = {acquire, acquireLater, release, durabilityOf};
