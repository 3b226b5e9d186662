-- `require 'yottadb'` for programs that are not changed: this directory must be on LUA_PATH.
return require 'perilune.yottadb'
