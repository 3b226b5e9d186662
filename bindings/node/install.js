'use strict';
/*
 * npm runs this after it has unpacked the package. If the package has an addon for this platform, nothing is to be
 * done; else one is built, which takes a C compiler and libperilune: $LIBPERILUNE, or what pkg-config knows as
 * `perilune`.
 */
const {execFileSync} = require('child_process');
const fs = require('fs');
const path = require('path');

const prebuilt = path.join(__dirname, 'prebuilds', `${process.platform}-${process.arch}`, 'perilune.node');
/* In the project the addon lies elsewhere, and make builds it. */
const inProject = fs.existsSync(path.join(__dirname, 'Makefile'));

function headers() {
  const places = [process.env.NODE_INCDIR, path.join(path.dirname(process.execPath), '..', 'include', 'node'),
    '/usr/include/node', '/usr/local/include/node'];
  const found = places.find((place) => place && fs.existsSync(path.join(place, 'node_api.h')));
  if (!found) throw new Error('no node_api.h: install the headers of Node (Debian: libnode-dev), or set NODE_INCDIR');
  return found;
}

function library() {
  if (process.env.LIBPERILUNE) return [process.env.LIBPERILUNE];
  const dir = execFileSync('pkg-config', ['--variable=libdir', 'perilune'], {encoding: 'utf8'}).trim();
  return [path.join(dir, 'libperilune.a')];
}

function build() {
  const src = path.join(__dirname, 'src');
  const sources = fs.readdirSync(src).filter((name) => name.endsWith('.c')).map((name) => path.join(src, name));
  const out = path.join(__dirname, 'build', 'perilune.node');
  fs.mkdirSync(path.dirname(out), {recursive: true});
  execFileSync(process.env.CC || 'cc', ['-O2', '-std=gnu11', '-fPIC', '-fvisibility=hidden', '-shared',
    `-I${headers()}`, `-I${path.join(__dirname, 'include')}`, '-o', out, ...sources, ...library(),
    '-Wl,--exclude-libs,ALL', '-Wl,-Bsymbolic', '-Wl,--gc-sections', '-Wl,-z,nodelete', '-lpthread', '-ldl', '-lm'],
  {stdio: 'inherit'});
}

if (!fs.existsSync(prebuilt) && !inProject) {
  try {
    build();
  } catch (error) {
    console.error(`perilune: no addon for ${process.platform}-${process.arch}, and none could be built: ${error.message}\n` +
      'perilune: install libperilune and its header (make install), a C compiler, and set LIBPERILUNE to libperilune.a');
    process.exit(1);
  }
}
