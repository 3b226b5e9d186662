'use strict';
/* `require('perilune/mg-dbx')`: what mg-dbx and mg-dbx-bdb export. */
module.exports = require('../lib/mgdbx/dbx');
