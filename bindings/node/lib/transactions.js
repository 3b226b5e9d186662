'use strict';
/*
 * Transactions that run again by themselves.
 *
 * The loop is that of perilune.h. A function that runs inside one on the same session is a nested level, which runs once:
 * what must be run again goes on to the outermost.
 *
 * An open transaction belongs to the session, not to a callback: code that ran between its beginning and its end would be
 * inside it. So a function that answers a promise is refused: what it has done so far is rolled back.
 */
const native = require('./addon');
const {STATUS, errorOf, invalid} = require('./errors');

/* What `tx.rollback(value)` throws: the innermost transaction answers the value. */
class Rollback {
  constructor(value) {
    this.value = value;
  }
}

function isAgain(error) {
  return error !== null && typeof error === 'object' && (error.status === STATUS.CONFLICT || error.status === STATUS.RESTART);
}

function isPromise(value) {
  return value !== null && (typeof value === 'object' || typeof value === 'function') && typeof value.then === 'function';
}

function check(result, what) {
  if (result === undefined) throw errorOf(native.status(), native.message(), what);
  return result;
}

/* Calls the function; refuses a promise, whose failure nobody would hear of. */
function call(work) {
  const result = work();
  if (!isPromise(result)) return result;
  result.then(() => {}, () => {});
  throw invalid('a transaction is synchronous: its function may not be async, nor answer a promise');
}

function closeLevels(handle, depth) {
  while (native.level(handle) > depth) {
    if (native.rollback(handle, false) === undefined) return;
  }
}

/* One level inside another. */
function nested(handle, depth, work) {
  check(native.begin(handle, false, 0, 0, false), 'transaction');
  try {
    const result = call(work);
    closeLevels(handle, depth + 1);
    check(native.commit(handle), 'transaction');
    return result;
  } catch (error) {
    closeLevels(handle, depth);
    if (error instanceof Rollback) return error.value;
    throw error;
  }
}

/* One try of the outermost level: {result}, or {error} for good, or null to run again. */
function attempt(handle, options, work) {
  check(native.begin(handle, Boolean(options.readOnly), options.durability || 0, options.timeout || 0,
    options.exclusive || 0), 'transaction');
  let error;
  try {
    const result = call(work);
    closeLevels(handle, 1);
    if (native.level(handle) === 0) throw invalid('the function of a transaction has ended it');
    if (native.commit(handle) !== undefined) return {result};
    error = errorOf(native.status(), native.message(), 'transaction');
  } catch (thrown) {
    error = thrown;
    /* An error that rests on a state that never was is none. */
    if (!isAgain(error) && native.level(handle) > 0 && native.validate(handle) === undefined &&
        native.status() === STATUS.CONFLICT) {
      error = {status: STATUS.CONFLICT};
    }
  }
  closeLevels(handle, 0);
  return isAgain(error) ? null : {error};
}

/*
 * Runs `work` as a transaction and answers what it does. Throws what it throws, after a rollback; TRANSACTION_TIMEOUT when
 * all tries together took too long.
 */
function transact(handle, options, work) {
  const depth = check(native.level(handle), 'transaction');
  if (depth > 0) return nested(handle, depth, work);
  for (;;) {
    const ended = attempt(handle, options, work);
    if (ended) {
      if (!('error' in ended)) return ended.result;
      native.giveUp(handle);
      if (ended.error instanceof Rollback) return ended.error.value;
      throw ended.error;
    }
    check(native.retry(handle), 'transaction');
  }
}

module.exports = {transact, Rollback};
