#!/bin/bash
# eval.sh PROGRAM PIPELINE N: CPU of the server for an EVAL of one GET and one SET, 50 connections, one thread
# (redis-server: PROGRAM redis)
B=$1; D=/dev/shm/calls.$$; mkdir -p $D
if [ $B = redis ]; then
  redis-server --port 0 --unixsocket $D/s --save "" --appendonly no >/dev/null &
else
  $B serve $D/db --port 0 --unixsocket $D/s --threads 1 --durability none >/dev/null 2>&1 &
fi
P=$!; for i in $(seq 100); do [ -S $D/s ] && break; sleep 0.05; done
S="redis.call('get',KEYS[1]) return redis.call('set',KEYS[1],ARGV[1])"
redis-benchmark -s $D/s -q -c 50 -n 20000 -r 10000 eval "$S" 1 key:__rand_int__ VALUE >/dev/null 2>&1
a=$(awk '{print $14, $15}' /proc/$P/stat)
redis-benchmark -s $D/s -q -c 50 -P $2 -n $3 -r 10000 eval "$S" 1 key:__rand_int__ VALUE >/dev/null 2>&1
b=$(awk '{print $14, $15}' /proc/$P/stat)
echo "$1 $2 $3 $a $b" | awk '{printf "%s, pipeline %d: %.2f us, of which the kernel %.2f\n", $1, $2, ($6+$7-$4-$5)*1e4/$3, ($7-$5)*1e4/$3}'
redis-cli -s $D/s shutdown nosave; wait $P; rm -rf $D
