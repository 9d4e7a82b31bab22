-- Gives back what is held, if it still is, and removes the job.
-- KEYS: what is held, stream. ARGV: number/worker, group, entry.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
redis.pcall('XACK', KEYS[2], ARGV[2], ARGV[3])
redis.call('XDEL', KEYS[2], ARGV[3])
