-- Calls f(...) so that an error comes back as its text with a traceback, and its code if it has one.

-- Taken before any program runs: one of its globals may be called so.
local getmetatable, traceback = debug.getmetatable, debug.traceback
local pcall, rawget, tostring, type, xpcall = pcall, rawget, tostring, type, xpcall

local function describe(e)
  local metatable = getmetatable(e)
  local code = type(e) == 'table' and rawget(e, 'code') or nil
  local text
  if type(e) == 'string' or type(e) == 'number' then
    text = tostring(e)
  elseif type(metatable) == 'table' and metatable.__tostring then
    local good, made = pcall(tostring, e)
    text = good and made or 'an error whose __tostring raises'
  else
    text = '(error object is a ' .. type(e) .. ' value)'
  end
  return {message = traceback(text, 2), code = type(code) == 'string' and code or nil}
end

return function(f, ...)
  return xpcall(f, describe, ...)
end
