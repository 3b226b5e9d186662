'use strict';
/*
 * The flavour of mg-dbx-napi: server, mglobal, mcursor, mclass.
 */
const {Connection} = require('./server');
const {mglobal} = require('./mglobal');
const {mcursor} = require('./mcursor');
const {invalid} = require('../errors');

class server extends Connection {}

class mclass {
  constructor() {
    throw invalid('mclass: there are no classes of IRIS here');
  }
}

module.exports = {server, mglobal, mcursor, mclass};
