// What has the store counted that PostgreSQL may not have? Asked by whoever loads a counter, audits one, or books for the dead (LEDGER 5, 8).

/** Used by script.ts, behind its functions. Each ends the script. */
export const SURVEY = `
-- Of one record: { kind, cost, said, since, by }.
local function partsOf(record)
  if record.state == 'settled' then
    return { { record.kind or 'settled', record.cost, record.said or '', record.since or record.at, record.by or '' } }
  end
  if record.state ~= 'expired' then return {} end
  local parts = {}
  if record.ends == nil then parts[1] = { 'expired', record.charged, '', record.since or record.at, '' } end
  if record.late ~= nil and record.isBooked == nil then
    local cost = digits(minus(parse(record.lateCost), parse(record.charged)))
    parts[#parts + 1] = { 'correction', cost, record.said or '', record.since or record.at, record.by or '' }
  end
  return parts
end

local function counts(record, at, counter)
  if counter == nil then return isInside(tonumber(record.at), toCounter(at[1], at[2])) end
  for _, taken in ipairs(record.counters) do
    if taken[1] == at[1] and taken[2] == at[2] then return true end
  end
  return false
end

local function surveyOf(at)
  local counter, parts = find(at), {}
  local ids = redis.call('SMEMBERS', prefix .. 'b:' .. at[1])
  recall(ids, itself)
  for _, id in ipairs(ids) do
    local record = recordOf(id)
    if record ~= nil and (record.state == 'settled' or record.state == 'expired') and counts(record, at, counter) then
      for _, part in ipairs(partsOf(record)) do parts[#parts + 1] = { id, part[1], part[2] } end
    end
  end
  return { counter and digits(counter.spent) or '', parts }
end

local function unbookedOf(silence, most)
  local before, found, silent = now - silence, {}, {}
  local function isSilent(process)
    if silent[process] == nil then
      local _, at = callsOf(process)
      silent[process] = at <= before
    end
    return silent[process]
  end
  local function add(id)
    local record = recordOf(id)
    for _, part in ipairs(record and partsOf(record) or {}) do
      if tonumber(part[4]) <= before and isSilent(part[5]) then
        found[#found + 1] = { id, part[1], part[2], part[3], part[4], record.note or '' }
      end
    end
  end
  local ended = redis.call('ZRANGEBYSCORE', prefix .. 'x', '-inf', millis(before), 'LIMIT', '0', tostring(most))
  for _, id in ipairs(ended) do add(id) end
  local from, to = millis(COUNTED), millis(COUNTED + before)
  local counted = redis.call('ZRANGEBYSCORE', prefix .. 'l', from, to, 'LIMIT', '0', tostring(most))
  for _, id in ipairs(counted) do
    if redis.call('ZSCORE', prefix .. 'x', id) == false then add(id) end
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

if call.survey ~= nil then
  sweepHolds()
  local found = each(call.survey, surveyOf)
  flush()
  return { 'survey', millis(now), found }
end
if call.unbooked ~= nil then
  sweepHolds()
  flush()
  records, changed, writes, scopes = {}, {}, {}, {}
  return unbookedOf(tonumber(call.unbooked[1]), tonumber(call.unbooked[2]))
end
if call.loaded ~= nil then
  local first = tonumber(call.loaded[1])
  local last = first + tonumber(call.loaded[2]) - 1
  local members = redis.call('ZRANGE', prefix .. 'w', tostring(first), tostring(last))
  local found = each(members, function(member) return { string.match(member, '^(%S+) (.*)$') } end)
  local left = redis.call('ZCARD', prefix .. 'w') > last + 1
  return { 'loaded', found, left and tostring(last + 1) or '' }
end
`;
