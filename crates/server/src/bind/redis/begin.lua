-- Notes that a worker begins an entry, and answers what is known of it.
-- KEYS: requests, note of the entry. ARGV: group, worker, entry, home of the worker, milliseconds that a note lasts,
-- milliseconds that the worker can be taken for being at it.
-- Answers: how often it was taken, 0 if it is another worker's; home that it was begun in; last event that was sent;
-- for how many milliseconds nobody can have been at it.
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)
if pending.err or not pending[1] or pending[1][2] ~= ARGV[2] then
  return { 0, '', 0, 0 }
end
redis.call('HSETNX', KEYS[2], 'home', ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
local now = redis.call('TIME')[1] * 1000
local known = redis.call('HMGET', KEYS[2], 'home', 'event', 'until')
local late = now - tonumber(known[3] or now)
if known[1] == ARGV[4] then
  redis.call('HSET', KEYS[2], 'until', string.format('%.0f', now + tonumber(ARGV[6])))
end
return { pending[1][4], known[1], tonumber(known[2] or 0), math.max(late, 0) }
