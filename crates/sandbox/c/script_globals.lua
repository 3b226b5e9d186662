-- Decides from a script's bytecode whether it may have its globals without proxies: script_globals.c says why, and when it
-- may.
--
-- LuaJIT numbers its instructions anew in each version. So their numbers are learned here: lines whose bytecode we
-- know, such as `return x.y`, are compiled, and the instruction is read at its place.

local funcbc, funck, globals, proxied = ...
local band, rshift = bit.band, bit.rshift

-- Longer scripts go by proxies.
local INSTRUCTIONS = 20000
-- What hands a script its globals as a whole, or runs others in them.
local WHOLE = { _G = true, load = true, loadstring = true, require = true, perilune = true }

local function operation(instruction)
    return band(instruction, 0xFF)
end

local function learn(line, at)
    return operation((funcbc(assert(loadstring(line)), at)))
end

local GET_GLOBAL, SET_GLOBAL = learn('return x', 1), learn('x = nil', 2)
local NEW_FUNCTION, LENGTH = learn('return function() end', 1), learn('return #x', 2)
local TAKES = { [learn('return x.y', 2)] = true, [learn('return x[1]', 2)] = true, [learn('local i return x[i]', 3)] = true }

-- Whether what an instruction has put into a register gives way at once to a part of it, or its length.
local function is_taken(instruction, following)
    local register = band(rshift(instruction, 8), 0xFF)
    if band(rshift(following, 8), 0xFF) ~= register then
        return false
    end
    if operation(following) == LENGTH then
        return rshift(following, 16) == register
    end
    return TAKES[operation(following)] ~= nil and rshift(following, 24) == register
end

-- Notes for each global that a function and those within it name whether it is always taken apart at once; how many more
-- instructions may be read, or nothing if the function sets globals or is too long.
local function read(code, uses, left)
    local at, instruction = 1, (funcbc(code, 1))
    while instruction do
        local kind, following = operation(instruction), (funcbc(code, at + 1))
        left = left - 1
        if kind == SET_GLOBAL or left < 0 then
            return nil
        elseif kind == GET_GLOBAL then
            local name = funck(code, -rshift(instruction, 16) - 1)
            uses[name] = uses[name] ~= false and is_taken(instruction, following)
        elseif kind == NEW_FUNCTION then
            left = read(funck(code, -rshift(instruction, 16) - 1), uses, left)
            if not left then
                return nil
            end
        end
        at, instruction = at + 1, following
    end
    return left
end

-- As script_globals.c has them.
local function list_use(taken)
    return taken == nil and 0 or taken and 1 or 2
end

-- The globals for a script, how it uses KEYS and ARGV; or nothing: it gets the proxy of all.
return function(script)
    local uses = {}
    if not read(script, uses, INSTRUCTIONS) then
        return nil
    end
    local environment = {}
    for name, taken in pairs(uses) do
        if WHOLE[name] then
            return nil
        elseif name ~= 'KEYS' and name ~= 'ARGV' then
            local value = rawget(globals, name)
            environment[name] = taken and proxied(value) or value
        end
    end
    return setmetatable(environment, getmetatable(globals)), list_use(uses.KEYS), list_use(uses.ARGV)
end
