// Surveys in the script: its counted charges, for loads, audits and drains (LEDGER 6, 8).

/** Used by script.ts, after its functions. Each operation ends the script. */
export const SURVEY = `
local function spentOf(at)
  local counter = find(scopeOf(at[1]), at[2])
  return counter and shown(counter.spent) or ''
end
-- All scopes are named before the first read, which fetches them together.
local function counters()
  local list = cjson.decode(ARGV[2])
  for _, at in ipairs(list) do scopeOf(at[1]) end
  return list
end
if operation == 'read' then
  sweepHolds()
  local spent = each(counters(), spentOf)
  flush()
  return { 'read', spent }
end

local function surveyOf(at)
  local first, last = boundsOf(at[2])
  local ids, parts = redis.call('SMEMBERS', prefix .. 'b:' .. at[1]), {}
  recall(ids)
  for _, id in ipairs(ids) do
    local record = recordOf(id)
    local instant = record and record.at and tonumber(record.at)
    if instant and first <= instant and instant < last then
      for _, part in ipairs(partsOf(record)) do parts[#parts + 1] = { id, part[1], part[2] } end
    end
  end
  return { spentOf(at), parts }
end
if operation == 'survey' then
  sweepHolds()
  local found = each(counters(), surveyOf)
  flush()
  return { 'survey', millis(now), found }
end

-- The records that one call searches: about ten milliseconds.
local MAX_SEARCHED = 2000
local function unbookedOf(idleFor, max)
  local before, found, idle, isSeen = now - idleFor, {}, {}, {}
  local function isIdle(process)
    if idle[process] == nil then
      local _, at = callsOf(process)
      idle[process] = at <= before
    end
    return idle[process]
  end
  local function add(id)
    if #found >= max or isSeen[id] then return end
    isSeen[id] = true
    local record = recordOf(id)
    for _, part in ipairs(record and partsOf(record) or {}) do
      if tonumber(part[4]) <= before and isIdle(part[5]) then
        local note = redis.call('HGET', prefix .. 'n', id) or ''
        found[#found + 1] = { id, part[1], part[2], part[3], part[4], table.concat(record.scopes, '\\n'), note }
      end
    end
  end
  local ended = redis.call('ZRANGEBYSCORE', prefix .. 'x', '-inf', millis(before), 'LIMIT', '0', tostring(max))
  recall(ended)
  for _, id in ipairs(ended) do add(id) end
  local from, to = millis(COUNTED), millis(COUNTED + before)
  -- Records of live processes are skipped: each books its own, and they must not hide those of dead ones.
  local at, portion = 0, math.max(max, 100)
  while #found < max and at < MAX_SEARCHED do
    local counted = redis.call('ZRANGEBYSCORE', prefix .. 'l', from, to, 'LIMIT', tostring(at), tostring(portion))
    recall(counted)
    for _, id in ipairs(counted) do add(id) end
    at = #counted < portion and MAX_SEARCHED or at + portion
  end
  local calls, flat = {}, redis.call('HGETALL', prefix .. 'k')
  for i = 1, #flat, 2 do
    local count, at = string.match(flat[i + 1], '^(%d+) (%d+)$')
    if tonumber(at) < now - DAY then
      redis.call('HDEL', prefix .. 'k', flat[i])
    else
      calls[#calls + 1] = { flat[i], count }
    end
  end
  return { 'unbooked', found, calls, redis.call('GET', KEYS[1]) or '0' }
end
if operation == 'unbooked' then
  sweepHolds()
  flush()
  texts, records = {}, {}
  return unbookedOf(tonumber(ARGV[2]), tonumber(ARGV[3]))
end

if operation == 'loaded' then
  local first = tonumber(ARGV[2])
  local last = first + tonumber(ARGV[3]) - 1
  local members = redis.call('ZRANGE', prefix .. 'w', tostring(first), tostring(last))
  local found = each(members, function(member) return { string.match(member, '^(%S+) (.*)$') } end)
  local more = redis.call('ZCARD', prefix .. 'w') > last + 1
  return { 'loaded', found, more and tostring(last + 1) or '' }
end
`;
