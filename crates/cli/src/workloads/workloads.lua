-- The Lua side of `perilune bench lua`: every workload once for each line on the standard input.
--
-- Arguments: the database. It writes lines of words with tabs between them: `lua NAME`; `out WORKLOAD WHY` for what
-- this Lua cannot do; `row WORKLOAD VALUE` in the workload's unit; `ready` before each round. What a workload finds
-- is checked each time. CPU time is measured, as the programs did whose workloads these are.

local perilune = require 'perilune'
local sha512 = require 'sha512'

local path = ...
local db = perilune.open(path, {durability = 'none'})
local node = db.node
local clock = os.clock
local has_module, host = pcall(require, 'perilune_bench')
local jit = rawget(_G, 'jit')
local workloads = {}

local function tell(...)
  io.write(table.concat({...}, '\t'), '\n')
end

-- A workload: `run` does it `times` times, and its row is the time of one in seconds / `unit`.
local function workload(name, times, unit, run)
  workloads[#workloads + 1] = function()
    local began = clock()
    run(times)
    tell('row', name, string.format('%.9g', (clock() - began) / times / unit))
  end
end

local MS, US, NS = 1e-3, 1e-6, 1e-9

-- Nodes.
workload('node-26', 5000, US, function(times)
  for _ = 1, times do local _ = node('a').b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z end
end)

local person = node('^person')
local function dots(times)
  for _ = 1, times do local _ = person.name.first end
end
dots(1000)
workloads[#workloads + 1] = function()
  collectgarbage()
  collectgarbage('stop')
  local before = collectgarbage('count')
  dots(100000)
  local after = collectgarbage('count')
  collectgarbage('restart')
  tell('row', 'dots-memory', string.format('%.9g', math.floor((after - before) * 1024 / 100000 * 1000 + 0.5) / 1000))
end

-- Values: of one node, and of children with integers.
local value = node('^value', 'of', 'one')
value.__ = 4711
local Step = node('^stepping')
for i = 1, 10000 do Step[i].__ = i end
workload('get', 50000, NS, function(times)
  local sum = 0
  for _ = 1, times do sum = sum + value.__ end
  assert(sum == 4711 * times)
end)
workload('get-method', 50000, NS, function(times)
  local sum = 0
  for _ = 1, times do sum = sum + value:get() end
  assert(sum == 4711 * times)
end)
workload('set', 50000, NS, function(times)
  for i = 1, times do value.__ = i end
  value.__ = 4711
end)
workload('get-child', 50000, NS, function(times)
  local sum = 0
  for i = 1, times do sum = sum + Step[i % 10000 + 1].__ end
  assert(sum == times / 10000 * 50005000)
end)
workload('set-child', 50000, NS, function(times)
  for i = 1, times do
    local n = i % 10000 + 1
    Step[n].__ = n
  end
end)

-- Walks over 10,000 children.
local ten = {'this', 'is', 'a', 'fair', 'number', 'of', 'subscripts', 'on', 'a', 'glvn'}
local seed = 1
local function random(below)
  seed = seed * 16807 % 2147483647
  return seed % below
end
local function walked(name, top)
  top:kill()
  for i = 1, 10000 do top(i).__ = random(2147483646) end
  workload(name .. '-subscripts', 3, MS, function(times)
    for _ = 1, times do
      local count = 0
      for _ in top:subscripts() do count = count + 1 end
      assert(count == 10000)
    end
  end)
  workload(name .. '-pairs', 3, MS, function(times)
    for _ = 1, times do
      local count = 0
      for _, _ in top:pairs() do count = count + 1 end
      assert(count == 10000)
    end
  end)
end
walked('^BCAT', node('^BCAT', 'lvd'))
walked('LBCAT', node('LBCAT', 'lvd'))
walked('^var', node('^var', ten))
walked('lvar', node('lvar', ten))

-- Trees of 5 + 25 + 125 + 625 + 3125 records.
local function plant(at, depth, number)
  for i = 1, 5 do
    at(i).__ = number + i
    if depth > 1 then plant(at(i), depth - 1, (number + i) * 10) end
  end
end
local function tree(name, top)
  top:kill()
  plant(top, 5, 0)
  workload(name .. '-filter', 3, MS, function(times)
    for _ = 1, times do
      local count = 0
      top:gettree(nil, function(_, _, found) count = count + (found and 1 or 0) end)
      assert(count == 3905)
    end
  end)
  workload(name .. '-gettree', 3, MS, function(times)
    for _ = 1, times do assert(top:gettree()[5][5][5][5][5] == 55555) end
  end)
end
tree('^tree', node('^tree'))
tree('ltree', node('ltree'))
local grown = node('^tree'):gettree()
local garden = node('^garden')
workload('settree', 1, MS, function()
  garden:settree(grown)
end)

-- Strings: 10, 1,000 and 1,000,000 bytes.
local pieces = {}
for i = 1, 250 do pieces[i] = string.char(random(127) + 1) end
local megabyte = table.concat(pieces):rep(4000)
local blank = ' \t\r\n\f\22'
local inner = '^[' .. blank .. ']*(.*[^' .. blank .. '])'
local empty = '^()[' .. blank .. ']*$'
local match = string.match
local function strip(text)
  return match(text, empty) and '' or match(text, inner)
end
local function strips(name, message, stripped)
  for size, times in pairs {[10] = 2000, [1000] = 1000, [1000000] = 2} do
    local text = ' ' .. ('x'):rep(1) .. megabyte:sub(1, size - 4) .. 'x '
    local source, target = message[size], stripped[size]
    source.__ = text
    workload(name .. '-' .. size, times, US, function(count)
      for _ = 1, count do target.__ = strip(source.__) end
      assert(#target.__ == size - 2)
    end)
  end
end
strips('strip', node('message'), node('stripped'))
strips('^strip', node('^message'), node('^stripped'))

-- SHA-512 of text that is read from the database each time.
local function library()
  if not jit then return has_module and host.sha512, 'needs perilune_bench.so, which make -C bindings/lua builds, and libcrypto' end
  local ffi = require 'ffi'
  ffi.cdef 'unsigned char *SHA512(const unsigned char *, size_t, unsigned char *);'
  for _, name in ipairs {'libcrypto.so.3', 'libcrypto.so.1.1', 'crypto'} do
    local found, crypto = pcall(ffi.load, name)
    if found then
      local digest = ffi.new 'unsigned char[64]'
      return function(text)
        crypto.SHA512(text, #text, digest)
        return ffi.string(digest, 64)
      end
    end
  end
  return nil, 'there is no libcrypto'
end
local in_c, why = library()
local function hexadecimal(bytes)
  return (bytes:gsub('.', function(c) return string.format('%02x', c:byte()) end))
end
local function hashes(name, hash, reason)
  local source = node('^random')
  for size, times in pairs {[10] = 500, [1000] = 200, [1000000] = 1} do
    local from = source[size]
    from.__ = megabyte:sub(1, size)
    if hash then
      if in_c then assert(hexadecimal(in_c(from.__)) == (hash == in_c and hexadecimal(hash(from.__)) or hash(from.__))) end
      workload(name .. '-' .. size, times, US, function(count)
        for _ = 1, count do hash(from.__) end
      end)
    else
      tell('out', name .. '-' .. size, reason)
    end
  end
end
hashes('sha512-lua', sha512.hash, 'the numbers of this Lua have 53 bits')
hashes('sha512-c', in_c, why)

-- Calls of an empty function from C. The embedded LuaJIT's host measures its own.
if has_module then
  local function nothing() end
  workload('host-call', 100000, US, function(times) host.call(nothing, times) end)
elseif not rawget(_G, 'PERILUNE_HOST') then
  tell('out', 'host-call', 'needs perilune_bench.so, which make -C bindings/lua builds')
end

tell('lua', jit and jit.version or _VERSION)
tell 'ready'
io.flush()
for _ in io.lines() do
  for _, run in ipairs(workloads) do run() end
  tell 'ready'
  io.flush()
end
db:close()
