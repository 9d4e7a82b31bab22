-- Sets how long ago entries were last heard of, and until when they can be taken for being worked on. Answers those
-- that are not this worker's any more. Whoever outlives an entry for so long may be given it again.
-- KEYS: requests. ARGV: group, worker, milliseconds ago, milliseconds from now, entries.
local lost = {}
local now = redis.call('TIME')
local till = string.format('%.0f', now[1] * 1000 + tonumber(ARGV[4]))
for i = 5, #ARGV do
  local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
  if pending.err or not pending[1] or pending[1][2] ~= ARGV[2] then
    lost[#lost + 1] = ARGV[i]
  else
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'RETRYCOUNT', 1, 'JUSTID')
    local note = KEYS[1] .. ':entry:' .. ARGV[i]
    if redis.call('EXISTS', note) == 1 then
      redis.call('HSET', note, 'until', till)
    end
  end
end
return lost
