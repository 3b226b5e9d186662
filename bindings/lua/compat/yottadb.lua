-- `require 'yottadb'` for programs that are not changed: this directory must be on LUA_PATH. As lua-yottadb, it gives
-- old Luas what `perilune.yottadb.globals` says; the modules themselves change nothing global.
require 'perilune.yottadb.globals'()
return require 'perilune.yottadb'
