-- Removes members of the group that have nothing in hand and were not heard of for long.
-- KEYS: requests. ARGV: group, worker, milliseconds.
for _, member in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local known = {}
  for i = 1, #member, 2 do
    known[member[i]] = member[i + 1]
  end
  if known.name ~= ARGV[2] and known.pending == 0 and known.idle > tonumber(ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], known.name)
  end
end
