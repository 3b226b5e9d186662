rockspec_format = '3.0'
package = 'perilune'
version = '0.1.0-1'
-- For `luarocks make bindings/lua/perilune-0.1.0-1.rockspec` in a checkout.
source = {url = 'git+file://.'}
description = {
   summary = 'An embedded database of an ordered tree of nodes, shared by processes',
   detailed = [[
Nodes ^name(subscript, ...) in a mapped file that many processes use at once, with transactions,
locks and watches. Needs a Rust toolchain to build libperilune, or LIBPERILUNE=path of libperilune.a.]],
   license = 'MIT OR Apache-2.0',
}
dependencies = {'lua >= 5.1, < 5.6'}
build = {
   type = 'make',
   makefile = 'bindings/lua/Makefile',
   build_variables = {
      LUA = '$(LUA_VERSION)', LUA_INCDIR = '$(LUA_INCDIR)', LUA_BIN = '$(LUA)', CFLAGS = '$(CFLAGS)',
   },
   install_variables = {
      LUA_LIBDIR = '$(LIBDIR)', LUA_SHAREDIR = '$(LUADIR)',
   },
}
