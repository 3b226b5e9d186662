#!/bin/bash
# long.sh TIMES BINARY...: seconds of the atomic script, alternating, sorted
N=$1; shift
SRC="$(cat "$(dirname "$0")/../../src/server/collatz.lua")"
declare -A T
port=7041
run() { # binary
  local B=$1 D=$(mktemp -d -p /dev/shm) P
  port=$((port+1))
  if [ "$B" = redis ]; then redis-server --port $port --save "" --dir $D >/dev/null & P=$!
  else $B serve --port $port --threads 1 --db $D/db --durability none >$D/log 2>&1 & P=$!; fi
  for i in $(seq 50); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep .1; done
  for i in 1 2; do
    local s=$EPOCHREALTIME
    redis-cli -p $port eval "$SRC" 0 0 1 100000 >/dev/null
    T[$B]+="$(echo "$EPOCHREALTIME - $s" | bc) "
    redis-cli -p $port flushall >/dev/null
  done
  kill $P; wait $P 2>/dev/null; rm -rf $D
}
for n in $(seq $N); do for b in "$@"; do run $b; done; done
for b in "$@"; do echo "$b: $(echo ${T[$b]} | tr ' ' '\n' | sort -n | tr '\n' ' ')"; done
