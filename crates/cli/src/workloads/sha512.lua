-- SHA-512 (FIPS 180-4) in Lua: with the integers of Lua 5.3 and later, or the 64-bit ones of LuaJIT.
-- nil where numbers have 53 bits only. It is a workload, not for use: the C library is at hand.

local CONSTANTS = [[
  428a2f98d728ae22 7137449123ef65cd b5c0fbcfec4d3b2f e9b5dba58189dbbc
  3956c25bf348b538 59f111f1b605d019 923f82a4af194f9b ab1c5ed5da6d8118
  d807aa98a3030242 12835b0145706fbe 243185be4ee4b28c 550c7dc3d5ffb4e2
  72be5d74f27b896f 80deb1fe3b1696b1 9bdc06a725c71235 c19bf174cf692694
  e49b69c19ef14ad2 efbe4786384f25e3 0fc19dc68b8cd5b5 240ca1cc77ac9c65
  2de92c6f592b0275 4a7484aa6ea6e483 5cb0a9dcbd41fbd4 76f988da831153b5
  983e5152ee66dfab a831c66d2db43210 b00327c898fb213f bf597fc7beef0ee4
  c6e00bf33da88fc2 d5a79147930aa725 06ca6351e003826f 142929670a0e6e70
  27b70a8546d22ffc 2e1b21385c26c926 4d2c6dfc5ac42aed 53380d139d95b3df
  650a73548baf63de 766a0abb3c77b2a8 81c2c92e47edaee6 92722c851482353b
  a2bfe8a14cf10364 a81a664bbc423001 c24b8b70d0f89791 c76c51a30654be30
  d192e819d6ef5218 d69906245565a910 f40e35855771202a 106aa07032bbd1b8
  19a4c116b8d2d0c8 1e376c085141ab53 2748774cdf8eeb99 34b0bcb5e19b48a8
  391c0cb3c5c95a63 4ed8aa4ae3418acb 5b9cca4f7763e373 682e6ff3d6b2b8a3
  748f82ee5defb2fc 78a5636f43172f60 84c87814a1f0ab72 8cc702081a6439ec
  90befffa23631e28 a4506cebde82bde9 bef9a3f7b2c67915 c67178f2e372532b
  ca273eceea26619c d186b8c721c0c207 eada7dd6cde0eb1e f57d4f7fee6ed178
  06f067aa72176fba 0a637dc5a2c898a6 113f9804bef90dae 1b710b35131c471b
  28db77f523047d84 32caab7b40c72493 3c9ebe0a15c9bebc 431d67c49c100d4c
  4cc5d4becb3e42b6 597f299cfc657e2a 5fcb6fab3ad6faec 6c44198c4a475817
]]
local INITIAL = '6a09e667f3bcc908 bb67ae8584caa73b 3c6ef372fe94f82b a54ff53a5f1d36f1 '
  .. '510e527fade682d1 9b05688c2b3e6c1f 1f83d9abfb41bd6b 5be0cd19137e2179'

-- K and W hold 80 integers from 0, H 8; A and E are what a and e were before each round, since what lies in
-- arrays need not be boxed by LuaJIT. What is written `$...$` differs between the two.
local SOURCE = [[
local K, W, A, E, H, INITIAL = ...
local byte, char, rep, format = string.byte, string.char, string.rep, string.format
$locals$

local function block(text, at)
  for i = 0, 15 do
    local a, b, c, d, e, f, g, h = byte(text, at + 8 * i, at + 8 * i + 7)
    W[i] = $join$
  end
  for i = 16, 79 do
    local x, y = W[i - 15], W[i - 2]
    W[i] = W[i - 16] + $s0$ + W[i - 7] + $s1$
  end
  for i = 0, 3 do A[i], E[i] = H[3 - i], H[7 - i] end
  for i = 4, 83 do
    local a, b, c, e, f, g = A[i - 1], A[i - 2], A[i - 3], E[i - 1], E[i - 2], E[i - 3]
    local t = E[i - 4] + $S1$ + $choice$ + K[i - 4] + W[i - 4]
    E[i] = A[i - 4] + t
    A[i] = t + $S0$ + $majority$
  end
  for i = 0, 3 do H[i], H[4 + i] = H[i] + A[83 - i], H[4 + i] + E[83 - i] end
end

return function(text)
  for i = 0, 7 do H[i] = INITIAL[i] end
  local size = #text
  local whole = size - size % 128
  for at = 1, whole, 128 do block(text, at) end
  local bits, tail = size * 8, {}
  for i = 1, 16 do
    tail[17 - i] = char(bits % 256)
    bits = (bits - bits % 256) / 256
  end
  local rest = text:sub(whole + 1) .. '\128'
  rest = rest .. rep('\0', (112 - #rest) % 128) .. table.concat(tail)
  for at = 1, #rest, 128 do block(rest, at) end
  local words = {}
  for i = 0, 7 do words[i + 1] = $hex$ end
  return table.concat(words)
end
]]

local INTEGERS = {
  locals = '',
  join = 'a << 56 | b << 48 | c << 40 | d << 32 | e << 24 | f << 16 | g << 8 | h',
  s0 = '((x >> 1 | x << 63) ~ (x >> 8 | x << 56) ~ x >> 7)',
  s1 = '((y >> 19 | y << 45) ~ (y >> 61 | y << 3) ~ y >> 6)',
  S0 = '((a >> 28 | a << 36) ~ (a >> 34 | a << 30) ~ (a >> 39 | a << 25))',
  S1 = '((e >> 14 | e << 50) ~ (e >> 18 | e << 46) ~ (e >> 41 | e << 23))',
  choice = '(g ~ e & (f ~ g))',
  majority = '(a & b | c & (a | b))',
  hex = "format('%016x', H[i])",
}
local FFI = {
  locals = 'local bit, cast = require "bit", require "ffi".typeof "uint64_t"\n'
    .. 'local band, bor, bxor, ror, rshift, lshift = bit.band, bit.bor, bit.bxor, bit.ror, bit.rshift, bit.lshift',
  join = 'lshift(cast(a * 16777216 + b * 65536 + c * 256 + d), 32) + cast(e * 16777216 + f * 65536 + g * 256 + h)',
  s0 = 'bxor(ror(x, 1), ror(x, 8), rshift(x, 7))',
  s1 = 'bxor(ror(y, 19), ror(y, 61), rshift(y, 6))',
  S0 = 'bxor(ror(a, 28), ror(a, 34), ror(a, 39))',
  S1 = 'bxor(ror(e, 14), ror(e, 18), ror(e, 41))',
  choice = 'bxor(g, band(e, bxor(f, g)))',
  majority = 'bor(band(a, b), band(c, bor(a, b)))',
  hex = 'bit.tohex(H[i], 16)',
}

-- The numbers of a list of hexadecimal words, from index 0, in `into`; `join` makes one of its two halves.
local function numbers(text, into, join)
  local index = 0
  for high, low in text:gmatch '(%x%x%x%x%x%x%x%x)(%x%x%x%x%x%x%x%x)' do
    into[index] = join(tonumber(high, 16), tonumber(low, 16))
    index = index + 1
  end
  return into
end

local function make(parts, new, join)
  local source = SOURCE:gsub('%$(%w+)%$', parts)
  local compile = loadstring or load
  local chunk = assert(compile(source, '=sha512'))
  return chunk(numbers(CONSTANTS, new(80), join), new(80), new(84), new(84), new(8), numbers(INITIAL, new(8), join))
end

if rawget(_G, 'jit') then
  local ffi = require 'ffi'
  local bits = ffi.typeof 'uint64_t'
  return {hash = make(FFI, ffi.typeof 'uint64_t[?]', function(high, low) return bits(high) * 2 ^ 32 + bits(low) end)}
elseif math.type then
  local half = math.tointeger(2 ^ 32)
  return {hash = make(INTEGERS, function() return {} end, function(high, low) return high * half + low end)}
end
return {}
