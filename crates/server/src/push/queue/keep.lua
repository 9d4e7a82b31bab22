-- Lets a worker go on for another lease, unless another one has taken over.
-- KEYS: what is held, stream. ARGV: number/worker, lease in milliseconds, group, worker, entry.
local by = redis.call('GET', KEYS[1])
if by and by ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.pcall('XCLAIM', KEYS[2], ARGV[3], ARGV[4], 0, ARGV[5], 'JUSTID')
return 1
