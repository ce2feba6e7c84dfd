// Loads in the script: counters are loaded and repaired, holds of an earlier epoch registered (LEDGER 6).

/** Used by script.ts, last; built only for a call that needs it. */
export const LOADS = `
local function join(id, counter, booked)
  local record = recordOf(id)
  if record == nil or record.state == 'released' then return end
  local at = tonumber(record.at)
  if at < counter.first or at >= counter.last then return end
  local function count(kind, cost)
    if not booked[id .. ' ' .. kind] then counter.spent = counter.spent + cost end
  end
  if record.state == 'held' then
    occupy(counter, amount(record.amount))
  else
    for _, part in ipairs(partsOf(record)) do count(part[1], amount(part[2])) end
  end
  checked(counter, MAX_SUM)
end

local function isLate(asked) return asked.deadline ~= nil and now > tonumber(asked.deadline) end

load = function(asked)
  local scope, window = scopeOf(asked.counter[1]), asked.counter[2]
  local first, last = boundsOf(window)
  local counter = { window = window, first = first, last = last, spent = sum(asked.spent), held = ZERO, holds = 0 }
  if find(scope, window) ~= nil or isLate(asked) then return end
  local booked = {}
  for _, name in ipairs(asked.booked or {}) do booked[name] = true end
  scope.counters[#scope.counters + 1] = counter
  touch(scope)
  edges[window .. ' ' .. scope.name] = millis(last)
  local ids = redis.call('SMEMBERS', prefix .. 'b:' .. scope.name)
  recall(ids)
  for _, id in ipairs(ids) do join(id, counter, booked) end
  -- Records of this call that are not written yet.
  for _, id in ipairs(joined[scope.name] or {}) do join(id, counter, booked) end
end

adjust = function(asked)
  local scope = scopeOf(asked.counter[1])
  local counter = find(scope, asked.counter[2])
  if counter == nil or isLate(asked) then return end
  counter.spent = counter.spent + sum(asked.by)
  checked(counter, MAX_SUM)
  touch(scope)
end

-- A hold of an earlier epoch is registered whatever the limits say.
register = function(asked)
  local before = recordOf(asked.id)
  if before ~= nil then
    if before.state ~= 'held' or asked.charged == nil then return end
    vacate(before, ZERO)
    if before.rates then rates().finish(before) end
  end
  local record = { at = asked.at, amount = shown(amount(asked.amount)), scopes = asked.scopes }
  if asked.charged == nil then
    record.state, record.known, record.ends = 'held', asked.known, millis(now + tonumber(asked.lease))
    for _, name in ipairs(asked.scopes) do
      countersAt(scopeOf(name), tonumber(asked.at), function(counter) occupy(counter, amount(record.amount)) end)
    end
  else
    record.state, record.charged, record.ends = 'expired', shown(amount(asked.charged)), millis(now + DAY)
  end
  notes[asked.id] = asked.note
  save(asked.id, record)
  index(asked.id, record)
  watch(asked.id, record.ends)
end
`;
