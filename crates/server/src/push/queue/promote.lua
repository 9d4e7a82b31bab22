-- Makes jobs of what is due, each once, and answers when the next is.
-- KEYS: stream, sorted set. ARGV: now in milliseconds, milliseconds that a mark lasts, longest stream.
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, 128)
for _, job in ipairs(due) do
  redis.call('ZREM', KEYS[2], job)
  if redis.call('SET', KEYS[1] .. ':queued:' .. job, 1, 'NX', 'PX', ARGV[2]) then
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'webhook', job)
  end
end
return redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
