'use strict';
/*
 * What a status of the addon becomes in JavaScript: a TypeError for an argument of a type that it may not have, else an
 * Error with `code` (the status without PERILUNE_) and `status`.
 */
const native = require('./addon');

/* Statuses of the addon's own (src/state.h), and the ones of perilune.h that decide something here. */
const STATUS = {TYPE: 1001, STALE: 1002, CONFLICT: -1, RESTART: -2, ROLLBACK: -3, INVALID: -9, CLOSED: -19, DOM: -36, GRAPH: -35};

/* A number that perilune.h knows, as CONFLICT. */
function codeOf(status) {
  if (status === STATUS.TYPE) return 'INVALID';
  return native.statusName(status).replace('PERILUNE_', '');
}

class PeriluneError extends Error {
  constructor(status, message) {
    const code = codeOf(status);
    super(message || code);
    this.name = 'PeriluneError';
    this.code = code;
    this.status = status;
  }
}

/* The error of a document, with the name that the DOM has for it: the message begins with that. */
function documentError(message, what) {
  const [, name, text] = /^(\w+): ([^]*)$/.exec(message) || [null, 'PeriluneError', message];
  const error = new PeriluneError(STATUS.DOM, what ? `${what}: ${text}` : text);
  error.name = name;
  return error;
}

/* The error of a graph, with the reason that its message begins with: NO_VERTEX, HAS_EDGES. */
function graphError(message, what) {
  const [, reason, text] = /^([A-Z_]+): ([^]*)$/.exec(message) || [null, undefined, message];
  const error = new PeriluneError(STATUS.GRAPH, what ? `${what}: ${text}` : text);
  error.reason = reason;
  return error;
}

/* The error of a call that has failed. `what` names it. */
function errorOf(status, message, what) {
  if (status === STATUS.DOM) return documentError(message, what);
  if (status === STATUS.GRAPH) return graphError(message, what);
  const text = what ? `${what}: ${message}` : message;
  if (status !== STATUS.TYPE) return new PeriluneError(status, text);
  const error = new TypeError(text);
  error.code = 'INVALID';
  error.status = STATUS.INVALID;
  return error;
}

/* The error of the addon's last call, which answered `undefined`. */
function lastError(what) {
  return errorOf(native.status(), native.message(), what);
}

function invalid(message) {
  return new PeriluneError(STATUS.INVALID, message);
}

module.exports = {STATUS, PeriluneError, codeOf, errorOf, lastError, invalid};
