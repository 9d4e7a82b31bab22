-- KEYS: what a caller has used. ARGV: microseconds for one, how far ahead of time, how many are wanted.
-- The value is the moment until which everything is used up, so that time itself fills the bucket.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local used = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local interval, slack, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if used > now + slack then
  return 0
end
local granted = math.min(want, math.floor((now + slack - used) / interval) + 1)
used = used + granted * interval
redis.call('SET', KEYS[1], string.format('%.0f', used), 'PX', math.ceil((used - now) / 1000) + 1)
return granted
