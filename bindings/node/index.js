'use strict';
/* `require('perilune')`: the native interface. The flavours are subpaths: perilune/mg-dbx-napi and others. */
module.exports = require('./lib/perilune');
