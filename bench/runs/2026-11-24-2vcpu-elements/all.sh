#!/bin/bash
# all.sh BINARY [name...]: elements.sh for each command, or those named.
BIN=$1; shift
WANT="$*"
HERE=$(dirname "$0")
run() {
  name=$1; seed=$2; shift 2
  if [ -z "$WANT" ] || [[ " $WANT " == *" $name "* ]]; then
    echo -n "$name | "; SEED=$seed "$HERE/elements.sh" "$BIN" 10000 "$@"
  fi
}
run hset-known "-r 10000 -n 50000 hset h field:__rand_int__ xxx" -r 10000 hset h field:__rand_int__ yyy
run hset-new "" -r 1000000 hset h field:__rand_int__ xxx
run hincrby-known "-r 10000 -n 50000 hincrby h field:__rand_int__ 1" -r 10000 hincrby h field:__rand_int__ 1
run sadd-new "" -r 1000000 sadd s member:__rand_int__
run sadd-known "-r 10000 -n 50000 sadd s member:__rand_int__" -r 10000 sadd s member:__rand_int__
run lpush "" -r 1000000 lpush l element:__rand_int__
run rpush "" -r 1000000 rpush l element:__rand_int__
run lpop "-r 1000000 -n 50000 lpush l element:__rand_int__" lpop l
run rpop "-r 1000000 -n 50000 lpush l element:__rand_int__" rpop l
run zadd-new "" -r 1000000 zadd z __rand_int__ member:__rand_int__
run zadd-known "-r 10000 -n 50000 zadd z __rand_int__ member:__rand_int__" -r 10000 zadd z __rand_int__ member:__rand_int__
run zincrby-known "-r 10000 -n 50000 zincrby z 1 member:__rand_int__" -r 10000 zincrby z 1 member:__rand_int__
run srem "-r 100000 -n 100000 sadd s member:__rand_int__" -r 100000 srem s member:__rand_int__
run hdel "-r 100000 -n 100000 hset h field:__rand_int__ xxx" -r 100000 hdel h field:__rand_int__
run set "" -r 10000 set key:__rand_int__ xxx
run hget "-r 10000 -n 50000 hset h field:__rand_int__ xxx" -r 10000 hget h field:__rand_int__
run sismember "-r 10000 -n 50000 sadd s member:__rand_int__" -r 20000 sismember s member:__rand_int__
run zscore "-r 10000 -n 50000 zadd z __rand_int__ member:__rand_int__" -r 10000 zscore z member:__rand_int__
