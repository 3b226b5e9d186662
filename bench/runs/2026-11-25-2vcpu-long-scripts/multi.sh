#!/bin/bash
# multi.sh TIMES BINARY...: server CPU us per MULTI of 10 SETs
N=$1; shift
[ -f /dev/shm/perilune-multi.txt ] || python3 - <<'P'
import random
def c(*w): return ''.join(['*%d\r\n'%len(w)]+['$%d\r\n%s\r\n'%(len(x),x) for x in w])
random.seed(1)
with open('/dev/shm/perilune-multi.txt','w') as f:
    for i in range(40000):
        f.write(c('MULTI'))
        for j in range(10): f.write(c('SET','key:%012d'%random.randrange(10000),'value-0123456789'))
        f.write(c('EXEC'))
P
port=7051
for n in $(seq $N); do for b in "$@"; do
  D=$(mktemp -d -p /dev/shm); port=$((port+1))
  if [ $b = redis ]; then redis-server --port $port --save "" --dir $D >/dev/null & P=$!
  else $b serve --port $port --threads 1 --db $D/db --durability none >$D/log 2>&1 & P=$!; fi
  for i in $(seq 50); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep .1; done
  c0=$(awk '{print $14+$15}' /proc/$P/stat); redis-cli -p $port --pipe < /dev/shm/perilune-multi.txt | grep -v "^All\|^Last"| tr '\n' ' '
  c1=$(awk '{print $14+$15}' /proc/$P/stat); echo "$b: $(echo "scale=2; ($c1-$c0)*10000/40000" | bc) us"
  kill $P; wait $P 2>/dev/null; rm -rf $D
done; done
