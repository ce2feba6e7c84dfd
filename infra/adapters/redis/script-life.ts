// The life of a store in the script: it does nothing under another epoch, or where it shows less than it has answered (LEDGER 6).

/** Used by script.ts: `prefix`, `operation`, `now`, `millis` and `rates` are there. */
export const LIFE = `
if operation == 'clear' or operation == 'begin' then
  local before = redis.call('GET', KEYS[1])
  if operation == 'begin' and before and tonumber(before) >= tonumber(ARGV[2]) then return { 'begun', before } end
  -- What has a key of its own is named by what is kept of the holds.
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

-- Calls by process: 'how many, when the last'.
local function callsOf(process)
  local count, at = string.match(redis.call('HGET', prefix .. 'k', process) or '', '^(%d+) (%d+)$')
  return tonumber(count or '0'), tonumber(at or '0')
end
`;
