-- Whether compiled text has a constant that scripts must not have. LuaJIT reads `1LL`, `1ULL` and `1i` as C data
-- of its FFI, which have a metatable and arithmetic of their own, and needs no `ffi` for that.
--
-- Such a literal is a constant of the function in which it stands, or lies in a table that is a constant.

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
