-- The special variables ($name): those that a program without M needs.
--
-- Reading an unknown one is INVSVN, setting one that is not settable SVNOSET, as in YottaDB.

-- Taken now: the names may be the program's own later.
local math, os, pcall, select, string, tonumber, tostring = math, os, pcall, select, string, tonumber, tostring

local core = require '_perilune.yottadb'
local perilune = require 'perilune'
local zwrite = require 'perilune.yottadb.zwrite'

local INVSVN, SVNOSET, ZGBLDIRACC = -150373074, -150373770, -418809578
local DAYS_BEFORE_1970 = 47117 -- from 1840-12-31

local opened = {} -- databases by path, as given to $ZGBLDIR
local kept = {ecode = '', etrap = '', x = '0', y = '0', zcmdline = '', zinterrupt = '', zroutines = ''}

-- Calls perilune.open or perilune.use; their errors become strings.
local function guarded(f, ...)
  local good, result = pcall(f, ...)
  if good then return result end
  core.fail(ZGBLDIRACC, '%YDB-E-ZGBLDIRACC, the database cannot be opened: ' .. tostring(result))
end

-- The database of this process: $PERILUNE_DB, else $ydb_gbldir, else the default one.
local function open()
  local path = os.getenv 'ydb_gbldir'
  if (os.getenv 'PERILUNE_DB' or '') == '' and path and path ~= '' then
    return guarded(function() return perilune.use(perilune.open(path)) end)
  end
  return guarded(perilune.use)
end

local function switch(path)
  if core.levels() > 0 then
    core.fail(ZGBLDIRACC, '%YDB-E-ZGBLDIRACC, the database cannot be switched inside a transaction')
  end
  local db = opened[path]
  if not db or not pcall(db.level, db) or not db:path() then
    db = guarded(perilune.open, path ~= '' and path or nil)
    opened[path] = db
  end
  perilune.use(db)
end

-- Days and seconds of the local time, microseconds, and seconds west of Greenwich.
local function horolog()
  local seconds, micros = core.now()
  seconds = math.floor(seconds)
  local here = os.date('*t', seconds)
  here.isdst = false
  local utc = os.date('!*t', seconds)
  utc.isdst = false
  local east = os.difftime(os.time(here), os.time(utc))
  local at = seconds + east
  return math.floor(at / 86400) + DAYS_BEFORE_1970, at % 86400, micros, 0 - east
end

local function whole(number) return string.format('%.0f', number) end

local get = {
  horolog = function()
    local days, seconds = horolog()
    return whole(days) .. ',' .. whole(seconds)
  end,
  zhorolog = function()
    local days, seconds, micros, west = horolog()
    return whole(days) .. ',' .. whole(seconds) .. ',' .. whole(micros) .. ',' .. whole(west)
  end,
  zut = function()
    local seconds, micros = core.now()
    return whole(seconds) .. string.format('%06.0f', micros)
  end,
  job = function() return whole(core.process_id()) end,
  tlevel = function() return whole((core.levels())) end,
  trestart = function() return whole((select(2, core.levels()))) end,
  zmaxtptime = function() return core.numbertext(core.time_limit()) end,
  zstatus = function() return core.status() end,
  zgbldir = function() return (open()):path() end,
  zyrelease = function() return 'Perilune r2.07 Linux' end,
  zversion = function() return 'Perilune V' .. perilune._VERSION .. ' Linux' end,
  zchset = function() return zwrite.mode end,
  zdirectory = function() return (os.getenv 'PWD' or '') .. '/' end,
  system = function() return '47,perilune' end,
  storage = function() return '2147483647' end,
  reference = function() return '' end,
}

local set = {
  zgbldir = switch,
  zmaxtptime = function(value) core.time_limit(tonumber(value) or 0) end,
  zstatus = function(value) core.status(value) end,
}
for name in pairs(kept) do
  get[name] = function() return kept[name] end
  set[name] = function(value) kept[name] = value end
end

local short = {
  h = 'horolog', zh = 'zhorolog', j = 'job', tl = 'tlevel', tr = 'trestart', zmaxtp = 'zmaxtptime',
  zs = 'zstatus', zg = 'zgbldir', zyre = 'zyrelease', zv = 'zversion', zch = 'zchset', zd = 'zdirectory',
  sy = 'system', s = 'storage', r = 'reference', ec = 'ecode', et = 'etrap', zro = 'zroutines',
  zcm = 'zcmdline', zint = 'zinterrupt',
}

local function known(name)
  name = name:sub(2):lower()
  name = short[name] or name
  if not get[name] then core.fail(INVSVN) end
  return name
end

core.hooks.open = open
core.hooks.get = function(name) return get[known(name)]() end
core.hooks.set = function(name, value)
  local f = set[known(name)]
  if not f then core.fail(SVNOSET) end
  f(value == nil and '' or value)
  return value
end
