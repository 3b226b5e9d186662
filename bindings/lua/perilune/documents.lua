-- Documents: a table below a node, in JSdb's layout. docs/guide/documents.md introduces them.
--
--   local documents = require 'perilune.documents'
--   local ada = documents.at(db.node('^people', 'ada'))
--   ada:put {name = 'Ada', likes = {'numbers', 'engines'}}
--   ada:patch {born = 1815}
--   local name = ada:fetch().name

local calls = require 'perilune.calls'
local call, decoded, encoded, shape, unpack = calls.call, calls.decoded, calls.encoded, calls.shape, calls.unpack
local type = type

local methods = {
  patch = calls.writing('document.patch', 1),
  fetch = calls.reading('document.fetch', 0),
  count = calls.plain 'document.count',
  delete = calls.plain 'document.delete',
}
local at = calls.maker(methods)

-- Merges `value` into what is there, or with the option `replace` puts it in its place.
function methods:put(value, options)
  local first, typed = shape(self, options)
  local name = options and options.replace and 'document.replace' or 'document.put'
  call(self.node, name, encoded(self, value), first, typed)
end

-- Replaces the document, or what is at `path` (a table of subscripts) in it, by what `f` makes of it, in one transaction,
-- so that `f` may run several times; nil deletes it.
function methods:update(path, f)
  local document = self
  if f == nil then
    f = path
  else
    document = at(self.node(unpack(path)), self.options)
  end
  return (calls.database(self.node):transaction(function()
    local value = f(document:fetch())
    if value == nil then
      document:delete()
    else
      document:put(value, {replace = true})
    end
    return value
  end))
end

-- Goes through the names of children: for name in doc:each {prefix = 'a'} do
function methods:each(wanted)
  if wanted ~= nil and type(wanted) ~= 'table' then error('perilune: each takes a table of from, to, prefix, reverse', 2) end
  wanted = wanted or {}
  local text = call(self.node, 'document.children', wanted.from, wanted.to, wanted.prefix, wanted.reverse)
  local names, i = decoded(self, text), 0
  return function()
    i = i + 1
    return names[i]
  end
end

-- Goes through the leaves: for path, value in doc:leaves() do
function methods:leaves(options)
  local leaves, i = decoded(self, call(self.node, 'document.leaves', shape(self, options))), 0
  return function()
    i = i + 1
    if leaves[i] then return leaves[i][1], leaves[i][2] end
  end
end

return {at = at}
