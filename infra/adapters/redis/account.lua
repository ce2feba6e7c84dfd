-- Accounts of an instance in Redis: every method of functions/core/ports/accounts.ts as one atomic step (LEDGER 3 to 6).
-- By hand: redis-cli --eval infra/adapters/redis/account.lua '{instance}:meta' , accounts '{"isEnded":true,"max":10}'
--
-- KEYS[1] is `{instance}:meta`. Every key begins with `{instance}:`, so all share a slot:
--   meta               hash: layout, epoch, calls, now (the latest clock seen: a failover never turns it back), swept
--   c                  hash: counter > `spent held`, then accounts that were refused here within a second, each with the instant;
--                      spent is `-` while the counter is absent and registered holds are in it
--   e                  sorted set: loaded counter > until when it stays whether it is used or not
--   l                  sorted set: account > the end of its lease
--   f                  sorted set: finished account > until when it is remembered
--   a:<account>        hash: '' > its head in JSON; counter > `escrow risk batch` (the last one told); `p <rate>` > requests in flight
--   b:<account>:<n>    hash: counter > spend of batch n
--   r:<minute>         hash: rate > `requests tokens`; the only keys that expire
--   p                  hash: rate > requests in flight
-- A counter is named `start:end scope`. ARGV[1] names the operation, ARGV[2] has its arguments in JSON, amounts as strings; the reply is JSON
-- (accounts.ts has both). A step reads, decides, and writes last: one that fails at a wrong argument has written nothing.
local LAYOUT, MINUTE, SECOND, KEEP, PORTION, MAX_ENDED, MAX_SWEPT = 'accounts 1', 60000, 1000, 60000, 2000, 16, 100
local prefix, operation, given = string.sub(KEYS[1], 1, -5), ARGV[1], cjson.decode(ARGV[2] or '{}')
local meta = redis.call('HMGET', KEYS[1], 'layout', 'epoch', 'calls', 'now', 'swept')
if meta[1] ~= LAYOUT and (meta[1] or redis.call('EXISTS', prefix .. 'epoch') == 1) then
  return redis.error_reply('LAYOUT the store has the layout "' .. (meta[1] or 'holds') .. '" and this version reads "' .. LAYOUT
    .. '": stop all processes of the other version and delete the keys ' .. prefix .. '*')
end
local clock = redis.call('TIME')
local now = math.max(tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000), tonumber(meta[4] or '0'))
local epoch, calls, swept = tonumber(meta[2] or '0'), tonumber(meta[3] or '0'), tonumber(meta[5] or '0')
local function int(number) return string.format('%d', number) end
local function key(kind, id) return prefix .. kind .. ':' .. id end
local function batchKey(id, batch) return key('b', id .. ':' .. int(batch)) end
local nowText, leases = int(now), prefix .. 'l'

-- Money is never a rounded number. Doubles are exact while amounts stay below ten thousand dollars and sums below three million: a step
-- changes a sum by some hundred amounts. Else the step starts over with two parts of nine digits, before anything is written.
local WIDE, BASE, MAX_AMOUNT, MAX_SUM, MAX_DOUBLE = 'wide', 1000000000, 1e13, 3e15, 9e15
local function upTo(max)
  return function(text)
    local number = tonumber(text)
    if not (number and number % 1 == 0 and number <= max and -max <= number) then error(WIDE, 0) end
    return number
  end
end
local NARROW = {
  amount = upTo(MAX_AMOUNT), sum = upTo(MAX_SUM), zero = 0,
  times = function(number, factor) return number * factor end,
  shown = function(number)
    if number > MAX_DOUBLE or number < -MAX_DOUBLE then error(WIDE, 0) end
    return int(number)
  end,
}
local function wideMoney()
  local parts = {}
  local function of(high, low) return setmetatable({ high + math.floor(low / BASE), low % BASE }, parts) end
  parts.__add = function(a, b) return of(a[1] + b[1], a[2] + b[2]) end
  parts.__sub = function(a, b) return of(a[1] - b[1], a[2] - b[2]) end
  parts.__lt = function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end
  parts.__le = function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] <= b[2]) end
  parts.__eq = function(a, b) return a[1] == b[1] and a[2] == b[2] end
  local zero = of(0, 0)
  local function amount(text)
    local sign, digits = string.match(text, '^(%-?)(%d+)$')
    if digits == nil or #digits > 21 then error('not an amount: ' .. text, 0) end
    local size = of(tonumber(string.sub(digits, 1, -10)) or 0, tonumber(string.sub(digits, -9)))
    return sign == '' and size or zero - size
  end
  local function shown(a)
    if a < zero then return '-' .. shown(zero - a) end
    return a[1] == 0 and int(a[2]) or string.format('%d%09d', a[1], a[2])
  end
  return { amount = amount, sum = amount, zero = zero, shown = shown, times = function(a, factor) return of(a[1] * factor, a[2] * factor) end }
end

local function run(money)
local amount, sum, shown, ZERO = money.amount, money.sum, money.shown, money.zero
local function min(a, b) return b < a and b or a end
local function max(a, b) return a < b and b or a end

-- A command with any number of arguments: Lua passes at most some thousand.
local function many(command, name, values)
  if #values <= PORTION then return values[1] and redis.call(command, name, unpack(values)) or {} end
  local all = {}
  for from = 1, #values, PORTION do
    local part = redis.call(command, name, unpack(values, from, math.min(from + PORTION - 1, #values)))
    for i, value in ipairs(type(part) == 'table' and part or {}) do all[from + i - 1] = value end
  end
  return all
end
-- Commands that run when everything is decided.
local pending = {}
local function later(command, name, values) pending[#pending + 1] = { command, name, values } end

-- Counters, each read once. An absent one has no `spent`.
local counters = {}
local function recall(names)
  local missing = {}
  for _, name in ipairs(names) do
    if counters[name] == nil then
      local first, last = string.match(name, '^(%-?%d+):(%-?%d+) ')
      counters[name] = { first = tonumber(first), last = tonumber(last), held = ZERO, refused = '' }
      missing[#missing + 1] = last and name or error('not a counter: ' .. name, 0)
    end
  end
  for i, text in ipairs(many('HMGET', prefix .. 'c', missing)) do
    if text then
      local counter, spent, held, refused = counters[missing[i]], string.match(text, '^(%S+) (%S+)(.*)$')
      counter.text, counter.held, counter.refused = text, sum(held), refused
      if spent ~= '-' then counter.spent = sum(spent) end
    end
  end
end
-- The accounts that were refused in the counter within the last second, without this one.
local function refusedIn(counter, except)
  if counter.refused == '' then return '' end
  local found = ''
  for id, at in string.gmatch(counter.refused, ' (%S+) (%d+)') do
    if id ~= except and now - tonumber(at) < SECOND then found = found .. ' ' .. id .. ' ' .. at end
  end
  return found
end

-- Accounts. A finished one stays for a while: with its last outcome, and for audits with what it told.
local function headOf(id)
  local text = redis.call('HGET', key('a', id), '')
  return text and cjson.decode(text)
end
-- Everything of an account: names of counters, figures by name, requests in flight by rate.
local function figuresOf(id, head)
  local names, figures, flights = {}, {}, {}
  local fields = redis.call('HGETALL', key('a', id))
  for i = 1, #fields, 2 do
    local escrow, risk, batch = string.match(fields[i + 1], '^(%d+) (%d+) (%d+)$')
    if string.sub(fields[i], 1, 2) == 'p ' then flights[string.sub(fields[i], 3)] = tonumber(fields[i + 1])
    elseif fields[i] ~= '' and (escrow ~= '0' or risk ~= '0' or tonumber(batch) > head.booked) then
      names[#names + 1], figures[fields[i]] = fields[i], { escrow = escrow, risk = risk, batch = batch }
    end
  end
  return names, figures, flights
end

local ended, flying = {}, {}
local function finish(id, head, state)
  ended[id], head.state, head.lease, head.batches = true, state, 0, {}
  later('HSET', key('a', id), { '', cjson.encode(head) })
  later('ZREM', leases, { id })
  later('ZADD', prefix .. 'f', { int(now + KEEP), id })
end
-- An account ends: its escrow is free, and its risk is spend if PostgreSQL has charged it. An unknown one is known from now on.
local function forget(id, head, isCharged, state)
  if not head then return finish(id, { number = 0, booked = 0 }, 'closed') end
  local names, figures, flights = figuresOf(id, head)
  recall(names)
  for _, name in ipairs(names) do
    local counter, figure = counters[name], figures[name]
    counter.held = counter.held - amount(figure.escrow)
    if isCharged and counter.spent then counter.spent = counter.spent + amount(figure.risk) end
  end
  for rate, count in pairs(flights) do flying[rate] = (flying[rate] or 0) - count end
  for _, batch in ipairs(head.batches) do later('DEL', batchKey(id, batch)) end
  finish(id, head, state or 'closed')
end

-- Finished accounts are forgotten in the end, and counters whose window is over and that no account has anything in.
local function sweep()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'f', '-inf', nowText, 'LIMIT', '0', int(10 * MAX_SWEPT))) do
    redis.call('DEL', key('a', id))
    redis.call('ZREM', prefix .. 'f', id)
  end
  local names = redis.call('ZRANGEBYSCORE', prefix .. 'e', '-inf', nowText, 'LIMIT', '0', int(MAX_SWEPT))
  local used = {}
  for _, id in ipairs(names[1] and redis.call('ZRANGE', leases, '0', '-1') or {}) do
    local head = headOf(id)
    for i, text in ipairs(redis.call('HMGET', key('a', id), unpack(names))) do
      local escrow, risk, batch = string.match(text or '0 0 0', '^(%d+) (%d+) (%d+)$')
      if escrow ~= '0' or risk ~= '0' or tonumber(batch) > head.booked then used[i] = true
      elseif text then redis.call('HDEL', key('a', id), names[i]) end
    end
  end
  for i, name in ipairs(names) do
    if used[i] then redis.call('ZADD', prefix .. 'e', int(now + KEEP), name)
    else
      redis.call('HDEL', prefix .. 'c', name)
      redis.call('ZREM', prefix .. 'e', name)
    end
  end
end
local function write()
  local set, unset = {}, {}
  for name, counter in pairs(counters) do
    if counter.spent or counter.held ~= ZERO then
      local text = (counter.spent and shown(counter.spent) or '-') .. ' ' .. shown(counter.held) .. refusedIn(counter)
      if text ~= counter.text then set[#set + 1], set[#set + 2] = name, text end
    elseif counter.text then unset[#unset + 1] = name end
  end
  many('HSET', prefix .. 'c', set)
  many('HDEL', prefix .. 'c', unset)
  for _, one in ipairs(pending) do
    if one[3] then many(one[1], one[2], one[3]) else redis.call(one[1], one[2]) end
  end
  for rate, count in pairs(flying) do
    if redis.call('HINCRBY', prefix .. 'p', rate, int(count)) <= 0 then redis.call('HDEL', prefix .. 'p', rate) end
  end
  if swept + SECOND <= now then
    sweep()
    swept = now
  end
  redis.call('HSET', KEYS[1], 'calls', int(calls), 'now', nowText, 'swept', int(swept))
end

-- Rates: the use of this minute, and of the one before by the share of it that lies in the last 60 s, rounded down.
local minute, place = math.floor(now / MINUTE), now % MINUTE
local present, before = key('r', int(minute)), key('r', int(minute - 1))
local rates, rateIds = {}, {}
local function nameRate(id)
  if rates[id] == nil then rates[id], rateIds[#rateIds + 1] = { change = 0 }, id end
end
local function recallRates(account)
  local fields = {}
  for i, id in ipairs(rateIds) do fields[i] = 'p ' .. id end
  local uses, earlier = many('HMGET', present, rateIds), many('HMGET', before, rateIds)
  local flights, own = many('HMGET', prefix .. 'p', rateIds), many('HMGET', key('a', account), fields)
  for i, id in ipairs(rateIds) do
    local rate, requests, tokens = rates[id], string.match(uses[i] or '0 0', '(%d+) (%d+)')
    rate.requests, rate.tokens = { tonumber(requests) }, { tonumber(tokens) }
    requests, tokens = string.match(earlier[i] or '0 0', '(%d+) (%d+)')
    rate.requests[2], rate.tokens[2] = tonumber(requests), tonumber(tokens)
    rate.flights, rate.own = tonumber(flights[i] or '0'), tonumber(own[i] or '0')
  end
end
local function addUse(rate, what, by)
  local use = rate[what]
  local now = use[1] + by
  rate.isChanged, use[1], use[2] = true, math.max(0, now), math.max(0, use[2] + math.min(0, now))
end
local function fly(id, by)
  rates[id].change, flying[id] = rates[id].change + by, (flying[id] or 0) + by
end
local function usedOf(use) return use[1] + use[2] - math.ceil(use[2] * place / MINUTE) end
-- The time until no more than `most` is used.
local function untilBelow(use, most)
  if usedOf(use) <= most then return 0 end
  local function from(count, rest) return math.floor(MINUTE * (count - rest - 1) / count) + 1 end
  return use[1] > most and MINUTE - place + from(use[1], most) or from(use[2], most - use[1]) - place
end
-- The rate of a limit that keeps a request of so many tokens waiting longest. Clients ignore waits of more than a minute.
local function waitOf(limit, tokens, index)
  if not limit then return nil end
  local rate, longest = rates[limit.id], nil
  local function consider(kind, wait)
    wait = math.min(MINUTE, wait)
    if wait > 0 and (longest == nil or wait > longest.retryIn) then longest = { outcome = 'limited', limit = index, rate = kind, retryIn = wait } end
  end
  if limit.requests then consider('requests', untilBelow(rate.requests, limit.requests - 1)) end
  -- A request for more than the limit has the whole of it to itself, once it is free.
  if limit.tokens then consider('tokens', untilBelow(rate.tokens, limit.tokens - math.min(tokens, limit.tokens))) end
  if limit.parallel and rate.flights + (flying[limit.id] or 0) >= limit.parallel then consider('parallel', SECOND) end
  return longest
end
-- The first entry with room, or the wait for the one that has it first.
local function chooseEntry(asked)
  local soonest
  for i, entry in ipairs(asked.entries) do
    local wait = waitOf(entry, asked.tokens, #asked.limits + i - 1)
    if wait == nil then return i end
    if soonest == nil or wait.retryIn < soonest.retryIn then soonest = wait end
  end
  return nil, soonest
end
local function limitedBy(asked)
  local longest
  local function consider(wait)
    if wait and (longest == nil or wait.retryIn > longest.retryIn) then longest = wait end
  end
  for i, limit in ipairs(asked.limits) do consider(waitOf(limit, asked.tokens, i - 1)) end
  local _, soonest = chooseEntry(asked)
  consider(soonest)
  return longest
end
local function takeRates(asked)
  local chosen = chooseEntry(asked)
  local function take(limit)
    if limit.requests then addUse(rates[limit.id], 'requests', 1) end
    if limit.tokens then addUse(rates[limit.id], 'tokens', math.min(asked.tokens, limit.tokens)) end
    if limit.parallel then fly(limit.id, 1) end
  end
  for _, limit in ipairs(asked.limits) do take(limit) end
  if chosen and asked.entries[chosen] then take(asked.entries[chosen]) end
  return chosen and chosen - 1
end
local function leftOf(asked, entry)
  local left = {}
  for i, limit in ipairs(asked.limits) do
    left[i] = {}
    for _, what in ipairs({ 'requests', 'tokens' }) do
      local use, most = rates[limit.id][what], limit[what]
      if most then left[i][what] = { remaining = math.max(0, most - usedOf(use)), resetIn = untilBelow(use, 0) } end
    end
  end
  return { entry = entry, left = left }
end

-- Lines of a call: { counter, limit or false, spend, risk, returned, registered, ahead }; left out at the end: 0.
local function readLines()
  local lines, names, fields = {}, {}, { '' }
  for i, of in ipairs(given.lines) do names[i], fields[i + 1] = of[1], of[1] end
  recall(names)
  local found = many('HMGET', key('a', given.account), fields)
  for i, of in ipairs(given.lines) do
    local escrow, risk, batch = string.match(found[i + 1] or '0 0 0', '^(%d+) (%d+) (%d+)$')
    lines[i] = {
      name = of[1], counter = counters[of[1]], text = found[i + 1], batch = batch, limit = of[2] and sum(of[2]), spend = amount(of[3] or '0'),
      toldRisk = amount(of[4] or '0'), returned = amount(of[5] or '0'), registered = amount(of[6] or '0'), ahead = amount(of[7] or '0'),
      escrow = amount(escrow), risk = amount(risk),
    }
    lines[i].before, lines[i].isAsked = lines[i].escrow, ZERO < lines[i].ahead
  end
  for _, ask in ipairs(given.asks) do
    for i, index in ipairs(ask.lines) do
      ask.lines[i] = lines[index + 1] or error('an ask names no line', 0)
      ask.lines[i].isAsked = true
    end
    if ask.rates then
      for _, limit in ipairs(ask.rates.limits) do nameRate(limit.id) end
      for _, entry in ipairs(ask.rates.entries) do if entry then nameRate(entry.id) end end
    end
  end
  for _, use in ipairs(given.uses) do nameRate(use.id) end
  return lines, found[1] and cjson.decode(found[1])
end
-- Why nothing is done.
local function obstacle(lines)
  local absent = {}
  for i, line in ipairs(lines) do
    if not line.counter.spent and (line.isAsked or line.spend ~= ZERO) then absent[#absent + 1] = i - 1 end
  end
  if absent[1] then return { outcome = 'absent', absent = absent } end
  for _, line in ipairs(lines) do
    if line.isAsked and (now < line.counter.first or line.counter.last <= now) then return { outcome = 'window' } end
  end
end
local function setAside(line, size) line.escrow, line.counter.held = line.escrow + size, line.counter.held + size end
-- Spend leaves escrow, as far as there is any; idle escrow goes back; live holds are held again.
local function settle(id, head, lines)
  local kept, spent = {}, {}
  head.booked = math.max(head.booked, given.booked)
  for _, batch in ipairs(head.batches) do
    if batch <= head.booked then later('DEL', batchKey(id, batch)) else kept[#kept + 1] = batch end
  end
  head.batches = kept
  for _, line in ipairs(lines) do
    setAside(line, line.registered - min(line.escrow, max(ZERO, line.spend) + line.returned))
    line.risk = line.toldRisk
    if line.spend ~= ZERO then
      line.counter.spent, line.batch, spent[#spent + 1] = line.counter.spent + line.spend, int(given.batch), line.name
    end
  end
  if not spent[1] then return end
  if kept[#kept] ~= given.batch then kept[#kept + 1] = given.batch end
  local told, sums, at = many('HMGET', batchKey(id, given.batch), spent), {}, 0
  for _, line in ipairs(lines) do
    if line.spend ~= ZERO then
      at = at + 1
      sums[#sums + 1], sums[#sums + 2] = line.name, shown(sum(told[at] or '0') + line.spend)
    end
  end
  later('HSET', batchKey(id, given.batch), sums)
end
-- All of an ask or nothing. Spend takes precedence over a rate, a rate over escrow.
local function answer(ask, id)
  local size, least, busy = amount(ask.amount), amount(ask.minAmount), nil
  least = min(size, least)
  for i, line in ipairs(ask.lines) do
    local rest = line.limit and line.limit - line.counter.spent
    if rest and (rest <= ZERO or rest < least) then return { outcome = 'exceeded', counter = i - 1, spent = shown(line.counter.spent) } end
    if rest then size = min(size, rest) end
  end
  local limited = ask.rates and limitedBy(ask.rates)
  if limited then return limited end
  for i, line in ipairs(ask.lines) do
    local counter = line.counter
    if line.limit and ZERO < size and line.limit < counter.spent + counter.held + size then
      busy = busy or { outcome = 'busy', counter = i - 1 }
      -- Two accounts are enough to know whether another one than any was refused.
      counter.refused = ' ' .. id .. ' ' .. nowText .. (string.match(refusedIn(counter, id), '^ %S+ %d+') or '')
    end
  end
  if busy then return busy end
  for _, line in ipairs(ask.lines) do
    if line.limit then setAside(line, size) end
    line.risk = line.risk + size
  end
  return { outcome = 'held', amount = shown(size) }, ask.rates and takeRates(ask.rates) or nil
end
local function answerAll(id)
  local answers = {}
  for i, ask in ipairs(given.asks) do
    if given.deadline < now then answers[i] = { outcome = 'late' }
    else
      local reply, entry = answer(ask, id)
      if reply.outcome == 'exceeded' or reply.outcome == 'busy' then
        for _, line in ipairs(ask.lines) do line.isRefused = true end
      end
      reply.rates = ask.rates and leftOf(ask.rates, entry) or nil
      answers[i] = reply
    end
  end
  return answers
end
-- Escrow ahead of requests: a sixteenth of what is left, divided among the live accounts, and none where anybody is refused.
local function grantAhead(line, live)
  local counter = line.counter
  if not line.limit or line.isRefused or line.ahead == ZERO or now > given.deadline or refusedIn(counter) ~= '' then return end
  if money.times(line.ahead, 16 * live) <= line.limit - counter.spent - counter.held then setAside(line, line.ahead) end
end
local function save(id, head, lines)
  local set, unset = { '', cjson.encode(head) }, {}
  for _, line in ipairs(lines) do
    local text = shown(line.escrow) .. ' ' .. shown(line.risk) .. ' ' .. line.batch
    if text ~= (line.text or '0 0 0') then set[#set + 1], set[#set + 2] = line.name, text end
  end
  for rate, one in pairs(rates) do
    if one.isChanged then
      later('HSET', present, { rate, int(one.requests[1]) .. ' ' .. int(one.tokens[1]) })
      later('HSET', before, { rate, int(one.requests[2]) .. ' ' .. int(one.tokens[2]) })
    end
    if one.change ~= 0 and one.own + one.change == 0 then unset[#unset + 1] = 'p ' .. rate
    elseif one.change ~= 0 then set[#set + 1], set[#set + 2] = 'p ' .. rate, int(one.own + one.change) end
  end
  if rateIds[1] then
    later('PEXPIRE', present, { int(3 * MINUTE) })
    later('PEXPIRE', before, { int(3 * MINUTE) })
  end
  later('HSET', key('a', id), set)
  later('HDEL', key('a', id), unset)
  later('ZADD', leases, { int(head.lease), id })
end

local operations = {}
function operations.call()
  local id, number = given.account, given.number
  local lines, head = readLines()
  local function reply(outcome)
    outcome.now, outcome.calls = now, calls
    return outcome
  end
  local function stale(why) return reply({ outcome = 'stale', why = why }) end
  local isRepeated = head and head.number == number and head.state ~= 'closed' and head.state ~= 'marked'
  if not isRepeated then
    if head and (head.state ~= 'live' or number <= head.number) then return stale('closed') end
    if number ~= (head and head.number or 0) + 1 then return stale('behind') end
    if not head and given.deadline < now then return stale('closed') end
  end
  head = head or { number = 0, state = 'live', lease = 0, booked = 0, batches = {} }
  local others = redis.call('ZCOUNT', leases, '(' .. nowText, '+inf') - (head.lease > now and 1 or 0)
  if not isRepeated then
    calls, head.number, head.lease = calls + 1, number, now + given.lease
    head.outcome = obstacle(lines)
    if head.outcome == nil then
      settle(id, head, lines)
      for _, earlier in ipairs(given.ends) do
        local its = headOf(earlier)
        if its and its.lease > now then others = others - 1 end
        if not its or its.lease > 0 then forget(earlier, its, true) end
      end
      recallRates(id)
      for _, use in ipairs(given.uses) do
        addUse(rates[use.id], 'requests', use.requests)
        addUse(rates[use.id], 'tokens', use.tokens)
        fly(use.id, -math.min(-use.parallel, math.max(0, rates[use.id].own + rates[use.id].change)))
      end
      head.outcome = { outcome = 'done', asks = answerAll(id) }
      for _, line in ipairs(lines) do grantAhead(line, others + 1) end
    else
      lines, rates, rateIds = {}, {}, {}
    end
    save(id, head, lines)
    if given.isLast and head.outcome.outcome == 'done' then
      -- What is left in the account is free.
      for _, line in ipairs(lines) do line.counter.held, line.escrow = line.counter.held + line.before - line.escrow, ZERO end
      for rate, one in pairs(rates) do flying[rate] = (flying[rate] or 0) - one.change end
      forget(id, head, false, 'finished')
    end
  end
  if head.outcome.outcome ~= 'done' then
    if not isRepeated then write() end
    return reply(head.outcome)
  end
  local states, found = {}, {}
  for i, line in ipairs(lines) do
    local counter = line.counter
    local held = counter.spent and counter.held or ZERO
    states[i] = { shown(counter.spent or ZERO), shown(held), shown(line.escrow), refusedIn(counter, id) ~= '' }
  end
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', nowText, 'LIMIT', '0', int(MAX_ENDED + 1))) do
    if other ~= id and not ended[other] and #found < MAX_ENDED then found[#found + 1] = other end
  end
  if not isRepeated then write() end
  local accounts = others + (head.state == 'live' and 1 or 0)
  return reply({ outcome = 'done', asks = head.outcome.asks, lines = states, accounts = accounts, ended = found })
end

function operations.mark()
  local id, head = given.account, headOf(given.account)
  if not head or head.lease == 0 then
    if not head then forget(id, nil) end
    write()
    return { outcome = 'none', now = now }
  end
  if not given.isOwn and head.lease > now then return { outcome = 'live', now = now } end
  local absent, frozen, set, names, figures = {}, {}, {}, figuresOf(id, head)
  recall(names)
  for i, name in ipairs(names) do
    local counter, figure, unbooked = counters[name], figures[name], {}
    if not counter.spent then absent[#absent + 1] = name end
    for _, batch in ipairs(head.batches) do
      local spend = redis.call('HGET', batchKey(id, batch), name)
      if spend then unbooked[#unbooked + 1] = { batch, spend } end
    end
    frozen[i] = { name, figure.escrow, figure.risk, unbooked }
  end
  if absent[1] and not given.isRebuild then return { outcome = 'absent', now = now, counters = absent } end
  head.state, set[#set + 1] = 'marked', ''
  set[#set + 1] = cjson.encode(head)
  later('HSET', key('a', id), set)
  write()
  return { outcome = 'marked', now = now, number = head.number, figures = frozen }
end

function operations.finish()
  local head = headOf(given.account)
  if not head or head.state == 'marked' then forget(given.account, head, given.isCharged) end
  write()
  return {}
end

function operations.load()
  local names, kept = {}, {}
  for i, of in ipairs(given.sums) do names[i] = of[1] end
  recall(names)
  for _, of in ipairs(given.sums) do
    local counter, spent = counters[of[1]], sum(of[2])
    if counter.spent == nil then
      counter.spent, kept[#kept + 1], kept[#kept + 2] = spent, int(math.max(now, counter.last) + KEEP), of[1]
    end
  end
  later('ZADD', prefix .. 'e', kept)
  write()
  return {}
end

function operations.read()
  local states = {}
  recall(given.counters)
  for i, name in ipairs(given.counters) do
    local counter = counters[name]
    states[i] = counter.spent and { shown(counter.spent), shown(counter.held) } or false
  end
  return states
end

function operations.accounts()
  local all = {}
  for i, id in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', given.isEnded and nowText or '+inf', 'LIMIT', '0', int(given.max))) do
    local head = headOf(id)
    all[i] = { account = id, number = head.number, unbooked = head.batches[#head.batches] or 0 }
  end
  return all
end

-- From the end: counters that leave are the first ones.
function operations.loaded()
  local names = redis.call('ZREVRANGE', prefix .. 'e', int(given.from), int(given.from + given.max))
  local next = #names > given.max and given.from + given.max or nil
  names[given.max + 1] = nil
  return { counters = names, next = next }
end

-- Fields of a hash among these names: all are read where that is less.
local function each(hash, names, work)
  if redis.call('HLEN', hash) <= #names then
    local wanted, fields = {}, redis.call('HGETALL', hash)
    for _, name in ipairs(names) do wanted[name] = true end
    for i = 1, #fields, 2 do if wanted[fields[i]] then work(fields[i], fields[i + 1]) end end
  else
    for i, text in ipairs(many('HMGET', hash, names)) do if text then work(names[i], text) end end
  end
end
-- An account is judged by the row that was read before: the sums have its batches up to there, and a charge.
local function auditAccount(id, names, expected)
  local head, row, isMoved = headOf(id), given.rows[id], false
  each(key('a', id), names, function(name, text)
    local escrow, risk, batch = string.match(text, '^(%d+) (%d+) (%d+)$')
    batch = tonumber(batch)
    local hasSpend = risk ~= '0' or batch > head.booked
    if row == nil then isMoved = isMoved or risk ~= '0' or batch > 0
    elseif not row.isClosed and (batch > row.booked and head.booked > row.booked or head.lease == 0 and hasSpend) then isMoved = true
    elseif row.isClosed and row.isCharged and head.lease > 0 then expected[name] = expected[name] - amount(risk)
    elseif escrow == '0' and not hasSpend and head.lease > 0 and batch <= row.booked then later('HDEL', key('a', id), { name }) end
  end)
  if isMoved or row == nil or row.isClosed then return isMoved end
  for _, batch in ipairs(head.batches) do
    if batch > row.booked then
      each(batchKey(id, batch), names, function(name, text) expected[name] = expected[name] + sum(text) end)
    end
  end
  return false
end
function operations.audit()
  local names, expected, differences, moved = {}, {}, {}, {}
  local function done() return { outcome = 'done', now = now, differences = differences, moved = moved } end
  if given.deadline < now then return done() end
  for _, of in ipairs(given.sums) do recall({ of[1] }) end
  for _, of in ipairs(given.sums) do
    if counters[of[1]].spent then names[#names + 1], expected[of[1]] = of[1], sum(of[2]) end
  end
  local ids = redis.call('ZRANGE', leases, '0', '-1')
  for _, id in ipairs(redis.call('ZRANGE', prefix .. 'f', '0', '-1')) do ids[#ids + 1] = id end
  -- So many unbooked amounts might not be exact as doubles.
  if #ids > 300 and money == NARROW then error(WIDE, 0) end
  for _, id in ipairs(ids) do
    if auditAccount(id, names, expected) then moved[#moved + 1] = id end
  end
  if moved[1] then return done() end
  for i, name in ipairs(names) do
    local counter = counters[name]
    if expected[name] ~= counter.spent then differences[#differences + 1] = { name, shown(expected[name] - counter.spent) } end
    counter.spent = expected[name]
  end
  write()
  return done()
end

local function wipe()
  for _, kind in ipairs({ 'l', 'f' }) do
    for _, id in ipairs(redis.call('ZRANGE', prefix .. kind, '0', '-1')) do
      local head = headOf(id)
      for _, batch in ipairs(head and head.batches or {}) do redis.call('UNLINK', batchKey(id, batch)) end
      redis.call('UNLINK', key('a', id))
    end
  end
  for _, name in ipairs({ 'c', 'e', 'l', 'f', 'p' }) do redis.call('UNLINK', prefix .. name) end
  redis.call('DEL', present, before, KEYS[1])
end
function operations.begin()
  if given.epoch <= epoch then return { epoch = epoch } end
  wipe()
  redis.call('HSET', KEYS[1], 'layout', LAYOUT, 'epoch', int(given.epoch), 'now', nowText)
  return { epoch = given.epoch }
end
function operations.clear()
  wipe()
  return {}
end
return operations[operation]()
end

-- A step that names an epoch does nothing in another one.
if given.epoch and operation ~= 'begin' and given.epoch ~= epoch then
  return cjson.encode({ outcome = 'epoch', now = now, epoch = epoch })
end
local isDone, answer = pcall(run, NARROW)
if not isDone and answer == WIDE then
  given = cjson.decode(ARGV[2])
  calls, swept = tonumber(meta[3] or '0'), tonumber(meta[5] or '0')
  isDone, answer = pcall(run, wideMoney())
end
if isDone then return cjson.encode(answer) end
-- Errors keep the server's text: clients recognise a replica by its first word.
return { err = type(answer) == 'table' and answer.err or answer }
