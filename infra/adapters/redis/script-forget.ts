// The forget operation of the script: booked entries go; an expiry goes a day later, for a late settlement (LEDGER 2).

/** Used by script.ts, after state and settlements. */
export const FORGET = `
local function forget(id, kind)
  local record = recordOf(id)
  if record == nil then return end
  if record.state == 'settled' then
    -- A booked expiry of an earlier epoch does not cover a settlement of this one.
    if kind == 'settled' or kind == partsOf(record)[1][1] then drop(id, record) end
    return
  end
  if record.state ~= 'expired' then return end
  if kind == 'correction' then
    record.isBooked = record.late and 'yes'
  elseif record.ends == nil then
    record.ends = millis(now + DAY)
    endings[id] = false
  end
  save(id, record)
  if record.late ~= nil and record.isBooked == nil then return end
  if record.ends == nil then return unwatch(id) end
  -- The record stays with its scopes: a late settlement counts in counters that are loaded until then.
  watch(id, record.ends)
end

local function forgetSettled(id)
  local text = texts[id]
  if not text or string.byte(text) ~= 115 then return forget(id, 'settled') end
  records[id] = false
  isChanged(id)
  leases[id] = false
  put(leaving, string.sub(text, 2, string.find(text, '\\t', 2, true) - 1), id)
end

local others, ids = cjson.decode(ARGV[2]), {}
for i = 1, tonumber(ARGV[3]) do ids[i] = ARGV[3 + i] end
recall(ids)
for _, id in ipairs(ids) do forgetSettled(id) end
for _, name in ipairs(others) do forget(name[1], name[2]) end
for names, gone in pairs(leaving) do
  for _, name in ipairs(namesIn(names)) do
    for _, id in ipairs(gone) do put(left, name, id) end
  end
end
flush()
return { 'forgotten' }
`;
