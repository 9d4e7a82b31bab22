-- Sends events of a request that goes on, each once, as long as the entry is in the hands of this worker.
-- KEYS: requests, note of the entry, where replies go.
-- ARGV: group, worker, entry, correlation id, most replies, milliseconds that replies last, milliseconds that a note
-- lasts, then number and payload of each event.
-- Answers 1; 0 if the entry is not this worker's any more; -1 if replies cannot go there.
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)
if pending.err or not pending[1] or pending[1][2] ~= ARGV[2] then
  return 0
end
local kind = redis.call('TYPE', KEYS[3]).ok
if kind ~= 'none' and kind ~= 'stream' then
  return -1
end
local last = tonumber(redis.call('HGET', KEYS[2], 'event') or 0)
for i = 8, #ARGV, 2 do
  local number = tonumber(ARGV[i])
  if number > last then
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[5], '*', 'correlation_id', ARGV[4], 'payload', ARGV[i + 1],
      'final', 'false', 'event_id', ARGV[i])
    last = number
  end
end
redis.call('PEXPIRE', KEYS[3], ARGV[6])
redis.call('HSET', KEYS[2], 'event', string.format('%.0f', last))
redis.call('PEXPIRE', KEYS[2], ARGV[7])
return 1
