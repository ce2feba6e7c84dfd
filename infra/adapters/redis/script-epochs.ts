// Epochs in the script: begin and clear; a call in another epoch, or to a store that shows fewer calls than it has answered, does nothing (LEDGER 6).

/** Used by script.ts, after `prefix`, `operation`, `now`, `millis` and `rates`. */
export const EPOCHS = `
if operation == 'clear' or operation == 'begin' then
  local before = redis.call('GET', KEYS[1])
  if operation == 'begin' and before and tonumber(before) >= tonumber(ARGV[2]) then return { 'begun', before } end
  -- Sets and rates have their own keys, which the records of holds name.
  for _, text in ipairs(redis.call('HVALS', prefix .. 'h')) do
    local record = toRecord(text)
    for _, name in ipairs(record.scopes or {}) do redis.call('DEL', prefix .. 'b:' .. name) end
    if record.rates then rates().wipe(record.rates) end
  end
  redis.call('DEL', KEYS[1])
  for _, name in ipairs({ 'c', 'h', 'n', 'l', 'x', 'w', 'k' }) do redis.call('UNLINK', prefix .. name) end
  if operation == 'clear' then return { 'cleared' } end
  redis.call('SET', KEYS[1], ARGV[2])
  return { 'begun', ARGV[2] }
end

-- Calls by process: their number and the last instant.
local function callsOf(process)
  local count, at = string.match(redis.call('HGET', prefix .. 'k', process) or '', '^(%d+) (%d+)$')
  return tonumber(count or '0'), tonumber(at or '0')
end
`;
