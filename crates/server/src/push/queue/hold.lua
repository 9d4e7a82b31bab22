-- Lets a worker deliver, unless another one does. What the same worker held in an earlier life is free.
-- KEYS: what is held. ARGV: number/worker, worker, lease in milliseconds.
local by = redis.call('GET', KEYS[1])
if by and string.match(by, '^%d+/(.*)$') ~= ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
