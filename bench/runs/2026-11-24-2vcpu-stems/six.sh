#!/usr/bin/env bash
# six.sh BINARY [NAMES]: commands on 1,000 collections, by pt.sh; BINARY `redis` is redis-server.
binary=$1
shift
value=value-0123456789
here=$(dirname "$0")
for name in ${*:-lpush lpop sadd hset zadd mset}; do
    count=600000
    range=1000
    before=
    case $name in
        lpush) words="lpush list:__rand_int__ $value" ;;
        lpop)
            words="lpop list:__rand_int__"
            before="lpush list:__rand_int__ $value"
            ;;
        sadd) words="sadd set:__rand_int__ member:__rand_int__" ;;
        hset) words="hset hash:__rand_int__ member:__rand_int__ $value" ;;
        zadd) words="zadd zset:__rand_int__ __rand_int__ member:__rand_int__" ;;
        mset)
            words=mset
            for _ in $(seq 10); do words="$words k:__rand_int__ $value"; done
            count=100000
            range=10000
            ;;
    esac
    # shellcheck disable=SC2086
    BEFORE=$before bash "$here/pt.sh" "$binary" "$name" $count -r $range $words
done
