// How does a Redis do a whole store call in one step? One Lua script: it reads, decides on what it read, and writes last (LEDGER 3 to 5).
import { RATES } from './rate-script.ts';
import { ENDING } from './script-ending.ts';
import { LIFE } from './script-life.ts';
import { MONEY } from './script-money.ts';
import { STATE } from './script-state.ts';
import { SURVEY } from './script-survey.ts';
import { TAKING } from './script-taking.ts';

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
${MONEY}
${STATE}
${ENDING}
${TAKING}
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
