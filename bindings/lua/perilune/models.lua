-- The patterns on globals of the literature: sets, hashes, records with indexes, columns, relations, networks.
-- docs/guide/documents.md introduces them, docs/reference/models.md lists the calls, which are the methods here.
--
--   local models = require 'perilune.models'
--   local people = models.records(db.node('^people'))
--   people:add_index {'town'}
--   local id = people:insert {name = 'Ada', town = 'London'}
--   local ids = people:find('by_town', {'London'})

local calls = require 'perilune.calls'

local select = select

-- The arguments of each call: p as it is, j as JSON. Behind them > if the answer is JSON.
local MODELS = {
  set = {add = 'p', remove = 'p', has = 'p', members = '>', count = ''},
  hash = {put = 'pp', get = 'p', delete = 'p', increment = 'pp', all = '>', count = ''},
  records = {
    insert = 'j', put = 'pj', edit = 'pj', delete = 'p', get = 'p>', find = 'pjppp>', ids = '>', count = '',
    add_index = 'j', delete_index = 'p', indices = '>', check = '>',
  },
  columns = {
    put = 'pj', row = 'p>', column = 'p>', find = 'pp>', range = 'ppp>', delete = 'p', rows = '>', columns = '>',
    check = '>',
  },
  relations = {
    table = 'pjp', insert = 'pj', update = 'pjj', get = 'pj>', rows = 'pj>', children = 'pjp>', parent = 'pj>',
    delete = 'pjp', check = '>',
  },
  network = {
    add_node = 'jp', add_edge = 'pppjp', get_node = 'p>', get_edge = 'p>', edit_node = 'pj', edit_edge = 'pj',
    delete_node = 'p', delete_edge = 'p', edges = 'p>', edges_of = 'ppp>', neighbours = 'ppp>', check = '>',
  },
}

local function method(name, form)
  local kinds, is_json = form:match '^(%a*)(>?)'
  return function(self, ...)
    local count = select('#', ...)
    local arguments = {...}
    for i = 1, #kinds do
      if kinds:sub(i, i) == 'j' and arguments[i] ~= nil then arguments[i] = calls.encoded(self, arguments[i]) end
    end
    local answer = calls.call(self.node, name, calls.unpack(arguments, 1, count))
    if is_json == '>' then answer = calls.decoded(self, answer) end
    return answer
  end
end

local models = {}

for model, forms in pairs(MODELS) do
  local methods = {}
  for name, form in pairs(forms) do methods[name] = method(model .. '.' .. name, form) end
  local at = calls.maker(methods)
  models[model] = function(node) return at(node) end
end

return models
