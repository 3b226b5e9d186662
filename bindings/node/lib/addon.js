'use strict';
/*
 * Finds the addon: what $PERILUNE_NODE names, what came with the package for this platform, or what was built here.
 */
const fs = require('fs');
const path = require('path');

const home = path.join(__dirname, '..');
const places = [
  process.env.PERILUNE_NODE,
  path.join(home, 'prebuilds', `${process.platform}-${process.arch}`, 'perilune.node'),
  path.join(home, 'build', 'perilune.node'),
  path.join(home, '..', '..', 'build', 'node', 'perilune.node'),
];

const found = places.find((place) => place && fs.existsSync(place));
if (!found) {
  throw new Error(`perilune: no addon for ${process.platform}-${process.arch}: run \`npm rebuild perilune\`, which ` +
    'needs a C compiler and libperilune (see docs/guide/node.md)');
}

module.exports = require(path.resolve(found));
