// The end of a hold in the script: settled, released, or expired; old records are dropped (LEDGER 2).

/** Used by script.ts, after money and state. */
export const SETTLEMENTS = `
local function settleUnknown(id, costText, said, asked)
  if asked == nil or asked.counters == nil then return 'u' end
  local absent = {}
  -- An instant in all its windows: the settlement counts in every counter loaded there.
  local at, names, cost = now, {}, amount(costText)
  for i, one in ipairs(asked.counters) do
    local _, last = boundsOf(one[2])
    if last > now and find(scopeOf(one[1]), one[2]) == nil then absent[#absent + 1] = millis(i - 1) end
  end
  if #absent > 0 then return 'a' .. table.concat(absent, ' ') end
  for i, one in ipairs(asked.charges or asked.counters) do
    local _, last = boundsOf(one[2])
    at, names[i] = math.min(at, last - 1), one[1]
  end
  if asked.counted then cost = cost - amount(asked.counted) end
  local record = { state = 'settled', at = millis(at), amount = costText, cost = shown(cost), scopes = names }
  charge(record, cost)
  keep(id, record, said)
  if asked.note then notes[id] = asked.note end
  index(id, record)
  save(id, record)
  return 's'
end

local function change(id, record, outcome, cost, said)
  charge(record, cost - amount(record.charged))
  record.late, record.lateCost = outcome, shown(cost)
  keep(id, record, said)
  save(id, record)
end

local function settleOther(id, costText, said, asked)
  local record = recordOf(id)
  if record == nil then return settleUnknown(id, costText, said, asked) end
  if record.state == 'expired' then
    if record.late == 'released' then return 'r' end
    if record.late == nil then change(id, record, 'settled', amount(costText), said) end
    return 'x' .. record.charged
  end
  if record.state ~= 'held' then return string.sub(record.state, 1, 1) end
  vacate(record, amount(costText))
  if record.rates then rates().finish(record, asked and asked.tokens) end
  record.state, record.cost, record.ends, record.known = 'settled', costText, nil, nil
  keep(id, record, said)
  save(id, record)
  return 's'
end

local settledBy = ' ' .. millis(now) .. ' ' .. (caller or '') .. '\\t'
local function settle(id, costText, said, more)
  local text = texts[id]
  if not text or records[id] ~= nil or string.byte(text) ~= 104 then
    return settleOther(id, costText, said, more ~= '' and cjson.decode(more) or nil)
  end
  local tab = string.find(text, '\\t', 2, true)
  local atText, sizeText = string.match(text, '^(%d+) (%d+)', tab + 1)
  local at, size, cost = tonumber(atText), amount(sizeText), amount(costText)
  local names = string.sub(text, 2, tab - 1)
  for _, scope in ipairs(placesIn(names)) do
    for _, counter in ipairs(countersOf(scope)) do
      if counter.first <= at and at < counter.last then
        counter.held, counter.holds, counter.spent = counter.held - size, counter.holds - 1, counter.spent + cost
        if not scope.isTouched then touch(scope) end
      end
    end
  end
  texts[id] = 's' .. names .. '\\t' .. atText .. ' ' .. sizeText .. ' ' .. costText .. settledBy .. said
  leases[id] = counted
  isChanged(id)
  return 's'
end

local function release(asked)
  local id, record = asked.id, recordOf(asked.id)
  if record ~= nil and record.state == 'settled' then return 's' end
  if record ~= nil and record.state == 'expired' then
    if record.late == 'settled' then return 's' end
    if record.late == nil then change(id, record, 'released', ZERO) end
    return 'x' .. record.charged
  end
  if record ~= nil and record.state == 'held' then
    vacate(record, ZERO)
    if record.rates then rates().finish(record, '0', asked.called == nil) end
    unindex(id, record)
    notes[id] = false
  end
  local ends = now + tonumber(asked.lease)
  save(id, { state = 'released', ends = millis(ends) })
  watch(id, ends)
  return 'r'
end

local function renew(asked)
  local record = recordOf(asked.id)
  if record == nil or record.state ~= 'held' then return end
  if asked.known ~= nil then record.known = shown(amount(asked.known)) end
  local ends = math.max(tonumber(record.ends), now + tonumber(asked.lease))
  record.ends = millis(ends)
  save(asked.id, record)
  watch(asked.id, ends)
end

-- Ends leases and drops old records.
local function sweepHolds()
  local ended = redis.call('ZRANGEBYSCORE', prefix .. 'l', '-inf', millis(now), 'LIMIT', '0', tostring(MAX_SWEPT))
  if ended[1] == nil then return end
  recall(ended)
  for _, id in ipairs(ended) do
    local record = recordOf(id)
    if record == nil then
      unwatch(id)
    elseif record.state ~= 'settled' and tonumber(record.ends) <= now then
      if record.state == 'held' then
        record.state, record.charged, record.since = 'expired', record.known or record.amount, millis(now)
        vacate(record, amount(record.charged))
        if record.rates then rates().finish(record) end
        record.ends, record.known = nil, nil
        save(id, record)
        unwatch(id)
        endings[id] = millis(now)
      else
        drop(id, record)
      end
    end
  end
end

local function sweepCounters()
  local over = redis.call('ZRANGEBYSCORE', prefix .. 'w', '-inf', millis(now - KEEP), 'LIMIT', '0', '10')
  for _, member in ipairs(over) do
    local window, name = string.match(member, '^(%S+) (.*)$')
    local scope, kept = scopeOf(name), {}
    local counter = find(scope, window)
    if counter ~= nil and counter.holds > 0 then
      edges[member] = millis(now)
    else
      for _, one in ipairs(scope.counters) do
        if one ~= counter then kept[#kept + 1] = one end
      end
      scope.counters, edges[member] = kept, false
      touch(scope)
    end
  end
end
`;
