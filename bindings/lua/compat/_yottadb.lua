-- `require '_yottadb'` for programs that use the low-level module. Old Luas get what `perilune.yottadb.globals` says.
require 'perilune.yottadb.globals'()
return require 'perilune.yottadb.low'
