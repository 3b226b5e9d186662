'use strict';
/*
 * The flavour of mg-dbx: dbx, mglobal, mcursor, mclass; also dbxbdb of mg-dbx-bdb, which is the same.
 *
 * Differences from mg-dbx-napi: the calls of transactions answer numbers, a cursor has `format: 'url'`, objects may be had
 * from functions of the connection, and version() has three parts.
 */
const native = require('../addon');
const {Connection} = require('./server');
const {mglobal} = require('./mglobal');
const {mcursor} = require('./mcursor');
const {mclass} = require('./napi');

class dbx extends Connection {
  constructor() {
    super();
    this.hasUrls = true;
  }

  versionText() {
    return `Perilune.${native.version()};mg-dbx;${native.version()}`;
  }

  number(number) {
    return number;
  }

  mglobal(name, ...fixed) {
    return new mglobal(this, name, ...fixed);
  }

  mglobalquery(query, options) {
    return new mcursor(this, query, options);
  }

  function_bx(...given) {
    return Buffer.from(this.function(...given));
  }

  mglobal_close() {
    return '';
  }

  mglobalquery_close() {
    return '';
  }

  sql_close() {
    return '';
  }

  classmethod_close() {
    return '';
  }
}

module.exports = {dbx, dbxbdb: dbx, mglobal, mcursor, mclass};
