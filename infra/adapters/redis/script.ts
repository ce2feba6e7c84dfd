// The script of a whole store call, in one atomic step: it reads, decides, and writes last (LEDGER 3 to 5).
import { EPOCHS } from './script-epochs.ts';
import { FORGET } from './script-forget.ts';
import { HOLDS } from './script-holds.ts';
import { LOADS } from './script-loads.ts';
import { MONEY } from './script-money.ts';
import { RATES } from './script-rates.ts';
import { SETTLEMENTS } from './script-settlements.ts';
import { STATE } from './script-state.ts';
import { SURVEY } from './script-survey.ts';
import { WRITES } from './script-writes.ts';

/**
 * KEYS[1] is `{instance}:epoch`; every other key begins with the same `{instance}:`, so they share a slot:
 *
 * | key | what |
 * |---|---|
 * | `epoch` | the store's epoch |
 * | `c` | hash: scope → its loaded counters, `start:end spent held holds`, with `;` between several |
 * | `h` | hash: id → the record of a hold: `h` or `s` and text (script-state.ts), or JSON |
 * | `n` | hash: id → the hold's note, which the script never reads |
 * | `b:<scope>` | set: ids that may count in a counter of this scope when it is loaded |
 * | `l` | sorted set: id → the end of its lease, or of its record; `COUNTED` plus the instant for an unbooked settlement |
 * | `x` | sorted set: expired ids that are not acknowledged → the instant |
 * | `w` | sorted set: counter → the end of its window |
 * | `k` | hash: process → its calls in this epoch, and the last instant |
 * | `t:<id>` | the use of a rate (script-rates.ts) |
 *
 * ARGV are strings only; ARGV[1] names the operation (store.ts says what follows). The cost of a request is making strings and
 * calling Redis: so a batch names each scope once, records are short texts, and each key is read and written once.
 * Everything is decided in memory. A script that fails at a wrong argument has written nothing, and one that meets an amount too big
 * for a number starts over with wide ones.
 */
export const SCRIPT = `
local WIDE = 'wide'
local prefix = string.sub(KEYS[1], 1, -6)
local operation = ARGV[1]
local KEEP, DAY, MAX_SWEPT, COUNTED, PORTION = 600000, 86400000, 100, 1000000000000000, 1000

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local function millis(number) return string.format('%d', number) end
local function each(list, work)
  local answers = {}
  for i, one in ipairs(list) do answers[i] = work(one) end
  return answers
end

local function run(isWide)
local caller = operation == 'call' and ARGV[3] ~= '' and ARGV[3] or nil
${MONEY}
${RATES}
${STATE}
${WRITES}
${EPOCHS}
local KINDS = { s = 'settled', c = 'correction', e = 'expired' }
-- The unbooked parts of a record: { kind, cost, settlement, since, by }.
local function partsOf(record)
  if record.state == 'settled' then
    local kind = KINDS[string.sub(record.said, 1, 1)] or 'settled'
    return { { kind, record.cost, record.said, record.since, record.by } }
  end
  if record.state ~= 'expired' then return {} end
  local parts = {}
  if record.ends == nil then parts[1] = { 'expired', record.charged, '', record.since or record.at, '' } end
  if record.late ~= nil and record.isBooked == nil then
    local cost = shown(amount(record.lateCost) - amount(record.charged))
    parts[#parts + 1] = { 'correction', cost, record.said or '', record.since or record.at, record.by or '' }
  end
  return parts
end
if operation == 'forget' then
local leaving = {}
${FORGET}
end
${SETTLEMENTS}
if operation ~= 'call' then
${SURVEY}
end

local epoch = redis.call('GET', KEYS[1])
if epoch ~= ARGV[2] then return { 'epoch', millis(now), epoch or '0' } end
local calls = 0
if caller ~= nil then
  calls = callsOf(caller)
  if calls < tonumber(ARGV[4]) then return { 'epoch', millis(now), epoch } end
  calls = calls + 1
end
local more = ARGV[5] ~= '' and cjson.decode(ARGV[5]) or {}
for _, mark in ipairs(more.marks or {}) do
  if callsOf(mark[1]) < tonumber(mark[2]) then return { 'epoch', millis(now), epoch } end
end
${HOLDS}
local counters, settling, holding = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local at = 9
for i = 1, counters do
  named[i] = { scope = scopeOf(ARGV[at]), window = ARGV[at + 1], limit = ARGV[at + 2] }
  at = at + 3
end
local ids, settles, holds = {}, {}, {}
for i = 1, settling do ids[i] = ARGV[at + 4 * i - 4] end
local first = at + 4 * settling
for i = 1, holding do ids[settling + i] = ARGV[first + 8 * i - 8] end
recall(ids)
-- All scopes are named before the first read, which fetches them together.
for i = 1, settling do
  local text = texts[ids[i]]
  if text and string.byte(text) == 104 then placesIn(string.sub(text, 2, string.find(text, '\\t', 2, true) - 1)) end
end
local register, load, adjust
if more.registers or more.loads or more.adjusts then
${LOADS}
end
for _, asked in ipairs(more.registers or {}) do register(asked) end
for i = 1, settling do
  settles[i] = settle(ids[i], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  at = at + 4
end
local releases = each(more.releases or {}, release)
for _, asked in ipairs(more.renewals or {}) do renew(asked) end
sweepHolds()
sweepCounters()
for _, asked in ipairs(more.loads or {}) do load(asked) end
for _, asked in ipairs(more.adjusts or {}) do adjust(asked) end
local views = {}
for i = 1, holding do
  local asked = ARGV[at + 7] ~= '' and cjson.decode(ARGV[at + 7]) or nil
  local id = ARGV[at]
  holds[i] = take(id, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], asked)
  if asked and string.find(holds[i], '^[hetb]') then views[#views + 1] = { id, rates().view(asked, recordOf(id)) } end
  at = at + 8
end
local moves = each(more.moves or {}, function(asked)
  local record = recordOf(asked.id)
  local answer = rates().move(asked, record)
  if record ~= nil then save(asked.id, record) end
  return answer
end)
flush()
if caller ~= nil then redis.call('HSET', prefix .. 'k', caller, millis(calls) .. ' ' .. millis(now)) end
local ended = redis.call('ZRANGE', prefix .. 'x', '0', tostring(MAX_SWEPT - 1))
recall(ended)
local expired = each(ended, function(id)
  local record = recordOf(id)
  if record == nil then return { id, '0', '', '' } end
  local note = notes[id] or redis.call('HGET', prefix .. 'n', id) or ''
  return { id, record.charged, table.concat(record.scopes, '\\n'), note }
end)
return { 'done', nowText, millis(calls), table.concat(settles, ','), releases, table.concat(holds, ','), expired, views, moves }
end

local isDone, answer = pcall(run, false)
if isDone then return answer end
-- Errors keep the server's text: clients recognise a replica by its first word.
if answer ~= WIDE then return { err = type(answer) == 'table' and answer.err or answer } end
return run(true)
`;
