-- Sends the last replies to a request and removes its entry, both or neither, and once whoever tries.
-- KEYS: requests, note of the entry, where replies go.
-- ARGV: group, entry, correlation id, most replies, milliseconds that replies last, then the payloads.
-- Answers 1; 0 if the entry was finished before; -1 if replies cannot go there.
redis.call('DEL', KEYS[2])
local acked = redis.pcall('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
if acked ~= 1 then
  return 0
end
if #ARGV == 5 then
  return 1
end
local kind = redis.call('TYPE', KEYS[3]).ok
if kind ~= 'none' and kind ~= 'stream' then
  return -1
end
for i = 6, #ARGV do
  local final = 'false'
  if i == #ARGV then
    final = 'true'
  end
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', 'correlation_id', ARGV[3], 'payload', ARGV[i],
    'final', final)
end
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return 1
