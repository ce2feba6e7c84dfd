// What does the script know of counters and holds, and what will it write? Read when asked for, written last.

/** Used by script.ts: `prefix`, `call`, `millis`, `rates` and money are there. */
export const STATE = `
-- What is written when all is decided: of each key what becomes of each member, the last word counts. So a batch is a few commands.
local writes = {}
local function write(kind, key, member, value)
  if writes[key] == nil then writes[key] = { kind = kind, members = {} } end
  writes[key].members[member] = value
end
local PORTION = 1000
local function inPortions(list, work)
  for from = 1, #list, PORTION do work(unpack(list, from, math.min(from + PORTION - 1, #list))) end
end
local PUT, REMOVE = { set = 'SADD', ranks = 'ZADD', hash = 'HSET' }, { set = 'SREM', ranks = 'ZREM', hash = 'HDEL' }
local function writeAll(key, kind, members)
  local put, gone = {}, {}
  for member, value in pairs(members) do
    if value == false then
      gone[#gone + 1] = member
    elseif kind == 'set' then
      put[#put + 1] = member
    else
      local first = kind == 'hash'
      put[#put + 1] = first and member or value
      put[#put + 1] = first and value or member
    end
  end
  inPortions(put, function(...) redis.call(PUT[kind], key, ...) end)
  inPortions(gone, function(...) redis.call(REMOVE[kind], key, ...) end)
end

-- Counters.
local scopes = {}
local function toCounter(scope, window, spent, held, holds)
  local first, last = string.match(window, '^(%-?%d+):(%-?%d+)$')
  if first == nil then error('not a window: ' .. window) end
  return { scope = scope, window = window, first = tonumber(first), last = tonumber(last), spent = spent, held = held, holds = holds }
end
local function windowsOf(scope)
  if scopes[scope] ~= nil then return scopes[scope] end
  local windows = {}
  local flat = redis.call('HGETALL', prefix .. 'c:' .. scope)
  for i = 1, #flat, 2 do
    local spent, held, holds = string.match(flat[i + 1], '^(%S+) (%S+) (%S+)$')
    windows[flat[i]] = toCounter(scope, flat[i], parse(spent), parse(held), tonumber(holds))
  end
  scopes[scope] = windows
  return windows
end
local function find(at) return windowsOf(at[1])[at[2]] end
local function isInside(instant, counter) return counter.first <= instant and instant < counter.last end

-- Holds.
local records, changed = {}, {}
-- One reading for as many as will be asked for.
local function recall(list, idOf)
  local ids, keys = {}, {}
  for _, one in ipairs(list) do
    local id = idOf(one)
    if records[id] == nil then
      ids[#ids + 1], keys[#keys + 1] = id, prefix .. 'r:' .. id
    end
  end
  local done = 0
  inPortions(keys, function(...)
    for i, found in ipairs(redis.call('MGET', ...)) do records[ids[done + i]] = found and cjson.decode(found) or false end
    done = done + PORTION
  end)
end
local function itself(id) return id end
local function recordOf(id)
  if records[id] == nil then recall({ id }, itself) end
  return records[id] or nil
end
local function save(id, record)
  records[id] = record
  changed[id] = true
end
local function watch(id, instant) write('ranks', prefix .. 'l', id, millis(tonumber(instant))) end
-- Counted and not booked: found by whoever books for the dead, by no sweep.
local function keep(id, record, said)
  record.said, record.since, record.by = said, millis(now), call.from and call.from[1]
  write('ranks', prefix .. 'l', id, millis(COUNTED + now))
end
local function index(id, record)
  for _, scope in ipairs(record.scopes) do write('set', prefix .. 'b:' .. scope, id, true) end
end
local function unwatch(id) write('ranks', prefix .. 'l', id, false) end
local function unindex(id, record)
  for _, scope in ipairs(record.scopes or {}) do write('set', prefix .. 'b:' .. scope, id, false) end
end
local function countersOf(record)
  local there = {}
  for _, at in ipairs(record.counters) do there[#there + 1] = find(at) end
  return there
end
local function charge(record, cost)
  for _, counter in ipairs(countersOf(record)) do
    counter.spent = add(counter.spent, cost)
    counter.changed = true
  end
end
local function occupy(counter, amount)
  counter.held = add(counter.held, amount)
  counter.holds = counter.holds + 1
  counter.changed = true
end
local function vacate(record, cost)
  local amount = parse(record.amount)
  for _, counter in ipairs(countersOf(record)) do
    counter.held = minus(counter.held, amount)
    counter.holds = counter.holds - 1
  end
  charge(record, cost)
end
local function change(id, record, outcome, cost, said)
  charge(record, minus(cost, parse(record.charged)))
  record.late, record.lateCost = outcome, digits(cost)
  keep(id, record, said)
  save(id, record)
end
`;
