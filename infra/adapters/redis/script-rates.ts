// Rates in the script: use in each of the last seconds, and what live holds reserve (decision 0012).

/**
 * A part of SCRIPT, which defines `prefix` and `now` before it. Each limited scope or entry has one more key, written last
 * with the others:
 *
 * | key | what |
 * |---|---|
 * | `t:<id>` | JSON: `s` lists for each second with use its last instant, requests, tokens; `n` live holds; `r` tokens they reserve. Expires a minute after the last use, two hours after it while holds live |
 *
 * A limit is passed as `id, requests, tokens, parallel`, each empty where there is none. Integers here are below 10^13: exact as
 * Lua numbers, and in cjson's output.
 */
export const RATES = `
local ratesOpen
local function openRates()
local rates = { states = {}, sums = {}, changed = {}, MINUTE = 60000, SOON = 1000 }
local function secondOf(at) return math.floor(at / 1000) end

function rates.of(id)
  if rates.states[id] == nil then
    local found = redis.call('GET', prefix .. 't:' .. id)
    rates.states[id] = found and cjson.decode(found) or { s = {}, n = 0, r = 0 }
  end
  return rates.states[id]
end

-- Uses within a second count until a minute after the last of them: no minute ever has more than the limit.
function rates.used(id, what)
  local sums = rates.sums[id]
  if sums == nil then
    sums = { 0, 0, 0 }
    for _, slot in ipairs(rates.of(id).s) do
      if slot[1] + rates.MINUTE > now then sums[2], sums[3] = sums[2] + slot[2], sums[3] + slot[3] end
    end
    rates.sums[id] = sums
  end
  return sums[what]
end

function rates.count(id, what, amount)
  local slots = rates.of(id).s
  local last = slots[#slots]
  if last == nil or secondOf(last[1]) ~= secondOf(now) then
    last = { now, 0, 0 }
    slots[#slots + 1] = last
  end
  last[1], last[what] = math.max(last[1], now), last[what] + amount
  if rates.sums[id] ~= nil then rates.sums[id][what] = rates.sums[id][what] + amount end
end

function rates.uncount(id, second)
  for _, slot in ipairs(rates.of(id).s) do
    if secondOf(slot[1]) == second and slot[2] > 0 then
      slot[2] = slot[2] - 1
      rates.sums[id] = nil
      return
    end
  end
end

-- The time until at most 'max' is used.
function rates.untilUsed(id, what, max)
  local left = rates.used(id, what)
  if left <= max then return nil end
  for _, slot in ipairs(rates.of(id).s) do
    if slot[1] + rates.MINUTE > now then left = left - slot[what] end
    if left <= max then return slot[1] + rates.MINUTE - now end
  end
end

-- The rate with the longest wait for a request of so many tokens.
function rates.wait(limit, tokens)
  local id, kind, longest = limit[1], nil, 0
  local function add(name, wait)
    if wait ~= nil and (kind == nil or wait > longest) then kind, longest = name, wait end
  end
  local requests, max, parallel = tonumber(limit[2]), tonumber(limit[3]), tonumber(limit[4])
  if requests then add('requests', rates.untilUsed(id, 2, requests - 1)) end
  if max then
    -- A request for more than the limit waits until the whole limit is free.
    local wanted = math.min(tokens, max)
    local wait = rates.untilUsed(id, 3, max - wanted)
    local held = rates.used(id, 3) + rates.of(id).r + wanted > max
    add('tokens', wait or (held and rates.SOON or nil))
  end
  if parallel and rates.of(id).n >= parallel then add('parallel', rates.SOON) end
  if kind ~= nil then return { kind, longest } end
end

-- The first alternative with room; else nil, and the one that has room first.
function rates.choose(asked)
  local tokens = tonumber(asked.tokens)
  local soonest, at
  for i, entry in ipairs(asked.entries) do
    local wait = entry ~= '' and rates.wait(entry, tokens) or nil
    if wait == nil then return i end
    if soonest == nil or wait[2] < soonest[2] then soonest, at = wait, i end
  end
  return nil, soonest, at
end

function rates.refusal(asked)
  local tokens = tonumber(asked.tokens)
  local longest, at
  for i, limit in ipairs(asked.limits) do
    local wait = rates.wait(limit, tokens)
    if wait ~= nil and (longest == nil or wait[2] > longest[2]) then longest, at = wait, i end
  end
  local chosen, wait, entry = rates.choose(asked)
  if not chosen and wait ~= nil and (longest == nil or wait[2] > longest[2]) then
    longest, at = wait, #asked.limits + entry
  end
  if longest ~= nil then return string.format('t%d %s %.0f', at - 1, longest[1], longest[2]) end
end

-- A hold's share of one rate: the second that counted its request, and the tokens it reserves; empty where not limited.
function rates.takeOne(limit, tokens)
  local id = limit[1]
  local state, share = rates.of(id), { limit[1], '', '' }
  rates.changed[id] = true
  state.n = state.n + 1
  if limit[2] ~= '' then
    rates.count(id, 2, 1)
    share[2] = string.format('%.0f', secondOf(now))
  end
  if limit[3] ~= '' then
    local reserved = math.min(tokens, tonumber(limit[3]))
    state.r = state.r + reserved
    share[3] = string.format('%.0f', reserved)
  end
  return share
end

function rates.take(asked)
  local shares = { limits = {} }
  local chosen = rates.choose(asked)
  for i, limit in ipairs(asked.limits) do shares.limits[i] = rates.takeOne(limit, tonumber(asked.tokens)) end
  if chosen then
    shares.chosen = tostring(chosen - 1)
    local entry = asked.entries[chosen]
    if entry ~= '' then shares.entry = rates.takeOne(entry, tonumber(asked.tokens)) end
  end
  return shares
end

function rates.endOne(share, tokens, uncounted)
  local id, reserved = share[1], tonumber(share[3])
  local state = rates.of(id)
  rates.changed[id] = true
  state.n = math.max(0, state.n - 1)
  if reserved then
    local used = tonumber(tokens or share[3])
    state.r = math.max(0, state.r - reserved)
    if used > 0 then rates.count(id, 3, used) end
  end
  if uncounted and share[2] ~= '' then rates.uncount(id, tonumber(share[2])) end
end

-- Ends the rates of a hold.
function rates.finish(record, tokens, uncounted)
  local shares = record.rates
  if shares == nil then return end
  for _, share in ipairs(shares.limits) do rates.endOne(share, tokens, uncounted) end
  if shares.entry then rates.endOne(shares.entry, tokens, uncounted) end
  record.rates = { chosen = shares.chosen, limits = {} }
end

function rates.leftOf(limit, what)
  if limit[what] == '' then return ':' end
  local id, reserved, newest = limit[1], 0, nil
  if what == 3 then reserved = rates.of(id).r end
  local slots = rates.of(id).s
  -- Requests in flight count from their end, so not before now.
  if reserved > 0 then newest = now end
  for i = #slots, 1, -1 do
    if newest or slots[i][1] + rates.MINUTE <= now then break end
    if slots[i][what] > 0 then newest = slots[i][1] end
  end
  local remaining = math.max(0, tonumber(limit[what]) - rates.used(id, what) - reserved)
  return string.format('%.0f:%.0f', remaining, newest and newest + rates.MINUTE - now or 0)
end

-- The alternative taken, and what is left of each limit.
function rates.view(asked, record)
  local view = { record and record.rates and record.rates.chosen or '' }
  for _, limit in ipairs(asked.limits) do view[#view + 1] = rates.leftOf(limit, 2) .. ' ' .. rates.leftOf(limit, 3) end
  return view
end

-- Moves a request to another entry, or returns the rate that refuses.
function rates.move(asked, record)
  if record == nil or record.state ~= 'held' or record.rates == nil then return {} end
  local tokens = tonumber(asked.tokens)
  local wait = asked.to ~= nil and rates.wait(asked.to, tokens) or nil
  if wait ~= nil then return { wait[1], string.format('%.0f', wait[2]) } end
  if record.rates.entry then rates.endOne(record.rates.entry, '0', false) end
  record.rates.entry = asked.to and rates.takeOne(asked.to, tokens) or nil
  return {}
end

function rates.flush()
  for id in pairs(rates.changed) do
    local state, kept = rates.of(id), {}
    for _, slot in ipairs(state.s) do
      if slot[1] + rates.MINUTE > now and (slot[2] > 0 or slot[3] > 0) then kept[#kept + 1] = slot end
    end
    state.s = kept
    local lives = state.n > 0 and '7200000' or tostring(rates.MINUTE + 2000)
    redis.call('SET', prefix .. 't:' .. id, cjson.encode(state), 'PX', lives)
  end
end

-- Rates are deleted with the holds of a server that went back in time.
function rates.wipe(shares)
  for _, share in ipairs(shares.limits or {}) do redis.call('DEL', prefix .. 't:' .. share[1]) end
  if shares.entry then redis.call('DEL', prefix .. 't:' .. shares.entry[1]) end
end

return rates
end
-- Built only where something is limited.
local function rates()
  if ratesOpen == nil then ratesOpen = openRates() end
  return ratesOpen
end
`;
