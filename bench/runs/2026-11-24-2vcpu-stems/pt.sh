#!/bin/bash
# BIN|redis NAME N args: server CPU us per op over TCP, P16
BIN=$1; NAME=$2; N=$3; shift 3
port=$((20000 + RANDOM % 10000))
D=/dev/shm/p/$NAME.$port; rm -rf $D; mkdir -p $D
if [ $BIN = redis ]; then redis-server --port $port --save "" --appendonly no --dir $D >$D/log 2>&1 &
else $BIN serve $D/db --port $port --threads ${THREADS:-1} --durability none >$D/log 2>&1 & fi
P=$!
for i in $(seq 100); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.05; done
if [ -n "$PRE" ]; then redis-benchmark -p $port -q -c 50 -P 16 -n $((N+N/2)) -r 1000 $PRE >/dev/null 2>&1; else redis-benchmark -p $port -q -c 50 -P 16 -n $((N/10)) "$@" >/dev/null 2>&1; fi
if [ -n "$PERF" ]; then perf record -q -F 4000 -g -o $D.perf -p $P >/dev/null 2>&1 & PP=$!; sleep 0.3; fi
a=$(awk '{print $14" "$15}' /proc/$P/stat)
redis-benchmark -p $port -q -c 50 -P ${PIPE:-16} -n $N "$@" >$D/bench.log 2>&1
b=$(awk '{print $14" "$15}' /proc/$P/stat)
[ -n "$PERF" ] && { kill -INT $PP; wait $PP; echo $D.perf; }
echo "$(basename $BIN) $NAME $(tr '\r' '\n' <$D/bench.log | grep 'per second' | tail -1 | grep -o '[0-9.]* requests per second')" $(echo $a $b | awk -v n=$N '{printf "user %.3f us sys %.3f us sum %.3f", ($3-$1)*1e4/n, ($4-$2)*1e4/n, ($3-$1+$4-$2)*1e4/n}')
redis-cli -p $port shutdown nosave >/dev/null 2>&1; wait $P 2>/dev/null
rm -rf $D
