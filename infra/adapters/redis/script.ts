// How does a Redis do a whole store call in one step? One Lua script: it reads, decides on what it read, and writes last (LEDGER 3 to 5).
import { RATES } from './rate-script.ts';
import { LIFE } from './script-life.ts';
import { SURVEY } from './script-survey.ts';

/**
 * KEYS[1] is `{instance}:epoch`; every other key begins with the same `{instance}:`, so they share a slot:
 *
 * | key | what |
 * |---|---|
 * | `epoch` | the epoch the store lives under |
 * | `c:<scope>` | hash: window → `spent held holds`, of each loaded counter |
 * | `r:<id>` | JSON: what became of a hold |
 * | `b:<scope>` | set: ids that a counter of this scope may have to count when it is loaded |
 * | `l` | sorted set: id → when its lease ends, or its record may go; `COUNTED` and when, for what is settled and not booked |
 * | `x` | sorted set: ids whose lease ended and that nobody has acknowledged → when |
 * | `w` | sorted set: counter → when its window ends |
 * | `k` | hash: process → how many calls it made under this epoch, and when the last |
 * | `t:<id>` | what is used of a rate (rate-script.ts) |
 *
 * ARGV[1] is JSON of strings only (store.ts). Amounts are two parts, high and low nine digits, so that neither passes
 * 2^53: as one Lua number they would be rounded, and `INCRBY` would have to write, look, and undo. Everything is judged in
 * memory; a script that stops at a wrong argument has written nothing.
 */
export const SCRIPT = `
local prefix = string.sub(KEYS[1], 1, -6)
local call = cjson.decode(ARGV[1])
local KEEP, DAY, MOST, COUNTED = 600000, 86400000, 100, 1000000000000000

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local function millis(number) return string.format('%.0f', number) end

${RATES}
${LIFE}
-- Money.
local BASE = 1000000000
local ZERO = { 0, 0 }
local function parse(digits)
  local sign, number = string.match(digits, '^(%-?)(%d+)$')
  if number == nil or #number > 21 then error('not an amount: ' .. digits) end
  local high, low = tonumber(string.sub(number, 1, -10)) or 0, tonumber(string.sub(number, -9))
  if sign == '' then return { high, low } end
  if low == 0 then return { -high, 0 } end
  return { -high - 1, BASE - low }
end
local function add(a, b)
  local high, low = a[1] + b[1], a[2] + b[2]
  if low >= BASE then return { high + 1, low - BASE } end
  return { high, low }
end
local function minus(a, b)
  local high, low = a[1] - b[1], a[2] - b[2]
  if low < 0 then return { high - 1, low + BASE } end
  return { high, low }
end
local function less(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end
local function digits(a)
  local high, low, sign = a[1], a[2], ''
  if high < 0 then
    sign, high = '-', -high
    if low > 0 then high, low = high - 1, BASE - low end
  end
  if high == 0 then return sign .. string.format('%.0f', low) end
  return sign .. string.format('%.0f%09.0f', high, low)
end

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

local function forget(name)
  local id, kind = name[1], name[2]
  local record = recordOf(id)
  if record == nil then return end
  if record.state == 'settled' then return drop(id, record) end
  if record.state ~= 'expired' then return end
  if kind == 'correction' then
    record.isBooked = record.late and 'yes'
  elseif record.ends == nil then
    record.ends = millis(now + DAY)
    write('ranks', prefix .. 'x', id, false)
  end
  save(id, record)
  if record.late ~= nil and record.isBooked == nil then return end
  if record.ends == nil then return unwatch(id) end
  -- It stays with its scopes: its settlement may still come, and counts in counters that are loaded until then.
  watch(id, record.ends)
end

local function flush()
  for scope, windows in pairs(scopes) do
    for window, counter in pairs(windows) do
      if counter.changed then
        local text = digits(counter.spent) .. ' ' .. digits(counter.held) .. ' ' .. tostring(counter.holds)
        write('hash', prefix .. 'c:' .. scope, window, text)
      end
    end
  end
  local kept, gone = {}, {}
  for id in pairs(changed) do
    if records[id] then
      kept[#kept + 1] = prefix .. 'r:' .. id
      kept[#kept + 1] = cjson.encode(records[id])
    else
      gone[#gone + 1] = prefix .. 'r:' .. id
    end
  end
  inPortions(kept, function(...) redis.call('MSET', ...) end)
  inPortions(gone, function(...) redis.call('DEL', ...) end)
  for key, of in pairs(writes) do writeAll(key, of.kind, of.members) end
  rates.flush()
end

local function each(list, work)
  local answers = {}
  for i, one in ipairs(list) do answers[i] = work(one) end
  return answers
end

if call.forget ~= nil then
  recall(call.forget, function(name) return name[1] end)
  each(call.forget, forget)
  flush()
  return { 'forgotten' }
end
if call.read ~= nil then
  sweepHolds()
  local spent = each(call.read, function(at)
    local counter = find(at)
    return counter and digits(counter.spent) or ''
  end)
  flush()
  return { 'read', spent }
end
${SURVEY}
local epoch = redis.call('GET', KEYS[1])
if epoch ~= call.epoch then return { 'epoch', millis(now), epoch or '0' } end
if hasGoneBack() then return { 'epoch', millis(now), epoch } end
local calls = 0
if call.from ~= nil then
  calls = callsOf(call.from[1]) + 1
  write('hash', prefix .. 'k', call.from[1], millis(calls) .. ' ' .. millis(now))
end
for _, asked in ipairs(call.registers or {}) do register(asked) end
for _, list in ipairs({ call.settles, call.releases, call.renewals, call.holds }) do
  recall(list, function(asked) return asked.id end)
end
local settles = each(call.settles, settle)
local releases = each(call.releases, release)
for _, asked in ipairs(call.renewals) do renew(asked) end
sweepHolds()
sweepCounters()
for _, asked in ipairs(call.loads) do load(asked) end
for _, asked in ipairs(call.adjusts or {}) do adjust(asked) end
local told = {}
local holds = each(call.holds, function(asked)
  local answer = take(asked)
  if asked.rates ~= nil and TELLING[answer[1]] then told[#told + 1] = { asked.id, rates.tell(asked.rates, recordOf(asked.id)) } end
  return answer
end)
local moves = each(call.moves or {}, function(asked)
  local record = recordOf(asked.id)
  local answer = rates.move(asked, record)
  if record ~= nil then save(asked.id, record) end
  return answer
end)
flush()
local expired = each(redis.call('ZRANGE', prefix .. 'x', '0', tostring(MOST - 1)), function(id)
  local record = recordOf(id)
  return { id, record and record.charged or '0', record and record.note or '' }
end)
return { 'done', millis(now), settles, releases, holds, expired, millis(calls), told, moves }
`;
