-- Snapshots and checkpoints.

return function(spec)
  spec('a snapshot stays as it was', function(db, t)
    local person = db.node '^person'
    person[21].name.__ = 'Ada'
    person[22].name.__ = 'Alan'
    local snapshot = db:snapshot()
    local then_ = snapshot.node '^person'
    person[21].name.__ = 'Grace'
    person[22]:kill()
    person[23].name.__ = string.rep('long ', 2000)
    t.equal(then_[21].name.__, 'Ada')
    t.equal(then_[22].name:get(), 'Alan')
    t.equal(then_[23]:data(), 0)
    local seen = {}
    for subscript in then_:pairs() do seen[#seen + 1] = subscript end
    t.equal(table.concat(seen, ' '), '21 22')
    t.equal(snapshot:get('^person', 21, 'name'), 'Ada')
    t.equal(person[21].name.__, 'Grace')
    t.equal(person[22]:data(), 0)
    for name in snapshot:names() do t.equal(name, '^person') end
    t.equal(snapshot:path(), db:path())
    snapshot:close()
    t.fails('closed', function() return then_[21].name.__ end)
    t.equal(person[21].name.__, 'Grace')
  end)

  spec('a snapshot cannot be written', function(db, t)
    local node = db.node '^a'
    node.__ = 1
    local snapshot = db:snapshot()
    local then_ = snapshot.node '^a'
    t.fails('read', then_.set, then_, 2)
    t.fails('read', then_.incr, then_)
    t.fails('read', then_.kill, then_)
    t.fails('read', snapshot.post, snapshot, 'channel', 'text')
    t.fails('snapshot', snapshot.snapshot, snapshot)
    local sum = snapshot:transaction(function() return then_.__ + 1 end)
    t.equal(sum, 2)
    snapshot.node('private').__ = 5
    t.equal(snapshot.node('private').__, 5)
    t.equal(node.__, 1)
    db.node('^a').__ = 3
    t.equal(then_.__, 1)
    snapshot:close()
  end)

  spec('checkpoints', function(db, t)
    db.node('^a').__ = 1
    t.equal(db:checkpoint(), true)
    t.equal(db:checkpoint(), false)
    t.equal(db:verify(), true)
  end)
end
