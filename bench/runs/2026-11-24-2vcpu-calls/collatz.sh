#!/bin/bash
# collatz.sh PROGRAM N THREADS SCRIPT: 3n+1 up to N as a non-atomic script, one on each thread; CPU of the server
# (redis-server: PROGRAM redis, the script as it is)
B=$1; N=$2; T=$3; D=/dev/shm/calls.$$; mkdir -p $D
if [ $B = redis ]; then
  redis-server --port 0 --unixsocket $D/s --save "" --appendonly no >/dev/null & head=""
else
  $B serve $D/db --port 0 --unixsocket $D/s --threads $T --durability none >/dev/null 2>&1 & head='#!lua flags=non-atomic'
fi
P=$!; for i in $(seq 100); do [ -S $D/s ] && break; sleep 0.05; done
SHA=$( ([ -n "$head" ] && echo "$head"; cat $4) | redis-cli -s $D/s -x script load)
redis-cli -s $D/s config set lua-time-limit 100000 >/dev/null
a=$(awk '{print $14+$15}' /proc/$P/stat); s=$EPOCHREALTIME
for t in $(seq $T); do redis-cli -s $D/s evalsha $SHA 0 $N >$D/o & X="$X $!"; done; wait $X
e=$EPOCHREALTIME; b=$(awk '{print $14+$15}' /proc/$P/stat)
echo "$B $T $s $e $a $b" | awk '{printf "%s, %d threads: %.2f s, CPU %.2f s\n", $1, $2, $4-$3, ($6-$5)/100}'
redis-cli -s $D/s shutdown nosave; wait $P; rm -rf $D
