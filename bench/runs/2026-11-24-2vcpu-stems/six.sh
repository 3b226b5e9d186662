# BIN [names]: like the bench: 1000 collections, over TCP; ours then redis; REDIS=0 leaves it out
BIN=$1; shift
V=value-0123456789
for t in ${*:-lpush lpop sadd hset zadd mset}; do
case $t in
lpush) A="lpush list:__rand_int__ $V"; N=600000;; lpop) A="lpop list:__rand_int__"; N=600000;;
sadd) A="sadd set:__rand_int__ member:__rand_int__"; N=600000;; hset) A="hset hash:__rand_int__ member:__rand_int__ $V"; N=600000;;
zadd) A="zadd zset:__rand_int__ __rand_int__ member:__rand_int__"; N=600000;;
set) A="set key:__rand_int__ $V"; N=1000000;;
mset) A="mset k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V k:__rand_int__ $V"; N=100000;; esac
R=1000; [ $t = mset -o $t = set ] && R=10000
PRE=; [ $t = lpop ] && PRE="lpush list:__rand_int__ $V"
export PRE
[ "$SIX_OURS" = 0 ] || bash "$(dirname "$0")/pt.sh" $BIN $t $N -r $R $A
[ "$REDIS" = 0 ] || bash "$(dirname "$0")/pt.sh" redis $t $N -r $R $A
done
