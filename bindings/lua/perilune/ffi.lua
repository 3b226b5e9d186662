-- LuaJIT only: values of nodes by FFI calls, and ^name(integer) as a struct that the compiler sinks.
--
-- In a compiled loop Step[n].__ makes no object at all: the struct below lives in registers, and the call
-- goes straight to the library. What is not done here (other methods, errors, text that is no number
-- or string) is done by the same C functions as on every Lua.
--
-- Invariants
-- - Only statuses 0 and 1 are handled here; on any other the C function makes the call again, and
--   raises, dooms the transaction or opens a session after fork().
-- - The structs mirror those of src/module.h. Nothing is read of a userdata whose metatable is no class of
--   nodes, nor of a method node without a key (its magic differs).

local ffi = require 'ffi'

local NODE_MAGIC = 0x504c4e31
local LIMIT = 2 ^ 37 -- as in src/light.c, so that all Lua have the same bounds
local EXACT = 2 ^ 53
local OK, NOT_FOUND = 0, 1
local GET, SET = 1, 2 -- numbers of methods, by their place in src/methods.c
local names, numbers = {}, {}
local STRING, INT, BOOL = 1, 2, 5

ffi.cdef [[
typedef struct { uint64_t magic; void *db; void *session; void *live; } perilune_lua_database;
typedef struct {
  uint32_t magic; uint16_t class_id; uint8_t method; uint8_t derived;
  perilune_lua_database *db; uint32_t place; uint32_t keeps; uint64_t serial; uint64_t key[1];
} perilune_lua_node;
typedef struct {
  perilune_lua_database *db; uint16_t class_id; uint8_t derived; void *root;
} perilune_lua_place;
typedef struct { double subscript; int32_t place; int32_t method; } perilune_lua_light;
typedef struct {
  int32_t type; uint32_t reserved;
  union { int64_t i; double d; struct { const char *p; size_t n; } s; } as;
} perilune_lua_value;
typedef int (*perilune_lua_get)(void *, const void *, perilune_lua_value *);
typedef int (*perilune_lua_set)(void *, const void *, const perilune_lua_value *);
typedef int (*perilune_lua_get_int)(void *, const void *, int64_t, perilune_lua_value *);
typedef int (*perilune_lua_set_int)(void *, const void *, int64_t, const perilune_lua_value *);
]]

local light = ffi.typeof 'perilune_lua_light'
local node_pointer = ffi.typeof 'perilune_lua_node *'
local value = ffi.new 'perilune_lua_value'
local cast, istype, text = ffi.cast, ffi.istype, ffi.string
local type, tonumber, getmetatable = type, tonumber, getmetatable

local places, get_value, set_value, get_integer, set_integer, classes, child_of
local c_index, c_newindex, c_get, c_set, c_lt, c_le, c_tostring, c_call

-- Classes, as keys.
local known = setmetatable({}, {__mode = 'k'})

-- What lies in the userdata of a node; nil for anything else.
local function inside(node)
  if known[getmetatable(node) or 0] then
    local n = cast(node_pointer, node)
    if n.magic == NODE_MAGIC then return n end
  end
end

-- The node in a userdata, as C's functions take it.
local function full(node)
  return child_of(node.place, node.subscript, node.method)
end

-- Children with text as the subscript: node -> {text -> child}. A hit needs no C function, which compiled
-- code could not call in a metamethod. What a node keeps ends with it, and is bounded.
local KEPT_MAX = 64
local kept = setmetatable({}, {__mode = 'k'})
local kept_count = setmetatable({}, {__mode = 'k'})

local function text_child(node, key, keeps)
  local child = c_index(node, key)
  if keeps == 0 then return child end
  local children = kept[node]
  local count = kept_count[node] or 0
  if #key > 40 or key:sub(1, 2) == '__' then return child end
  if not children or count >= KEPT_MAX then
    children, count = {}, 0
    kept[node] = children
  end
  children[key] = child
  kept_count[node] = count + 1
  return child
end

-- What `value` holds; false as the second result when only C can make it.
local function result()
  local kind = value.type
  if kind == INT then
    local number = tonumber(value.as.i)
    if number >= -EXACT and number <= EXACT then return number, true end
  elseif kind == STRING then
    return text(value.as.s.p, value.as.s.n), true
  elseif kind == BOOL then
    return value.as.i ~= 0, true
  end
  return nil, false
end

-- Puts `x` into `value`; false when only C can.
local function take(x)
  local kind = type(x)
  if kind == 'number' then
    if x % 1 == 0 and x > -EXACT and x < EXACT then
      value.type = INT
      value.as.i = x
      return true
    end
  elseif kind == 'string' then
    value.type = STRING
    value.as.s.p = x
    value.as.s.n = #x
    return true
  end
  return false
end

local function get_light(node, default)
  local place = places[node.place]
  local db = place.db
  if db ~= nil and node.method == 0 then
    local live = db.live
    if live ~= nil then
      local status = get_integer(live, place.root, node.subscript, value)
      if status == NOT_FOUND then return default end
      if status == OK then
        local found, good = result()
        if good then return found end
      end
    end
  end
  local found = c_get(full(node), default)
  return found
end

local function get_full(node, default)
  local n = inside(node)
  if n then
    local live = n.db.live
    if live ~= nil then
      local status = get_value(live, n.key, value)
      if status == NOT_FOUND then return default end
      if status == OK then
        local found, good = result()
        if good then return found end
      end
    end
  end
  local found = c_get(node, default)
  return found
end

local function get(node, default)
  if type(node) == 'userdata' then return get_full(node, default) end
  if istype(light, node) then return get_light(node, default) end
  local found = c_get(node, default)
  return found
end

local function set_light(node, new)
  local place = places[node.place]
  local db = place.db
  if db ~= nil and node.method == 0 then
    local live = db.live
    if live ~= nil and take(new) and set_integer(live, place.root, node.subscript, value) == OK then return new end
  end
  c_set(full(node), new)
  return new
end

local function set(node, new)
  if type(node) == 'userdata' then
    local n = inside(node)
    if n then
      local live = n.db.live
      if live ~= nil and take(new) and set_value(live, n.key, value) == OK then return new end
    end
  elseif istype(light, node) then
    return set_light(node, new)
  end
  c_set(node, new)
  return new
end

local function index(node, key)
  if type(node) == 'userdata' then
    local children = kept[node]
    if children then
      local child = children[key]
      if child then return child end
    end
    local n = inside(node)
    if n then
      if type(key) == 'number' then
        local place = n.place
        if place ~= 0 and key % 1 == 0 and key >= -LIMIT and key < LIMIT then return light(key, place, 0) end
      elseif key == '__' then
        if n.derived == 0 then return get_full(node) end
        return getmetatable(node).get(node)
      elseif type(key) == 'string' then
        local child = text_child(node, key, n.keeps)
        return child
      end
    end
  end
  local child = c_index(node, key)
  return child
end

local function newindex(node, key, new)
  if key == '__' and type(node) == 'userdata' then
    local n = inside(node)
    if n and n.derived == 0 then
      set(node, new)
      return
    end
  end
  c_newindex(node, key, new)
end

local function either(node)
  if istype(light, node) then return full(node) end
  return node
end

-- The call of a method node: node:get() and node:set() without C's stack.
local function call(method, ...)
  local node, argument = ...
  if type(method) == 'userdata' and (type(node) == 'userdata' or istype(light, node)) then
    local m = inside(method)
    if m then
      if m.derived == 0 then
        if m.method == GET then return get(node, argument) end
        if m.method == SET then return set(node, argument) end
      else
        if m.method == GET then return getmetatable(method).get(node, argument) end
        if m.method == SET then return getmetatable(method).set(node, argument) end
      end
    end
  end
  return c_call(method, ...)
end

local function call_light(method, node, ...)
  if method.method ~= 0 and istype(light, node) then
    local class = classes[method.place]
    if class then
      local member = class[names[method.method]]
      return member(node, ...)
    end
  end
  return c_call(full(method), node, ...)
end

ffi.metatype(light, {
  __index = function(node, key)
    if key == '__' then
      if places[node.place].derived == 0 then return get_light(node) end
      return classes[node.place].get(node)
    end
    local method = numbers[key]
    if method and node.method == 0 then return light(node.subscript, node.place, method) end
    local child = c_index(full(node), key)
    return child
  end,
  __newindex = function(node, key, new)
    if key ~= '__' then
      c_newindex(full(node), key, new)
    elseif places[node.place].derived == 0 then
      set_light(node, new)
    else
      classes[node.place].set(node, new)
    end
  end,
  __call = call_light,
  __eq = function(a, b)
    if istype(light, a) and istype(light, b) then
      return a.place == b.place and a.subscript == b.subscript and a.method == b.method
    end
    a, b = either(a), either(b)
    return type(a) == 'userdata' and type(b) == 'userdata' and a == b
  end,
  __lt = function(a, b) return c_lt(either(a), either(b)) end,
  __le = function(a, b) return c_le(either(a), either(b)) end,
  __tostring = function(node) return c_tostring(full(node)) end,
  __pairs = function(node) return full(node):pairs() end,
})

-- Gives a new class the functions above.
local function extend_class(class)
  known[class] = true
  c_index = c_index or class.__index
  c_newindex = c_newindex or class.__newindex
  c_call = c_call or class.__call
  c_lt, c_le, c_tostring = class.__lt, class.__le, class.__tostring
  class.__index, class.__newindex, class.__call = index, newindex, call
  if rawget(class, 'get') then
    c_get, c_set = c_get or class.get, c_set or class.set
    class.get, class.set = get, set
  end
end

-- Makes _perilune, whose function `extend` is given, use them.
return function(extend)
  local places_at, get_at, set_at, get_integer_at, set_integer_at, of, child, methods = extend(either, extend_class)
  places = cast('perilune_lua_place *', places_at)
  get_value, set_value = cast('perilune_lua_get', get_at), cast('perilune_lua_set', set_at)
  get_integer = cast('perilune_lua_get_int', get_integer_at)
  set_integer = cast('perilune_lua_set_int', set_integer_at)
  classes, child_of = of, child
  for name, number in pairs(methods) do
    if type(number) == 'number' then names[number], numbers[name] = name, number end
  end
  return light
end
