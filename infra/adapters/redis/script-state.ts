// The state of a call in the script: counters and holds, read on demand, written last.

/** Used by script.ts, after `prefix`, `now`, `millis`, `caller` and money. */
export const STATE = `
-- Fields of a hash, in the order of the names.
local function fieldsOf(key, names)
  if #names <= PORTION then return names[1] and redis.call('HMGET', prefix .. key, unpack(names)) or {} end
  local all = {}
  for from = 1, #names, PORTION do
    local part = redis.call('HMGET', prefix .. key, unpack(names, from, math.min(from + PORTION - 1, #names)))
    for _, found in ipairs(part) do all[#all + 1] = found end
  end
  return all
end

-- Counters by scope. A read fetches all scopes named so far.
local scopes, unread, touched = {}, {}, {}
local function scopeOf(name)
  local scope = scopes[name]
  if scope == nil then
    scope = { name = name }
    scopes[name], unread[#unread + 1] = scope, scope
  end
  return scope
end
local bounds = {}
local function boundsOf(window)
  local known = bounds[window]
  if known ~= nil then return known[1], known[2] end
  local first, last = string.match(window, '^(%-?%d+):(%-?%d+)$')
  if first == nil then error('not a window: ' .. window) end
  first, last = tonumber(first), tonumber(last)
  bounds[window] = { first, last }
  return first, last
end
local function toCounters(text)
  local counters, at = {}, 1
  repeat
    local window, spent, held, holds, past = string.match(text, '^(%S+) (%S+) (%S+) (%-?%d+)()', at)
    local first, last = boundsOf(window)
    counters[#counters + 1] = {
      window = window, first = first, last = last, spent = sum(spent), held = sum(held), holds = tonumber(holds),
    }
    at = past + 1
  until at > #text
  return counters
end
local function countersOf(scope)
  if scope.counters == nil then
    local names, asked = {}, unread
    unread = {}
    for i, one in ipairs(asked) do names[i] = one.name end
    for i, found in ipairs(fieldsOf('c', names)) do asked[i].counters = found and toCounters(found) or {} end
  end
  return scope.counters
end
local function touch(scope)
  if scope.isTouched then return end
  scope.isTouched, touched[#touched + 1] = true, scope
end
local function find(scope, window)
  for _, counter in ipairs(countersOf(scope)) do
    if counter.window == window then return counter end
  end
end
-- Runs the work on the scope's counters whose windows contain this instant; they will be written.
local function countersAt(scope, instant, work)
  for _, counter in ipairs(countersOf(scope)) do
    if counter.first <= instant and instant < counter.last then
      touch(scope)
      work(counter)
    end
  end
end

-- Holds: kept as text, and parsed on demand.
local texts, records, changed, order = {}, {}, {}, {}
local function recall(ids)
  local asked = {}
  for _, id in ipairs(ids) do
    if texts[id] == nil then asked[#asked + 1] = id end
  end
  for i, found in ipairs(fieldsOf('h', asked)) do texts[asked[i]] = found end
end
local listsOf = {}
local function namesIn(text)
  local names = listsOf[text]
  if names ~= nil then return names end
  names = {}
  local from = 1
  while from <= #text do
    local to = string.find(text, '\\n', from, true) or #text + 1
    names[#names + 1], from = string.sub(text, from, to - 1), to + 1
  end
  listsOf[text] = names
  return names
end
local function toRecord(text)
  local state = string.sub(text, 1, 1)
  if state == '{' then return cjson.decode(text) end
  local tab = string.find(text, '\\t', 2, true)
  local names = namesIn(string.sub(text, 2, tab - 1))
  if state == 'h' then
    local at, size, ends = string.match(text, '^(%d+) (%d+) (%d+)$', tab + 1)
    return { state = 'held', scopes = names, at = at, amount = size, ends = ends }
  end
  local at, size, cost, since, by, said = string.match(text, '^(%-?%d+) (%d+) (%-?%d+) (%d+) ([^\\t]*)\\t(.*)$', tab + 1)
  return { state = 'settled', scopes = names, at = at, amount = size, cost = cost, since = since, by = by, said = said }
end
-- Holds without rates, and settled holds, are short texts; all others are JSON.
local function toText(record)
  local names = record.state == 'settled' and table.concat(record.scopes, '\\n')
  if not names or record.rates ~= nil then return cjson.encode(record) end
  local settled = { record.at, record.amount, record.cost, record.since, record.by }
  return 's' .. names .. '\\t' .. table.concat(settled, ' ') .. '\\t' .. record.said
end
-- The scopes of a hold.
local placesOf = {}
local function placesIn(text)
  local places = placesOf[text]
  if places ~= nil then return places end
  places = {}
  for i, name in ipairs(namesIn(text)) do places[i] = scopeOf(name) end
  placesOf[text] = places
  return places
end
local function recordOf(id)
  if records[id] == nil then
    if texts[id] == nil then recall({ id }) end
    records[id] = texts[id] and toRecord(texts[id]) or false
  end
  return records[id] or nil
end
local function isChanged(id)
  if not changed[id] then changed[id], order[#order + 1] = true, id end
end
local function save(id, record)
  records[id] = record
  isChanged(id)
end
local function saveText(id, text)
  texts[id], records[id] = text, nil
  isChanged(id)
end

-- Writes are collected until all is decided, the last one per key wins: leases, notes, and the ids of each scope.
local leases, endings, edges, notes, joined, left = {}, {}, {}, {}, {}, {}
local function watch(id, instant) leases[id] = millis(tonumber(instant)) end
-- Counted and not booked: found by drains, not by sweeps.
local counted = millis(COUNTED + now)
local function keep(id, record, said)
  record.said, record.since, record.by = said or '', millis(now), caller or ''
  leases[id] = counted
end
local function unwatch(id) leases[id] = false end
local function put(lists, name, id)
  local list = lists[name]
  if list == nil then lists[name] = { id } else list[#list + 1] = id end
end
local function index(id, record)
  for _, name in ipairs(record.scopes) do put(joined, name, id) end
end
local function unindex(id, record)
  for _, name in ipairs(record.scopes or {}) do put(left, name, id) end
end
local function drop(id, record)
  save(id, false)
  unwatch(id)
  unindex(id, record)
end

local function charge(record, cost)
  for _, name in ipairs(record.scopes) do
    countersAt(scopeOf(name), tonumber(record.at), function(counter) counter.spent = counter.spent + cost end)
  end
end
local function occupy(counter, size) counter.held, counter.holds = counter.held + size, counter.holds + 1 end
local function vacate(record, cost)
  local size = amount(record.amount)
  for _, name in ipairs(record.scopes) do
    countersAt(scopeOf(name), tonumber(record.at), function(counter)
      counter.held, counter.holds, counter.spent = counter.held - size, counter.holds - 1, counter.spent + cost
    end)
  end
end
`;
