-- The numbers of YottaDB's errors and limits, and its call-in types.
--
-- Programs may compare them, so they are YottaDB's own; Perilune's errors are mapped to them in C.

local constants = {
  YDB_OK = 0,
  YDB_TP_RESTART = 2147483646,
  YDB_TP_ROLLBACK = 2147483645,
  YDB_LOCK_TIMEOUT = 2147483643,
  YDB_MAX_STR = 1048576,
  YDB_MAX_SUBS = 31,
  YDB_MAX_IDENT = 31,
  YDB_MAX_NAMES = 35,
  YDB_DATA_UNDEF = 0,
  YDB_DATA_VALUE_NODESC = 1,
  YDB_DATA_NOVALUE_DESC = 10,
  YDB_DATA_VALUE_DESC = 11,
  YDB_DEL_TREE = true,
  YDB_DEL_NODE = false,
  YDB_ERR_GVUNDEF = -150372994,
  YDB_ERR_LVUNDEF = -150373850,
  YDB_ERR_TPTIMEOUT = -150377322,
  YDB_ERR_NODEEND = -151027922,
  YDB_ERR_NUMOFLOW = -150373506,
  YDB_ERR_VARNAME2LONG = -151027842,
  YDB_ERR_INVVARNAME = -151027762,
  YDB_ERR_MAXNRSUBSCRIPTS = -150373282,
  YDB_ERR_LOCKSUB2LONG = -150382618,
  YDB_ERR_NAMECOUNT2HI = -151027810,
  YDB_ERR_INVSTRLEN = -150375522,
  YDB_ERR_TPCALLBACKINVRETVAL = -151028002,
}

-- Type names of call-in tables; programs only look them up, as there are no call-ins.
local types = {}
local number = 0
for _, name in ipairs {'void', 'char*', 'ydb_char_t*', 'string*', 'ydb_string_t*', 'ydb_buffer_t*', 'buffer*'} do
  types[name], number = number, number + 1
end
for _, name in ipairs {'int', 'uint', 'long', 'ulong', 'int64', 'uint64', 'float', 'double'} do
  for _, form in ipairs {name, name .. '*', 'ydb_' .. name .. '_t', 'ydb_' .. name .. '_t*'} do
    types[form], number = number, number + 1
  end
end

return {constants = constants, types = types}
