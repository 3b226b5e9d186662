#!/usr/bin/env bash
# pt.sh BINARY|redis NAME COUNT redis-benchmark's arguments: CPU of the server, us an operation, over TCP by 16.
binary=$1
name=$2
count=$3
shift 3
port=$((20000 + RANDOM % 10000))
directory=$(mktemp -d /dev/shm/pt.XXXXXX)
if [ "$binary" = redis ]; then
    redis-server --port $port --save "" --appendonly no --dir "$directory" >"$directory/log" 2>&1 &
else
    "$binary" serve "$directory/db" --port $port --threads 1 --durability none >"$directory/log" 2>&1 &
fi
server=$!
for _ in $(seq 100); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.05; done
load() { redis-benchmark -p $port -q -c 50 -P 16 "$@"; }
if [ -n "$BEFORE" ]; then
    # shellcheck disable=SC2086
    load -n $((count * 3 / 2)) -r 1000 $BEFORE >/dev/null 2>&1
else
    load -n $((count / 10)) "$@" >/dev/null 2>&1
fi
ticks() { awk '{ print $14 + $15, $14, $15 }' "/proc/$server/stat"; }
read -r all user system < <(ticks)
load -n "$count" "$@" >"$directory/bench.log" 2>&1
read -r all2 user2 system2 < <(ticks)
awk -v n="$count" -v name="$(basename "$binary") $name" -v u=$((user2 - user)) -v s=$((system2 - system)) \
    -v a=$((all2 - all)) 'BEGIN { printf "%s user %.3f us sys %.3f us sum %.3f\n", name, u*1e4/n, s*1e4/n, a*1e4/n }'
redis-cli -p $port shutdown nosave >/dev/null 2>&1
wait $server 2>/dev/null
rm -rf "$directory"
