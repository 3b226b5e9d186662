-- LuaJIT only: values of nodes and steps of loops by FFI calls, and ^name(integer) as a struct that the
-- compiler sinks.
--
-- In a compiled loop Step[n].__ makes no object at all: the struct below lives in registers, and the call
-- goes straight to the library. What is not done here (other methods, errors, text that is no number
-- or string) is done by the same C functions as on every Lua.
--
-- Invariants
-- - The functions that are called are those of src/jit.c. What they cannot do (NaN, long text, other types, errors,
--   anything read while a debug hook is set) the C function of the same name does: it makes the call again, and
--   raises, dooms the transaction or opens a session after fork().
-- - Between a call and the end of its result's reading nothing is allocated: no box for a pointer or a 64-bit integer,
--   no nested struct. So no finalizer runs there. Arguments are passed by value.
-- - The structs mirror those of src/module.h. Nothing is read of a userdata whose metatable is no class of
--   nodes, nor of a method node without a key (its magic differs).
-- - What a step of a loop gave lies in its walk, which `busy` keeps for the step until all of it is copied: a
--   hook or a finalizer may run between any two lines.

-- Taken now: the names may be the program's own later.
local pairs, rawget = pairs, rawget

local ffi = require 'ffi'

local NODE_MAGIC = 0x504c4e31
local LIMIT = 2 ^ 37 -- as in src/light.c, so that all Lua have the same bounds
local NOTHING, NUMBER, TEXT, FALSE, TRUE = 0, 1, 2, 3, 4
local SET_IT = 0
local GET, SET = 1, 2 -- numbers of methods, by their place in src/methods.c
local names, numbers = {}, {}
local EXACT = 2 ^ 53
local OK = 0
local ABSENT, STRING, INT, BOOL = 0, 1, 2, 5
local IDLE, STEPPING, HANDED_OVER = 0, 1, 2 -- as in src/walk.c

ffi.cdef [[
typedef struct {
  uint32_t magic; uint16_t class_id; uint8_t method; uint8_t derived;
  void *db; uint32_t place; uint32_t keeps; uint64_t serial; uint64_t key[1];
} perilune_lua_node;
typedef struct {
  void *db; uint16_t class_id; uint8_t derived; void *root;
} perilune_lua_place;
typedef struct { double subscript; int32_t place; int32_t method; } perilune_lua_light;
typedef struct { uint64_t magic; void *db; void *session; void *live; } perilune_lua_database;
typedef struct {
  int32_t type; uint32_t reserved;
  union { int64_t i; double d; struct { const char *p; size_t n; } s; } as;
} perilune_lua_value;
typedef struct {
  void *cursor; perilune_lua_database *db; perilune_lua_value subscript, value; int32_t status, busy;
} perilune_lua_walk;
typedef int (*perilune_lua_next)(void *, perilune_lua_value *, perilune_lua_value *, int32_t *);
typedef struct { double number; int32_t size; char bytes[4092]; } perilune_lua_result;
typedef int (*perilune_lua_get)(void *, const void *, perilune_lua_result *);
typedef int (*perilune_lua_get_child)(const perilune_lua_place *, int64_t, perilune_lua_result *);
typedef int (*perilune_lua_set_number)(void *, const void *, double);
typedef int (*perilune_lua_set_text)(void *, const void *, const char *, size_t);
typedef int (*perilune_lua_set_child_number)(const perilune_lua_place *, int64_t, double);
typedef int (*perilune_lua_set_child_text)(const perilune_lua_place *, int64_t, const char *, size_t);
]]

local light = ffi.typeof 'perilune_lua_light'
local node_pointer = ffi.typeof 'perilune_lua_node *'
local walk_pointer = ffi.typeof 'perilune_lua_walk *'
local cast, istype, text = ffi.cast, ffi.istype, ffi.string
local type, tonumber, getmetatable = type, tonumber, getmetatable

local places, result, bytes, cursor_next, classes, child_of, hand_over
local get_value, get_child, set_number, set_text, set_child_number, set_child_text
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

-- What `found` holds; false as the second result when only C can make it.
local function made(found)
  local kind = found.type
  if kind == INT then
    local number = tonumber(found.as.i)
    if number > -EXACT and number < EXACT then return number, true end
  elseif kind == STRING then
    return text(found.as.s.p, found.as.s.n), true
  elseif kind == BOOL then
    return found.as.i ~= 0, true
  end
  return nil, kind == ABSENT
end

local function get_light(node, default)
  if node.method == 0 then
    local kind = get_child(places + node.place, node.subscript, result)
    if kind == NUMBER then return result.number end
    if kind == NOTHING then return default end
    if kind == TEXT then return text(bytes, result.size) end
    if kind == TRUE then return true end
    if kind == FALSE then return false end
  end
  local found = c_get(full(node), default)
  return found
end

local function get_full(node, default)
  local n = inside(node)
  if n then
    local kind = get_value(n.db, n.key, result)
    if kind == NUMBER then return result.number end
    if kind == NOTHING then return default end
    if kind == TEXT then return text(bytes, result.size) end
    if kind == TRUE then return true end
    if kind == FALSE then return false end
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
  if node.method == 0 then
    local kind = type(new)
    if kind == 'number' then
      if set_child_number(places + node.place, node.subscript, new) == SET_IT then return new end
    elseif kind == 'string' then
      if set_child_text(places + node.place, node.subscript, new, #new) == SET_IT then return new end
    end
  end
  c_set(full(node), new)
  return new
end

local function set(node, new)
  if type(node) == 'userdata' then
    local n = inside(node)
    if n then
      local kind = type(new)
      if kind == 'number' then
        if set_number(n.db, n.key, new) == SET_IT then return new end
      elseif kind == 'string' then
        if set_text(n.db, n.key, new, #new) == SET_IT then return new end
      end
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
    if not istype(light, a) then a, b = b, a end
    if type(b) ~= 'userdata' or places[a.place].db == nil then return false end
    return full(a) == b
  end,
  __lt = function(a, b) return c_lt(either(a), either(b)) end,
  __le = function(a, b) return c_le(either(a), either(b)) end,
  __tostring = function(node) return c_tostring(full(node)) end,
  __pairs = function(node) return full(node):pairs() end,
})

-- A step of the walk `w`: true when it gave something.
local function step(w, into)
  if w.busy ~= IDLE or w.cursor == nil or w.db.live == nil then return false end
  w.busy = STEPPING
  local status = cursor_next(w.cursor, w.subscript, into, nil)
  if status == OK then return true end
  w.status = status
  w.busy = HANDED_OVER
  return false
end

-- Leaves the rest of a step to C.
local function leave(w)
  w.status = OK
  w.busy = HANDED_OVER
end

local function subscripts_of(walk)
  local w = cast(walk_pointer, walk)
  return function()
    if step(w, nil) then
      local subscript, good = made(w.subscript)
      if good then
        w.busy = IDLE
        return subscript
      end
      leave(w)
    end
    local subscript = hand_over(walk)
    return subscript
  end
end

local function pairs_of(walk)
  local w = cast(walk_pointer, walk)
  return function()
    if step(w, w.value) then
      local subscript, good = made(w.subscript)
      local found, found_good = made(w.value)
      if good and found_good then
        w.busy = IDLE
        return subscript, found
      end
      leave(w)
    end
    local subscript, found = hand_over(walk)
    return subscript, found
  end
end

-- The iterator of a walk. C calls it, so that a loop's own code, which makes walks, can be compiled: this cannot.
local function iterator(walk, pairs)
  if pairs then return pairs_of(walk) end
  return subscripts_of(walk)
end

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
  local at = {extend(either, extend_class, iterator)}
  places, result = cast('perilune_lua_place *', at[1]), cast('perilune_lua_result *', at[2])
  bytes = cast('const char *', result.bytes)
  get_value, get_child = cast('perilune_lua_get', at[3]), cast('perilune_lua_get_child', at[4])
  set_number, set_text = cast('perilune_lua_set_number', at[5]), cast('perilune_lua_set_text', at[6])
  set_child_number = cast('perilune_lua_set_child_number', at[7])
  set_child_text = cast('perilune_lua_set_child_text', at[8])
  cursor_next = cast('perilune_lua_next', at[12])
  classes, child_of, hand_over = at[9], at[10], at[13]
  -- After a few closures of a function the compiler asks no more which one it is.
  for _ = 1, 8 do local _ = subscripts_of(nil), pairs_of(nil) end
  for name, number in pairs(at[11]) do
    if type(number) == 'number' then names[number], numbers[name] = name, number end
  end
  return light
end
