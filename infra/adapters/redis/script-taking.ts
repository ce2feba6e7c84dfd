// How does a hold begin in the script? Counters are loaded, limits judged, and all scopes taken or none (LEDGER 4, 5).

/** Used by script.ts: money and state are there. */
export const TAKING = `
local function join(id, counter, booked)
  local record = recordOf(id)
  if record == nil or record.state == 'released' or not isInside(tonumber(record.at), counter) then return end
  record.counters[#record.counters + 1] = { counter.scope, counter.window }
  local function count(kind, cost)
    if not booked[id .. ' ' .. kind] then counter.spent = add(counter.spent, cost) end
  end
  if record.state == 'held' then
    occupy(counter, parse(record.amount))
  elseif record.state == 'settled' then
    count(record.kind or 'settled', parse(record.cost))
  else
    if record.ends == nil then count('expired', parse(record.charged)) end
    if record.late ~= nil and record.isBooked == nil then
      count('correction', minus(parse(record.lateCost), parse(record.charged)))
    end
  end
  save(id, record)
end

local function isLate(asked) return asked.deadline ~= nil and now > tonumber(asked.deadline) end

local function load(asked)
  local scope, window = asked.counter[1], asked.counter[2]
  local spent = parse(asked.spent)
  if find(asked.counter) ~= nil or isLate(asked) then return end
  local booked = {}
  for _, name in ipairs(asked.booked or {}) do booked[name] = true end
  local counter = toCounter(scope, window, spent, ZERO, 0)
  counter.changed = true
  windowsOf(scope)[window] = counter
  write('ranks', prefix .. 'w', window .. ' ' .. scope, millis(counter.last))
  local ids = redis.call('SMEMBERS', prefix .. 'b:' .. scope)
  recall(ids, itself)
  for _, id in ipairs(ids) do join(id, counter, booked) end
end

local function adjust(asked)
  local counter = find(asked.counter)
  if counter == nil or isLate(asked) then return end
  counter.spent = add(counter.spent, parse(asked.by))
  counter.changed = true
end

local function judge(asked)
  local amount, least = parse(asked.amount), parse(asked.least)
  if less(amount, least) then least = amount end
  local absent, found = { 'absent' }, {}
  for _, at in ipairs(asked.counters) do
    if not isInside(now, find(at) or toCounter(at[1], at[2])) then return { 'window' } end
  end
  for i, at in ipairs(asked.counters) do
    local counter = find(at)
    if counter == nil then absent[#absent + 1] = tostring(i - 1) end
    found[i] = { limit = parse(at[3]), counter = counter }
  end
  if #absent > 1 then return absent end
  -- What spend has reached stays refused, also for what costs nothing.
  for i, one in ipairs(found) do
    one.left = minus(one.limit, one.counter.spent)
    if not less(ZERO, one.left) or less(one.left, least) then
      return { 'exceeded', tostring(i - 1), digits(one.counter.spent) }
    end
  end
  -- Spend that leaves less than was asked clamps; all scopes give the same.
  for _, one in ipairs(found) do
    if less(one.left, amount) then amount = one.left end
  end
  -- Holds of others are only in the way of what costs something.
  if less(ZERO, amount) then
    for i, one in ipairs(found) do
      if less(one.left, add(one.counter.held, amount)) then return { 'busy', tostring(i - 1) } end
    end
  end
  return { 'held', digits(amount) }
end

-- Set aside in every counter of its scopes that is loaded and whose window has that instant.
local function hold(asked, record)
  local taken = {}
  for _, scope in ipairs(asked.scopes) do
    for _, counter in pairs(windowsOf(scope)) do
      if isInside(tonumber(record.at), counter) then
        occupy(counter, parse(record.amount))
        taken[#taken + 1] = { scope, counter.window }
      end
    end
  end
  local ends = now + tonumber(asked.lease)
  record.ends, record.counters, record.scopes, record.note = millis(ends), taken, asked.scopes, asked.note
  save(asked.id, record)
  index(asked.id, record)
  watch(asked.id, ends)
end

local function take(asked)
  local before = recordOf(asked.id)
  if before ~= nil and (before.state == 'held' or before.state == 'settled') then return { 'held', before.amount } end
  if before ~= nil or now > tonumber(asked.deadline) then return { 'late' } end
  local answer = judge(asked)
  -- Spend that refuses says so; a rate that refuses does before holds that are in the way.
  local limited = asked.rates ~= nil and (answer[1] == 'held' or answer[1] == 'busy') and rates.judge(asked.rates)
  if limited then return limited end
  if answer[1] ~= 'held' then return answer end
  hold(asked, { state = 'held', at = millis(now), amount = answer[2], rates = asked.rates and rates.take(asked.rates) })
  return answer
end

-- From an earlier epoch: whatever the limits say.
local function register(asked)
  if recordOf(asked.id) ~= nil then return end
  if asked.charged == nil then
    return hold(asked, { state = 'held', at = asked.at, amount = digits(parse(asked.amount)), known = asked.known })
  end
  local counters = {}
  for _, scope in ipairs(asked.scopes) do
    for window, counter in pairs(windowsOf(scope)) do
      if isInside(tonumber(asked.at), counter) then counters[#counters + 1] = { scope, window } end
    end
  end
  local record = {
    state = 'expired', at = asked.at, amount = asked.amount, charged = digits(parse(asked.charged)),
    ends = millis(now + DAY), counters = counters, scopes = asked.scopes, note = asked.note,
  }
  save(asked.id, record)
  index(asked.id, record)
  watch(asked.id, now + DAY)
end

local TELLING = { held = true, exceeded = true, limited = true, busy = true }
`;
