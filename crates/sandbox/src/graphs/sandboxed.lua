-- What perilune/graph.lua has in programs from its C module, for scripts of a server and functions of SQL: the host answers.
--
-- A graph and a walk are numbers of the run. All of a run is one transaction, so there is nothing to begin and no snapshot.
local perilune, cjson = perilune, cjson
local concat, error, format, ipairs, pairs, pcall = table.concat, error, string.format, ipairs, pairs, pcall
local tonumber, tostring, type, unpack = tonumber, tostring, type, unpack

-- The host's functions. What they raise says where in this file, which is of no use.
local host = {}
for name in ([[create open add_vertex delete_vertex has_vertex set_label set_index get set add_edge delete_edge degree ask
    walk next path prune lead]]):gmatch '%S+' do
  local ask = perilune_graph[name]
  host[name] = function(...)
    local good, answer = pcall(ask, ...)
    if good then return answer end
    error((tostring(answer):gsub('^[^:]*:%d+: ', '')), 0)
  end
end

local db = {node = perilune.node}

function db.transaction(_, options, f) return (f or options)() end
function db.snapshot() error('a script reads in its own transaction', 2) end
function db.close() end

-- Functions that take properties: calls of a script cannot be made all or nothing afterwards.
local M = {adds_whole = true}

local null = cjson and cjson.null
-- Integers beyond come as strings, which the host takes for the integers that they are.
local EXACT = 9007199254740992

local function id_of(vertex)
  if type(vertex) == 'table' then return tostring(vertex) end
  return vertex
end

-- Properties as names and values in turn. Null is no value that a host is told.
local function flat(properties, list)
  for name, value in pairs(properties or {}) do
    list[#list + 1] = name
    if value == null then error('a property of a script is no null: leave it out', 0) end
    list[#list + 1] = value
  end
  return list
end

function M.sees_one_state() return true end

-- The id that a vertex has when it comes back.
function M.vertex(vertex)
  local id = id_of(vertex)
  if type(id) == 'string' and (id == '0' or id:find '^%-?[1-9]%d*$') then
    local number = tonumber(id)
    if number >= -EXACT and number <= EXACT then return number end
  end
  if type(id) ~= 'string' and type(id) ~= 'number' then
    error('a vertex must be a string, an integer or a node, not a ' .. type(id), 0)
  end
  return id
end

function M.create(node, weight) return host.create(tostring(node), weight), db end
function M.open(node) return host.open(tostring(node)), db end

function M.add_vertex(graph, _, id, labels, properties)
  local list = {}
  for i, label in ipairs(labels or {}) do list[i] = label end
  host.add_vertex(graph, id_of(id), #list, unpack(flat(properties, list)))
end

function M.delete_vertex(graph, _, id, with_edges) host.delete_vertex(graph, id_of(id), with_edges) end
function M.has_vertex(graph, _, id) return host.has_vertex(graph, id_of(id)) end
function M.set_label(graph, _, id, label, is_set) host.set_label(graph, id_of(id), label, is_set) end
function M.set_index(graph, _, label, property, is_kept) host.set_index(graph, label, property, is_kept) end
function M.get(graph, _, id, name) return host.get(graph, false, id_of(id), name) end
function M.set(graph, _, id, name, value) host.set(graph, false, id_of(id), name, value) end
function M.get_edge(graph, _, edge, name) return host.get(graph, true, edge, name) end
function M.set_edge(graph, _, edge, name, value) host.set(graph, true, edge, name, value) end

function M.add_edge(graph, _, source, kind, target, properties)
  return host.add_edge(graph, id_of(source), kind, id_of(target), unpack(flat(properties, {})))
end

function M.delete_edge(graph, _, edge) host.delete_edge(graph, edge) end
function M.degree(graph, _, id, direction, kind) return host.degree(graph, id_of(id), direction, kind) end

function M.ask(graph, _, question, arguments, options)
  return host.ask(graph, question, options or '', unpack(arguments))
end

function M.walk(graph, _, starts, options)
  local ids = {}
  for i, start in ipairs(starts) do ids[i] = id_of(start) end
  return host.walk(graph, options, unpack(ids))
end

function M.next(walk)
  local found = host.next(walk)
  if found then return found[1], found[2], found[3] end
end

function M.path(walk)
  local path = host.path(walk)
  return path[1], path[2]
end

function M.prune(walk) host.prune(walk) end

function M.lead(walk, _, ids, costs, ranks)
  local lines = {}
  for i, id in ipairs(ids) do lines[i] = format('%d %.17g %.17g', id, costs[i], ranks[i]) end
  host.lead(walk, concat(lines, '\n'))
end

function M.close() end

return M
