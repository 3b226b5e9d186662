-- tp and transaction: M's transactions over C's loop, with local variables that are restored.
--
-- Local variables do not belong to a transaction: a rollback leaves them; a restart gives those that were
-- named ('*': all) what they had. They are kept under names with _, which no program of this module can say.

-- Taken now: the names may be the program's own later.
local error, ipairs, math, pairs, select, type = error, ipairs, math, pairs, select, type

local core = require '_perilune.yottadb'
local constants = require('perilune.yottadb.constants').constants

local GVNUNSUPPORTED = -151028074

-- Locks that the open transaction took: level -> lock -> count; read in C before one is released.
local taken = {}

core.hooks.taken = function(bytes, private, change, level)
  local lock, count = (private and 'l' or 'g') .. bytes, 0
  if change ~= 0 then
    taken[level] = taken[level] or {}
    taken[level][lock] = (taken[level][lock] or 0) + change
  end
  for _, counts in pairs(taken) do
    count = count + (counts[lock] or 0)
  end
  return count
end

core.hooks.ended = function(level, kept)
  local counts = taken[level]
  if not counts then return end
  taken[level] = nil
  if kept and level > 1 then
    local outer = taken[level - 1] or {}
    taken[level - 1] = outer
    for lock, count in pairs(counts) do
      outer[lock] = (outer[lock] or 0) + count
    end
  end
end

-- Raises what is wrong with a list of local names.
local function check_names(names, where)
  for i = 1, #names do
    if type(names[i]) ~= 'string' then
      error('bad argument to ' .. where .. ' (varnames must be strings, got ' .. type(names[i]) .. ')', 3)
    end
  end
  if #names > constants.YDB_MAX_NAMES then core.fail(constants.YDB_ERR_NAMECOUNT2HI) end
  for i = 1, #names do
    if names[i] ~= '*' or #names > 1 or where ~= 'tp' then
      local _, code = core.judge(names[i])
      if names[i]:sub(1, 1) == '^' then core.fail(GVNUNSUPPORTED) end
      if code ~= 0 then core.fail(code) end
    end
  end
end

local copies = 0 -- how many local variables are kept at this time

-- Keeps the local variables of `names`; returns what gives them back, and with true only forgets them.
local function keep(names)
  local all = names[1] == '*'
  local list, first = all and core.local_names() or names, copies
  local function hidden(i) return '_' .. (first + i) end
  copies = copies + #list
  for i, name in ipairs(list) do
    core.move_local(name, hidden(i), false)
  end
  return function(forget)
    if forget then
      for i = 1, #list do
        core.move_local('_', hidden(i), false) -- a copy of nothing
      end
      copies = first
      return
    end
    if all then
      for _, name in ipairs(core.local_names()) do
        core.kill(name)
      end
    end
    for i, name in ipairs(list) do
      core.move_local(hidden(i), name, false)
    end
  end
end

local function wrong(number, wanted, got)
  error('bad argument #' .. number .. " to 'tp' (" .. wanted .. ' expected, got ' .. type(got) .. ')', 3)
end

-- tp([id,][varnames,] f[, ...])
local function tp(...)
  local id, names, at = nil, nil, 1
  if type((...)) == 'string' then id, at = ..., 2 end
  local second = select(at, ...)
  if type(second) == 'table' then
    names, at = second, at + 1
  elseif second == nil and select('#', ...) > at then
    at = at + 1
  end
  local f = select(at, ...)
  if type(f) ~= 'function' then
    wrong(at, at == 1 and 'string/table/function' or not names and 'table of varnames/function' or 'function', f)
  end
  if names then check_names(names, 'tp') end
  local name = id and id:upper()
  local restore = names and #names > 0 and keep(names) or nil
  core.tp(name == 'BA' or name == 'BATCH', restore, select(at, ...))
end

-- delete_excl(names): deletes all local variables but those.
local function delete_excl(names)
  if type(names) ~= 'table' then
    error("bad argument #1 to 'delete_excl' (table of varnames expected, got " .. type(names) .. ')', 2)
  end
  check_names(names, 'delete_excl')
  local keep_them = {}
  for _, name in ipairs(names) do
    keep_them[name] = true
  end
  for _, name in ipairs(core.local_names()) do
    if not keep_them[name] then core.kill(name) end
  end
end

-- transaction([id,][varnames,] f): a function that runs f as a transaction.
local function transaction(...)
  local count = select('#', ...)
  local f = select(count > 0 and count or 1, ...)
  if type(f) ~= 'function' then
    error('bad argument #' .. math.max(count, 1) .. " to 'transaction' (function expected, got " .. type(f) .. ')', 2)
  end
  local head = {n = count - 1, ...}
  for i = 1, head.n do
    local kind = type(head[i])
    if not (kind == 'nil' or kind == 'table' or (kind == 'string' and i == 1)) or head.n > 2 then
      error('bad argument #' .. i .. " to 'transaction' (string/table expected, got " .. kind .. ')', 2)
    end
  end
  local function body(...)
    local result = f(...)
    if result == false then return nil end
    return result
  end
  local id, names
  for i = 1, head.n do
    if type(head[i]) == 'string' then id = head[i] elseif head[i] then names = head[i] end
  end
  return function(...)
    tp(id or '', names or {}, body, ...)
  end
end

return {tp = tp, delete_excl = delete_excl, transaction = transaction}
