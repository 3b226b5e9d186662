#!/bin/bash
# server CPU (us) of an EVAL of one GET and one SET, 50 connections without pipelines, alternating
run() { # bin threads
  d=/dev/shm/ab.$$; rm -rf $d; mkdir -p $d
  if [ $1 = redis ]; then
    redis-server --port 0 --unixsocket $d/s --save "" --appendonly no >/dev/null &
  else
    $1 serve $d/db --port 0 --unixsocket $d/s --threads $2 >/dev/null 2>&1 &
  fi
  p=$!; for i in $(seq 100); do [ -S $d/s ] && break; sleep 0.05; done; sleep 0.2
  S="redis.call('get',KEYS[1]) return redis.call('set',KEYS[1],ARGV[1])"
  redis-benchmark -s $d/s -q -c 50 -n 20000 eval "$S" 1 k v >/dev/null 2>&1
  a=$(awk '{print $14+$15}' /proc/$p/stat)
  redis-benchmark -s $d/s -q -c 50 -P ${P:-1} -n $N eval "$S" 1 k v >/dev/null 2>&1
  b=$(awk '{print $14+$15}' /proc/$p/stat); kill $p; wait $p 2>/dev/null; rm -rf $d
  echo "$1 threads $2 pipeline ${P:-1}: $(echo "scale=2; ($b-$a)*10000/$N" | bc) us"
}
for r in 1 2 3; do
  N=150000; P=1
  for t in 1 2; do run ./before $t; run ./after $t; done
  run redis 1
  N=400000; P=16; run ./before 1; run ./after 1
done
