-- settree, gettree, dump, JSON.

return function(spec)
  spec('a table comes back', function(db, t)
    local n = db.node('^t')
    local tree = {1, 2, {x = 'y', [1.5] = true}, name = 'n', __ = 'own', deep = {a = {b = {c = false}}}}
    n:settree(tree)
    t.equal(n:gettree(), tree)
    t.equal(n.deep.a.b.c.__, false)
    t.equal(n.__, 'own')
    t.equal(n.nothing:gettree(), nil)
    t.equal(n.name:gettree(), {__ = 'n'})
    n.name.first.__ = 'f'
    t.equal(n:gettree().name, {__ = 'n', first = 'f'})
  end)

  spec('depth and filters', function(db, t)
    local n = db.node('^t')
    n:settree {a = 1, b = {c = 2, d = {e = 3}}}
    t.equal(n:gettree(1), {a = 1})
    t.equal(n:gettree(2), {a = 1, b = {c = 2}})
    t.equal(n:gettree(0), {})
    local depths = {}
    t.equal(n:gettree(nil, function(node, subscript, value, recurse, depth)
      depths[#depths + 1] = tostring(node) .. depth .. tostring(recurse)
      if subscript == 'd' then return nil, false end
      return value and value * 10
    end), {a = 10, b = {c = 20}})
    t.equal(depths, {'^t0true', '^t("a")1false', '^t("b")1true', '^t("b","c")2false', '^t("b","d")2true'})
    n:kill()
    n:settree({a = 1, b = 2, c = {3}}, function(node, key, value)
      if key == 'a' then return nil end
      if key == 'b' then return 'B', tostring(node) end
      return key, value
    end)
    t.equal(n:gettree(), {B = '^t', c = {3}})
    t.equal(select(2, pcall(n.gettree, n, function() error('mine', 0) end)), 'mine')
  end)

  -- Entries are read in batches, up to 64 of them: what is left out ends in one, at its end or behind it.
  spec('what is left out is skipped, wherever a batch ends', function(db, t)
    for _, name in ipairs {'^wide', 'wide'} do
      for width = 0, 140, 7 do
        local n, tree, shown = db.node(name, 'at', 10), {first = 1, last = 2, middle = {__ = 3}, z = 9}, {}
        for i = 1, width do tree.middle[i] = {deep = {deeper = i}} end
        n:kill()
        n:settree(tree)
        t.equal(n:gettree(), width > 0 and tree or {first = 1, last = 2, middle = 3, z = 9}, width)
        t.equal(n:gettree(1), {first = 1, last = 2, middle = 3, z = 9}, width)
        t.equal(n:gettree(function(_, subscript, value, recurse)
          shown[#shown + 1] = subscript
          return value, recurse and (subscript == '' or subscript == 'middle')
        end), {first = 1, last = 2, middle = width > 0 and {__ = 3} or 3, z = 9}, width)
        t.equal(#shown, 5 + width)
        t.equal(shown[#shown], 'z')
        t.equal(n.middle:gettree(function(_, _, _, recurse, depth) return depth, recurse and depth < 2 end).__, 0)
      end
      db.node(name):kill()
    end
  end)

  spec('depths and filters leave out the same of a random tree', function(db, t)
    local seed = os.time()
    math.randomseed(seed)
    local function random(depth)
      local tree = {}
      for _ = 1, math.random(0, 9) do
        tree[math.random(30)] = depth < 4 and math.random(3) > 1 and random(depth + 1) or math.random(100)
      end
      if next(tree) and math.random(2) == 1 then tree.__ = math.random(100) end
      return next(tree) and tree or 0
    end
    local function cut(tree, keep, depth)
      if type(tree) ~= 'table' then return tree end
      if not keep(depth) then return tree.__ end
      local copy = {}
      for key, below in pairs(tree) do copy[key] = key == '__' and below or cut(below, keep, depth + 1) end
      return copy
    end
    local n = db.node('^r')
    for _ = 1, 60 do
      local tree = {top = random(0)}
      n:kill()
      n:settree(tree)
      for depth = 1, 4 do
        local wanted = cut(tree, function(at) return at < depth end, 0)
        t.equal(n:gettree(depth), wanted, 'seed ' .. seed)
        t.equal(n:gettree(function(_, _, value, recurse, at) return value, recurse and at < depth end), wanted, 'seed ' .. seed)
      end
    end
  end)

  spec('all or nothing', function(db, t)
    local n = db.node('^t')
    n.old.__ = 1
    t.fails("key 'bad'", n.settree, n, {a = 1, b = {c = 2}, bad = print})
    t.equal(n:gettree(), {old = 1})
    local cyclic = {}
    cyclic.x = {y = cyclic}
    t.fails('contains itself', n.settree, n, cyclic)
    t.fails('subscript must be', n.settree, n, {[true] = 1})
    t.fails('subscript must be', n.settree, n, {[{}] = 1})
    t.fails('one subscript', n.settree, n, {[1] = 'a', ['1'] = 'b'})
    t.fails('takes a table', n.settree, n, 5)
    t.fails('filter must be', n.settree, n, {}, 5)
    t.fails('__', n.settree, n, {__ = {}})
    t.equal(n:gettree(), {old = 1})
  end)

  spec('DELETE in a table', function(db, t)
    local n = db.node('^t')
    n:settree {a = {__ = 1, b = 2}, c = 3}
    n:settree {a = t.perilune.DELETE, c = t.perilune.DELETE, d = 4}
    t.equal(n:gettree(), {a = {b = 2}, d = 4})
  end)

  spec('empty tables', function(db, t)
    local n = db.node('^t')
    n:settree {map = {}, list = t.perilune.list {}}
    t.equal(n.map.__, t.perilune.empty_map)
    t.equal(n.list.__, t.perilune.empty_list)
    t.equal(n:gettree(), {map = {}, list = {}})
    t.equal(n:tojson(), '{"list":[],"map":{}}')
    n:copy(db.node('^u'))
    db.node('^u'):settree(n:gettree())
    t.equal(db.node('^u'):tojson(), '{"list":[],"map":{}}')
    n.map.x.__ = 1
    t.equal(n:tojson(), '{"list":[],"map":{"x":1}}')
    t.fails('takes a table', t.perilune.list, 5)
  end)

  spec('dump', function(db, t)
    local n = db.node('^t')
    n:settree {1, 'two', x = {y = 'a"b\n'}, z = true}
    t.equal(n:dump(), '^t(1)=1\n^t(2)="two"\n^t("x","y")="a\\"b\\010"\n^t("z")=true\n')
    t.equal(n:dump(2), '^t(1)=1\n^t(2)="two"\n... more: node:dump(lines) shows more than 2 lines\n')
    t.equal(n.none:dump(), '')
    for i = 1, 500 do n[i].__ = i end
    t.equal(select(2, n:dump(1000):gsub('\n', '')), 502)
  end)

  spec('JSON survives', function(db, t)
    local n = db.node('^j')
    for _, text in ipairs {'null', 'true', '5', '-7', '1.5', '"x"', '[]', '{}', '[1,2,3]', '[[],{},[null]]',
      '{"a":{"b":[1,{"c":null}]}}', '"\\"\\\\\\n\\u0001"', '"é😀"', '0.1', '123456789012345678',
      '9223372036854775807', '-0.000001', '{"":1}', '{"1.5":2,"x":3}', '[[[[1]]]]', '100000000000000000000'} do
      n:fromjson(text)
      t.equal(n:tojson(), text)
    end
    n:fromjson(' { "b" : [ 1 , 2 ] , "a" : "\\u00e9\\ud83d\\ude00\\/" , "e":1e3, "f":-1.50E-2,"z":-0 } ')
    t.equal(n:tojson(), '{"a":"é😀/","b":[1,2],"e":1000,"f":-0.015,"z":0}')
    t.equal(n.b[2].__, 2)
    n:fromjson('{"__":5,"x":{"__":"own","y":1}}')
    t.equal(n.__, 5)
    t.equal(n:tojson(), '{"__":5,"x":{"__":"own","y":1}}')
    n:fromjson('{"d":1e300,"big":12345678901234567890123}')
    t.equal(n.d.__, 1e300)
    n:fromjson(n:tojson())
    t.equal(n.d.__, 1e300)
    t.equal(n.nothing:tojson(), nil)
  end)

  spec('what is no JSON is refused and changes nothing', function(db, t)
    local n = db.node('^j')
    n.keep.__ = 1
    for _, text in ipairs {'', ' ', '{', '[', '[1', '[1,', '[1,]', '{"a"}', '{"a":}', '{"a":1,}', '{a:1}', '"', '"\\x"',
      '"\\u12"', '"\\ud800"', '01', '1.', '.5', '-', '+1', '1e', 'nul', 'NaN', 'true1', '1 2', '"\n"', '{"__":{}}',
      '"\\', '1e400', ('['):rep(300), '\0', '{"a":1 "b":2}', "'a'"} do
      t.fails('fromjson', n.fromjson, n, text)
    end
    t.fails('takes text', n.fromjson, n, 5)
    t.fails('takes text', n.fromjson, n)
    t.equal(n:gettree(), {keep = 1})
  end)

  spec('a random tree comes back through a table and JSON', function(db, t)
    local seed = os.time()
    math.randomseed(seed)
    local function random(depth)
      local kind = math.random(depth > 4 and 4 or 6)
      if kind == 1 then return math.random(-1000, 1000) end
      if kind == 2 then return math.random(1000) / 8 end
      if kind == 3 then return string.char(math.random(32, 126)):rep(math.random(0, 9)) end
      if kind == 4 then return math.random(2) == 1 end
      local tree = {}
      for _ = 1, math.random(1, 5) do
        local key = math.random(2) == 1 and math.random(20) or string.char(math.random(97, 122))
        tree[key] = random(depth + 1)
      end
      return tree
    end
    for _ = 1, 50 do
      local tree = {a = random(0)}
      local n = db.node('^r')
      n:kill()
      n:settree(tree)
      t.equal(n:gettree(), tree, 'seed ' .. seed)
      local m = db.node('^s')
      m:fromjson(n:tojson())
      t.equal(m:tojson(), n:tojson(), 'seed ' .. seed)
    end
  end)
end
