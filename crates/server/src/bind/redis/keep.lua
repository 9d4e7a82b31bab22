-- Sets how long ago entries were last heard of and how often they were taken, and, if it is said, until when they can
-- be taken for being worked on. Answers those that are not this worker's any more.
-- KEYS: requests. ARGV: group, worker, milliseconds ago, times, milliseconds from now or 0, entries.
local lost = {}
local till = string.format('%.0f', redis.call('TIME')[1] * 1000 + tonumber(ARGV[5]))
for i = 6, #ARGV do
  local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
  if pending.err or not pending[1] or pending[1][2] ~= ARGV[2] then
    lost[#lost + 1] = ARGV[i]
  else
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'RETRYCOUNT', ARGV[4], 'JUSTID')
    local note = KEYS[1] .. ':entry:' .. ARGV[i]
    if ARGV[5] ~= '0' and redis.call('EXISTS', note) == 1 then
      redis.call('HSET', note, 'until', till)
    end
  end
end
return lost
