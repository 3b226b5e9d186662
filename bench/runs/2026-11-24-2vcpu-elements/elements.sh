#!/bin/bash
# elements.sh BINARY N command...: instructions of the server an operation, by callgrind: a seed (SEED, arguments of
# redis-benchmark), counters set to nothing, N operations in pipelines of 16 by four clients, a dump. Of the whole
# process and of its event loop, as what else runs depends on the time that valgrind takes.
BIN=$1; N=$2; shift 2
D=/dev/shm/elements.$$; O=${OUT:-$D/out}
rm -rf $D; mkdir -p $D
PERILUNE_MAX_SIZE=8g valgrind --tool=callgrind --callgrind-out-file=$O \
  $BIN serve $D/db --port 0 --unixsocket $D/s --threads 1 >$D/log 2>&1 &
VP=$!
for i in $(seq 600); do [ -S $D/s ] && break; sleep 0.1; done
bench() { timeout 500 redis-benchmark -s $D/s -q -c 4 -P 16 "$@" >/dev/null 2>&1; }
[ -n "$SEED" ] && bench $SEED
callgrind_control -z $VP >/dev/null 2>&1
bench -n $N "$@"
callgrind_control -d $VP >/dev/null 2>&1
T=$(callgrind_annotate --auto=no $O.1 2>/dev/null | awk '/PROGRAM TOTALS/{gsub(",","",$1); print $1; exit}')
L=$(callgrind_annotate --auto=no --inclusive=yes --threshold=100 $O.1 2>/dev/null |
  awk '/worker::Worker::round/{gsub(",","",$1); print $1; exit}')
redis-cli -s $D/s shutdown nosave >/dev/null 2>&1
wait $VP 2>/dev/null
echo "$*: $((T/N)), the loop $((L/N))"
rm -rf $D
