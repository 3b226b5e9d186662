-- What lua-yottadb changes in a program's globals: Lua 5.1 and LuaJIT get `table.unpack`, and Lua 5.1 a `string.format`
-- whose %s takes any value, as that of later Luas does.
--
-- Only the compat directory calls this: a program that says `require 'perilune.yottadb'` keeps its globals.

-- The function `format` with a %s that takes any value.
local function tolerant(format)
  -- Arguments that %s would refuse, as text; the others as they are.
  local function readable(text, ...)
    if type(text) ~= 'string' then return ... end
    local arguments, at = {n = select('#', ...), ...}, 0
    for kind in text:gmatch '%%[-+ #0-9.]*(.)' do
      if kind ~= '%' then
        at = at + 1
        local is_refused = type(arguments[at]) ~= 'string' and type(arguments[at]) ~= 'number'
        if kind == 's' and at <= arguments.n and is_refused then arguments[at] = tostring(arguments[at]) end
      end
    end
    return unpack(arguments, 1, arguments.n)
  end
  local function answer(good, result)
    if good then return result end
    error((result:gsub("'%?'", "'format'")), 3)
  end
  return function(text, ...)
    -- In brackets: no tail call, so that the error is the caller's.
    return (answer(pcall(format, text, readable(text, ...))))
  end
end

return function()
  table.unpack = table.unpack or unpack
  if not pcall(string.format, '%s', nil) then string.format = tolerant(string.format) end
end
