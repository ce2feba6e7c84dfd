// The start of a hold in the script: limits are checked, and all scopes taken or none (LEDGER 3, 5).

/** Used by script.ts, after money and state. The call lists each counter once; its holds refer to them by index. */
export const HOLDS = `
local named = {}
local shapes = {}
local function shapeOf(text)
  local shape = shapes[text]
  if shape ~= nil then return shape end
  local limited, paid, names = {}, {}, {}
  local into = limited
  local bytes = { string.byte(text, 1, -1) }
  for i = 1, #bytes, 2 do
    if bytes[i] == 47 then into = paid else into[#into + 1] = named[(bytes[i] - 48) * 64 + bytes[i + 1] - 47] end
  end
  if into == limited then paid = limited end
  shape = { limited = limited }
  for i, one in ipairs(paid) do shape[i], names[i] = one.scope, one.scope.name end
  shape.names = table.concat(names, '\\n')
  placesOf[shape.names] = shape
  shapes[text] = shape
  return shape
end

local function counterOf(one)
  if one.counter == nil then
    one.first, one.last = boundsOf(one.window)
    one.counter = find(one.scope, one.window) or false
    one.limit = sum(one.limit)
  end
  return one.counter
end

-- The answer as a short text, and the amount that may be held.
local function check(limited, asked, min)
  local absent
  for i, one in ipairs(limited) do
    if not counterOf(one) then absent = (absent and absent .. ' ' or 'a') .. millis(i - 1) end
    if now < one.first or now >= one.last then return 'w' end
  end
  if absent then return absent end
  if asked < min then min = asked end
  -- A limit that spend has reached refuses free models too. Spend that leaves less than asked clamps the amount for all scopes.
  local granted = asked
  for i, one in ipairs(limited) do
    local left = one.limit - one.counter.spent
    if left <= ZERO or left < min then return 'e' .. millis(i - 1) .. ' ' .. shown(one.counter.spent) end
    if left < granted then granted = left end
  end
  -- Live holds refuse only what costs something.
  if ZERO < granted then
    for i, one in ipairs(limited) do
      if one.limit - one.counter.spent < one.counter.held + granted then return 'b' .. millis(i - 1) end
    end
  end
  return 'h', granted
end

-- Holds the amount in every loaded counter of its scopes whose window contains that instant.
local function occupyAll(places, at, size)
  for _, scope in ipairs(places) do
    for _, counter in ipairs(countersOf(scope)) do
      if counter.first <= at and at < counter.last then
        counter.held, counter.holds = counter.held + size, counter.holds + 1
        if not scope.isTouched then touch(scope) end
      end
    end
  end
end

local endsOf = {}
local nowText = millis(now)
local function take(id, sizeText, minText, shapeText, deadline, lease, note, asked)
  local before = (texts[id] or records[id]) and recordOf(id) or nil
  if before ~= nil and (before.state == 'held' or before.state == 'settled') then return 'h' .. before.amount end
  if before ~= nil or now > tonumber(deadline) then return 'l' end
  local shape, size = shapeOf(shapeText), amount(sizeText)
  local answer, granted = check(shape.limited, size, amount(minText))
  -- Spend takes precedence over a rate, a rate over live holds.
  local tooFast = asked ~= nil and (granted ~= nil or string.byte(answer) == 98) and rates().refusal(asked)
  if tooFast then return tooFast end
  if granted == nil then return answer end
  if granted < size then
    sizeText = shown(granted)
    answer = answer .. sizeText
  end
  occupyAll(shape, now, granted)
  local ends = endsOf[lease]
  if ends == nil then
    ends = millis(now + tonumber(lease))
    endsOf[lease] = ends
  end
  if asked == nil then
    saveText(id, 'h' .. shape.names .. '\\t' .. nowText .. ' ' .. sizeText .. ' ' .. ends)
  else
    local record = { state = 'held', at = nowText, amount = sizeText, ends = ends, scopes = namesIn(shape.names) }
    record.rates = rates().take(asked)
    save(id, record)
  end
  notes[id], leases[id] = note, ends
  for _, scope in ipairs(shape) do put(joined, scope.name, id) end
  return answer
end
`;
