require 'asan_canary'[arg[1]]() -- for `make test-asan`
