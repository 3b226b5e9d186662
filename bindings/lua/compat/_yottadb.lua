-- `require '_yottadb'` for programs that use the low-level module.
return require 'perilune.yottadb.low'
