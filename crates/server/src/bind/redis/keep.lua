-- Sets how long ago entries were last heard of, and answers those that are not this worker's any more.
-- KEYS: requests. ARGV: group, worker, milliseconds, entries.
local lost = {}
for i = 4, #ARGV do
  local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
  if pending.err or not pending[1] or pending[1][2] ~= ARGV[2] then
    lost[#lost + 1] = ARGV[i]
  else
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'JUSTID')
  end
end
return lost
