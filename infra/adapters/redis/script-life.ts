// When does the script do nothing at all? Where the store lives under another epoch, or shows less than it has answered (LEDGER 5).

/** Used by script.ts: `prefix`, `call`, `now`, `millis` and `rates` are there. */
export const LIFE = `
-- Everything is found by an index, so nothing has to be scanned for.
local function wipe()
  for _, index in ipairs({ 'l', 'x' }) do
    for _, id in ipairs(redis.call('ZRANGE', prefix .. index, '0', '-1')) do
      local found = redis.call('GET', prefix .. 'r:' .. id)
      local record = found and cjson.decode(found) or {}
      for _, scope in ipairs(record.scopes or {}) do redis.call('DEL', prefix .. 'b:' .. scope) end
      rates.wipe(record.rates or {})
      redis.call('DEL', prefix .. 'r:' .. id)
    end
  end
  for _, member in ipairs(redis.call('ZRANGE', prefix .. 'w', '0', '-1')) do
    redis.call('DEL', prefix .. 'c:' .. string.match(member, '^%S+ (.*)$'))
  end
  redis.call('DEL', KEYS[1], prefix .. 'l', prefix .. 'x', prefix .. 'w', prefix .. 'k')
end

if call.clear ~= nil then
  wipe()
  return { 'cleared' }
end
if call.begin ~= nil then
  local before = redis.call('GET', KEYS[1])
  if before and tonumber(before) >= tonumber(call.begin) then return { 'begun', before } end
  wipe()
  redis.call('SET', KEYS[1], call.begin)
  return { 'begun', call.begin }
end

-- Calls by process: 'how many, when the last'.
local function callsOf(process)
  local count, at = string.match(redis.call('HGET', prefix .. 'k', process) or '', '^(%d+) (%d+)$')
  return tonumber(count or '0'), tonumber(at or '0')
end
local function hasGoneBack()
  if call.from ~= nil and callsOf(call.from[1]) < tonumber(call.from[2]) then return true end
  for _, mark in ipairs(call.marks or {}) do
    if callsOf(mark[1]) < tonumber(mark[2]) then return true end
  end
  return false
end
`;
