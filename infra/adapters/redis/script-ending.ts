// How does a hold end in the script? Settled, released, or expired; and what is long over is forgotten (LEDGER 2).

/** Used by script.ts: money and state are there. */
export const ENDING = `
local function settleUnknown(asked, cost)
  if asked.counters == nil then return { 'unknown' } end
  local absent, there = { 'absent' }, {}
  for i, at in ipairs(asked.counters) do
    if find(at) ~= nil then
      there[#there + 1] = at
    elseif toCounter(at[1], at[2]).last > now then
      absent[#absent + 1] = tostring(i - 1)
    end
  end
  if #absent > 1 then return absent end
  -- Some instant that all its windows have; it counts in every counter that is loaded there.
  local at, among, scopesOf = now, {}, {}
  for _, one in ipairs(asked.charges or asked.counters) do
    at = math.min(at, toCounter(one[1], one[2]).last - 1)
    scopesOf[#scopesOf + 1] = one[1]
  end
  for _, one in ipairs(there) do among[one[1] .. ' ' .. one[2]] = true end
  for _, scope in ipairs(scopesOf) do
    for window, counter in pairs(windowsOf(scope)) do
      if isInside(at, counter) and not among[scope .. ' ' .. window] then there[#there + 1] = { scope, window } end
    end
  end
  local delta = minus(cost, asked.counted and parse(asked.counted) or ZERO)
  local record = {
    state = 'settled', kind = asked.kind, at = millis(at), amount = asked.cost, cost = digits(delta),
    counters = there, scopes = scopesOf, note = asked.note,
  }
  charge(record, delta)
  keep(asked.id, record, asked.said)
  index(asked.id, record)
  save(asked.id, record)
  return { 'settled' }
end

local function settle(asked)
  local cost, record = parse(asked.cost), recordOf(asked.id)
  if record == nil then return settleUnknown(asked, cost) end
  if record.state == 'expired' then
    if record.late == 'released' then return { 'released' } end
    if record.late == nil then change(asked.id, record, 'settled', cost, asked.said) end
    return { 'expired', record.charged }
  end
  if record.state ~= 'held' then return { record.state } end
  vacate(record, cost)
  rates.finish(record, asked.tokens)
  record.state, record.cost, record.kind, record.ends = 'settled', asked.cost, asked.kind, nil
  keep(asked.id, record, asked.said)
  save(asked.id, record)
  return { 'settled' }
end

local function release(asked)
  local record = recordOf(asked.id)
  if record ~= nil and record.state == 'settled' then return { 'settled' } end
  if record ~= nil and record.state == 'expired' then
    if record.late == 'settled' then return { 'settled' } end
    if record.late == nil then change(asked.id, record, 'released', ZERO) end
    return { 'expired', record.charged }
  end
  if record ~= nil and record.state == 'held' then
    vacate(record, ZERO)
    rates.finish(record, '0', asked.called == nil)
    unindex(asked.id, record)
  end
  local ends = now + tonumber(asked.lease)
  save(asked.id, { state = 'released', ends = millis(ends) })
  watch(asked.id, ends)
  return { 'released' }
end

local function renew(asked)
  local record = recordOf(asked.id)
  if record == nil or record.state ~= 'held' then return end
  if asked.known ~= nil then record.known = digits(parse(asked.known)) end
  local ends = math.max(tonumber(record.ends), now + tonumber(asked.lease))
  record.ends = millis(ends)
  save(asked.id, record)
  watch(asked.id, ends)
end

local function drop(id, record)
  save(id, false)
  unwatch(id)
  unindex(id, record)
end

-- Ends leases and forgets what may be forgotten.
local function sweepHolds()
  local ended = redis.call('ZRANGEBYSCORE', prefix .. 'l', '-inf', millis(now), 'LIMIT', '0', tostring(MOST))
  recall(ended, itself)
  for _, id in ipairs(ended) do
    local record = recordOf(id)
    if record == nil then
      unwatch(id)
    elseif record.state ~= 'settled' and tonumber(record.ends) <= now then
      if record.state == 'held' then
        record.state, record.charged, record.since = 'expired', record.known or record.amount, millis(now)
        vacate(record, parse(record.charged))
        rates.finish(record)
        record.ends = nil
        save(id, record)
        unwatch(id)
        write('ranks', prefix .. 'x', id, millis(now))
      else
        drop(id, record)
      end
    end
  end
end

local function sweepCounters()
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'w', '-inf', millis(now - KEEP), 'LIMIT', '0', '10')) do
    local window, scope = string.match(member, '^(%S+) (.*)$')
    local counter = find({ scope, window })
    if counter ~= nil and counter.holds > 0 then
      write('ranks', prefix .. 'w', member, millis(now))
    else
      windowsOf(scope)[window] = nil
      write('hash', prefix .. 'c:' .. scope, window, false)
      write('ranks', prefix .. 'w', member, false)
    end
  end
end
`;
