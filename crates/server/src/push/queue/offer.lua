-- Adds jobs that are not there yet.
-- KEYS: stream. ARGV: milliseconds that a mark lasts, longest stream, a worker or nothing, jobs.
-- With a worker, what another one has in hand is left out.
for i = 4, #ARGV do
  local job = ARGV[i]
  local by = ARGV[3] ~= '' and redis.call('GET', KEYS[1] .. ':held:' .. job)
  local free = not by or string.match(by, '^%d+/(.*)$') == ARGV[3]
  if free and redis.call('SET', KEYS[1] .. ':queued:' .. job, 1, 'NX', 'PX', ARGV[1]) then
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'webhook', job)
  end
end
