-- The text of a Lua function: where its file says that it begins and ends, found by reading the file's words.
--
-- Invariants
-- - A text is given only if it is that of the function for certain: one function begins and ends on those
--   lines, the file is older than this program, and what the text compiles to has code on the same lines.
-- - A name is dropped; the `self` of a method stays.
--
-- It does not run anything, and does not know upvalues.
local getinfo = require 'debug'.getinfo

-- Taken now: the names may be the program's own later.
local load = loadstring or load
local unpack = table.unpack or unpack -- luacheck: ignore
local pairs, ipairs, pcall, error, setmetatable = pairs, ipairs, pcall, error, setmetatable
local open, package, remove = io.open, package, table.remove

local source = {}

local OPENS = {['function'] = true, ['do'] = true, ['if'] = true, ['repeat'] = true}
local CLOSES = {['end'] = true, ['until'] = true}

-- Where the long bracket that begins at `at` ends, or nothing if none begins there.
local function long_bracket(text, at)
  local equals = text:match('^%[(=*)%[', at)
  if equals == nil then return nil end
  local _, stop = text:find(']' .. equals .. ']', at, true)
  return stop or #text
end

local function quoted(text, at)
  local quote, position = text:sub(at, at), at + 1
  while position <= #text do
    local char = text:sub(position, position)
    if char == quote then return position end
    position = position + (char == '\\' and 2 or 1)
  end
  return position
end

-- The functions in `text`: {line, last, from, to, method}, `from` at the parenthesis of the parameters.
function source.functions(text)
  local found, stack, line, counted = {}, {}, 1, 1
  local position = text:match '^#[^\n]*()' or 1
  local function line_at(at)
    for _ in text:sub(counted, at - 1):gmatch '\n' do line = line + 1 end
    counted = at
    return line
  end
  while true do
    local at = text:find('[%a_%d%[\'"%-]', position)
    if at == nil then return found end
    local char = text:sub(at, at)
    if char == '-' then
      if text:sub(at, at + 1) == '--' then
        position = (long_bracket(text, at + 2) or text:find('\n', at, true) or #text) + 1
      else
        position = at + 1
      end
    elseif char == '[' then
      position = (long_bracket(text, at) or at) + 1
    elseif char == '"' or char == "'" then
      position = quoted(text, at) + 1
    else
      local word = text:match('^[%w_]+', at)
      position = at + #word
      if OPENS[word] then
        local block = {word = word}
        if word == 'function' then
          local name, parameters = text:match('^%s*([%w_%.:%s]-)%s*()%(', position)
          if parameters == nil then return found end
          block.line, block.from, block.method = line_at(at), parameters, name:find(':', 1, true) ~= nil
        end
        stack[#stack + 1] = block
      elseif CLOSES[word] then
        local block = remove(stack)
        if block == nil then return found end
        if block.word == 'function' then
          block.to, block.last = position - 1, line_at(at)
          found[#found + 1] = block
        end
      end
    end
  end
end

-- Whether the two have code on the same lines.
local function alike(f, g)
  local left, right = getinfo(f, 'SL'), getinfo(g, 'SL')
  if left.linedefined ~= right.linedefined or left.lastlinedefined ~= right.lastlinedefined then return false end
  for at in pairs(left.activelines) do
    if not right.activelines[at] then return false end
  end
  for at in pairs(right.activelines) do
    if not left.activelines[at] then return false end
  end
  return true
end

local files = {} -- path -> {text, functions} or {why = }

local function file_of(path, is_older)
  local known = files[path]
  if known then return known end
  known = {}
  local file = open(path, 'rb')
  if file == nil then
    known.why = 'its file ' .. path .. ' cannot be read'
  elseif not is_older(path) then
    known.why = 'its file ' .. path .. ' has changed since the program began'
  else
    known.text = file:read '*a'
    known.functions = source.functions(known.text)
  end
  if file then file:close() end
  files[path] = known
  return known
end

local function text_of(f, info, is_older)
  local known
  local first = info.source:sub(1, 1)
  if first == '@' then
    known = file_of(info.source:sub(2), is_older)
  elseif first == '=' then
    -- Modules that a program has brought itself (Host::preload of crates/luahost).
    local text = package.sources and package.sources[info.source:sub(2)]
    if text == nil then return nil, 'its source is kept nowhere (' .. info.short_src .. ')' end
    known = {text = text, functions = source.functions(text)}
  else
    known = {text = info.source, functions = source.functions(info.source)}
  end
  if known.why then return nil, known.why end
  local match
  for _, each in ipairs(known.functions) do
    if each.line == info.linedefined and each.last == info.lastlinedefined then
      if match then return nil, 'several functions begin and end on its line ' .. info.linedefined end
      match = each
    end
  end
  if match == nil then return nil, 'its text is not found in ' .. info.short_src end
  local text = known.text:sub(match.from, match.to)
  if match.method then
    text = text:gsub('^%(%s*(%)?)', function(close) return close == ')' and '(self)' or '(self, ' end, 1)
  end
  text = 'function' .. text
  local chunk = load(('\n'):rep(match.line - 1) .. 'return ' .. text, info.source)
  local good, again = pcall(chunk or error)
  if not good or not alike(f, again) then return nil, 'its file is not what was loaded' end
  return text
end

local texts = {} -- source and line -> {text, why}
local answers = setmetatable({}, {__mode = 'k'}) -- a function -> {text, name, line}

-- The text of `f`, which begins with `function (`; its chunk's name; its line. Or nil and why there is none.
function source.of(f, is_older)
  local answer = answers[f]
  if answer then return answer[1], answer[2], answer[3] end
  local info = getinfo(f, 'S')
  if info.what == 'C' then return nil, 'it is a function of C' end
  if info.what == 'main' or info.linedefined == 0 then return nil, 'it is a whole file' end
  local key = info.linedefined .. ' ' .. info.lastlinedefined .. ' ' .. info.source
  local known = texts[key]
  if known == nil then
    known = {text_of(f, info, is_older)}
    texts[key] = known
  end
  if known[1] == nil then return nil, known[2] end
  local name = info.source:sub(1, 1) == '@' and info.source or '=' .. info.short_src
  answers[f] = {known[1], name, info.linedefined}
  return known[1], name, info.linedefined
end

source.unpack = unpack
return source
