'use strict';
/* The QEWD server of the check: server.js PORT, with its application beside it. */
const path = require('path');
const qewd = require('qewd').master;

qewd.start({
  managementPassword: 'secret',
  serverName: 'check',
  port: Number(process.argv[2]),
  poolSize: 1,
  mode: 'production',
  webServerRootPath: __dirname,
  moduleMap: {counter: path.join(__dirname, 'counter.js')},
  database: {type: 'dbx-napi', params: {database: 'YottaDB', release: 'r1.30', architecture: 'x86'}},
});
