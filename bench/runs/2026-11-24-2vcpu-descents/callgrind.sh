#!/bin/bash
# run.sh BIN OUT N redis-benchmark-args...  -> instructions per op: by two runs N, 2N
BIN=$1; OUT=$2; N=$3; shift 3
one() {
  local n=$1 out=$2; shift 2
  rm -rf /dev/shm/cg.$$; mkdir -p /dev/shm/cg.$$
  PERILUNE_MAX_SIZE=8g valgrind --tool=callgrind --callgrind-out-file=$out \
    $BIN serve /dev/shm/cg.$$/db --port 0 --unixsocket /dev/shm/cg.$$/s --threads 1 >/tmp/cg/log 2>&1 &
  local vp=$!
  for i in $(seq 300); do [ -S /dev/shm/cg.$$/s ] && break; sleep 0.1; done
  timeout 300 redis-benchmark -s /dev/shm/cg.$$/s -q -c 4 -P 16 -n $n "$@" >/tmp/cg/bench.log 2>&1
  redis-cli -s /dev/shm/cg.$$/s shutdown nosave >/dev/null 2>&1
  wait $vp 2>/dev/null
  rm -rf /dev/shm/cg.$$
}
one $N $OUT.1 "$@"; one $((2*N)) $OUT.2 "$@"
a=$(grep -m1 '^summary:\|^totals:' $OUT.1 | awk '{print $2}'); b=$(grep -m1 '^summary:\|^totals:' $OUT.2 | awk '{print $2}')
echo "$OUT: $(( (b-a)/N )) instructions an operation"
