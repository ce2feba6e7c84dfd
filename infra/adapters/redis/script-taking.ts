// The begin of a hold in the script: limits are judged, and all scopes taken or none (LEDGER 3, 5).

/** Used by script.ts: money and state are there. The call names each counter once, and its holds name those by their places. */
export const TAKING = `
local named = {}
local shapes = {}
local function shapeOf(text)
  local shape = shapes[text]
  if shape ~= nil then return shape end
  local judged, paid, names = {}, {}, {}
  local into = judged
  local bytes = { string.byte(text, 1, -1) }
  for i = 1, #bytes, 2 do
    if bytes[i] == 47 then into = paid else into[#into + 1] = named[(bytes[i] - 48) * 64 + bytes[i + 1] - 47] end
  end
  if into == judged then paid = judged end
  shape = { judged = judged }
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

-- Answers in short, and how much may be held.
local function judge(judged, asked, least)
  local absent
  for i, one in ipairs(judged) do
    if not counterOf(one) then absent = (absent and absent .. ' ' or 'a') .. millis(i - 1) end
    if now < one.first or now >= one.last then return 'w' end
  end
  if absent then return absent end
  if asked < least then least = asked end
  -- What spend has reached stays refused, also for what costs nothing. Spend that leaves less than was asked clamps; all scopes give the same.
  local granted = asked
  for i, one in ipairs(judged) do
    local left = one.limit - one.counter.spent
    if left <= ZERO or left < least then return 'e' .. millis(i - 1) .. ' ' .. shown(one.counter.spent) end
    if left < granted then granted = left end
  end
  -- Holds of others are only in the way of what costs something.
  if ZERO < granted then
    for i, one in ipairs(judged) do
      if one.limit - one.counter.spent < one.counter.held + granted then return 'b' .. millis(i - 1) end
    end
  end
  return 'h', granted
end

-- Set aside in every counter of its scopes that is loaded and whose window has that instant.
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
local function take(id, sizeText, leastText, shapeText, deadline, lease, note, asked)
  local before = (texts[id] or records[id]) and recordOf(id) or nil
  if before ~= nil and (before.state == 'held' or before.state == 'settled') then return 'h' .. before.amount end
  if before ~= nil or now > tonumber(deadline) then return 'l' end
  local shape, size = shapeOf(shapeText), amount(sizeText)
  local answer, granted = judge(shape.judged, size, amount(leastText))
  -- Spend that refuses says so; a rate that refuses does before holds that are in the way.
  local limited = asked ~= nil and (granted ~= nil or string.byte(answer) == 98) and rates().judge(asked)
  if limited then return limited end
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
