-- Whether compiled text has a constant that is no value of scripts: LuaJIT makes `1LL`, `1ULL` and `1i` C data of FFI's,
-- which come with a metatable and arithmetic of their own, and need no `ffi`.
--
-- Such a literal is a constant of the function that it stands in; a table of constants may have some, too.

local funck = ...
local type, next = type, next

local function has(code)
  local at = -1
  local constant = funck(code, at)
  while constant ~= nil do
    local kind = type(constant)
    if kind == 'cdata' or kind == 'proto' and has(constant) then return true end
    if kind == 'table' then
      for key, value in next, constant do
        if type(key) == 'cdata' or type(value) == 'cdata' then return true end
      end
    end
    at = at - 1
    constant = funck(code, at)
  end
  return false
end

return has
