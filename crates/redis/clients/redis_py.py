"""redis-py against a server at 127.0.0.1: python3 redis_py.py PORT."""

import sys
import threading

import redis

PORT = int(sys.argv[1])


def client(protocol, **options):
    return redis.Redis(host="127.0.0.1", port=PORT, protocol=protocol, decode_responses=True, **options)


def equal(got, wanted):
    assert got == wanted, f"{got!r}, not {wanted!r}"


def types(r):
    r.flushall()
    assert r.set("greeting", "hello", ex=100) and 0 < r.ttl("greeting") <= 100
    equal(r.get("greeting"), "hello")
    equal(r.hset("user", mapping={"name": "Ada", "born": 1815}), 2)
    equal(r.hgetall("user"), {"name": "Ada", "born": "1815"})
    equal(r.rpush("jobs", "a", "b", "c"), 3)
    equal(r.lrange("jobs", 0, -1), ["a", "b", "c"])
    equal(r.sadd("colours", "red", "blue"), 2)
    equal(r.smembers("colours"), {"red", "blue"})
    equal(r.zadd("board", {"ann": 1.5, "ben": float("inf")}), 2)
    equal(sorted(r.zrange("board", 0, -1, withscores=True))[0][1], 1.5)
    equal(r.zscore("board", "ben"), float("inf"))
    equal(sorted(r.scan_iter(match="*s", count=1)), ["colours", "jobs"])
    binary = redis.Redis(host="127.0.0.1", port=PORT)
    value = bytes(range(256)) * 100
    binary.set(value[:600], value)
    equal(binary.get(value[:600]), value)


def transactions(r):
    with r.pipeline() as pipe:
        pipe.set("n", 1).incr("n").get("n")
        equal(pipe.execute(), [True, 2, "2"])

    def add(pipe):
        count = int(pipe.get("count") or 0)
        pipe.multi()
        pipe.set("count", count + 1)

    threads = [
        threading.Thread(target=lambda: [client(2).transaction(add, "count") for _ in range(25)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(r.get("count"), "100")
    with r.lock("mutex", timeout=5, blocking_timeout=5, sleep=0.01):
        equal(r.exists("mutex"), 1)
    equal(r.exists("mutex"), 0)


def messages(r):
    with r.pubsub() as pubsub:
        pubsub.subscribe("news")
        pubsub.psubscribe("n*")
        while len(pubsub.channels) + len(pubsub.patterns) < 2 or pubsub.get_message(timeout=5)["type"] != "psubscribe":
            pass
        equal(r.publish("news", "hi"), 2)
        kinds = sorted(pubsub.get_message(timeout=5)["type"] for _ in range(2))
        equal(kinds, ["message", "pmessage"])


def blocking(r):
    waiter = threading.Thread(target=lambda: equal(client(2).blpop("queue", timeout=10), ("queue", "job")))
    waiter.start()
    r.rpush("queue", "job")
    waiter.join()
    equal(r.llen("queue"), 0)


def scripts(r):
    equal(r.eval("return {KEYS[1], ARGV[1], redis.call('incr', KEYS[1])}", 1, "s", "x"), ["s", "x", 1])
    script = r.register_script("return redis.call('get', KEYS[1])")
    equal(script(keys=["s"]), "1")


def users(r):
    r.acl_setuser("ada", enabled=True, passwords=["+secret"], keys=["a*"], commands=["+get", "+set"])
    ada = client(2, username="ada", password="secret")
    assert ada.set("a1", "x")
    try:
        ada.get("b")
        raise AssertionError("a key that is not allowed was read")
    except redis.exceptions.NoPermissionError:
        pass
    equal(r.acl_deluser("ada"), 1)


def operation(r):
    assert r.info()["redis_version"] and r.info("commandstats")["cmdstat_set"]["calls"] > 0
    assert r.config_set("slowlog-log-slower-than", 0) and r.ping()
    assert r.slowlog_get(1)[0]["duration"] >= 0
    assert r.config_set("slowlog-log-slower-than", 10000)
    equal(r.config_get("maxmemory-policy"), {"maxmemory-policy": "noeviction"})
    assert any(int(each["id"]) == r.client_id() for each in r.client_list())


for protocol in (2, 3):
    r = client(protocol)
    for part in (types, transactions, blocking, messages, scripts, users, operation):
        part(r)
print(f"redis-py {redis.__version__}: good")
