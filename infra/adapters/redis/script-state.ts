// What does the script know of counters and holds, and what will it write? Read when asked for, written last.

/** Used by script.ts: `prefix`, `now`, `millis`, `caller` and money are there. */
export const STATE = `
local PORTION = 1000
local function inPortions(list, work)
  if #list <= PORTION then return #list > 0 and work(unpack(list)) end
  for from = 1, #list, PORTION do work(unpack(list, from, math.min(from + PORTION - 1, #list))) end
end

-- Counters, by scope. What is named is read together with all that was named before.
local scopes, unread, touched = {}, {}, {}
local function scopeOf(name)
  local scope = scopes[name]
  if scope == nil then
    scope = { name = name }
    scopes[name], unread[#unread + 1] = scope, scope
  end
  return scope
end
local function boundsOf(window)
  local first, last = string.match(window, '^(%-?%d+):(%-?%d+)$')
  if first == nil then error('not a window: ' .. window) end
  return tonumber(first), tonumber(last)
end
local function toWindows(text)
  local windows = {}
  for line in string.gmatch(text, '[^;]+') do
    local first, last, spent, held, holds = string.match(line, '^(%-?%d+):(%-?%d+) (%-?%d+) (%-?%d+) (%-?%d+)$')
    windows[#windows + 1] = {
      first = tonumber(first), last = tonumber(last), spent = sum(spent), held = sum(held), holds = tonumber(holds),
    }
  end
  return windows
end
local function windowsOf(scope)
  if scope.windows == nil then
    local names, asked = {}, unread
    unread = {}
    for i, one in ipairs(asked) do names[i] = one.name end
    local done = 0
    inPortions(names, function(...)
      for i, found in ipairs(redis.call('HMGET', prefix .. 'c', ...)) do asked[done + i].windows = found and toWindows(found) or {} end
      done = done + PORTION
    end)
  end
  return scope.windows
end
local function touch(scope)
  if scope.isTouched then return end
  scope.isTouched, touched[#touched + 1] = true, scope
end
local function find(scope, first, last)
  for _, counter in ipairs(windowsOf(scope)) do
    if counter.first == first and counter.last == last then return counter end
  end
end
-- Those of a scope that have this instant will be written.
local function countersAt(scope, instant, work)
  for _, counter in ipairs(windowsOf(scope)) do
    if counter.first <= instant and instant < counter.last then
      touch(scope)
      work(counter)
    end
  end
end

-- Holds: what is kept of each, as text until somebody asks for more.
local texts, records, changed, order = {}, {}, {}, {}
local function recall(ids)
  local asked = {}
  for _, id in ipairs(ids) do
    if texts[id] == nil then asked[#asked + 1] = id end
  end
  local done = 0
  inPortions(asked, function(...)
    for i, found in ipairs(redis.call('HMGET', prefix .. 'h', ...)) do texts[asked[done + i]] = found end
    done = done + PORTION
  end)
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
-- What is held and limited by no rate, and what is settled, are told in short; the rest is rarer.
local function toText(record)
  local names = record.state == 'settled' and table.concat(record.scopes, '\\n')
  if not names or record.rates ~= nil then return cjson.encode(record) end
  local settled = { record.at, record.amount, record.cost, record.since, record.by }
  return 's' .. names .. '\\t' .. table.concat(settled, ' ') .. '\\t' .. record.said
end
-- The scopes that a hold names.
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

-- What is written when all is decided, the last word of each: leases, notes, and which ids a scope has.
local leases, endings, edges, notes, joined, left = {}, {}, {}, {}, {}, {}
local function watch(id, instant) leases[id] = millis(tonumber(instant)) end
-- Counted and not booked: found by whoever books for the dead, by no sweep.
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
